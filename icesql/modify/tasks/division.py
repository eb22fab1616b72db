"""Which statements Spark's tasks run, and which files each of them is given."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct
from msgspec.structs import replace

from icesql.engine.engines import engine_for
from icesql.engine.spark.fragments.division import is_divisible
from icesql.errors import UnsupportedSqlError
from icesql.modify.services import StatementServices
from icesql.query.bound import BoundQuery
from icesql.scan.deletes.delete_index import partition_key
from icesql.scan.plan import ScanPlan
from icesql.scan.table_scan import TableScan
from icesql.scan.tasks.task import FileScanTask, content_bytes, without_metrics

if TYPE_CHECKING:
    from icesql.sql.statement import Query

# Stored bytes of other tables that every task may read, and files: their names travel with each.
_MOST_WHOLE_BYTES: Final = 256 << 20
_MOST_WHOLE_FILES: Final = 1_000
_TASK_BYTES: Final = 128 << 20
_SMALL_BYTES: Final = 16 << 20
_OPEN_BYTES: Final = 4 << 20
Narrow = Callable[["tuple[TableScan, ...]"], "tuple[TableScan, ...]"]


class Division(Struct, frozen=True):
    """A query over a table, scan number ``index``, that tasks ask of parts of it."""

    bound: BoundQuery
    plans: tuple[ScanPlan, ...]
    index: int

    @property
    def scan(self) -> TableScan:
        """The table that is divided."""
        return self.bound.scans[self.index]

    @property
    def files(self) -> tuple[FileScanTask, ...]:
        """Its files that may have rows of the query."""
        return self.plans[self.index].files


def same(scans: tuple[TableScan, ...]) -> tuple[TableScan, ...]:
    """The scans as they are."""
    return scans


def goes_to_spark(services: StatementServices, plans: Sequence[ScanPlan], besides: int = 0) -> bool:
    """Whether the setting ``engine`` sends a statement that reads these plans to Spark, and so many
    bytes besides."""
    if services.query.settings.engine == "local":
        return False
    size = besides + sum(each.projected_bytes for each in plans)
    return engine_for(size, services.query.settings).name == "spark"


def division_of(read: Query, index: int, services: StatementServices) -> Division | None:
    """How tasks change the rows that a query finds in its table number ``index``.

    None where the statement is for this machine, or where parts of the table do not tell the rows
    of it, or each of them would read too much of other tables.
    """
    if services.query.settings.engine == "local" or read.refused is not None:
        return None
    try:
        bound, plans = services.plan_here(read, {}, lambda scans: _with_all_deletes(scans, index))
    except UnsupportedSqlError:
        if read.spark is None:
            raise
        # Words that Spark alone has.
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
    index_of: Callable[[tuple[TableScan, ...]], int],
    besides: int = 0,
) -> Division | None:
    """The same of a query that is known to be one for parts of a table.

    ``besides`` are bytes of rows in memory that tasks insert, too. None where the statement is for
    this machine, or there is nothing to divide or insert. Raises UnsupportedSqlError for
    what tasks cannot read, unless the engine is chosen by what a statement reads.
    """

    def changed(scans: tuple[TableScan, ...]) -> tuple[TableScan, ...]:
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
        "a condition on a metadata table, on CHANGES or on files of this machine with MERGE on "
        "the Spark engine",
        hint="SET engine = 'local'",
    )


def _with_all_deletes(scans: tuple[TableScan, ...], index: int) -> tuple[TableScan, ...]:
    """The scans; new files of the table that is changed are made of the files of its plan.

    A filter would leave out deletes of rows that it does not match.
    """
    whole = replace(scans[index], all_deletes=True)
    return (*scans[:index], whole, *scans[index + 1 :])


def _travels(plans: Sequence[ScanPlan]) -> bool:
    """Whether tasks can read the tables: not what only this process knows."""
    return all(each.metadata is None and each.changes is None for each in plans)


def _reads_little(plans: Sequence[ScanPlan], index: int) -> bool:
    others = [each for place, each in enumerate(plans) if place != index and each.rows_read is None]
    size = sum(each.projected_bytes for each in others)
    files = sum(len(each.files) for each in others)
    return size <= _MOST_WHOLE_BYTES and files <= _MOST_WHOLE_FILES


def parts_for(size: int, slots: int, *, few: bool) -> int:
    """How many tasks insert ``size`` bytes of rows: ``few``, as large as they may be, or as many as
    run at once unless they were small; more where each would be too large."""
    least = 1 if few else min(slots, -(-size // _SMALL_BYTES))
    return max(1, least, -(-size // _TASK_BYTES))


def parts_of(files: Sequence[FileScanTask], slots: int) -> list[list[FileScanTask]]:
    """The files in parts of about the same weight, neighbours in partitions together.

    There are as many as tasks run at once, more where these would be large.
    """
    ordered = sorted(
        files, key=lambda each: (each.spec_id, repr(partition_key(each.data_file.partition)))
    )
    sizes = [each.length + _OPEN_BYTES + content_bytes(each.deletes) for each in ordered]
    count = min(len(ordered), max(slots, -(-sum(sizes) // _TASK_BYTES)))
    parts: list[list[FileScanTask]] = [[] for _ in range(count)]
    total, before = sum(sizes), 0
    for size, each in zip(sizes, ordered, strict=True):
        # By the middle of the file, so that a large one is not alone in its part by chance.
        parts[min((before + size // 2) * count // total, count - 1)].append(each)
        before += size
    return [each for each in parts if each]


def light(plan: ScanPlan) -> ScanPlan:
    """A plan as it travels: without what only planning looks at."""
    scan = plan.scan
    metadata = scan.table.metadata.without_history()
    table = replace(scan.table, metadata=metadata, reports=None, planning=None, document=None)
    files = tuple(replace(each, data_file=without_metrics(each.data_file)) for each in plan.files)
    scan = replace(scan, table=table, snapshot=None, file_conditions=(), rows=None)
    return replace(plan, scan=scan, files=files, survivors=(), skipped=())
