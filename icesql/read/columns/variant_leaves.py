"""Values of Arrow types as primitives of variants."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import pyarrow as pa

from icesql.iceberg.variant import primitives as p
from icesql.iceberg.variant.nodes import Node, encode_node
from icesql.read.columns.arrow_schema import VARIANT_BYTES

# Types whose values alone make a primitive.
PLAIN_LEAVES: Final = (
    (pa.types.is_boolean, p.of_bool),
    (pa.types.is_float64, p.of_double),
    (pa.types.is_float32, p.of_float),
    (pa.types.is_string, p.of_text),
    (pa.types.is_large_string, p.of_text),
    (pa.types.is_binary, p.of_binary),
    (pa.types.is_large_binary, p.of_binary),
)


def leaf_nodes(array: pa.Array, *, narrow: bool = False) -> list[bytes | None] | None:
    """Each value as a primitive, None for NULL; None for a type that variants do not have.

    A whole number is as wide as its type, with ``narrow`` as narrow as it can be.
    """
    kind = array.type
    if isinstance(kind, pa.UuidType):
        return _each(array.storage, p.of_uuid)
    if isinstance(array, pa.ExtensionArray):
        return leaf_nodes(array.storage, narrow=narrow)
    if pa.types.is_fixed_size_binary(kind) and kind.byte_width == 16 and not narrow:
        return _each(array, p.of_uuid)
    for is_kind, made in PLAIN_LEAVES:
        if is_kind(kind):
            return _each(array, made)
    if pa.types.is_integer(kind):
        size = 1 if narrow else kind.bit_width // 8
        return _each(array, lambda value: p.of_int(value, size))
    if pa.types.is_decimal(kind):
        return _each(array, lambda value: p.of_decimal(value, kind.precision))
    if pa.types.is_fixed_size_binary(kind):
        return _each(array, p.of_binary)
    if pa.types.is_date32(kind):
        return _each(array.view(pa.int32()), p.of_date)
    if pa.types.is_time64(kind):
        return _each(array.cast(pa.time64("us")).view(pa.int64()), p.of_time)
    if pa.types.is_timestamp(kind):
        return _timestamps(array)
    return None


def _timestamps(array: pa.Array) -> list[bytes | None]:
    kind = array.type
    nanos, instant = kind.unit == "ns", kind.tz is not None
    if not nanos:
        array = array.cast(pa.timestamp("us", kind.tz))
    return _each(
        array.view(pa.int64()), lambda value: p.of_timestamp(value, nanos=nanos, instant=instant)
    )


def _each(array: pa.Array, made: Callable[[Any], bytes]) -> list[bytes | None]:
    return [None if value is None else made(value) for value in array.to_pylist()]


def variant_bytes(nodes: Sequence[Node | None], mask: pa.Array | None) -> pa.Array:
    """Variants as ``VARIANT_BYTES``, NULL where ``mask`` is true; None only there."""
    made = [(b"", b"") if node is None else encode_node(node) for node in nodes]
    arrays = [pa.array([pair[place] for pair in made], pa.binary()) for place in (0, 1)]
    return pa.StructArray.from_arrays(arrays, fields=list(VARIANT_BYTES), mask=mask)
