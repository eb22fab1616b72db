"""Find the file that DuckDB failed on, which it does not always name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from icesql.context import QueryContext
from icesql.errors import CorruptFileError, Error

if TYPE_CHECKING:
    from icesql.scan.task import CombinedScanTask


def is_reading_problem(error: Error) -> bool:
    """Whether another reader of the same files might fare better, or know more."""
    return bool(getattr(error, "while_reading", False))


def name_bad_file(cause: Error, scans: Sequence[CombinedScanTask], query: QueryContext) -> None:
    """Read the files of scans by ``read/``, whose errors name the file; raise the first of them.

    Returns when ``cause`` is no problem of reading, names its file, or when all can be read.
    """
    if isinstance(cause, CorruptFileError) or not is_reading_problem(cause):
        return
    from icesql.read.task import read_file

    for scan in scans:
        for task in scan.tasks:
            try:
                for _ in read_file(task, scan.context, query):
                    pass
            except Error as error:
                raise error from cause
