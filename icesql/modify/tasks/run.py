"""Run a division in Spark's tasks, and put together what they have done."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from icesql.context import Progress
from icesql.errors import Error, InternalError
from icesql.iceberg.expressions.predicate import ALWAYS_TRUE
from icesql.modify.rows.commit import check_target, files_of, repeated
from icesql.modify.rows.new_files import ChangedFiles, FileNames
from icesql.modify.rows.target import RowTarget
from icesql.modify.services import StatementServices
from icesql.modify.tasks.broadcast import BroadcastTable, broadcast
from icesql.modify.tasks.division import Division, light, parts_of
from icesql.modify.tasks.job import ChangeJob, QueryRows, SharedWork
from icesql.modify.tasks.task_result import decode_changed, key_of
from icesql.scan.repeated_files import refuse_repeated
from icesql.scan.tasks.task import FileScanTask, without_metrics
from icesql.storage.leftovers import remove_leftovers
from icesql.storage.new_file import remove_file
from icesql.write.locations import data_locations

if TYPE_CHECKING:
    from icesql.engine.spark.writing.task_runs import Numbered
    from icesql.query.views.temporary import TemporaryTable

# Spark jobs at once: while one ends, the next keeps the cores busy.
_LANES: Final = 3


def change_in_tasks(
    target: RowTarget, division: Division, rows: QueryRows, services: StatementServices
) -> tuple[ChangedFiles, list[bytes]]:
    """What the tasks have written, for the driver to commit, and the matches of each.

    Raises what a task does, QueryCancelledError, and OperationalError for one that ends its worker
    every time; then no file is left. Raises ProgrammingError where one of the files is listed more
    than once.
    """
    # Two tasks may have one each.
    refuse_repeated(division.files, target.table.name)
    return _Run(target, division, rows, services).run()


class _Run:
    def __init__(
        self, target: RowTarget, division: Division, rows: QueryRows, services: StatementServices
    ) -> None:
        self._target, self._division, self._rows, self._services = target, division, rows, services
        self._by_deletes = check_target(target)
        metadata = division.scan.table.metadata
        self._locations = data_locations(metadata)
        self._names = FileNames.new()
        self._storage = target.table.storage
        self._ended = self._count = 0

    def run(self) -> tuple[ChangedFiles, list[bytes]]:
        """Run all tasks and check what they report."""
        changed, matches, lost = ChangedFiles(), list[bytes](), False
        operation, folder = self._names.operation, self._locations.folder
        try:
            files = self._files()
            known = {
                key_of(each): each for task in files for each in (task.data_file, *task.deletes)
            }
            shared = self._shared()
            engine = self._services.engines.spark()
            results = engine.run_jobs(
                lambda slots: self._chunks(shared, files, slots), self._services.query, _LANES
            )
            try:
                for outcome in results:
                    if outcome.error is not None:
                        raise outcome.error
                    lost = lost or outcome.lost
                    part, matched = decode_changed(outcome.result, self._target.metadata, known)
                    changed += part
                    matches.append(matched)
                    self._report(changed)
            finally:
                results.close()
            self._check(changed)
            if lost:
                kept = {each.path.rpartition("/")[2] for each in (*changed.data, *changed.deletes)}
                remove_leftovers(self._storage, folder, [operation], kept)
            else:
                # Their names are known: the folder, which may be large, is not listed.
                for table in shared.tables:
                    if table.path:
                        remove_file(self._storage, table.path)
        except BaseException as error:
            remove_leftovers(self._storage, folder, [operation])
            if isinstance(error, Error):
                raise self._division.bound.placed(error) from error.__cause__
            raise
        return changed, matches

    def _files(self) -> Sequence[FileScanTask]:
        """The files that the query reads, with all their deletes."""
        division, target = self._division, self._target
        if division.plans[division.index].planned_by is None:
            return division.files
        # A catalog that plans scans leaves out deletes as it likes.
        paths = {each.data_file.path for each in division.files}
        return files_of(target, target.metadata.schema, paths, self._services.query)[0]

    def _shared(self) -> SharedWork:
        division, query = self._division, self._services.query
        plans = tuple(light(each) for each in division.plans)
        tables = division.bound.temporary
        bound = replace(
            division.bound,
            scans=tuple(each.scan for each in plans),
            temporary=(),
            sources=None,
            notes=(),
            resolved=(),
        )
        own = plans[division.index]
        return SharedWork(
            bound,
            own.scan.table.metadata,
            self._storage,
            own.context,
            replace(query.settings, engine="local", verify="normal"),
            query.now,
            self._rows,
            self._broadcast(tables),
            self._by_deletes,
            repeated(self._target),
        )

    def _broadcast(self, tables: Sequence[TemporaryTable]) -> tuple[BroadcastTable, ...]:
        operation = self._names.operation
        paths = [
            self._locations.path(f"rows-{operation}-{number}.arrow")
            for number in range(len(tables))
        ]
        return broadcast(tables, self._storage, paths)

    def _chunks(
        self, shared: SharedWork, files: Sequence[FileScanTask], slots: int
    ) -> Iterator[Sequence[Numbered]]:
        """Jobs for as many cores as there are, one Spark job for each chunk."""
        index = self._division.index
        plans = [light(each) for each in self._division.plans]
        residuals = {each.data_file.path: each.residual for each in self._division.files}
        parts = parts_of(files, slots)
        self._count = len(parts)

        def jobs() -> Iterator[Numbered]:
            for number, part in enumerate(parts):
                bare = [
                    replace(e, data_file=without_metrics(e.data_file), residual=ALWAYS_TRUE)
                    for e in part
                ]
                read = tuple(replace(e, residual=residuals[e.data_file.path]) for e in bare)
                plans[index] = replace(plans[index], files=read, rows_read=None)
                names = replace(self._names, number=number)
                yield number, ChangeJob(shared, tuple(plans), tuple(bare), names)

        waiting = jobs()
        while chunk := [*islice(waiting, slots)]:
            yield chunk

    def _report(self, changed: ChangedFiles) -> None:
        self._ended += 1
        self._services.query.report(
            Progress("changing files", self._ended, self._count, changed.bytes)
        )

    def _check(self, changed: ChangedFiles) -> None:
        """Raise InternalError for files that were reported twice, or are not of this statement."""
        new = [each.path for each in (*changed.data, *changed.deletes)]
        removed = [key_of(each) for each in changed.removed]
        folder, operation = self._locations.folder, self._names.operation
        own = all(operation in each and each.startswith(folder) for each in new)
        if len({*new}) != len(new) or len({*removed}) != len(removed) or not own:
            raise InternalError("a task reported files that it cannot have written")
