"""Variant columns as JSON text or as their bytes, shredded ones put together again.

NULL is a missing variant; the text ``null`` a variant that holds null. Source: Apache Parquet,
"Variant Shredding".
"""

from __future__ import annotations

import base64
import json
import math
import struct
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, Final

import pyarrow as pa

from icesql.iceberg import calendar
from icesql.iceberg import variant as p
from icesql.iceberg.bounds import MICROS_PER_DAY, NANOS_PER_DAY, shortest_single
from icesql.iceberg.transforms import uuid_text
from icesql.iceberg.variant import (
    NULL,
    BadVariant,
    Node,
    decode_node,
    encode_node,
    read_dictionary,
)
from icesql.read.columns.arrow_schema import VARIANT_BYTES, stored
from icesql.read.columns.convert import ArrayReader
from icesql.read.formats.file_fields import is_list

# ------------------------------------------------------------------ leaves


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


# ------------------------------------------------------------------ texts
# What each becomes: null, true and false; numbers as JSON numbers (decimals with all their
# digits); NaN and the infinities as the strings "NaN", "Infinity" and "-Infinity"; binary as
# base64; dates, times, timestamps (ISO 8601, with "+00:00" where they are instants) and UUIDs as
# strings. Source: Apache Parquet, "Variant Binary Encoding".


# Bytes of the kind and the length before a binary or a text.
_HEAD: Final = 5
_BINARY, _TEXT = 15, 16


def to_text(node: Node) -> str:
    """The JSON text of a variant, without spaces. Raises BadVariant."""
    if isinstance(node, bytes):
        return _primitive(node)
    if isinstance(node, list):
        return "[" + ",".join(map(to_text, node)) + "]"
    members = (f"{_string(name)}:{to_text(member)}" for name, member in node.items())
    return "{" + ",".join(members) + "}"


