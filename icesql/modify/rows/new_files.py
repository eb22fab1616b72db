"""Write the files for deleted and new rows, before a commit; used locally and in workers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct
from msgspec.structs import replace

from icesql.context import QueryContext
from icesql.errors import ProgrammingError
from icesql.iceberg.manifest.data_file import DataFile
from icesql.iceberg.metadata.table_metadata import TableMetadata
from icesql.iceberg.metadata_columns import LAST_UPDATED_SEQUENCE_NUMBER, POS, ROW_ID
from icesql.iceberg.schema import Schema
from icesql.modify.rows.changes import GoneRows, NewRows, Positions, RowBatch
from icesql.modify.rows.delete_files import write_delete_files
from icesql.read.task import read_file
from icesql.scan.tasks.task import FileScanTask, ScanContext
from icesql.storage.open import Storage
from icesql.storage.uncommitted import Uncommitted
from icesql.write.assignment import Assignment
from icesql.write.parquet_schema import with_binary_variants
from icesql.write.write_task import WriteTask, write_task, write_task_for
from icesql.write.written import Written

if TYPE_CHECKING:
    from icesql.engine.protocol import TableWritingResult
    from icesql.engine.result_reader import Result

# The files at these paths with all their deletes, in order, with a context to read these columns.
FilesOf = Callable[[Schema, set[str]], tuple[Sequence[FileScanTask], ScanContext]]


class FileNames(Struct, frozen=True):
    """The parts that make the names of new files unique.

    ``operation`` is unique to the statement; ``number`` is that of a task, and ``attempt``
    distinguishes retries of the task.
    """

    operation: str
    number: int = 0
    attempt: int = 0

    @property
    def of_deletes(self) -> str:
        """The part for names of delete files."""
        if not self.number and not self.attempt:
            return self.operation
        return f"{self.operation}-{self.number}-{self.attempt}"


class RowFiles:
    """Writes the files for batches of changed rows, once.

    ``new`` is required if there are new rows. ``gone`` collects the deleted rows; ``files_of``
    finds their files.
    """

    def __init__(
        self,
        metadata: TableMetadata,
        storage: Storage,
        files_of: FilesOf,
        *,
        gone: GoneRows,
        new: NewRows | None,
        names: FileNames,
        query: QueryContext,
    ) -> None:
        self._metadata, self._storage, self._files_of = metadata, storage, files_of
        self._gone, self._new = gone, new
        self._names, self._query = names, query
        columns = metadata.schema.fields
        self._lineage = metadata.format_version > 2
        if self._lineage:
            columns = (*columns, ROW_ID, LAST_UPDATED_SEQUENCE_NUMBER)
        self._stored = replace(metadata.schema, fields=columns)
        self._added = 0
        self._replaced: list[DataFile] = []

    def write(self, batches: Iterable[RowBatch], *, by_deletes: bool) -> Written:
        """New rows are written while they are read; of deleted rows only the positions are kept.

        Then, if ``by_deletes``, the files of deleted rows get delete files (merge-on-read); else
        these files are rewritten without them, and the kept rows keep their lineage
        (copy-on-write).

        Raises what ``write_task`` and ``batches`` raise, and ProgrammingError for a row that is
        deleted twice with ``once``; then no file is left.
        """
        return self._by_deletes(batches) if by_deletes else self._by_new_files(batches)

    # ------------------------------------------------------------------ the new rows

    def _written(self, batches: Iterator[pa.RecordBatch]) -> Written:
        names = self._names
        task = write_task_for(
            self._metadata,
            self._storage,
            tuple(range(len(self._stored.fields))),
            schema=self._stored,
            number=names.number,
        )
        # New rows were converted before, and kept rows are unchanged.
        own = replace(task.assignment, rewrites=True)
        task = replace(task, assignment=own, operation=names.operation, attempt=names.attempt)
        return write_task(task, batches, self._query)

    def _coming(self, batches: Iterable[RowBatch]) -> Iterator[pa.RecordBatch]:
        """The new rows as files store them; adds deleted rows to ``gone``."""
        assignment = self._assignment()
        for batch in batches:
            if batch.files is not None and len(batch.files):
                assert batch.positions is not None
                self._note(batch.files, batch.positions)
            rows = batch.rows
            if rows is not None and rows.num_rows:
                assert assignment is not None
                yield assignment.convert(rows, self._added)
                self._added += rows.num_rows

    def _note(self, files: pa.Array, positions: pa.Array) -> None:
        try:
            self._gone.add(files, positions)
        except ProgrammingError:
            # A repeated row may come from a file that is listed twice: this raises then.
            self._files_of(self._stored, set(pc.unique(files).to_pylist()))
            raise

    def _assignment(self) -> Assignment | None:
        new = self._new
        if new is None:
            return None
        lineage = (new.row_id, None) if self._lineage else ()
        zone = self._query.settings.timezone
        # Row numbers would mean nothing to users here, so errors leave them out.
        made = Assignment(self._stored, (*new.sources, *lineage), zone, numbered=False)
        if new.schema is not None:
            made.check(new.schema)
        return made

    # ------------------------------------------------------------------ copy-on-write

    def _by_new_files(self, batches: Iterable[RowBatch]) -> Written:
        def all_rows() -> Iterator[pa.RecordBatch]:
            yield from self._coming(batches)
            if self._gone.paths:
                yield from self._staying()

        written = self._written(all_rows())
        return self._changed(written, Written(removed=tuple(self._replaced)))

    def _staying(self) -> Iterator[pa.RecordBatch]:
        """The rows to keep of files that lose some."""
        fields = self._stored.fields
        wanted = with_binary_variants(replace(self._stored, fields=(*fields, POS)))
        tasks, context = self._files_of(wanted, self._gone.paths)
        for task in tasks:
            file = task.data_file
            self._replaced.append(file)
            self._replaced += [each for each in task.deletes if each.is_deletion_vector]
            gone = self._gone.positions(file.path)
            if len(gone) == file.record_count:
                continue
            for batch in read_file(task, context, self._query):
                places = batch.column(batch.num_columns - 1).to_numpy(zero_copy_only=False)
                kept = batch.filter(pa.array(_kept(places, gone)))
                if kept.num_rows:
                    yield kept

    # ------------------------------------------------------------------ merge-on-read

    def _by_deletes(self, batches: Iterable[RowBatch]) -> Written:
        coming = self._coming(batches)
        if self._new is not None:
            written = self._written(coming)
        else:
            written = Written()
            for _ in coming:
                raise AssertionError("rows come without their columns")
        with Uncommitted(self._storage) as new:
            new.take(written.paths)
            deletes = Written()
            if self._gone.paths:
                tasks, context = self._files_of(self._stored, self._gone.paths)
                deletes = write_delete_files(
                    self._metadata,
                    self._storage,
                    tasks,
                    context,
                    self._gone,
                    self._query,
                    self._names.of_deletes,
                )
            new.hand_over()
        return self._changed(written, deletes)

    def _changed(self, written: Written, deletes: Written) -> Written:
        # Kept rows are in new files too, but are not counted.
        counted = replace(written, rows=self._added, gone=self._gone.count)
        return Written.of((deletes, counted))


def _kept(places: Positions, gone: Positions) -> npt.NDArray[np.bool_]:
    """A mask of the ascending ``places`` that are not in the ascending ``gone``."""
    begin, end = np.searchsorted(gone, (places[0], places[-1] + 1))
    return np.isin(places, gone[begin:end], assume_unique=True, invert=True)


def rows_here(result: Result) -> pa.RecordBatchReader | None:
    """Start the query and return its rows for this process; None for a result of Spark."""
    return None if hasattr(result, "write_files") else result.arrow_reader()


def write_files(
    result: Result,
    task: WriteTask,
    query: QueryContext,
    reader: pa.RecordBatchReader | None = None,
) -> Written:
    """Write all rows of ``result``; if anything fails, no file is left.

    Spark writes in its tasks, and no row comes to this process. Rows of other engines are written
    here, in bounded memory, from ``reader`` if ``rows_here`` returned one. Raises what
    ``write_task`` raises.
    """
    if reader is None and hasattr(result, "write_files"):
        written = cast("TableWritingResult", result).write_files(task)
        if written is not None:
            return written
    reader = result.arrow_reader() if reader is None else reader
    return write_task(task, reader, query, reader.schema)
