"""Variant columns as JSON text, shredded ones put together again.

NULL is a missing variant; the text ``null`` a variant that holds null. Source: Apache Parquet,
"Variant Shredding".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any, Final

import pyarrow as pa

from icesql.read.columns.convert import ArrayReader
from icesql.read.columns.variant_encoding import (
    BadVariant,
    Json,
    binary_text,
    date_text,
    decode,
    float32_text,
    float_text,
    json_string,
    read_dictionary,
    time_text,
    timestamp_text,
    to_text,
    uuid_text,
)
from icesql.read.formats.file_fields import is_list

Names = tuple[str, ...]
# A field that is neither in ``value`` nor in ``typed_value`` is not in the object.
_ABSENT: Final = None


def variant_reader(source: pa.DataType) -> ArrayReader | None:
    """How a variant column of this stored type becomes JSON text; None for any other type.

    The reader raises pa.ArrowInvalid for invalid variant bytes.
    """
    if isinstance(source, pa.BaseExtensionType):
        source = source.storage_type
    if not pa.types.is_struct(source) or source.get_field_index("metadata") < 0:
        return None
    if not _is_shredded_group(source) or not _readable(source):
        return None
    return _texts


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
        return _formatter(type) is not None
    return all(
        pa.types.is_struct(child) and _is_shredded_group(child) and _readable(child)
        for child in children
    )


def _texts(array: pa.Array) -> pa.Array:
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    valid = array.is_valid().to_pylist()
    metadata = _child(array, "metadata")
    assert metadata is not None
    try:
        names = [
            _names(raw) if present else ()
            for raw, present in zip(metadata.to_pylist(), valid, strict=True)
        ]
        found = _group(array, names, valid)
        texts = [
            # Both parts missing is invalid at the top; the specification reads it as null.
            None if not present else "null" if value is None else to_text(value)
            for value, present in zip(found, valid, strict=True)
        ]
    except BadVariant as error:
        raise pa.ArrowInvalid(f"bad variant: {error}") from error
    return pa.array(texts, pa.string())


@lru_cache(maxsize=256)
def _names(metadata: bytes | None) -> Names:
    if metadata is None:
        raise BadVariant("no metadata")
    return read_dictionary(metadata)


def _child(group: pa.Array, name: str) -> pa.Array | None:
    place = group.type.get_field_index(name)
    return None if place < 0 else group.field(place)


def _group(group: pa.Array, names: Sequence[Names], wanted: Sequence[bool]) -> list[Json | None]:
    """The variants of a group of ``value`` and ``typed_value``; None where both are missing."""
    count = len(group)
    value, typed = _child(group, "value"), _child(group, "typed_value")
    values: list[Any] = [None] * count if value is None else value.to_pylist()
    shredded = [_ABSENT] * count if typed is None else _typed(typed, names, wanted)
    found: list[Json | None] = []
    for raw, other, dictionary, needed in zip(values, shredded, names, wanted, strict=True):
        if not needed or raw is None:
            found.append(other if needed else None)
            continue
        plain = decode(raw, dictionary)
        if other is None:
            found.append(plain)
        elif isinstance(plain, dict) and isinstance(other, dict):
            found.append(dict(sorted({**plain, **other}.items())))
        else:
            raise BadVariant("value and typed_value are both there and not both objects")
    return found


def _typed(array: pa.Array, names: Sequence[Names], wanted: Sequence[bool]) -> list[Json | None]:
    if isinstance(array, pa.ExtensionArray):
        array = array.storage if not _is_uuid(array.type) else array
    there = [
        needed and present
        for needed, present in zip(wanted, array.is_valid().to_pylist(), strict=True)
    ]
    if pa.types.is_struct(array.type):
        return _objects(array, names, there)
    if is_list(array.type):
        return _arrays(array, names, there)
    formatter = _formatter(array.type)
    assert formatter is not None
    return [text if needed else None for text, needed in zip(formatter(array), there, strict=True)]


def _objects(array: pa.Array, names: Sequence[Names], there: Sequence[bool]) -> list[Json | None]:
    objects: list[dict[str, Json]] = [{} for _ in there]
    for index in range(array.type.num_fields):
        name = array.type.field(index).name
        group = array.field(index)
        present = [
            needed and valid
            for needed, valid in zip(there, group.is_valid().to_pylist(), strict=True)
        ]
        for members, value in zip(objects, _group(group, names, present), strict=True):
            if value is not None:
                members[name] = value
    return [members if needed else None for members, needed in zip(objects, there, strict=True)]


def _arrays(array: pa.Array, names: Sequence[Names], there: Sequence[bool]) -> list[Json | None]:
    if not pa.types.is_list(array.type):
        array = array.cast(pa.list_(array.type.value_field))
    offsets = array.offsets.to_pylist()
    begin, end = offsets[0], offsets[-1]
    owners = [
        (names[row], there[row])
        for row in range(len(array))
        for _ in range(offsets[row + 1] - offsets[row])
    ]
    items = _group(
        array.values.slice(begin, end - begin),
        [owner for owner, _ in owners],
        [needed for _, needed in owners],
    )
    texts = ["null" if item is None else to_text(item) for item in items]
    return [
        "[" + ",".join(texts[offsets[row] - begin : offsets[row + 1] - begin]) + "]"
        if there[row]
        else None
        for row in range(len(array))
    ]


# ------------------------------------------------------------------ shredded leaves

Formatter = Callable[[pa.Array], Iterable["str | None"]]


def _plain(type: pa.DataType) -> pa.DataType:
    if isinstance(type, pa.BaseExtensionType) and not _is_uuid(type):
        return type.storage_type
    return type


def _is_uuid(type: pa.DataType) -> bool:
    return isinstance(type, pa.UuidType)


def _formatter(type: pa.DataType) -> Formatter | None:
    """How leaves of a ``typed_value`` type become JSON; None for a type variants do not have."""
    if _is_uuid(type):
        return lambda array: _each(array.storage, uuid_text)
    if pa.types.is_fixed_size_binary(type) and type.byte_width == 16:
        return lambda array: _each(array, uuid_text)
    if pa.types.is_boolean(type):
        return lambda array: _each(array, lambda value: "true" if value else "false")
    if pa.types.is_signed_integer(type):
        return lambda array: _each(array, str)
    if pa.types.is_float64(type):
        return lambda array: _each(array, float_text)
    if pa.types.is_float32(type):
        return lambda array: _each(array, float32_text)
    if pa.types.is_decimal(type):
        # Arrow gives Decimals of the type's scale, whose plain form has all digits.
        return lambda array: _each(array, lambda value: format(value, "f"))
    if pa.types.is_string(type) or pa.types.is_large_string(type):
        return lambda array: _each(array, json_string)
    if pa.types.is_binary(type) or pa.types.is_large_binary(type):
        return lambda array: _each(array, binary_text)
    if pa.types.is_date32(type):
        return lambda array: _each(array.view(pa.int32()), date_text)
    if pa.types.is_time(type) and type.unit == "us":
        return lambda array: _each(array.view(pa.int64()), time_text)
    if pa.types.is_timestamp(type) and type.unit in ("us", "ns"):
        nanos, instant = type.unit == "ns", type.tz is not None
        return lambda array: _each(
            array.view(pa.int64()),
            lambda value: timestamp_text(value, nanos=nanos, instant=instant),
        )
    return None


def _each(array: pa.Array, text: Callable[[Any], str]) -> list[str | None]:
    return [None if value is None else text(value) for value in array.to_pylist()]
