"""The order in which rows are written: by columns, or along a z-curve through several columns.

The z-value interleaves the bits of each column's ordered bytes; NULL is all zeros. Source: Java
``ZOrderByteUtils``; readers do not depend on the z-values.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icesql.engine.duckdb.task_rows import KeyOrder
from icesql.errors import ProgrammingError, UnsupportedTableError
from icesql.frozen import Frozen
from icesql.iceberg import types as t
from icesql.iceberg.schema import Schema
from icesql.write.ordering import SortKey, key_values, ordered_floats, source_column
from icesql.write.partition_values import internal_array

Bytes = npt.NDArray[np.uint8]

_WORD = 8
_SIGN = np.uint64(1 << 63)


class RowOrder(Frozen):
    """Sort keys, or the ids of z-ordered columns; picklable.

    ``order_id`` is the table's sort order with these keys, 0 if there is none.
    ``text_bytes`` is the number of bytes of a string or binary in a z-value, ``most_bytes`` the
    maximum length of a z-value.
    """

    keys: tuple[SortKey, ...] = ()
    z_columns: tuple[int, ...] = ()
    order_id: int = 0
    text_bytes: int = 8
    most_bytes: int = (1 << 31) - 1


class OrderKeys:
    """Computes the key columns by which rows are ordered, batch by batch."""

    def __init__(self, order: RowOrder, schema: Schema) -> None:
        self._order, self._schema = order, schema
        if order.z_columns:
            widths = [_width(schema.type_of(each), order) for each in order.z_columns]
            count = -(-min(sum(widths), order.most_bytes) // _WORD)
            self.types: list[pa.DataType] = [pa.uint64()] * count
            self.orders = [KeyOrder()] * count
        else:
            self.types = [_key_type(each, schema) for each in order.keys]
            self.orders = [KeyOrder(each.descending, each.nulls_first) for each in order.keys]

    def of(self, batch: pa.RecordBatch) -> list[pa.Array]:
        """The keys of rows that are in the table's Parquet schema."""
        if self._order.z_columns:
            return self._z_values(batch)
        return [
            key_values(source_column(batch, self._schema, each.source_id), self._schema, each)
            for each in self._order.keys
        ]

    def _z_values(self, batch: pa.RecordBatch) -> list[pa.Array]:
        parts = [
            ordered_bytes(
                source_column(batch, self._schema, each),
                self._schema.type_of(each),
                self._order.text_bytes,
            )
            for each in self._order.z_columns
        ]
        value = interleave(parts, self._order.most_bytes)
        wide = np.zeros((len(value), len(self.types) * _WORD), np.uint8)
        wide[:, : value.shape[1]] = value
        words = wide.view(">u8").astype(np.uint64)
        return [pa.array(np.ascontiguousarray(words[:, n])) for n in range(len(self.types))]


def _key_type(key: SortKey, schema: Schema) -> pa.DataType:
    from icesql.read.columns.arrow_schema import arrow_type

    empty = pa.nulls(0, arrow_type(schema.type_of(key.source_id)))
    return key_values(empty, schema, key).type


def check_z_columns(columns: Sequence[str], schema: Schema) -> tuple[int, ...]:
    """The ids of the columns to z-order by, given by name.

    Raises ColumnNotFoundError, ProgrammingError for no column or one named twice, and
    UnsupportedTableError for a type without an order.
    """
    ids: list[int] = []
    for name in columns:
        field = schema.find_field(name, case_sensitive=False)
        if field.field_id in ids:
            raise ProgrammingError(f"zorder names column {name} twice")
        if schema.inside_repeated(field.field_id) or not isinstance(field.type, t.PrimitiveType):
            raise UnsupportedTableError(f"z-ordering by column {name} of type {field.type}")
        _width(field.type, RowOrder())
        ids.append(field.field_id)
    if not ids:
        raise ProgrammingError("zorder names no column")
    return tuple(ids)


