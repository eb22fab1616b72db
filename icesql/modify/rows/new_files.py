"""The deleted and new rows of a statement, and the files for them; used locally and in workers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Final, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct
from msgspec.structs import replace

from icesql.context import QueryContext
from icesql.engine.side_threads import thread_pool
from icesql.errors import ProgrammingError
from icesql.frozen import Frozen
from icesql.iceberg.manifest.data_file import DataFile, FileContent
from icesql.iceberg.metadata.table_metadata import TableMetadata
from icesql.iceberg.schema import POS, Schema
from icesql.read.deletes.scan_deletes import PositionDeletes, by_file
from icesql.read.task import read_file
from icesql.scan.tasks import FileScanTask, ScanContext
from icesql.storage.new_files import Uncommitted
from icesql.storage.open import Storage
from icesql.write.assignment import Assignment
from icesql.write.deletes import as_bitmap, write_deletes
from icesql.write.parquet_schema import with_binary_variants, written_schema
from icesql.write.write_task import WriteTask, write_task, write_task_for
from icesql.write.written import Written

if TYPE_CHECKING:
    from pyroaring import BitMap64

    from icesql.engine.engines import TableWritingResult
    from icesql.engine.result import Result


# ------------------------------------------------------------------ rows, batch by batch


Positions = npt.NDArray[np.int64]


class RowBatch(Frozen):
    """Deleted rows, by their ``_file`` and ``_pos`` (never NULL), and new rows.

    ``files`` is a string or dictionary array, ``positions`` int64. An updated row is in both parts,
    which need not be in the same batch.
    """

    files: pa.Array | None = None
    positions: pa.Array | None = None
    rows: pa.RecordBatch | None = None


class NewRows(Frozen):
    """The columns of the new rows.

    ``sources`` has the index of each column of the table, None for its default; see
    ``Assignment``. ``row_id`` is the index of ``_row_id``, which an updated row keeps in v3 and
    an inserted row lacks. ``schema`` is that of the batches, checked before the first one is read.
    """

    sources: tuple[int | None, ...]
    row_id: int | None = None
    schema: pa.Schema | None = None


class GoneRows(Struct):
    """The deleted rows, as one bitmap of positions for each data file.

    ``rows`` are the positions by path. ``once``: deleting a row twice is an error, with the text
    ``repeated``.
    """

    once: bool
    repeated: str
    rows: dict[str, BitMap64] = {}

    def add(self, files: pa.Array, positions: pa.Array) -> None:
        """Add rows. With ``once``, raises ProgrammingError for a row that was added before."""
        for path, rows in by_file(files, positions.to_numpy(zero_copy_only=False)):
            part = as_bitmap(rows)
            known = self.rows.setdefault(path, part)
            again = known is not part
            if self.once and (len(part) < len(rows) or (again and part.intersect(known))):
                raise ProgrammingError(self.repeated)
            if again:
                known |= part

    @property
    def count(self) -> int:
        """The number of deleted rows."""
        return sum(map(len, self.rows.values()))


def empty_batch(schema: pa.Schema) -> pa.RecordBatch:
    """A batch without rows; pyarrow's ``empty_table`` fails for a uuid inside of a struct."""
    return pa.RecordBatch.from_arrays([pa.nulls(0, each.type) for each in schema], schema=schema)


def as_positions(bitmap: BitMap64) -> Positions:
    """The members of a bitmap, ascending."""
    return np.frombuffer(bitmap.to_array(), np.int64) if len(bitmap) else np.empty(0, np.int64)


# ------------------------------------------------------------------ files


# A store takes milliseconds for each request; meanwhile other threads write other files.
_WRITERS: Final = 16

# The files at these paths with all their deletes, in order, with a context to read these columns.
FilesOf = Callable[[Schema, set[str]], tuple[Sequence[FileScanTask], ScanContext]]


class FileNames(Frozen):
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


