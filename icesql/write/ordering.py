"""Brings rows into the order in which they are written: sorted, and clustered by partition."""

from __future__ import annotations

import tempfile
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import IO, Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icesql.errors import UnsupportedTableError
from icesql.frozen import Frozen
from icesql.iceberg import types as t
from icesql.iceberg.avro.schema import avro_name
from icesql.iceberg.metadata.table_metadata import SortOrder
from icesql.iceberg.partitioning import PartitionSpec
from icesql.iceberg.schema import Schema
from icesql.iceberg.transforms import UnknownTransform, parse_transform
from icesql.read.columns.numbers import from_numbers, to_numbers
from icesql.scan.deletes.delete_index import partition_key
from icesql.storage.temporary import make_temporary_folder, spilling_to
from icesql.write.casts import plain_array
from icesql.write.partition_values import internal_array, partition_array

# ------------------------------------------------------------------ sorted rows


# Finds a column of the table's rows by its id, at any depth of structs.


def source_column(rows: pa.Table | pa.RecordBatch, schema: Schema, field_id: int) -> pa.Array:
    """The values of a field in ``rows``, NULL where an enclosing struct is NULL.

    Raises UnsupportedTableError for a field that is missing in the schema or inside a list or map.
    """
    field = schema.field_by_id.get(field_id)
    if field is None or schema.inside_repeated(field_id):
        raise UnsupportedTableError(f"partitioning or sorting by field {field_id}")
    path = [*reversed([each.name for each in schema.ancestors(field_id)]), field.name]
    values = rows.column(avro_name(path[0]))
    for name in path[1:]:
        values = pc.struct_field(values, avro_name(name))
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    return plain_array(values) if isinstance(values, pa.ChunkedArray) else values


class SortKey(Frozen):
    """One key: a column, its transform, and its directions."""

    source_id: int
    transform: str
    descending: bool
    nulls_first: bool


def sort_keys(order: SortOrder, schema: Schema) -> tuple[SortKey, ...] | None:
    """The keys of an order; None if icesql cannot sort by it."""
    keys = []
    for each in order.fields:
        source = schema.field_by_id.get(each.source_ids[0])
        transform = parse_transform(each.transform)
        if len(each.source_ids) != 1 or source is None or isinstance(transform, UnknownTransform):
            return None
        if not transform.accepts(source.type) or schema.inside_repeated(source.field_id):
            return None
        nulls_first = each.null_order == "nulls-first"
        keys.append(SortKey(source.field_id, each.transform, each.direction == "desc", nulls_first))
    return tuple(keys)


def sorted_rows(table: pa.Table, schema: Schema, keys: Sequence[SortKey]) -> pa.Table:
    """``table`` sorted by ``keys``; the sort is stable.

    -0.0 comes before 0.0, NaN after every number, NULL where the key says.
    """
    columns: list[Any] = []
    directions = []
    for number, key in enumerate(keys):
        values = key_values(source_column(table, schema, key.source_id), schema, key)
        columns += [values.is_null(), values]
        directions.append((f"n{number}", "descending" if key.nulls_first else "ascending"))
        directions.append((f"v{number}", "descending" if key.descending else "ascending"))
    names = [name for name, _ in directions]
    order = pc.sort_indices(pa.table(columns, names=names), sort_keys=directions)
    return table.take(order)


def key_values(values: pa.Array, schema: Schema, key: SortKey) -> pa.Array:
    """The values to compare rows by, in a type that Arrow can sort."""
    type = schema.type_of(key.source_id)
    transform = parse_transform(key.transform)
    made = partition_array(transform, type, internal_array(values, type))
    if pa.types.is_boolean(made.type):
        return made.cast(pa.int8())
    if pa.types.is_fixed_size_binary(made.type):
        return made.cast(pa.binary())
    if not t.is_floating(transform.result_type(type)):
        return made
    nulls = made.is_null().to_numpy(zero_copy_only=False)
    return pa.array(ordered_floats(made), mask=np.asarray(nulls))


def ordered_floats(values: pa.Array) -> npt.NDArray[np.int64]:
    """Floats as integers that sort in the IEEE total order; NULL as zero."""
    doubles = pc.fill_null(values.cast(pa.float64()), 0.0)
    numbers = doubles.to_numpy(zero_copy_only=False).copy()
    numbers[np.isnan(numbers)] = np.nan  # one NaN, above all
    bits: npt.NDArray[np.int64] = numbers.view(np.int64)
    return np.where(bits < 0, bits ^ np.int64(0x7FFFFFFFFFFFFFFF), bits)


# ------------------------------------------------------------------ clustered rows


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
