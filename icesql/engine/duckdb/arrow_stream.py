"""Arrow sources that DuckDB reopens for each scan: files of the arrow group, delete keys."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from icesql.context import QueryContext
from icesql.engine.duckdb_types import engine_schema
from icesql.engine.result_schema import cast_batch

if TYPE_CHECKING:
    import pyarrow as pa

    from icesql.engine.side_threads import SideThreads
    from icesql.read.deletes.scan_deletes import DeleteRelations
    from icesql.scan.tasks import FileScanTask, ScanContext

_QUEUED_BATCHES: Final = 4


class ArrowStream:
    """``__arrow_c_stream__`` over batches; ``opened`` returns a new iterator for each scan.

    ``error`` keeps the exception that stopped a scan: DuckDB passes on only its text.
    """

    def __init__(self, schema: pa.Schema, opened: Callable[[], Iterator[pa.RecordBatch]]) -> None:
        self.schema, self._opened = schema, opened
        self.error: BaseException | None = None

    def __arrow_c_schema__(self) -> Any:
        return self.schema.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        import pyarrow as pa

        reader = pa.RecordBatchReader.from_batches(self.schema, self.batches())
        return reader.__arrow_c_stream__(requested_schema)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Record batches of one scan."""
        try:
            yield from self._opened()
        except GeneratorExit:
            raise
        except BaseException as error:
            self.error = error
            raise

    def stop(self) -> None:
        """End every running scan."""


class TaskStream(ArrowStream):
    """The live rows of some file tasks, with columns named ``c<field id>``.

    Several threads read the files ahead, in any order. ``stop()`` ends the threads, also those of
    abandoned scans.
    """

    def __init__(
        self,
        tasks: Sequence[FileScanTask],
        context: ScanContext,
        query: QueryContext,
    ) -> None:
        super().__init__(_stream_schema(context), self._batches)
        self._tasks, self._context, self._query = tuple(tasks), context, query
        self._relations: DeleteRelations | None = None
        if any(task.deletes for task in tasks):
            from icesql.read.deletes.scan_deletes import DeleteRelations

            self._relations = DeleteRelations(context, tasks, query)
        threads = query.settings.threads or os.cpu_count() or 1
        self._threads = max(1, min(threads, len(self._tasks)))
        self._stopped = False
        self._scans: set[SideThreads[FileScanTask, pa.RecordBatch]] = set()

    def table(self) -> pa.Table:
        """All rows at once, for small scans: the engine then knows the number of rows."""
        import pyarrow as pa

        return pa.Table.from_batches(list(self.batches()), schema=self.schema)

    def stop(self) -> None:
        """End every reader of this stream."""
        self._stopped = True
        for scan in tuple(self._scans):
            scan.stop()

    def _batches(self) -> Iterator[pa.RecordBatch]:
        from icesql.engine.side_threads import SideThreads
        from icesql.read.ahead import ReadAhead
        from icesql.read.task import read_file

        ahead = ReadAhead(self._tasks, self._context, self._query)

        def reached() -> Iterator[FileScanTask]:
            for index, task in enumerate(self._tasks):
                ahead.reach(index)
                yield task

        def rows_of(task: FileScanTask) -> Iterator[pa.RecordBatch]:
            return read_file(task, self._context, self._query, self._relations)

        scan = SideThreads(
            reached(),
            rows_of,
            self._query,
            name="icesql-read",
            count=self._threads,
            most_waiting=_QUEUED_BATCHES,
        )
        self._scans.add(scan)
        if self._stopped:
            scan.stop()
        try:
            for batch in scan.results():
                yield cast_batch(batch, self.schema)
        finally:
            self._scans.discard(scan)
            ahead.close()


def _stream_schema(context: ScanContext) -> pa.Schema:
    from icesql.read.columns.arrow_schema import arrow_schema

    names = [f"c{column.field_id}" for column in context.projection.fields]
    return engine_schema(arrow_schema(context.projection), names)
