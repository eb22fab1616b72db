"""Write the Arrow batches of another engine to a file with DuckDB."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from icesql.engine.duckdb.arrow_stream import ArrowStream
from icesql.engine.duckdb.copying.statement import copy_statement
from icesql.engine.duckdb.described import register
from icesql.engine.duckdb.errors import translate
from icesql.engine.duckdb.sources import OpenQuery
from icesql.engine.result_schema import cast_batch
from icesql.engine.struct_names import engine_schema
from icesql.engine.threads.query_thread import MemoryWatch, Worker

if TYPE_CHECKING:
    import pyarrow as pa

    from icesql.context import QueryContext
    from icesql.engine.duckdb.instance import InstancePool
    from icesql.engine.protocol import Sink
    from icesql.engine.result_schema import ResultColumn
    from icesql.file_format import FileFormat


def copy_stream(
    pool: InstancePool,
    reader: pa.RecordBatchReader,
    columns: Sequence[ResultColumn],
    form: FileFormat,
    sink: Sink,
    query: QueryContext,
) -> int:
    """Write the rows of ``reader``, in the declared schema of ``columns``; returns their number.

    Raises the errors of the reader and of a result.
    """
    import duckdb

    stream = _stream(reader)
    opened = OpenQuery()
    opened.streams.append(stream)

    def run() -> int:
        instance, cursor = pool.cursor((), query.settings)
        opened.begin(instance, cursor)
        register(cursor, "result_rows", stream)
        with instance.outputs.path_of(sink) as path:
            sql = copy_statement("SELECT * FROM result_rows", columns, form, path)
            (count,) = cursor.execute(sql).fetchone()
        return int(count)

    worker = Worker(
        opened.interrupt, opened.release, MemoryWatch(query.settings.memory_limit, pool)
    )
    try:
        return worker.call(run, query)
    except (duckdb.Error, OSError) as error:
        for failed in (stream.error, sink.error):
            if failed is not None:
                raise failed from None
        query.check()
        raise translate(error, ()) from error
    finally:
        worker.close()


def _stream(reader: pa.RecordBatchReader) -> ArrowStream:
    """The rows for one scan, with columns c0, c1 … and struct fields under the engine's names."""
    schema = engine_schema(reader.schema, [f"c{at}" for at in range(len(reader.schema))])
    return ArrowStream(schema, lambda: (cast_batch(batch, schema) for batch in reader))
