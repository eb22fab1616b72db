"""Write what a statement does to rows, and commit it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from msgspec import Struct
from msgspec.structs import replace

from icesql.commit.rows import commit_overwrite, commit_row_delta
from icesql.errors import CommitConflictError
from icesql.iceberg.manifest.data_file import DataFile
from icesql.iceberg.metadata_columns import LAST_UPDATED_SEQUENCE_NUMBER, POS, ROW_ID
from icesql.iceberg.schema import Schema
from icesql.modify.engine_name import SUMMARY
from icesql.modify.modified import Modified, Work
from icesql.modify.rows.changes import GoneRows, NewRows, Positions, RowBatch
from icesql.modify.rows.delete_files import DeleteFiles, write_delete_files
from icesql.modify.rows.target import RowTarget
from icesql.read.task import read_file
from icesql.scan.planner import plan
from icesql.scan.table_scan import TableScan
from icesql.storage.new_file import check_writable, remove_file
from icesql.write.assignment import Assignment
from icesql.write.options import check_table
from icesql.write.parquet_schema import with_binary_variants
from icesql.write.write_task import WriteResult, write_task, write_task_for

if TYPE_CHECKING:
    from icesql.commit.result import CommitResult
    from icesql.scan.tasks.task import FileScanTask, ScanContext


class ChangedRows(Struct, frozen=True):
    """``gone`` rows were there before, ``added`` ones are new; an updated row is in both.

    ``files`` and ``bytes`` are of the data and delete files that were written. ``snapshot_id`` is
    None where nothing was to be done.
    """

    gone: int = 0
    added: int = 0
    files: int = 0
    bytes: int = 0
    snapshot_id: int | None = None

    def modified(self, rows: int) -> Modified:
        """What the statement has done, to so many rows."""
        return Modified(rows, self.files, self.bytes, self.snapshot_id)


def change_rows(
    target: RowTarget,
    batches: Iterable[RowBatch],
    work: Work,
    *,
    new: NewRows | None = None,
    once: bool = True,
) -> ChangedRows:
    """Change the rows of ``batches``, which are read once, in one commit.

    Rows that come are written while they are read; what is kept of rows that go are their
    positions. By the table's properties their files are then written anew without them
    (copy-on-write; the rows that stay keep their lineage) or get deletes (merge-on-read).
    ``new`` is given where rows come. ``once``: a row that goes twice is an error, else it counts
    once.

    Raises ProgrammingError for such a row, DataError, TypeMismatchError and IntegrityError for
    values that do not fit, CommitConflictError, OperationalError, and what ``batches`` raises;
    then no file is left and the table is as it was.
    """
    return _Change(target, work, new, GoneRows(once=once, repeated=_repeated(target))).run(batches)


def _repeated(target: RowTarget) -> str:
    others = "the source" if target.command == "merge" else "FROM"
    return (
        f"a row of {target.table.name} matches several rows of {others}, and which of them is to "
        "change it is not told; make them distinct, nothing was changed"
    )


class _Change:
    def __init__(self, target: RowTarget, work: Work, new: NewRows | None, gone: GoneRows) -> None:
        self._target, self._work, self._new, self._gone = target, work, new, gone
        self._metadata, self._storage = target.metadata, target.table.storage
        columns = self._metadata.schema.fields
        self._lineage = self._metadata.format_version > 2
        if self._lineage:
            columns = (*columns, ROW_ID, LAST_UPDATED_SEQUENCE_NUMBER)
        self._stored = replace(self._metadata.schema, fields=columns)
        self._added = 0
        self._replaced: list[DataFile] = []

    def run(self, batches: Iterable[RowBatch]) -> ChangedRows:
        check_table(self._metadata)
        check_writable(self._storage)
        target = self._target
        # The properties are looked at before a row is.
        by_deletes, _ = target.merges_on_read, target.isolation
        return self._by_deletes(batches) if by_deletes else self._by_new_files(batches)

    # ------------------------------------------------------------------ the rows that come

    def _written(self, batches: Iterator[pa.RecordBatch]) -> WriteResult:
        task = write_task_for(
            self._metadata,
            self._storage,
            tuple(range(len(self._stored.fields))),
            schema=self._stored,
        )
        return write_task(task, batches, self._work.query)

    def _coming(self, batches: Iterable[RowBatch]) -> Iterator[pa.RecordBatch]:
        """The rows that come as files hold them; those that go are noted."""
        assignment = self._assignment()
        for batch in batches:
            if batch.files is not None and len(batch.files):
                assert batch.positions is not None
                self._gone.add(batch.files, batch.positions)
            rows = batch.rows
            if rows is not None and rows.num_rows:
                assert assignment is not None
                yield assignment.convert(rows, self._added)
                self._added += rows.num_rows

    def _assignment(self) -> Assignment | None:
        new = self._new
        if new is None:
            return None
        lineage = (new.row_id, None) if self._lineage else ()
        zone = str(self._work.query.settings.timezone)
        # Rows are in no order that a person knows.
        made = Assignment(self._stored, (*new.sources, *lineage), zone, numbered=False)
        if new.schema is not None:
            made.check(new.schema)
        return made

    # ------------------------------------------------------------------ the files of rows that go

    def _tasks(self, projection: Schema) -> tuple[list[FileScanTask], ScanContext]:
        """The files of the rows as the statement read them, in order.

        All deletes belong to them: a filter would leave out those of rows that it does not match.
        """
        target = self._target
        scan = TableScan(target.table, target.snapshot, self._metadata.schema, projection)
        planned = plan(scan, self._work.query)
        paths = self._gone.paths
        found = [each for each in planned.files if each.data_file.path in paths]
        if len(found) != len(paths):
            raise CommitConflictError(
                f"{target.table.name} changed while it was read; run the statement again"
            )
        return found, planned.context

    # ------------------------------------------------------------------ copy-on-write

    def _by_new_files(self, batches: Iterable[RowBatch]) -> ChangedRows:
        def all_rows() -> Iterator[pa.RecordBatch]:
            yield from self._coming(batches)
            if self._gone.paths:
                yield from self._staying()

        written = self._written(all_rows())
        done = commit_overwrite(
            self._target.catalog,
            self._target.table,
            added=written.files,
            removed=self._replaced,
            start_id=self._target.start_id,
            row_filter=self._target.row_filter,
            isolation=self._target.isolation,
            branch=self._target.branch,
            summary=SUMMARY,
            query=self._work.query,
        )
        return self._changed(done, len(written.files), written.bytes)

    def _staying(self) -> Iterator[pa.RecordBatch]:
        """The rows that stay of files which lose some."""
        fields = self._stored.fields
        projection = with_binary_variants(replace(self._stored, fields=(*fields, POS)))
        tasks, context = self._tasks(projection)
        for task in tasks:
            file = task.data_file
            self._replaced.append(file)
            self._replaced += [each for each in task.deletes if each.is_deletion_vector]
            gone = self._gone.positions(file.path)
            if len(gone) == file.record_count:
                continue
            for batch in read_file(task, context, self._work.query):
                places = batch.column(batch.num_columns - 1).to_numpy(zero_copy_only=False)
                kept = batch.filter(pa.array(_kept(places, gone)))
                if kept.num_rows:
                    yield kept

    # ------------------------------------------------------------------ merge-on-read

    def _by_deletes(self, batches: Iterable[RowBatch]) -> ChangedRows:
        coming = self._coming(batches)
        if self._new is not None:
            written = self._written(coming)
        else:
            written = WriteResult()
            for _ in coming:
                raise AssertionError("rows come and their columns are not told")
        try:
            deletes = DeleteFiles()
            if self._gone.paths:
                tasks, context = self._tasks(self._stored)
                deletes = write_delete_files(
                    self._target, tasks, context, self._gone, self._work.query
                )
        except BaseException:
            for each in written.files:
                remove_file(self._storage, each.path)
            raise
        done = commit_row_delta(
            self._target.catalog,
            self._target.table,
            added=written.files,
            deletes=deletes.added,
            removed=deletes.removed,
            referenced=deletes.referenced,
            start_id=self._target.start_id,
            command=self._target.command,
            row_filter=self._target.row_filter,
            isolation=self._target.isolation,
            branch=self._target.branch,
            summary=SUMMARY,
            query=self._work.query,
        )
        count = len(written.files) + len(deletes.added)
        return self._changed(done, count, written.bytes + deletes.bytes)

    def _changed(self, done: CommitResult, files: int, size: int) -> ChangedRows:
        return ChangedRows(self._gone.count, self._added, files, size, done.snapshot_id)


def _kept(places: Positions, gone: Positions) -> npt.NDArray[np.bool_]:
    """Which of ascending places are not among others, ascending too."""
    begin, end = np.searchsorted(gone, (places[0], places[-1] + 1))
    kept = np.ones(len(places), np.bool_)
    if end > begin:
        at = np.searchsorted(places, gone[begin:end])
        at = at[places[np.minimum(at, len(places) - 1)] == gone[begin:end]]
        kept[at] = False
    return kept