class RowFiles(Struct):
    """Writes the files for batches of changed rows, once.

    ``new`` is required if there are new rows. ``gone`` collects the deleted rows; ``files_of``
    finds their files. ``added`` counts the new rows; ``replaced`` are the files written anew.
    """

    metadata: TableMetadata
    storage: Storage
    files_of: FilesOf
    gone: GoneRows
    new: NewRows | None
    names: FileNames
    query: QueryContext
    added: int = 0
    replaced: list[DataFile] = []

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
        names = self.names
        schema = written_schema(self.metadata)
        places = tuple(range(len(schema.fields)))
        task = write_task_for(
            self.metadata, self.storage, places, schema=schema, number=names.number
        )
        # New rows were converted before, and kept rows are unchanged.
        own = replace(task.assignment, rewrites=True)
        task = replace(task, assignment=own, operation=names.operation, attempt=names.attempt)
        return write_task(task, batches, self.query)

    def _coming(self, batches: Iterable[RowBatch]) -> Iterator[pa.RecordBatch]:
        """The new rows as files store them; adds deleted rows to ``gone``."""
        assignment = self._assignment()
        for batch in batches:
            if batch.files is not None and len(batch.files):
                assert batch.positions is not None
                try:
                    self.gone.add(batch.files, batch.positions)
                except ProgrammingError:
                    # A repeated row may come from a file that is listed twice: this raises then.
                    paths = set(pc.unique(batch.files).to_pylist())
                    self.files_of(self.metadata.schema, paths)
                    raise
            rows = batch.rows
            if rows is not None and rows.num_rows:
                assert assignment is not None
                yield assignment.convert(rows, self.added)
                self.added += rows.num_rows

    def _assignment(self) -> Assignment | None:
        new = self.new
        if new is None:
            return None
        lineage = (new.row_id, None) if self.metadata.format_version > 2 else ()
        schema, zone = written_schema(self.metadata), self.query.settings.timezone
        # Row numbers would mean nothing to users here, so errors leave them out.
        made = Assignment(schema, (*new.sources, *lineage), zone, numbered=False)
        if new.schema is not None:
            made.check(new.schema)
        return made

    # ------------------------------------------------------------------ copy-on-write

    def _by_new_files(self, batches: Iterable[RowBatch]) -> Written:
        def all_rows() -> Iterator[pa.RecordBatch]:
            yield from self._coming(batches)
            if self.gone.rows:
                yield from self._staying()

        written = self._written(all_rows())
        return self._changed(written, Written(removed=tuple(self.replaced)))

    def _staying(self) -> Iterator[pa.RecordBatch]:
        """The rows to keep of files that lose some."""
        schema = written_schema(self.metadata)
        wanted = with_binary_variants(replace(schema, fields=(*schema.fields, POS)))
        tasks, context = self.files_of(wanted, {*self.gone.rows})
        for task in tasks:
            file = task.data_file
            self.replaced.append(file)
            self.replaced += [each for each in task.deletes if each.is_deletion_vector]
            gone = as_positions(self.gone.rows[file.path])
            if len(gone) == file.record_count:
                continue
            for batch in read_file(task, context, self.query):
                places = batch.column(batch.num_columns - 1).to_numpy(zero_copy_only=False)
                kept = batch.filter(pa.array(_kept(places, gone)))
                if kept.num_rows:
                    yield kept

    # ------------------------------------------------------------------ merge-on-read

    def _by_deletes(self, batches: Iterable[RowBatch]) -> Written:
        coming = self._coming(batches)
        if self.new is not None:
            written = self._written(coming)
        else:
            written = Written()
            for _ in coming:
                raise AssertionError("rows come without their columns")
        with Uncommitted(self.storage) as new:
            new.take(written.paths)
            deletes = Written()
            if self.gone.rows:
                schema, paths = written_schema(self.metadata), {*self.gone.rows}
                tasks, context = self.files_of(schema, paths)
                of_file = partial(self._deletes_of, context, new)
                # The pool's threads end before ``Uncommitted`` removes their files.
                with thread_pool(_WRITERS, "icesql-deletes") as pool:
                    deletes = Written.of(pool.map(of_file, count(1), tasks))
            new.hand_over()
        return self._changed(written, deletes)

    def _deletes_of(
        self, context: ScanContext, new: Uncommitted, number: int, task: FileScanTask
    ) -> Written:
        """Write a delete file (v2) or vector (v3) for a data file that loses some of its rows.

        Older deletes that the new ones include are removed; so is a data file with no row left,
        with its vector. A vector includes all positions deleted before; a delete file includes
        those of earlier delete files for this data file alone.
        """
        self.query.check()
        file = task.data_file
        older = [each for each in task.deletes if each.content is FileContent.POSITION_DELETES]
        # A vector is of one data file, however it spells the path; others as the manifest shows.
        replaced = tuple(
            each
            for each in older
            if each.is_deletion_vector or each.referenced_data_file == file.path
        )
        known = tuple(older) if self.metadata.format_version > 2 else replaced
        positions = self.gone.rows[file.path]
        if known:
            alone = replace(task, deletes=known)
            found = PositionDeletes(context, (alone,), self.query).positions(alone)
            if found is not None:
                positions = positions | as_bitmap(found)
        if len(positions) == file.record_count:
            return Written(removed=(file, *replaced))
        deleted, operation = [(file, as_positions(positions))], self.names.of_deletes
        made = write_deletes(self.metadata, self.storage, deleted, operation, number)
        new.take([made.path])
        return Written(deletes=(made,), removed=replaced, referenced=(file.path,))

    def _changed(self, written: Written, deletes: Written) -> Written:
        # Kept rows are in new files too, but are not counted.
        counted = replace(written, rows=self.added, gone=self.gone.count)
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
