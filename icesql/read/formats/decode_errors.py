"""Translate errors of the libraries that decode files."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa

from icesql.errors import CorruptFileError, Error, StorageError, UnsupportedTableError
from icesql.storage.credentials import redact
from icesql.storage.open import VANISHED, os_problem

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
