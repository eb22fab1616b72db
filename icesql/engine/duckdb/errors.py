"""Translate DuckDB's errors into icesql's, by what failed rather than by DuckDB's classes."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable, Iterable
from typing import Final, TypeVar

from icesql.engine.duckdb.messages import data_error, programming_error, read_message
from icesql.engine.duckdb.sql.size_guards import size_error
from icesql.errors import (
    TOO_MANY_FILES,
    CorruptFileError,
    DataError,
    Error,
    InternalError,
    OperationalError,
    ProgrammingError,
    QueryCancelledError,
    ScanLimitError,
    StorageError,
)
from icesql.storage.open import VANISHED

E = TypeVar("E", bound=BaseException)

# Messages of DuckDB's Parquet reader for errors in the file, not in the query.
_READING: Final = (
    r"magic bytes|Failed to read file|parquet|Parquet|[Ss]nappy|ZSTD|zstd|gzip|GZip|GZIP|LZ4|"
    r"decompress|TProtocol|Could not read|read past|out of buffer|corrupt|"
    r"Invalid (page|encoding|string)|footer|thrift"
)
# A 128-bit integer, such as a sum, that decimal(38,0) cannot hold, or the user's own cast.
_WIDE: Final = r"Could not cast value (-?[0-9]{39}) to DECIMAL\(38,0\)"
# The prefix of errors that ``relations.changes`` raises if rows cannot be paired: they are not
# about a file.
PAIRED: Final = "icesql:changes:"
_NO_FILE: Final = r"No such file|No files found"
_UNREACHABLE: Final = r"Too many open files|Permission denied|Input/output error|Stale file handle"


def is_fatal(error: BaseException) -> bool:
    """True if the DuckDB instance cannot be used any more."""
    import duckdb

    return isinstance(_original(error), duckdb.FatalException | duckdb.InternalException)


def translate(
    error: Exception,
    file_names: Iterable[str],
    place: Callable[[int], int | None] | None = None,
) -> Error:
    """The icesql error for an exception that DuckDB raised while it ran a query.

    ``place`` maps a byte offset in DuckDB's SQL to an offset in the user's SQL.
    ``while_reading`` is set where the files, not the query, may have caused the error.
    """
    import duckdb

    text, details = read_message(str(error))
    at = None if place is None or "position" not in details else place(int(details["position"]))
    if (limit := size_error(text)) is not None:
        return limit
    if PAIRED in text:
        return DataError(text.partition(PAIRED)[2])
    found: Error
    match _original(error):
        case duckdb.InterruptException():
            return QueryCancelledError("the query was cancelled")
        case duckdb.OutOfMemoryException():
            spill = "set temp_directory to a folder that can be written to, "
            advice = spill if "no temporary directory" in str(error) else ""
            return ScanLimitError(
                f"out of memory: {text}; {advice}raise memory_limit or read fewer columns and rows"
            )
        case duckdb.ParserException() | duckdb.BinderException() | duckdb.CatalogException():
            return programming_error(text, at)
        case duckdb.PermissionException():
            return ProgrammingError(f"refused: {text}")
        case duckdb.ConversionException() | duckdb.OutOfRangeException():
            if (wide := re.search(_WIDE, text)) is not None:
                return DataError(
                    f"the integer {wide[1]} has more than 38 digits, the most that a result holds; "
                    "CAST it to VARCHAR or DOUBLE"
                )
            found = data_error(text, at)
        case duckdb.FatalException() | duckdb.InternalException():
            found = InternalError(f"the local engine failed: {text}")
        case duckdb.IOException() | OSError():
            found = _file_error(text, file_names) or OperationalError(text)
        case UnicodeDecodeError():
            found = DataError("the local engine failed on a value that is not text")
        case _:
            # DuckDB's decoders have no error class and no fixed message for damaged files.
            found = _file_error(text, file_names) or data_error(text, at)
            found.while_reading = True
            return found
    reading = duckdb.IOException | duckdb.FatalException | duckdb.InternalException | OSError
    found.while_reading = isinstance(_original(error), reading | UnicodeDecodeError) or bool(
        re.search(_READING, text)
    )
    return found


def _original(error: E) -> E | Exception:
    """DuckDB's own error; an Arrow stream passes on only its text, as an OSError."""
    import duckdb

    kinds: dict[str, type[Exception]] = {
        "Conversion": duckdb.ConversionException,
        "Out of Range": duckdb.OutOfRangeException,
        "Invalid Input": duckdb.InvalidInputException,
        "Out of Memory": duckdb.OutOfMemoryException,
        "INTERRUPT": duckdb.InterruptException,
        "FATAL": duckdb.FatalException,
        "INTERNAL": duckdb.InternalException,
    }
    kind = str(error).partition(" Error: ")[0] if isinstance(error, OSError) else ""
    return kinds[kind](str(error)) if kind in kinds else error


def _file_error(text: str, file_names: Iterable[str]) -> Error | None:
    named = next((name for name in file_names if name and name in text), None)
    if named is None:
        return None
    path = next((part for part in re.findall(r'["\']([^"\']+)["\']', text) if named in part), named)
    if re.search(_NO_FILE, text):
        return StorageError(path, VANISHED)
    if os.strerror(errno.EMFILE) in text or os.strerror(errno.ENFILE) in text:
        return StorageError(path, TOO_MANY_FILES)
    if (found := re.search(_UNREACHABLE, text)) is not None:
        return StorageError(path, found[0])
    return CorruptFileError(path, text)
