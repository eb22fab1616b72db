"""Readers of single Avro values, compiled from a writer schema.

A reader takes the data and a position and returns the value and the position after it. Records
become dicts by Iceberg field id (by name where the writer gave no id), unions their branch's value,
logical types are left as the ints and bytes that carry them.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from typing import Any

from icesql.iceberg.avro.schema import AvroNode, OddSchema

Read = Callable[[bytes, int], tuple[Any, int]]

_FLOAT = Struct("<f")
_DOUBLE = Struct("<d")


class BadAvro(ValueError):
    """Bytes that the Avro encoding does not allow."""


def read_varint(data: bytes, position: int) -> tuple[int, int]:
    """A zigzag integer of at most 64 bits and the position after it.

    Raises IndexError at the end of the data, BadAvro when it is longer than 64 bits.
    """
    byte = data[position]
    position += 1
    value = byte & 127
    shift = 7
    while byte > 127:
        if shift > 63:
            raise BadAvro("integer longer than 64 bits")
        byte = data[position]
        position += 1
        value |= (byte & 127) << shift
        shift += 7
    return (value >> 1) ^ -(value & 1), position


def varint_bytes(value: int) -> bytes:
    """An unsigned integer in groups of seven bits."""
    encoded = bytearray()
    while value > 127:
        encoded.append(value & 127 | 128)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def encode_varint(value: int) -> bytes:
    """The zigzag bytes of an integer."""
    return varint_bytes((value << 1) ^ (value >> 63))


def read_block_count(data: bytes, position: int) -> tuple[int, int]:
    """The number of items in the next block of an array or map, zero after the last block.

    A negative count precedes the size of the block in bytes, which is stepped over.
    """
    count, position = read_varint(data, position)
    if count < 0:
        count = -count
        _, position = read_varint(data, position)
    return count, position


def compile_reader(node: AvroNode) -> Read:
    """A reader of values of this type.

    Readers raise IndexError at the end of the data, BadAvro or UnicodeDecodeError for wrong bytes.
    """
    match node.kind:
        case "null":
            return _read_null
        case "boolean":
            return _read_boolean
        case "int" | "long":
            return read_varint
        case "float":
            return _fixed_reader(_FLOAT)
        case "double":
            return _fixed_reader(_DOUBLE)
        case "bytes":
            return read_bytes
        case "string":
            return read_text
        case "fixed":
            return _bytes_reader(node.size)
        case "enum":
            return _enum_reader(node.symbols)
        case "record":
            return _record_reader(node)
        case "array":
            return _array_reader(node.items[0])
        case "map":
            return _map_reader(node.items[0])
        case "union":
            return _union_reader(node)
        case kind:
            raise OddSchema(f"Avro type {kind}")


def _read_null(data: bytes, position: int) -> tuple[None, int]:
    return None, position


def _read_boolean(data: bytes, position: int) -> tuple[bool, int]:
    byte = data[position]
    if byte > 1:
        raise BadAvro(f"{byte} is not a boolean")
    return byte == 1, position + 1


def read_bytes(data: bytes, position: int) -> tuple[bytes, int]:
    """Bytes behind their length."""
    length, position = read_varint(data, position)
    end = position + length
    if length < 0 or end > len(data):
        raise BadAvro(f"a value of {length} bytes does not fit its block")
    return data[position:end], end


def read_text(data: bytes, position: int) -> tuple[str, int]:
    """A string behind its length in bytes."""
    value, position = read_bytes(data, position)
    return value.decode(), position


def _fixed_reader(layout: Struct) -> Read:
    size = layout.size

    def read(data: bytes, position: int) -> tuple[Any, int]:
        if position + size > len(data):
            raise BadAvro("the data ends inside a number")
        return layout.unpack_from(data, position)[0], position + size

    return read


def _bytes_reader(size: int) -> Read:
    def read(data: bytes, position: int) -> tuple[bytes, int]:
        end = position + size
        if end > len(data):
            raise BadAvro("the data ends inside a fixed")
        return data[position:end], end

    return read


def _enum_reader(symbols: tuple[str, ...]) -> Read:
    def read(data: bytes, position: int) -> tuple[str, int]:
        index, position = read_varint(data, position)
        if not 0 <= index < len(symbols):
            raise BadAvro(f"{index} is not a symbol of its enum")
        return symbols[index], position

    return read


def _record_reader(node: AvroNode) -> Read:
    fields = [(each.key, compile_reader(each.node)) for each in node.fields]

    def read(data: bytes, position: int) -> tuple[dict[Any, Any], int]:
        record: dict[Any, Any] = {}
        for key, read_field in fields:
            record[key], position = read_field(data, position)
        return record, position

    return read


def smallest_size(node: AvroNode) -> int:
    """The fewest bytes that a value can take."""
    match node.kind:
        case "null":
            return 0
        case "float":
            return 4
        case "double":
            return 8
        case "fixed":
            return node.size
        case "record":
            return sum(smallest_size(each.node) for each in node.fields)
        case _:
            return 1


def _array_reader(item: AvroNode) -> Read:
    # With items of no bytes, a few bytes could claim a huge count, and never end.
    if smallest_size(item) == 0:
        raise OddSchema("an array of items that take no bytes")
    read_item = compile_reader(item)

    def read(data: bytes, position: int) -> tuple[list[Any], int]:
        values: list[Any] = []
        count, position = read_block_count(data, position)
        while count:
            for _ in range(count):
                value, position = read_item(data, position)
                values.append(value)
            count, position = read_block_count(data, position)
        return values, position

    return read


def _map_reader(item: AvroNode) -> Read:
    read_item = compile_reader(item)

    def read(data: bytes, position: int) -> tuple[dict[str, Any], int]:
        values: dict[str, Any] = {}
        count, position = read_block_count(data, position)
        while count:
            for _ in range(count):
                key, position = read_text(data, position)
                values[key], position = read_item(data, position)
            count, position = read_block_count(data, position)
        return values, position

    return read


def _union_reader(node: AvroNode) -> Read:
    branches = [compile_reader(each) for each in node.items]

    def read(data: bytes, position: int) -> tuple[Any, int]:
        index, position = read_varint(data, position)
        if not 0 <= index < len(branches):
            raise BadAvro(f"a union has no branch {index}")
        return branches[index](data, position)

    return read
