"""The reader of every file format: its fields as a tree, and batches of their arrays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

import pyarrow as pa

from icesql.errors import CorruptFileError
from icesql.frozen import Frozen
from icesql.iceberg.expressions.predicate import ALWAYS_TRUE, Predicate
from icesql.iceberg.manifest.data_file import DataFile
from icesql.read.formats.file_fields import FileField
from icesql.scan.file_identity import count_problem

BATCH_ROWS = 65_536


class FileBatch(Frozen):
    """Consecutive rows of a file; ``arrays`` follow the requested fields.

    ``first`` is the position in the file of the first row, before any filtering.
    """

    arrays: tuple[pa.Array, ...]
    count: int
    first: int


class FileReader(Protocol):
    """An open data or delete file.

    ``missing_is_null`` is that of ``column_reader``.
    """

    fields: tuple[FileField, ...]
    missing_is_null: bool

    def batches(
        self,
        wanted: Sequence[FileField],
        part: tuple[int, int] | None = None,
        predicate: Predicate = ALWAYS_TRUE,
    ) -> Iterator[FileBatch]:
        """Rows in file order, at most ``BATCH_ROWS`` a batch.

        ``wanted`` are top-level fields. ``part`` is the byte range from a start to an end, None the
        whole file. Stretches of rows of which none can match ``predicate`` may be left out.
        """

    def close(self) -> None:
        """Release the file."""


def check_row_count(file: DataFile, found: int, path: str) -> None:
    """Raises CorruptFileError if the row count of a file differs from the manifest."""
    problem = count_problem(file, found)
    if problem is not None:
        raise CorruptFileError(path, problem)


def sliced(arrays: Sequence[pa.Array], count: int, first: int) -> Iterator[FileBatch]:
    """Cut long arrays into batches of at most ``BATCH_ROWS`` rows."""
    for begin in range(0, count, BATCH_ROWS):
        rows = min(BATCH_ROWS, count - begin)
        yield FileBatch(tuple(array.slice(begin, rows) for array in arrays), rows, first + begin)
