"""Divides a stream of record batches into batches of one size."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa


def in_batches_of(rows: int, reader: pa.RecordBatchReader) -> pa.RecordBatchReader:
    """The rows of ``reader`` in batches of ``rows``, the last one shorter; at most one is held."""
    return pa.RecordBatchReader.from_batches(reader.schema, _cut(rows, reader))


def _cut(rows: int, reader: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
    waiting: list[pa.RecordBatch] = []
    count = 0
    with reader:
        for batch in reader:
            while count + batch.num_rows >= rows:
                taken = rows - count
                waiting.append(batch.slice(0, taken))
                yield _joined(waiting)
                batch, waiting, count = batch.slice(taken), [], 0
            if batch.num_rows:
                waiting.append(batch)
                count += batch.num_rows
        if waiting:
            yield _joined(waiting)


def _joined(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    """Concatenate batches of one schema, like ``concat_batches`` of pyarrow 19."""
    columns = (pa.concat_arrays(column) for column in zip(*batches, strict=True))
    return pa.RecordBatch.from_arrays([*columns], schema=batches[0].schema)
