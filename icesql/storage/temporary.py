"""The folder of ``temp_directory``, and the errors of writes to it."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from icesql.errors import Error, OperationalError, ScanLimitError

_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


def make_temporary_folder(folder: str) -> None:
    """Make the folder unless it is there. Raises OperationalError naming the setting."""
    with spilling_to(folder):
        os.makedirs(folder, exist_ok=True)


@contextmanager
def spilling_to(folder: str) -> Iterator[None]:
    """Translate errors of the file system in the block: ScanLimitError if it is full."""
    try:
        yield
    except Error:
        raise
    except (OSError, ValueError) as error:
        raise temporary_error(folder, error) from error


def temporary_error(folder: str, error: Exception) -> OperationalError:
    """The error for a failure to write to ``folder``."""
    code = error.errno if isinstance(error, OSError) else None
    if code in _FULL:
        return ScanLimitError(
            f"no space is left in temp_directory = {folder!r}; "
            "free some, set another temp_directory or raise memory_limit"
        )
    why = (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
    return OperationalError(
        f"cannot write to temp_directory = {folder!r}: {why.lower()}; "
        "set temp_directory to a folder that can be written to"
    )
