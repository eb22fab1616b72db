"""The reader of every file format: its fields, batches of their arrays, and errors of decoding."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol

import pyarrow as pa

from icesql.errors import CorruptFileError, Error, StorageError, UnsupportedTableError
from icesql.frozen import Frozen
from icesql.iceberg.expressions.predicate import ALWAYS_TRUE, Predicate
from icesql.iceberg.manifest.data_file import DataFile
from icesql.read.formats.file_fields import FileField
from icesql.scan.file_identity import count_problem
from icesql.storage.credentials import redact
from icesql.storage.open import VANISHED, os_problem

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


# ------------------------------------------------------------------ errors


# The errors of pyarrow and fastavro for invalid bytes. TypeError is missing on purpose: it would
# hide bugs of icesql.
_DECODING = (
    pa.ArrowException,
    OSError,
    EOFError,
    ValueError,
    IndexError,
    KeyError,
    OverflowError,
    MemoryError,
    RecursionError,
    struct.error,
    zlib.error,
)
# The first release of pyarrow that opens Parquet files with variants, and the error of older ones.
VARIANT_RELEASE = 22
_UNKNOWN_TYPES = ("LogicalType that is not recognized", "cannot be applied to group node")
_MISSING = ("NO_SUCH_KEY", "Path does not exist")
_REMOTE_FAILURES = ("AWS Error", "HTTP", "curl", "CURL", "GetFileInfo", "timed out", "Timeout")


@contextmanager
def decoding(path: str) -> Iterator[None]:
    """Translate errors of a library that decodes the file; the block must hold only that call.

    Raises StorageError for a file that cannot be reached, UnsupportedTableError for an encoding or
    a type that the library does not support, CorruptFileError for other errors.
    """
    try:
        yield
    except Error:
        raise
    except NotImplementedError as error:
        raise UnsupportedTableError(_first_line(error), path=path) from error
    except OSError as error:
        if any(word in str(error) for word in _MISSING):
            raise StorageError(path, VANISHED) from error
        if error.errno is not None or any(word in str(error) for word in _REMOTE_FAILURES):
            raise StorageError(path, redact(os_problem(error).partition("\n")[0], {})) from error
        if any(word in str(error) for word in _UNKNOWN_TYPES):
            raise UnsupportedTableError(
                f"a Parquet type that pyarrow {pa.__version__} does not know",
                path=path,
                hint=f"variants need pip install 'pyarrow>={VARIANT_RELEASE}'",
            ) from error
        raise CorruptFileError(path, _first_line(error)) from error
    except _DECODING as error:
        raise CorruptFileError(path, _first_line(error)) from error


@contextmanager
def converting(path: str, column: str) -> Iterator[None]:
    """Translate values that the column's type cannot hold; Arrow calls that ArrowInvalid."""
    try:
        yield
    except pa.ArrowInvalid as error:
        raise CorruptFileError(path, f'column "{column}": {_first_line(error)}') from error


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
