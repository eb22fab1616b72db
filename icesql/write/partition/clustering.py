"""Cluster rows by partition in bounded memory: the rest is spilled to a temporary file."""

from __future__ import annotations

import tempfile
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import IO, Any, Final

import numpy as np
import pyarrow as pa

from icesql.frozen import Frozen
from icesql.iceberg.partitioning import PartitionSpec
from icesql.iceberg.schema import Schema
from icesql.iceberg.transforms import parse_transform
from icesql.read.columns.numbers import from_numbers, to_numbers
from icesql.scan.deletes.delete_index import partition_key
from icesql.storage.temporary import make_temporary_folder, spilling_to
from icesql.write.partition.partition_values import internal_array, partition_array
from icesql.write.partition.sorting import source_column

# Rows that are divided at once: with fewer there would be more slices than rows. Engines return
# batches of about this size, which are divided without being combined first.
_CHUNK_BYTES: Final = 8 << 20
# The number of chunks divided at once: two keep two threads busy.
_AT_ONCE: Final = 2
_MOST_CODES: Final = 1 << 62
_FEW_CODES: Final = 1 << 16


class Piece(Frozen):
    """Rows of one partition."""

    values: tuple[Any, ...]
    rows: pa.Table


def partition_columns(
    rows: pa.Table | pa.RecordBatch, spec: PartitionSpec, schema: Schema
) -> list[pa.Array]:
    """The partition values of each field of ``spec``, in internal form."""
    found = []
    for each in spec.fields:
        type = schema.type_of(each.source_id)
        values = internal_array(source_column(rows, schema, each.source_id), type)
        found.append(partition_array(parse_transform(each.transform), type, values))
    return found


def divide(rows: pa.Table, columns: Sequence[pa.Array]) -> list[Piece]:
    """Divide ``rows`` by their partition values; each piece keeps their order."""
    if not rows.num_rows:
        return []
    if not columns:
        return [Piece((), rows)]
    codes = np.zeros(rows.num_rows, np.int64)
    possible = 1
    for column in columns:
        encoded = column.dictionary_encode(null_encoding="encode")
        size = max(len(encoded.dictionary), 1)
        if possible * size > _MOST_CODES:
            _, codes = np.unique(codes, return_inverse=True)
            possible = rows.num_rows
        codes = codes * size + to_numbers(encoded.indices)
        possible *= size
    if possible <= _FEW_CODES:
        codes = codes.astype(np.uint16)  # numpy sorts these in one pass, six times as fast
    order = np.argsort(codes, kind="stable")
    in_order = codes[order]
    starts = np.concatenate([[0], np.flatnonzero(in_order[1:] != in_order[:-1]) + 1])
    ends = np.append(starts[1:], rows.num_rows)
    if len(starts) == 1:
        return [Piece(_tuple(columns, 0), rows)]
    taken = rows.take(from_numbers(order))
    return [
        Piece(_tuple(columns, int(order[start])), taken.slice(start, end - start))
        for start, end in zip(starts.tolist(), ends.tolist(), strict=True)
    ]


def _tuple(columns: Sequence[pa.Array], row: int) -> tuple[Any, ...]:
    return tuple(column[row].as_py() for column in columns)


