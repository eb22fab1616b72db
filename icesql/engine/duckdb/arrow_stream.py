"""Arrow sources that DuckDB reopens for each scan: files of the arrow group, delete keys."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from icesql.context import QueryContext
from icesql.engine.struct_names import engine_arrow_type, renamed
from icesql.errors import QueryCancelledError

if TYPE_CHECKING:
    import pyarrow as pa

    from icesql.read.ahead import ReadAhead
    from icesql.read.deletes.delete_relations import DeleteRelations
    from icesql.scan.tasks.task import FileScanTask, ScanContext

_QUEUED_BATCHES: Final = 4
_STEP_SECONDS: Final = 0.05


class ArrowStream:
    """``__arrow_c_stream__`` over batches that ``opened`` gives anew for each scan.

    ``error`` keeps what stopped a scan: DuckDB passes on only its text.
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
        """End every scan that is under way."""


class TaskStream(ArrowStream):
    """The live rows of some file tasks, columns named ``c<field id>``.

    Files are read ahead by ``threads`` threads, in no order. ``stop()`` ends the threads, also
    those of abandoned scans.
    """

    def __init__(
        self,
        tasks: Sequence[FileScanTask],
        context: ScanContext,
        query: QueryContext,
        *,
        relations: DeleteRelations | None,
        threads: int,
    ) -> None:
        super().__init__(_stream_schema(context), self._batches)
        self._tasks, self._context, self._query = tuple(tasks), context, query
        self._relations = relations
        self._threads = max(1, min(threads, len(self._tasks)))
        self._stopped = threading.Event()

    def table(self) -> pa.Table:
        """Everything at once, for small scans: the engine then knows how many rows there are."""
        import pyarrow as pa

        return pa.Table.from_batches(list(self.batches()), schema=self.schema)

    def stop(self) -> None:
        """End every reader of this stream."""
        self._stopped.set()

    def _batches(self) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        for batch in self._read_ahead():
            columns = [
                renamed(column, wanted.type)
                for column, wanted in zip(batch.columns, self.schema, strict=True)
            ]
            yield pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def _read_ahead(self) -> Iterator[pa.RecordBatch]:
        from icesql.read.ahead import ReadAhead

        results: queue.Queue[Any] = queue.Queue(_QUEUED_BATCHES)
        finished = threading.Event()
        ahead = ReadAhead(self._tasks, self._context, self._query)
        pending = enumerate(self._tasks)
        lock = threading.Lock()
        threads = [
            threading.Thread(
                target=self._produce,
                args=(pending, ahead, lock, results, finished),
                name="icesql-read",
                daemon=True,
            )
            for _ in range(self._threads)
        ]
        for thread in threads:
            thread.start()
        running = len(threads)
        try:
            while running:
                try:
                    item = results.get(timeout=_STEP_SECONDS)
                except queue.Empty:
                    if self._stopped.is_set():
                        raise QueryCancelledError("the query was cancelled") from None
                    self._query.check()
                    continue
                if item is None:
                    running -= 1
                elif isinstance(item, BaseException):
                    raise item
                else:
                    yield item
        finally:
            finished.set()
            ahead.close()

    def _produce(
        self,
        pending: Iterator[tuple[int, FileScanTask]],
        ahead: ReadAhead,
        lock: threading.Lock,
        results: queue.Queue[Any],
        finished: threading.Event,
    ) -> None:
        from icesql.read.task import read_file

        def put(item: Any) -> bool:
            while not finished.is_set() and not self._stopped.is_set():
                try:
                    results.put(item, timeout=_STEP_SECONDS)
                except queue.Full:
                    continue
                return True
            return False

        try:
            while True:
                with lock:
                    index, task = next(pending, (0, None))
                    ahead.reach(index)
                if task is None:
                    break
                for batch in read_file(task, self._context, self._query, self._relations):
                    if not put(batch):
                        return
        except BaseException as error:
            put(error)
            return
        put(None)


def _stream_schema(context: ScanContext) -> pa.Schema:
    import pyarrow as pa

    from icesql.read.columns.arrow_schema import arrow_schema

    names = [f"c{column.field_id}" for column in context.projection.fields]
    schema = arrow_schema(context.projection)
    return pa.schema(
        [
            field.with_name(name).with_type(engine_arrow_type(field.type))
            for field, name in zip(schema, names, strict=True)
        ]
    )
