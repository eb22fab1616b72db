"""Decides which statements run in Spark's tasks, divides files among tasks, and runs these."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any, Final, Self, cast

from msgspec.structs import replace

from icesql.commit.file_changes import FileKey, file_key
from icesql.context import Progress
from icesql.engine.engines import engine_for
from icesql.engine.result_schema import arrow_schema
from icesql.engine.spark.fragments.fragment import is_divisible
from icesql.errors import Error, UnsupportedSqlError
from icesql.frozen import Frozen
from icesql.iceberg.expressions.predicate import ALWAYS_TRUE
from icesql.iceberg.manifest.data_file import DataFile
from icesql.modify.rows.commit import (
    ChangedRows,
    RowTarget,
    change_rows,
    check_same_columns,
    check_target,
    commit_files,
    files_of,
    repeated,
    row_target,
)
from icesql.modify.rows.new_files import FileNames
from icesql.modify.services import StatementServices
from icesql.modify.tasks.broadcast import BroadcastTable, broadcast
from icesql.modify.tasks.job import (
    ChangeTask,
    ChangeWork,
    FoundRowsJob,
    SharedWork,
)
from icesql.query.bound import BoundQuery
from icesql.scan.deletes.delete_index import partition_of
from icesql.scan.plan import ScanPlan, TableScan, refuse_repeated
from icesql.scan.planner import plan_snapshot
from icesql.scan.tasks import FileScanTask, content_bytes, without_metrics
from icesql.work.run import Runner, Work, files_of_tasks, run_in_spark
from icesql.write.options import data_locations
from icesql.write.write_task import distribution
from icesql.write.written import Written, decoding, reported, types_of

if TYPE_CHECKING:
    from icesql.catalog.table import Catalog, Table
    from icesql.commit.branches import Branch
    from icesql.engine.engines import RowsResult
    from icesql.modify.merge.source import SourcePart
    from icesql.modify.rows.commit import Command
    from icesql.modify.services import Narrow, Scans
    from icesql.modify.tasks.job import QueryRows
    from icesql.query.views.temporary import TemporaryTable
    from icesql.scan.plan import ScanPlan
    from icesql.sql.statement import Query


# ------------------------------------------------------------------ division


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


# ------------------------------------------------------------------ run


# The most files that are sent to every task which changes found rows: some hundred bytes each.
_MOST_FILES: Final = 50_000


class Part(Frozen):
    """The input of one task: the files that it may change, the same files as its query reads them,
    and the part of a table in memory that it reads, None for the whole of it."""

    files: tuple[FileScanTask, ...] = ()
    read: tuple[FileScanTask, ...] = ()
    part: SourcePart | None = None


def change_by_query(
    read: Query,
    index: int,
    rows: QueryRows,
    place: tuple[Catalog, Table, Branch],
    command: Command,
    services: StatementServices,
) -> ChangedRows:
    """Change the rows that a query finds in its table number ``index``, in tasks or locally.

    ``place`` has the table that the statement was parsed for. Raises as ``change_rows`` and
    ``TaskRun``.
    """
    catalog, table, branch = place

    def target_of(scans: Sequence[TableScan]) -> RowTarget:
        if command == "update":
            check_same_columns(scans[index].table, table)
        alone = len(scans) == 1
        return row_target(catalog, scans[index], command=command, branch=branch, alone=alone)

    division = division_of(read, index, services)
    if division is not None and division.files:
        target = target_of(division.bound.scans)
        with TaskRun(target, services) as run:
            changed = run.change(division, rows)
        return commit_files(target, changed, services)
    result, scans = services.run(read) if division is None else services.run_here(read, {}, same)
    with closing(result):
        target = target_of(scans)
        if hasattr(result, "run_over_rows"):
            with TaskRun(target, services) as run:
                found = run.change_found(cast("RowsResult", result), rows)
            if found is not None:
                return commit_files(target, found, services)
        reader = result.arrow_reader()
        files = files_of(target, services.query)
        made = rows.begin(reader.schema, (), files, services.query)
        batches = made.batches(reader)
        return change_rows(target, batches, services, new=made.new, once=rows.once)


class TaskRun:
    """The tasks of one statement, as a context manager; leaving with an error removes their files.

    Methods raise what a task raises, QueryCancelledError, and OperationalError for a task that
    crashes its worker on every attempt.
    """

    def __init__(
        self,
        target: RowTarget,
        services: StatementServices,
        sent: BroadcastTable | None = None,
    ) -> None:
        """``sent`` is a table in memory that tasks can read already."""
        self._target, self._services = target, services
        self._by_deletes = check_target(target)
        self._storage = target.table.storage
        self._new = files_of_tasks(target.metadata, self._storage)
        self._names = FileNames(self._new.mark)
        self._sent = {} if sent is None else {sent.name: sent}
        self._changed, self._known = list[Written](), dict[FileKey, DataFile]()
        self._ended = self._begun = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is None:
            self._new.hand_over(path for each in self._changed for path in each.paths)
        self._new.__exit__(kind, error, trace)

    def change(self, division: Division, rows: QueryRows) -> Written:
        """Change the rows of the files of a table; notes are the matches of each task.

        Raises ProgrammingError where one of the files is listed more than once.
        """
        # Two tasks might get one copy each.
        refuse_repeated(division.files, self._target.table.name)
        files = self._files(division)
        residuals = {each.data_file.path: each.residual for each in division.files}

        def part(given: Sequence[FileScanTask]) -> Part:
            bare = tuple(
                replace(e, data_file=without_metrics(e.data_file), residual=ALWAYS_TRUE)
                for e in given
            )
            return Part(bare, tuple(replace(e, residual=residuals[e.data_file.path]) for e in bare))

        self._know(files)
        return self._run(division, rows, lambda slots: map(part, parts_of(files, slots)))

    def insert(
        self,
        division: Division,
        rows: QueryRows,
        parts: Callable[[int, bool], Sequence[SourcePart]],
    ) -> Written:
        """Insert the rows of a query over parts of a table in memory, without data files.

        ``parts`` gets the number of tasks that run at once, and whether few large parts are better,
        because each task writes a file for each of its partitions.
        """
        metadata = self._target.metadata
        few = distribution(metadata.properties, metadata.spec, is_sorted=False) != "none"
        return self._run(
            division, rows, lambda slots: (Part(part=each) for each in parts(slots, few))
        )

    def change_found(self, result: RowsResult, rows: QueryRows) -> Written | None:
        """Change the rows of a Spark query, whose first column is the file.

        None if the rows come to this process, or the table has too many files to send to each task.
        """
        target, query = self._target, self._services.query
        planned = plan_snapshot(target.table, target.snapshot, query)
        if len(planned.files) > _MOST_FILES:
            return None
        self._know(planned.files)
        own = light(planned)
        job = FoundRowsJob(self._change(own, rows), own.files, self._names)
        # Run once without rows: values of some types can never be stored, which raises here.
        job.change.write((), arrow_schema(result.columns), own.files, self._names, query)

        types = types_of(target.metadata)
        found = result.run_over_rows(
            job, lambda described: Written.of(reported(described, types, self._new)), together=0
        )
        return None if found is None else self._take(found)

    def _run(
        self,
        division: Division,
        rows: QueryRows,
        parts: Callable[[int], Iterable[Part]],
    ) -> Written:
        """Run a task for each part, and check its result."""
        target, query, done, size = self._target, self._services.query, list[Written](), 0
        try:
            shared = self._shared(division, rows)
            work = Work(
                lambda slots: self._tasks(division, shared, parts(slots)),
                target.metadata,
                self._new,
                query,
            )
            run: Runner[ChangeTask] = run_in_spark(self._services.engines.spark())
            with closing(run(work)) as results:
                for _, made in results:
                    if isinstance(made, Exception):
                        raise made
                    done.append(self._take(made))
                    self._ended += 1
                    size += made.bytes
                    query.report(Progress("changing files", self._ended, self._begun, size))
        except Error as error:
            raise division.bound.placed(error) from error.__cause__
        return Written.of(done)

    def _files(self, division: Division) -> Sequence[FileScanTask]:
        """The files that the query reads, with all their deletes."""
        target = self._target
        if division.plans[division.index].planned_by is None:
            return division.files
        # A catalog that plans scans may leave out deletes.
        paths = {each.data_file.path for each in division.files}
        return files_of(target, self._services.query)(target.metadata.schema, paths)[0]

    def _shared(self, division: Division, rows: QueryRows) -> SharedWork:
        plans = tuple(light(each) for each in division.plans)
        bound = replace(
            division.bound,
            scans=tuple(each.scan for each in plans),
            temporary=(),
            sources=None,
            notes=(),
            resolved=(),
        )
        tables = self._broadcast(division.bound.temporary)
        return SharedWork(bound, tables, self._change(plans[division.index], rows))

    def _change(self, own: ScanPlan, rows: QueryRows) -> ChangeWork:
        """The shared work of tasks on the table, whose schema may be wider than the plan's."""
        query, metadata, context = self._services.query, own.scan.table.metadata, own.context
        if self._target.schema is not None:
            metadata = self._target.metadata.without_history()
            context = replace(context, schema=metadata.schema, file_schema=metadata.file_schema)
        return ChangeWork(
            metadata,
            self._storage,
            context,
            replace(query.settings, engine="local", verify="normal"),
            query.now,
            rows,
            self._by_deletes,
            repeated(self._target),
        )

    def _broadcast(self, tables: Sequence[TemporaryTable]) -> tuple[BroadcastTable, ...]:
        """The tables for tasks; each is sent once."""
        new = [each for each in tables if each.name not in self._sent]
        locations = data_locations(self._target.metadata)
        for table in new:
            name = f"rows-{self._names.operation}-{len(self._sent)}.arrow"
            made = broadcast(table, locations.path(name), self._storage)
            self._sent[table.name] = made
            self._new.take(made.paths)
        return tuple(self._sent[each.name] for each in tables)

    def _tasks(
        self, division: Division, shared: SharedWork, parts: Iterable[Part]
    ) -> Iterator[ChangeTask]:
        index = division.index
        plans = [light(each) for each in division.plans]
        given = [*parts]
        first = self._begun
        self._begun += len(given)
        for number, part in enumerate(given, first):
            plans[index] = replace(plans[index], files=part.read, rows_read=None)
            names = replace(self._names, number=number)
            yield ChangeTask(shared, tuple(plans), part.files, names, part.part)

    def _know(self, tasks: Iterable[FileScanTask]) -> None:
        """Allow tasks to remove these files."""
        self._known |= {
            file_key(each): each for task in tasks for each in (task.data_file, *task.deletes)
        }

    def _take(self, written: Written) -> Written:
        """Replace removed files by the known ones, and collect the result.

        Raises InternalError for an unknown file, and for one that was removed before.
        """
        with decoding():
            removed = tuple(self._known.pop(file_key(each)) for each in written.removed)
        written = replace(written, removed=removed)
        self._changed.append(written)
        return written