def _width(type: t.IcebergType, order: RowOrder) -> int:
    match type:
        case t.StringType() | t.BinaryType() | t.FixedType() | t.UUIDType():
            return order.text_bytes
        case t.DecimalType():
            return 16
        case t.VariantType() | t.GeometryType() | t.GeographyType() | t.UnknownType():
            raise UnsupportedTableError(f"z-ordering by a column of type {type}")
        case _:
            return _WORD


def ordered_bytes(values: pa.Array, type: t.IcebergType, text_bytes: int = 8) -> Bytes:
    """Each value as bytes that compare as the values do, one row each; NULL is all zeros.

    >>> ordered_bytes(pa.array([0, -1]), t.LONG).tolist()
    [[128, 0, 0, 0, 0, 0, 0, 0], [127, 255, 255, 255, 255, 255, 255, 255]]
    """
    values = internal_array(values, type)
    valid = np.asarray(values.is_valid().to_numpy(zero_copy_only=False))
    match type:
        case t.StringType() | t.BinaryType() | t.FixedType() | t.UUIDType():
            made = _first_bytes(values, text_bytes)
        case t.DecimalType():
            made = _decimal_bytes(values)
        case t.FloatType() | t.DoubleType():
            made = _signed_bytes(ordered_floats(values))
        case t.BooleanType():
            made = np.zeros((len(values), _WORD), np.uint8)
            truth = pc.fill_null(values, False).to_numpy(zero_copy_only=False)
            made[:, 0] = np.where(np.asarray(truth, np.bool_), 0x81, 0)
        case _:
            whole = pc.fill_null(values.cast(pa.int64()), 0).to_numpy(zero_copy_only=False)
            made = _signed_bytes(np.asarray(whole, np.int64))
    made[~valid] = 0
    return made


def _signed_bytes(numbers: npt.NDArray[np.int64]) -> Bytes:
    """Big-endian bytes, with the sign bit flipped so that negative numbers come first."""
    turned = numbers.view(np.uint64) ^ _SIGN
    return turned.astype(">u8").view(np.uint8).reshape(len(numbers), _WORD).copy()


def _decimal_bytes(values: pa.Array) -> Bytes:
    wide = pc.fill_null(values.cast(pa.decimal128(38, values.type.scale)), 0)
    start = wide.offset * 16
    raw = np.frombuffer(wide.buffers()[1], np.uint8)[start : start + 16 * len(wide)]
    big = raw.reshape(len(wide), 16)[:, ::-1].copy()
    big[:, 0] ^= 0x80
    return big


def _first_bytes(values: pa.Array, width: int) -> Bytes:
    """The first bytes of each text or binary, filled up with zeros."""
    cut = pc.fill_null(pc.binary_slice(values.cast(pa.binary()), 0, width), b"")
    return np.array(cut.to_pylist(), f"S{width}").view(np.uint8).reshape(len(values), width)


def interleave(parts: Sequence[Bytes], most_bytes: int) -> Bytes:
    """Take the bits of the parts in turn, the most significant first; a finished part is skipped.

    >>> interleave([np.array([[255]], np.uint8), np.array([[0]], np.uint8)], 8).tolist()
    [[170, 170]]
    """
    rows = len(parts[0])
    total = min(sum(each.shape[1] for each in parts), most_bytes)
    # For each bit of the result, its index among the bits of all parts side by side.
    starts = np.cumsum([0, *(each.shape[1] * 8 for each in parts[:-1])])
    longest = max(each.shape[1] * 8 for each in parts)
    turns = [
        start + bit
        for bit in range(longest)
        for start, each in zip(starts.tolist(), parts, strict=True)
        if bit < each.shape[1] * 8
    ]
    bits = np.unpackbits(np.hstack(list(parts)), axis=1)
    return np.packbits(bits[:, turns[: total * 8]], axis=1).reshape(rows, total)