class Clusters:
    """Takes rows in any order and returns them partition by partition.

    Keeps at most about ``budget`` bytes in memory: beyond it, divided rows are spilled to an
    unlinked file in ``folder``, which disappears with the process. ``threads`` divide rows while
    more are added.
    """

    def __init__(
        self,
        spec: PartitionSpec,
        schema: Schema,
        budget: int,
        folder: str,
        threads: ThreadPoolExecutor,
    ) -> None:
        self._spec, self._schema = spec, schema
        self._budget, self._folder = budget, folder
        self._threads = threads
        # In the order of their rows.
        self._dividing: deque[Future[list[Piece]]] = deque()
        self._waiting: list[pa.RecordBatch] = []
        self._waiting_bytes = self._bytes = 0
        self._values: dict[tuple[Any, ...], tuple[Any, ...]] = {}
        self._held: dict[tuple[Any, ...], list[pa.Table]] = {}
        self._runs: list[_Run] = []

    def add(self, batch: pa.RecordBatch) -> None:
        """Add rows, in the table's Parquet schema."""
        self._waiting.append(batch)
        self._waiting_bytes += batch.nbytes
        if self._waiting_bytes >= min(_CHUNK_BYTES, self._budget):
            self._divide()
        if self._bytes >= self._budget:
            self._spill()

    def _divide(self) -> None:
        waiting, self._waiting = self._waiting, []
        self._bytes += self._waiting_bytes
        self._waiting_bytes = 0
        if not waiting:
            return
        if len(self._dividing) >= _AT_ONCE:
            self._hold_oldest()

        def pieces() -> list[Piece]:
            rows = pa.Table.from_batches(waiting).combine_chunks()
            return divide(rows, partition_columns(rows, self._spec, self._schema))

        self._dividing.append(self._threads.submit(pieces))

    def _hold_oldest(self) -> None:
        for piece in self._dividing.popleft().result():
            key = partition_key(piece.values)
            self._values.setdefault(key, piece.values)
            self._held.setdefault(key, []).append(piece.rows)

    def _hold_all(self) -> None:
        while self._dividing:
            self._hold_oldest()

    def _spill(self) -> None:
        self._hold_all()
        make_temporary_folder(self._folder)
        with spilling_to(self._folder):
            self._runs.append(_Run(self._folder, self._held))
        self._held, self._bytes = {}, 0

    def pieces(self, most_bytes: int) -> Iterator[Piece]:
        """All rows, partition by partition, in pieces of at most about ``most_bytes``."""
        self._divide()
        self._hold_all()
        for key, values in self._values.items():
            tables: list[pa.Table] = []
            size = 0
            for table in self._tables(key):
                if tables and size + table.nbytes > most_bytes:
                    yield Piece(values, pa.concat_tables(tables))
                    tables, size = [], 0
                tables.append(table)
                size += table.nbytes
            if tables:
                yield Piece(values, pa.concat_tables(tables))
            self._held.pop(key, None)

    def _tables(self, key: tuple[Any, ...]) -> Iterator[pa.Table]:
        for run in self._runs:
            with spilling_to(self._folder):
                yield from run.tables(key)
        yield from self._held.get(key, ())

    def close(self) -> None:
        """Free the disk space, and stop dividing. Can be called repeatedly."""
        for each in self._dividing:
            each.cancel()
        self._dividing.clear()
        for run in self._runs:
            run.close()
        self._runs.clear()


class _Run:
    """Divided rows in an unlinked file."""

    def __init__(self, folder: str, held: dict[tuple[Any, ...], list[pa.Table]]) -> None:
        name = "icesql-write-"
        self._file: IO[bytes] = tempfile.TemporaryFile(dir=folder, prefix=name)  # noqa: SIM115
        self._batches: dict[tuple[Any, ...], range] = {}
        schema = next(iter(held.values()))[0].schema
        options = pa.ipc.IpcWriteOptions(compression="lz4")
        count = 0
        target = pa.PythonFile(self._file, mode="w")
        with pa.ipc.new_file(target, schema, options=options) as writer:
            for key, tables in held.items():
                batches = pa.concat_tables(tables).combine_chunks().to_batches()
                for batch in batches:
                    writer.write_batch(batch)
                self._batches[key] = range(count, count + len(batches))
                count += len(batches)
        self._file.flush()
        self._reader: Any = None

    def tables(self, key: tuple[Any, ...]) -> Iterator[pa.Table]:
        if self._reader is None:
            self._file.seek(0)
            self._reader = pa.ipc.open_file(pa.PythonFile(self._file, mode="r"))
        for index in self._batches.get(key, ()):
            yield pa.Table.from_batches([self._reader.get_batch(index)])

    def close(self) -> None:
        self._reader = None
        self._file.close()
