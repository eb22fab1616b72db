"""Decide which statements run in Spark's tasks, and divide the files among tasks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from icesql.engine.engines import engine_for
from icesql.engine.spark.fragments.division import is_divisible
from icesql.errors import UnsupportedSqlError
from icesql.frozen import Frozen
from icesql.modify.services import StatementServices
from icesql.query.bound import BoundQuery
from icesql.scan.deletes.delete_index import partition_of
from icesql.scan.plan import ScanPlan
from icesql.scan.tasks.task import FileScanTask, content_bytes, without_metrics

if TYPE_CHECKING:
    from icesql.modify.services import Narrow, Scans
    from icesql.sql.statement import Query

# Limits of bytes and files of other tables that every task may read; file names go to each task.
_MOST_WHOLE_BYTES: Final = 256 << 20
_MOST_WHOLE_FILES: Final = 1_000
_TASK_BYTES: Final = 128 << 20
_SMALL_BYTES: Final = 16 << 20
_OPEN_BYTES: Final = 4 << 20


class Division(Frozen):
    """A query over a table, scan number ``index``, which tasks run on parts of that table."""

    bound: BoundQuery
    plans: tuple[ScanPlan, ...]
    index: int

    @property
    def files(self) -> tuple[FileScanTask, ...]:
        """The table's files that may have rows of the query."""
        return self.plans[self.index].files


def same(scans: Scans) -> Scans:
    """Return the scans unchanged."""
    return scans


def goes_to_spark(services: StatementServices, plans: Sequence[ScanPlan], besides: int = 0) -> bool:
    """True if the setting ``engine`` sends a statement to Spark that reads these plans, and
    ``besides`` more bytes."""
    if services.query.settings.engine == "local":
        return False
    size = besides + sum(each.projected_bytes for each in plans)
    return engine_for(size, services.query.settings).name == "spark"


def division_of(read: Query, index: int, services: StatementServices) -> Division | None:
    """The division of a statement that changes the rows its query finds in table number ``index``.

    None if the statement runs on this machine, if its rows cannot be found from parts of the table
    alone, or if each task would read too much of other tables.
    """
    if services.query.settings.engine == "local" or read.refused is not None:
        return None
    try:
        bound, plans = services.plan_here(read, {}, lambda scans: _with_all_deletes(scans, index))
    except UnsupportedSqlError:
        if read.spark is None:
            raise
        # Syntax that only Spark supports.
        return None
    if not goes_to_spark(services, plans) or bound.files or bound.only_text:
        return None
    if not is_divisible(bound.tree, index) or not _reads_little(plans, index):
        return None
    if not _travels(plans):
        return None
    return Division(bound, plans, index)


def planned_division(
    read: Query,
    services: StatementServices,
    tables: Mapping[str, Any],
    narrow: Narrow,
    index_of: Callable[[Scans], int],
    besides: int,
) -> Division | None:
    """As ``division_of``, for a query that is known to run on parts of a table.

    ``besides`` are bytes of rows in memory that tasks insert, too. None if the statement runs on
    this machine, or there is nothing to divide or insert. Raises UnsupportedSqlError for tables
    that tasks cannot read, unless the setting ``engine`` is "auto".
    """

    def changed(scans: Scans) -> Scans:
        made = narrow(scans)
        return _with_all_deletes(made, index_of(made))

    bound, plans = services.plan_here(read, tables, changed)
    found = Division(bound, plans, index_of(bound.scans))
    if not goes_to_spark(services, plans, besides) or not (found.files or besides):
        return None
    if _travels(plans) and not bound.files:
        return found
    if services.query.settings.engine == "auto":
        return None
    raise UnsupportedSqlError(
        "a condition on a metadata table, on a DataFrame, on CHANGES or on files of this machine "
        "with MERGE on the Spark engine",
        hint="SET engine = 'local'",
    )


def _with_all_deletes(scans: Scans, index: int) -> Scans:
    """The scans, with all deletes for the changed table: its files are rewritten from this plan.

    A filtered plan would leave out deletes of rows that the filter does not match.
    """
    whole = replace(scans[index], all_deletes=True)
    return (*scans[:index], whole, *scans[index + 1 :])


def _travels(plans: Sequence[ScanPlan]) -> bool:
    """True if tasks can read the tables: no metadata tables or CHANGES, which need this process."""
    return all(each.metadata is None and each.changes is None for each in plans)


def _reads_little(plans: Sequence[ScanPlan], index: int) -> bool:
    others = [each for place, each in enumerate(plans) if place != index and each.rows_read is None]
    size = sum(each.projected_bytes for each in others)
    files = sum(len(each.files) for each in others)
    return size <= _MOST_WHOLE_BYTES and files <= _MOST_WHOLE_FILES


def parts_for(size: int, slots: int, *, few: bool) -> int:
    """How many tasks insert ``size`` bytes of rows: if ``few``, as few as the largest task size
    allows; else as many as run at once, fewer if they would be small, more if too large."""
    least = 1 if few else min(slots, -(-size // _SMALL_BYTES))
    return max(1, least, -(-size // _TASK_BYTES))


def parts_of(files: Sequence[FileScanTask], slots: int) -> list[list[FileScanTask]]:
    """The files in parts of about equal size; files of neighbouring partitions stay together.

    There are as many parts as tasks run at once, and more if these would be large.
    """
    ordered = sorted(files, key=lambda each: repr(partition_of(each.data_file)))
    sizes = [each.length + _OPEN_BYTES + content_bytes(each.deletes) for each in ordered]
    count = min(len(ordered), max(slots, -(-sum(sizes) // _TASK_BYTES)))
    parts: list[list[FileScanTask]] = [[] for _ in range(count)]
    total, before = sum(sizes), 0
    for size, each in zip(sizes, ordered, strict=True):
        # Placed by the middle of the file, so that rounding does not leave a large file alone.
        parts[min((before + size // 2) * count // total, count - 1)].append(each)
        before += size
    return [each for each in parts if each]


def light(plan: ScanPlan) -> ScanPlan:
    """The plan to send to tasks: without what only planning needs."""
    scan = plan.scan
    metadata = scan.table.metadata.without_history()
    table = replace(scan.table, metadata=metadata, reports=None, planning=None, document=None)
    files = tuple(replace(each, data_file=without_metrics(each.data_file)) for each in plan.files)
    scan = replace(scan, table=table, snapshot=None, file_conditions=(), rows=None)
    return replace(plan, scan=scan, files=files, survivors=(), skipped=())
