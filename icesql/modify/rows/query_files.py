"""The rows of a result as data files of a table: written where the engine has them."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from icesql.write.write_task import WriteTask, write_task
from icesql.write.written import Written

if TYPE_CHECKING:
    import pyarrow as pa

    from icesql.context import QueryContext
    from icesql.engine.protocol import Result, TableWritingResult


def rows_here(result: Result) -> pa.RecordBatchReader | None:
    """The rows of a result that come to this process, its query begun; None for Spark's."""
    return None if hasattr(result, "write_files") else result.arrow_reader()


def write_files(
    result: Result,
    task: WriteTask,
    query: QueryContext,
    reader: pa.RecordBatchReader | None = None,
) -> Written:
    """Write all rows of ``result``; if anything fails, no file is left.

    Spark writes in its tasks and no row comes here; those of other engines are written here, in
    bounded memory, from ``reader`` if ``rows_here`` gave one. Raises what ``write_task`` does.
    """
    if reader is None and hasattr(result, "write_files"):
        written = cast("TableWritingResult", result).write_files(task)
        if written is not None:
            return written
    reader = result.arrow_reader() if reader is None else reader
    return write_task(task, reader, query, reader.schema)
