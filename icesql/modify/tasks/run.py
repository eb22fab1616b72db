"""Run a division in Spark's tasks, and put together what they have done."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, Self, TypeVar, cast

from msgspec import Struct
from msgspec.structs import replace

from icesql.context import Progress
from icesql.engine.result_schema import arrow_schema
from icesql.errors import Error, InternalError
from icesql.iceberg.expressions.predicate import ALWAYS_TRUE
from icesql.modify.rows.commit import check_target, files_of, repeated
from icesql.modify.rows.new_files import ChangedFiles, FileNames
from icesql.modify.rows.target import RowTarget
from icesql.modify.services import StatementServices
from icesql.modify.tasks.broadcast import BroadcastTable, broadcast
from icesql.modify.tasks.division import Division, light, parts_of
from icesql.modify.tasks.job import (
    ChangeJob,
    ChangeWork,
    FoundRowsJob,
    QueryRows,
    SharedWork,
    TablePart,
)
from icesql.modify.tasks.task_result import Key, decode_changed, key_of
from icesql.scan.planner import plan
from icesql.scan.repeated_files import refuse_repeated
from icesql.scan.table_scan import TableScan
from icesql.scan.tasks.task import FileScanTask, without_metrics
from icesql.storage.uncommitted import Uncommitted
from icesql.write.distribution import distribution
from icesql.write.locations import data_locations

if TYPE_CHECKING:
    from icesql.engine.protocol import Result, RowsResult
    from icesql.engine.spark.writing.task_runs import Numbered
    from icesql.iceberg.manifest.data_file import DataFile
    from icesql.query.views.temporary import TemporaryTable
    from icesql.scan.plan import ScanPlan

# What every task is told of that finds rows of any: some hundred bytes each.
_MOST_FILES: Final = 50_000
Part = TypeVar("Part")


class Work(Struct, frozen=True):
    """The input of one task: files that it may change, the same as its query reads them, and the
    part of a table in memory that it reads, None for all of that."""

    files: tuple[FileScanTask, ...] = ()
    read: tuple[FileScanTask, ...] = ()
    part: TablePart | None = None


def change_in_tasks(
    target: RowTarget, division: Division, rows: QueryRows, services: StatementServices
) -> ChangedFiles:
    """The files that the tasks wrote, for the driver to commit; raises as ``TaskRun``."""
    with TaskRun(target, services) as run:
        return run.change(division, rows)[0]


def change_found_in_tasks(
    target: RowTarget, result: Result, rows: QueryRows, services: StatementServices
) -> ChangedFiles | None:
    """The same for the rows of a query; None where they come to this process."""
    if not hasattr(result, "run_over_rows"):
        return None
    with TaskRun(target, services) as run:
        return run.change_found(cast("RowsResult", result), rows)


class TaskRun:
    """The tasks of one statement, within ``with``; leaving it with an error removes their files.

    Its methods raise what a task does, QueryCancelledError, and OperationalError for one that ends
    its worker every time.
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
        self._locations = data_locations(target.metadata)
        self._names = FileNames.new()
        self._storage = target.table.storage
        self._sent = {} if sent is None else {sent.name: sent}
        self._new = Uncommitted(self._storage, self._locations.folder, self._names.operation)
        self._changed, self._removed = ChangedFiles(), set[Key]()
        self._ended = self._begun = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is None:
            self._new.hand_over(each.path for each in self._changed.new)
        self._new.__exit__(kind, error, trace)

    def change(self, division: Division, rows: QueryRows) -> tuple[ChangedFiles, list[bytes]]:
        """Change the rows of the files of a table; also the matches of each task.

        Raises ProgrammingError where one of the files is listed more than once.
        """
        # Two tasks may have one each.
        refuse_repeated(division.files, self._target.table.name)
        files = self._files(division)
        known = {key_of(each): each for task in files for each in (task.data_file, *task.deletes)}
        residuals = {each.data_file.path: each.residual for each in division.files}

        def work(part: Sequence[FileScanTask]) -> Work:
            bare = tuple(
                replace(e, data_file=without_metrics(e.data_file), residual=ALWAYS_TRUE)
                for e in part
            )
            return Work(bare, tuple(replace(e, residual=residuals[e.data_file.path]) for e in bare))

        return self._run(division, rows, lambda slots: parts_of(files, slots), work, known)

    def insert(
        self,
        division: Division,
        rows: QueryRows,
        parts: Callable[[int, bool], Sequence[TablePart]],
    ) -> ChangedFiles:
        """Insert what a query over a table in memory gives of its parts, which need no file.

        ``parts`` is given how many tasks run at once, and whether few large ones are better, as
        each of them writes a file for each partition that it has rows of.
        """
        metadata = self._target.metadata
        few = distribution(metadata.properties, metadata.spec, is_sorted=False) != "none"
        found = self._run(
            division, rows, lambda slots: parts(slots, few), lambda part: Work(part=part), {}
        )
        return found[0]

    def change_found(self, result: RowsResult, rows: QueryRows) -> ChangedFiles | None:
        """Change the rows of a query of Spark, whose first column is their files.

        None where they come to this process, or the table has too many files for each task to know.
        """
        target, query = self._target, self._services.query
        schema = target.metadata.schema
        planned = plan(TableScan(target.table, target.snapshot, schema, schema), query)
        if len(planned.files) > _MOST_FILES:
            return None
        known = {
            key_of(each): each for task in planned.files for each in (task.data_file, *task.deletes)
        }
        own = light(planned)
        job = FoundRowsJob(self._change(own, rows), own.files, self._names)
        # Also without rows: values of some types can never be stored.
        job.change.write((), arrow_schema(result.columns), own.files, self._names, query)

        def collect(described: Iterable[tuple[bytes, bool]]) -> ChangedFiles:
            changed = ChangedFiles()
            lost, self._new.lost = self._new.lost, True  # where it is tried again, this left files
            for data, again in described:
                lost = lost or again
                changed += decode_changed(data, target.metadata, known)[0]
            self._new.lost = lost
            return changed

        found = result.run_over_rows(job, collect, together=0)
        if found is not None:
            self._take(found)
        return found

    def _run(
        self,
        division: Division,
        rows: QueryRows,
        parts: Callable[[int], Sequence[Part]],
        work: Callable[[Part], Work],
        known: Mapping[Key, DataFile],
    ) -> tuple[ChangedFiles, list[bytes]]:
        """Run a task for the ``work`` of each part, and check what it reports.

        ``known`` are the files that tasks may remove.
        """
        changed, matches = ChangedFiles(), list[bytes]()
        try:
            shared = self._shared(division, rows)
            results = self._services.engines.spark().run_jobs(
                lambda slots: self._jobs(division, shared, parts(slots), work),
                self._services.query,
            )
            try:
                for outcome in results:
                    if outcome.error is not None:
                        raise outcome.error
                    self._new.lost = self._new.lost or outcome.lost
                    part, matched = decode_changed(outcome.result, self._target.metadata, known)
                    changed += part
                    matches.append(matched)
                    self._report(part)
            finally:
                results.close()
        except Error as error:
            raise division.bound.placed(error) from error.__cause__
        return changed, matches

    def _files(self, division: Division) -> Sequence[FileScanTask]:
        """The files that the query reads, with all their deletes."""
        target = self._target
        if division.plans[division.index].planned_by is None:
            return division.files
        # A catalog that plans scans leaves out deletes as it likes.
        paths = {each.data_file.path for each in division.files}
        return files_of(target, target.metadata.schema, paths, self._services.query)[0]

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
        """The work of tasks on the table, which may get columns that its plan has not."""
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
        """The tables for tasks, each sent once."""
        new = [each for each in tables if each.name not in self._sent]
        paths = [
            self._locations.path(f"rows-{self._names.operation}-{len(self._sent) + number}.arrow")
            for number in range(len(new))
        ]
        for each in broadcast(new, self._storage, paths):
            self._sent[each.name] = each
            self._new.take(each.paths)
        return tuple(self._sent[each.name] for each in tables)

    def _jobs(
        self,
        division: Division,
        shared: SharedWork,
        parts: Sequence[Part],
        work: Callable[[Part], Work],
    ) -> Iterator[Numbered]:
        index = division.index
        plans = [light(each) for each in division.plans]
        first = self._begun
        self._begun += len(parts)

        for number, part in enumerate(parts, first):
            own = work(part)
            plans[index] = replace(plans[index], files=own.read, rows_read=None)
            names = replace(self._names, number=number)
            yield number, ChangeJob(shared, tuple(plans), own.files, names, own.part)

    def _report(self, part: ChangedFiles) -> None:
        self._take(part)
        self._ended += 1
        self._services.query.report(
            Progress("changing files", self._ended, self._begun, self._changed.bytes)
        )

    def _take(self, part: ChangedFiles) -> None:
        """Raise InternalError for files that were reported twice, or are not of this statement."""
        self._new.report(each.path for each in part.new)
        self._changed += part
        for each in map(key_of, part.removed):
            if each in self._removed:
                raise InternalError(f"two tasks removed {each[0]}")
            self._removed.add(each)
