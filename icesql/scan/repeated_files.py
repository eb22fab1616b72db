"""Data files that a table lists more than once: their rows come as often, as in other engines.

``add_files`` makes them with files that the table already has, if its check is switched off. A
change of some of their rows would have to distinguish the listings, which no delete can.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from icesql.errors import ProgrammingError
from icesql.scan.plan import ScanPlan
from icesql.scan.tasks.task import FileScanTask


def repeated_note(plan: ScanPlan) -> str:
    """The note for a plan that reads such files."""
    first, *more = plan.repeated
    others = f" and {len(more)} more" if more else ""
    table = plan.scan.table.name
    return (
        f"{table} lists {first}{others} more than once, and its rows come as often; "
        f"{_mended(table)} gives each of them a place of its own"
    )


def refuse_repeated(files: Iterable[FileScanTask], table: str) -> None:
    """Raise ProgrammingError for a change of rows in a file that is listed more than once."""
    times = Counter(each.data_file.path for each in files)
    for path, count in times.items():
        if count > 1:
            raise ProgrammingError(
                f"{table} lists {path} {count} times, so that none of its rows can change alone; "
                f"{_mended(table)} gives each of them a place of its own, then run this again"
            )


def _mended(table: str) -> str:
    return (
        f"CALL system.rewrite_data_files(table => '{table}', options => map('rewrite-all', 'true'))"
    )
