"""What is known of a query that is asked again and again, and need not be found out once more.

It is kept with the bound query, so for one text, one metadata file of each table and one set of
settings; only values of parameters differ.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from icesql.engine.duckdb.relations import grouping
from icesql.engine.result_rows import row_expression
from icesql.engine.result_schema import ResultType
from icesql.query.kept.plans import PLANNED

if TYPE_CHECKING:
    from icesql.engine.duckdb.relations.grouping import FileGroup
    from icesql.engine.duckdb.relations.relation import Relation
    from icesql.scan.plan import ScanPlan
    from icesql.scan.tasks.task import FileScanTask

_MOST_FILES: Final = 16
_MOST_SCANS: Final = 64
_SCANS: Final = "scans"
_FEW: Final = "few rows"
# What ``lookups`` keeps.
LOOKUPS: Final = "lookups"
# So few rows are fetched as the query is bound.
MOST_ROWS: Final = 64
_CHECKED: Final = ("date", "timestamp")
# What the engine gives for an infinity, too.
_ENDS: Final = frozenset((date.min, date.max, datetime.min, datetime.max))


class KnownScan(Struct, frozen=True):
    """How the engine reads some files of a scan; ``parts`` are united."""

    folders: frozenset[str]
    groups: tuple[str, ...]
    parts: tuple[tuple[Relation, tuple[FileScanTask, ...]], ...]


def known_scans(before: dict[Any, Any], plans: Sequence[ScanPlan]) -> list[KnownScan] | None:
    """One for each plan; None where any is unknown, or gives other rows than those of its files."""
    if not all(map(_is_of_files, plans)):
        return None
    scans, planned = before.get(_SCANS, {}), before.get(PLANNED, {})
    found = []
    for index, plan in enumerate(plans):
        if len(plan.files) > _MOST_FILES:
            files, known = planned.get(index, (None, None))
            known = known if files is plan.files else None
        else:
            known = scans.get((index, _files(plan)))
        if known is None:
            return None
        found.append(known)
    return found


def note_scan(
    before: dict[Any, Any],
    index: int,
    plan: ScanPlan,
    folders: set[str],
    confirmed: Sequence[FileGroup],
    parts: Sequence[tuple[Relation, tuple[FileScanTask, ...]]],
) -> None:
    """Remember how a plan is read, if it is plain: all files by the engine alone.

    Of many files only while their plan is kept.
    """
    is_plain = (
        _is_of_files(plan)
        and bool(parts)
        and all(group.name == grouping.DUCKDB for group in confirmed)
        and _are_here(plan)
    )
    if not is_plain:
        return
    groups = tuple(group.name for group in confirmed for _ in group.tasks)
    known = KnownScan(frozenset(folders), groups, tuple(parts))
    if len(plan.files) > _MOST_FILES:
        if PLANNED in before:
            before[PLANNED][index] = plan.files, known
        return
    scans = before.setdefault(_SCANS, {})
    if len(scans) >= _MOST_SCANS:
        scans.clear()
    scans[index, _files(plan)] = known


def _is_of_files(plan: ScanPlan) -> bool:
    """Whether the rows of a plan are all rows of its files, and no others."""
    return (
        bool(plan.files)
        and not plan.constants
        and plan.metadata is None
        and plan.rows_read is None
        and plan.changes is None
        and plan.scan.limit is None
    )


def _are_here(plan: ScanPlan) -> bool:
    """Whether all files lie on this machine: what stands for others is there for one query."""
    storage = plan.context.storage
    return storage.reroot is not None or all(
        storage.local_path(task.data_file.path) is not None for task in plan.files
    )


def _files(plan: ScanPlan) -> tuple[str, ...]:
    # The metadata file says all else of a file.
    return tuple(task.data_file.path for task in plan.files)


def expects_few(before: dict[Any, Any]) -> bool:
    """Whether the query gave few rows when it was asked last, and they were read as rows."""
    return before.get(_FEW, False) is True


def expect_few(before: dict[Any, Any], count: int | None) -> None:
    """Note how many rows a query gave; None if they were many, or not read as rows."""
    before[_FEW] = count is not None and count <= MOST_ROWS


def quick_expression(column: str, declared: ResultType, *, infinite: bool) -> str:
    """As ``row_expression``, without checks that cost more than looking at a few values."""
    if declared.kind in _CHECKED:
        return column
    return row_expression(column, declared, infinite=infinite)


def have_doubt(rows: Sequence[tuple[Any, ...]], types: Sequence[ResultType]) -> bool:
    """Whether a check that ``quick_expression`` leaves out might have found something.

    A value beyond the years 1 to 9999 comes as text, an infinity as the first or last moment.
    """
    places = [place for place, each in enumerate(types) if each.kind in _CHECKED]
    return any(
        isinstance(row[place], str) or row[place] in _ENDS for place in places for row in rows
    )
