"""Facts that the local engine keeps about a prepared query, to skip work in its next run.

They belong to one prepared statement, so to one text, one metadata file of each table and one set
of settings; only values of parameters differ.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from icesql.engine.duckdb.relations import grouping
from icesql.frozen import Frozen
from icesql.storage.cache import BoundedCache

if TYPE_CHECKING:
    from icesql.engine.duckdb.relations.footer import FileFacts
    from icesql.engine.duckdb.relations.grouping import FileGroup
    from icesql.engine.duckdb.relations.relation import Relation
    from icesql.scan.plan import ScanPlan
    from icesql.scan.tasks import FileScanTask

    # A relation and its files.
    Part = tuple[Relation, tuple[FileScanTask, ...]]

# The most files of a scan, unless the plans of the query are kept.
_MOST_FILES: Final = 16
_MOST_FILES_OF_PLANS: Final = 2_000
_MOST_SCANS: Final = 64
# The most versions of the SQL of the scans of one query.
_MOST_DESCRIBED: Final = 8
# At most this many rows are fetched when the query is bound.
FEW_ROWS: Final = 64


class KnownScan(Frozen):
    """How the engine reads some files of a scan; ``parts`` are combined by UNION ALL.

    ``facts`` are facts about its files, by location.
    """

    folders: frozenset[str]
    parts: tuple[Part, ...]
    facts: Mapping[str, FileFacts]


class PreparedRun:
    """Facts from the runs of one prepared query. Thread-safe: each fact is one assignment.

    ``gives_few_rows``: the last run returned at most ``FEW_ROWS``, and they were read as rows.
    ``runs_unchanged``: DuckDB may run the tree unchanged, whatever values it compares.
    ``scans`` has a ``KnownScan`` by index and paths of the files. ``described`` has the query's
    ``Described`` by name and SQL of each scan; only values differ else, on which no type depends.
    """

    def __init__(self) -> None:
        self.gives_few_rows = False
        self.runs_unchanged = False
        self.scans, self.described = BoundedCache(_MOST_SCANS), BoundedCache(_MOST_DESCRIBED)
        self._most_files = _MOST_FILES

    def begin_plans(self) -> None:
        """From now on the plans of this query are kept, so large scans are read again, too."""
        self._most_files = _MOST_FILES_OF_PLANS

    def known_scans(self, plans: Sequence[ScanPlan]) -> list[KnownScan] | None:
        """One for each plan; None if one is unknown, or has rows that are not from its files."""
        if not all(map(self._is_of_few_files, plans)):
            return None
        known = (self.scans.get((index, _paths(plan))) for index, plan in enumerate(plans))
        found = [each for each in known if each is not None]
        return found if len(found) == len(plans) else None

    def note_scan(
        self,
        index: int,
        plan: ScanPlan,
        folders: set[str],
        confirmed: Sequence[FileGroup],
        parts: Sequence[Part],
        facts: Mapping[str, FileFacts],
    ) -> None:
        """Keep how a plan is read, if the engine reads all its files by itself."""
        is_plain = (
            self._is_of_few_files(plan)
            and bool(parts)
            and all(group.name == grouping.DUCKDB for group in confirmed)
            and _are_local(plan)
        )
        if not is_plain:
            return
        known = KnownScan(frozenset(folders), tuple(parts), facts)
        self.scans.put((index, _paths(plan)), known, 1)

    def note_row_count(self, count: int | None) -> None:
        """Record how many rows a run returned; None if they were many, or not read as rows."""
        self.gives_few_rows = count is not None and count <= FEW_ROWS

    def _is_of_few_files(self, plan: ScanPlan) -> bool:
        """True if the rows of a plan are exactly the rows of its files, of which there are few."""
        return (
            0 < len(plan.files) <= self._most_files
            and not plan.constants
            and plan.metadata is None
            and plan.rows_read is None
            and plan.changes is None
            and plan.scan.limit is None
        )


def _are_local(plan: ScanPlan) -> bool:
    """True if all files are local; downloaded copies exist for one query only."""
    storage = plan.context.storage
    return storage.reroot is not None or all(
        storage.local_path(task.data_file.path) is not None for task in plan.files
    )


def _paths(plan: ScanPlan) -> tuple[str, ...]:
    # All other facts about a file are in the metadata file.
    return tuple(task.data_file.path for task in plan.files)
