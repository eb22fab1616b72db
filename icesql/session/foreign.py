"""Translate errors of other libraries to icesql's, so that no statement raises another's error."""

from __future__ import annotations

import errno
from typing import Final

from icesql.errors import (
    TOO_MANY_FILES,
    Error,
    OperationalError,
    ProgrammingError,
    ScanLimitError,
)

_NO_MORE_FILES: Final = (errno.EMFILE, errno.ENFILE)


def own_error(error: Exception) -> Error | None:
    """icesql's error for another library's; None for its own and for those of caller's objects."""
    if isinstance(error, Error):
        return None
    if isinstance(error, OSError) and error.errno in _NO_MORE_FILES:
        return OperationalError(TOO_MANY_FILES)
    if isinstance(error, MemoryError):
        return ScanLimitError("out of memory: lower memory_limit or read fewer columns and rows")
    if type(error).__module__.partition(".")[0] in ("duckdb", "_duckdb"):
        from icesql.engine.duckdb.errors import translate

        return translate(error, ())
    from icesql.iceberg.metadata.json_fields import Malformed

    return ProgrammingError(f"refused: {error}") if isinstance(error, Malformed) else None
