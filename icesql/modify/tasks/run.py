"""Run a division in Spark's tasks, and combine their results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Final, Self, cast

from msgspec.structs import replace

from icesql.commit.files import FileKey, file_key
from icesql.context import Progress
from icesql.engine.result_schema import arrow_schema
from icesql.errors import Error
from icesql.frozen import Frozen
from icesql.iceberg.expressions.predicate import ALWAYS_TRUE
from icesql.iceberg.manifest.data_file import DataFile
from icesql.modify.rows.commit import (
    ChangedRows,
    change_rows,
    check_target,
    commit_files,
    files_of,
    repeated,
)
from icesql.modify.rows.new_files import FileNames
from icesql.modify.rows.target import RowTarget, check_same_columns, row_target
from icesql.modify.services import StatementServices
from icesql.modify.tasks.broadcast import BroadcastTable, broadcast
from icesql.modify.tasks.division import Division, division_of, light, parts_of, same
from icesql.modify.tasks.job import (
    ChangeTask,
    ChangeWork,
    FoundRowsJob,
    SharedWork,
)
from icesql.scan.planner import plan_snapshot
from icesql.scan.repeated_files import refuse_repeated
from icesql.scan.table_scan import TableScan
from icesql.scan.tasks.task import FileScanTask, without_metrics
from icesql.work.run import Runner, Work, files_of_tasks, run_in_spark
from icesql.write.locations import data_locations
from icesql.write.write_task import distribution
from icesql.write.written import Written, decoding, reported, types_of

if TYPE_CHECKING:
    from icesql.catalog.table import Catalog, Table
    from icesql.commit.snapshots.branches import Branch
    from icesql.engine.protocol import RowsResult
    from icesql.modify.merge.source import SourcePart
    from icesql.modify.rows.target import Command
    from icesql.modify.tasks.job import QueryRows
    from icesql.query.views.temporary import TemporaryTable
    from icesql.scan.plan import ScanPlan
    from icesql.sql.statement import Query

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