def _string(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _primitive(raw: bytes) -> str:
    kind, is_short_text = raw[0] >> 2, raw[0] & 3 == 1
    if is_short_text:
        return _text(raw[1:])
    if kind in _LITERALS:
        return _LITERALS[kind]
    if kind == _BINARY:
        return f'"{base64.b64encode(raw[_HEAD:]).decode()}"'
    if kind == _TEXT:
        return _text(raw[_HEAD:])
    return _OF_KIND[kind](raw[1:])


def _text(raw: bytes) -> str:
    try:
        return _string(raw.decode())
    except UnicodeDecodeError as error:
        raise BadVariant("a string is not UTF-8") from error


def _signed(raw: bytes) -> int:
    return int.from_bytes(raw, "little", signed=True)


def _integer(raw: bytes) -> str:
    return str(_signed(raw))


def _decimal(raw: bytes) -> str:
    unscaled, scale = _signed(raw[1:]), raw[0]
    if scale > 38:
        raise BadVariant("a decimal of more than 38 digits after the point")
    digits = str(abs(unscaled)).rjust(scale + 1, "0")
    sign = "-" if unscaled < 0 else ""
    return f"{sign}{digits[:-scale]}.{digits[-scale:]}" if scale else sign + digits


def _float(value: float) -> str:
    """A number; JSON has no NaN and no infinity, so these become strings."""
    if math.isnan(value):
        return '"NaN"'
    if math.isinf(value):
        return '"Infinity"' if value > 0 else '"-Infinity"'
    return repr(value)


def _date(raw: bytes) -> str:
    return f'"{calendar.date_text(_signed(raw))}"'


def _time(raw: bytes) -> str:
    return f'"{_clock(_signed(raw), 6)}"'


def _timestamp(raw: bytes, *, nanos: bool = False, instant: bool = False) -> str:
    days, rest = divmod(_signed(raw), NANOS_PER_DAY if nanos else MICROS_PER_DAY)
    clock = _clock(rest, 9 if nanos else 6)
    return f'"{calendar.date_text(days)}T{clock}{"+00:00" if instant else ""}"'


def _clock(units: int, digits: int) -> str:
    """A time of day with all its digits."""
    seconds, fraction = divmod(units, 10**digits)
    return f"{calendar.time_text(seconds, 0)}.{fraction:0{digits}}"


_LITERALS: Final = {0: "null", 1: "true", 2: "false"}
_OF_KIND: Final[dict[int, Callable[[bytes], str]]] = {
    3: _integer,
    4: _integer,
    5: _integer,
    6: _integer,
    7: lambda raw: _float(struct.unpack("<d", raw)[0]),
    8: _decimal,
    9: _decimal,
    10: _decimal,
    11: _date,
    12: lambda raw: _timestamp(raw, instant=True),
    13: _timestamp,
    14: lambda raw: _float(shortest_single(struct.unpack("<f", raw)[0])),
    17: _time,
    18: lambda raw: _timestamp(raw, nanos=True, instant=True),
    19: lambda raw: _timestamp(raw, nanos=True),
    20: lambda raw: f'"{uuid_text(raw)}"',
}


# ------------------------------------------------------------------ columns


Names = tuple[str, ...]
# A field that is neither in ``value`` nor in ``typed_value`` is not in the object.
_ABSENT: Final = None


def variant_reader(source: pa.DataType, *, binary: bool = False) -> ArrayReader | None:
    """How a variant column of this stored type becomes JSON text; None for any other type.

    ``binary``: it becomes ``VARIANT_BYTES`` instead, without loss. The reader raises
    pa.ArrowInvalid for invalid variant bytes.
    """
    if isinstance(source, pa.BaseExtensionType):
        source = source.storage_type
    if not pa.types.is_struct(source) or source.get_field_index("metadata") < 0:
        return None
    if not _is_shredded_group(source) or not _readable(source):
        return None
    return _bytes if binary else _texts


def _is_shredded_group(type: pa.DataType) -> bool:
    names = {type.field(index).name for index in range(type.num_fields)}
    return bool({"value", "typed_value"} & names) and names <= {"metadata", "value", "typed_value"}


def _readable(group: pa.DataType) -> bool:
    """Whether every ``typed_value`` below is a type that variants can hold."""
    place = group.get_field_index("typed_value")
    if place < 0:
        return True
    type = _plain(group.field(place).type)
    if pa.types.is_struct(type):
        children = [type.field(index).type for index in range(type.num_fields)]
    elif is_list(type):
        children = [type.value_type]
    else:
        return _is_leaf(type)
    return all(
        pa.types.is_struct(child) and _is_shredded_group(child) and _readable(child)
        for child in children
    )


def _texts(array: pa.Array) -> pa.Array:
    valid, found = _variants(array)
    try:
        texts = [
            to_text(node) if present else None for node, present in zip(found, valid, strict=True)
        ]
    except BadVariant as error:
        raise _invalid(error) from error
    return pa.array(texts, pa.string())


def _bytes(array: pa.Array) -> pa.Array:
    array = stored(array)
    value = _child(array, "value")
    metadata = _child(array, "metadata")
    shredded = _child(array, "typed_value") is not None
    mask = array.is_null() if array.null_count else None
    if shredded or value is None or value.null_count != array.null_count:
        valid, found = _variants(array)
        present = zip(found, valid, strict=True)
        return variant_bytes([each if is_there else None for each, is_there in present], mask)
    arrays = [
        each.cast(pa.binary()).fill_null(b"") for each in (metadata, value) if each is not None
    ]
    return pa.StructArray.from_arrays(arrays, fields=list(VARIANT_BYTES), mask=mask)


def _variants(array: pa.Array) -> tuple[list[bool], list[Node]]:
    """Whether each row has a variant, and the variants."""
    array = stored(array)
    valid = array.is_valid().to_pylist()
    metadata = _child(array, "metadata")
    assert metadata is not None
    try:
        names = [
            _names(raw) if present else ()
            for raw, present in zip(metadata.to_pylist(), valid, strict=True)
        ]
        found = _group(array, names, valid)
    except BadVariant as error:
        raise _invalid(error) from error
    # Both parts missing is invalid at the top; the specification reads it as null.
    return valid, [NULL if each is None else each for each in found]


def _invalid(error: BadVariant) -> pa.ArrowInvalid:
    return pa.ArrowInvalid(f"bad variant: {error}")


@lru_cache(maxsize=256)
def _names(metadata: bytes | None) -> Names:
    if metadata is None:
        raise BadVariant("no metadata")
    return read_dictionary(metadata)


def _child(group: pa.Array, name: str) -> pa.Array | None:
    place = group.type.get_field_index(name)
    return None if place < 0 else group.field(place)


def _group(group: pa.Array, names: Sequence[Names], wanted: Sequence[bool]) -> list[Node | None]:
    """The variants of a group of ``value`` and ``typed_value``; None where both are missing."""
    count = len(group)
    value, typed = _child(group, "value"), _child(group, "typed_value")
    values: list[Any] = [None] * count if value is None else value.to_pylist()
    shredded = [_ABSENT] * count if typed is None else _typed(typed, names, wanted)
    found: list[Node | None] = []
    for raw, other, dictionary, needed in zip(values, shredded, names, wanted, strict=True):
        if not needed or raw is None:
            found.append(other if needed else None)
            continue
        plain = decode_node(raw, dictionary)
        if other is None:
            found.append(plain)
        elif isinstance(plain, dict) and isinstance(other, dict):
            found.append(dict(sorted({**plain, **other}.items())))
        else:
            raise BadVariant("value and typed_value are both there and not both objects")
    return found


def _typed(array: pa.Array, names: Sequence[Names], wanted: Sequence[bool]) -> list[Node | None]:
    if isinstance(array, pa.ExtensionArray):
        array = array.storage if not _is_uuid(array.type) else array
    there = _present(array, wanted)
    if pa.types.is_struct(array.type):
        return _objects(array, names, there)
    if is_list(array.type):
        return _arrays(array, names, there)
    nodes = leaf_nodes(array)
    assert nodes is not None
    return [node if needed else None for node, needed in zip(nodes, there, strict=True)]


def _present(array: pa.Array, wanted: Sequence[bool]) -> list[bool]:
    return [
        needed and valid for needed, valid in zip(wanted, array.is_valid().to_pylist(), strict=True)
    ]


def _objects(array: pa.Array, names: Sequence[Names], there: Sequence[bool]) -> list[Node | None]:
    objects: list[dict[str, Node]] = [{} for _ in there]
    for index in range(array.type.num_fields):
        name = array.type.field(index).name
        group = array.field(index)
        found = _group(group, names, _present(group, there))
        for members, value in zip(objects, found, strict=True):
            if value is not None:
                members[name] = value
    return [members if needed else None for members, needed in zip(objects, there, strict=True)]


def _arrays(array: pa.Array, names: Sequence[Names], there: Sequence[bool]) -> list[Node | None]:
    if not pa.types.is_list(array.type):
        array = array.cast(pa.list_(array.type.value_field))
    offsets = array.offsets.to_pylist()
    begin, end = offsets[0], offsets[-1]
    owners = [
        (names[row], there[row])
        for row in range(len(array))
        for _ in range(offsets[row + 1] - offsets[row])
    ]
    found = _group(
        array.values.slice(begin, end - begin),
        [owner for owner, _ in owners],
        [needed for _, needed in owners],
    )
    items: list[Node] = [NULL if item is None else item for item in found]
    return [
        items[offsets[row] - begin : offsets[row + 1] - begin] if there[row] else None
        for row in range(len(array))
    ]


def _plain(type: pa.DataType) -> pa.DataType:
    if isinstance(type, pa.BaseExtensionType) and not _is_uuid(type):
        return type.storage_type
    return type


def _is_uuid(type: pa.DataType) -> bool:
    return isinstance(type, pa.UuidType)


def _is_leaf(type: pa.DataType) -> bool:
    """Whether variants have primitives of a ``typed_value`` type."""
    if pa.types.is_fixed_size_binary(type):
        return bool(type.byte_width == 16)
    if pa.types.is_time(type):
        return bool(type.unit == "us")
    if pa.types.is_timestamp(type):
        return type.unit in ("us", "ns")
    return _is_uuid(type) or any(is_kind(type) for is_kind in _LEAVES)


_LEAVES: Final = (
    *(is_kind for is_kind, _ in PLAIN_LEAVES),
    pa.types.is_signed_integer,
    pa.types.is_decimal128,
    pa.types.is_date32,
)
