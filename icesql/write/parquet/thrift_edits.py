"""Copy a struct of Thrift's compact protocol with some of its values changed.

Field headers stay unchanged: no field is added or removed. Source: Thrift, "Thrift compact protocol
encoding".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from icesql.iceberg.avro.values import encode_varint, varint_bytes
from icesql.read.formats.thrift import STRUCT, BadThrift, end_of, end_of_struct, list_header, zigzag

# By field id: bytes to replace the value, a function for an integer, edits for a struct, or the
# edits of each element for a list of structs.
Edits: TypeAlias = Mapping[int, "Edit"]
Edit: TypeAlias = "bytes | Callable[[int], int] | Edits | Sequence[Edits]"


class Field(NamedTuple):
    """A field of a struct: the offsets of its header, its value and its end."""

    field_id: int
    kind: int
    start: int
    value: int
    end: int


def fields(data: bytes, position: int) -> Iterator[Field]:
    """The fields of the struct at ``position``."""
    field_id = 0
    while header := data[position]:
        start, kind = position, header & 15
        position += 1
        if header < 16:
            field_id, position = zigzag(data, position)
        else:
            field_id += header >> 4
        end = end_of(data, position, kind)
        yield Field(field_id, kind, start, position, end)
        position = end


def structs(data: bytes, position: int, field_id: int) -> Iterator[int]:
    """The offsets of the structs in a list, which is a field of the struct at ``position``."""
    for each in fields(data, position):
        if each.field_id == field_id:
            count, kind, place = list_header(data, each.value)
            assert kind == STRUCT
            for _ in range(count):
                yield place
                place = end_of_struct(data, place)


def edited(data: bytes, position: int, edits: Edits) -> bytes:
    """The struct at ``position``, edited; edits of fields that it lacks have no effect.

    >>> edited(bytes([0x16, 4, 0x16, 6, 0]), 0, {2: lambda value: value + 100}).hex()
    '160416ce0100'
    """
    made = bytearray()
    for each in fields(data, position):
        edit = edits.get(each.field_id)
        if edit is None:
            made += data[each.start : each.end]
            continue
        made += data[each.start : each.value]
        if isinstance(edit, bytes):
            made += edit
        elif callable(edit):
            made += encode_varint(edit(zigzag(data, each.value)[0]))
        elif isinstance(edit, Mapping):
            made += edited(data, each.value, edit)
        else:
            made += _edited_list(data, each.value, edit)
    made.append(0)
    return bytes(made)


def _edited_list(data: bytes, position: int, edits: Sequence[Edits]) -> bytes:
    count, kind, inner = list_header(data, position)
    if count != len(edits) or kind != STRUCT:
        raise BadThrift(f"a list of {count} values of kind {kind}, not of {len(edits)} structs")
    made = bytearray(data[position:inner])
    for each in edits:
        made += edited(data, inner, each)
        inner = end_of(data, inner, STRUCT)
    return bytes(made)


def struct_list(structs: Sequence[bytes]) -> bytes:
    """The encoding of a list of structs."""
    count = len(structs)
    length = b"" if count < 15 else varint_bytes(count)
    return bytes([min(count, 15) << 4 | STRUCT]) + length + b"".join(structs)
