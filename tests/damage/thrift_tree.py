"""Thrift structs of a Parquet file as trees that can be changed and written back.

A struct is a dict of field id → (kind, value); lists are (kind, values). Written for damaging
files: it knows nothing of icesql's own reader.
"""

from __future__ import annotations

INTS, BINARY, LIST, SET, STRUCT = (4, 5, 6), 8, 9, 10, 12


def read_footer(data):
    """(tree of FileMetaData, bytes before it) of a whole Parquet file."""
    length = int.from_bytes(data[-8:-4], "little")
    tree, _ = _struct(data, len(data) - 8 - length)
    return tree, data[: len(data) - 8 - length]


def with_footer(pages, tree):
    """A whole Parquet file of these pages and this footer."""
    footer = write(tree)
    return pages + footer + len(footer).to_bytes(4, "little") + b"PAR1"


def row_groups(tree):
    """The trees of the row groups."""
    return tree[4][1][1]


def chunks(group):
    """The trees of ColumnMetaData of a row group."""
    return [column[3][1] for column in group[1][1][1]]


def read_page(data, at):
    """(tree of PageHeader, position after it)."""
    return _struct(data, at)


def _varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7


def _value(data, at, kind):
    if kind in INTS:
        value, at = _varint(data, at)
        return (value >> 1) ^ -(value & 1), at
    if kind == BINARY:
        size, at = _varint(data, at)
        return data[at : at + size], at + size
    if kind in (LIST, SET):
        head = data[at]
        count, inner = head >> 4, head & 15
        at += 1
        if count == 15:
            count, at = _varint(data, at)
        values = []
        for _ in range(count):
            value, at = _value(data, at, inner) if inner > 2 else (data[at], at + 1)
            values.append(value)
        return (inner, values), at
    if kind == STRUCT:
        return _struct(data, at)
    if kind == 3:
        return data[at], at + 1
    if kind == 7:
        return data[at : at + 8], at + 8
    return None, at


def _struct(data, at):
    tree, field = {}, 0
    while data[at]:
        kind, delta = data[at] & 15, data[at] >> 4
        at += 1
        if delta:
            field += delta
        else:
            value, at = _varint(data, at)
            field = (value >> 1) ^ -(value & 1)
        value, at = _value(data, at, kind)
        tree[field] = kind, value
    return tree, at + 1


def write(tree):
    """The bytes of a struct."""
    parts, last = bytearray(), 0
    for field, (kind, value) in sorted(tree.items()):
        if 0 < field - last < 16:
            parts.append((field - last) << 4 | kind)
        else:
            parts += bytes([kind]) + _zigzag(field)
        last = field
        parts += _written(kind, value)
    return bytes(parts) + b"\0"


def _zigzag(value):
    return _long(value << 1 if value >= 0 else (-value << 1) - 1)


def _long(value):
    parts = bytearray()
    while value > 127:
        parts.append(value & 127 | 128)
        value >>= 7
    return bytes(parts) + bytes([value])


def _written(kind, value):
    if kind in INTS:
        return _zigzag(value)
    if kind == BINARY:
        return _long(len(value)) + value
    if kind in (LIST, SET):
        inner, values = value
        head = bytes([len(values) << 4 | inner]) if len(values) < 15 else bytes([0xF0 | inner])
        if len(values) >= 15:
            head += _long(len(values))
        return head + b"".join(
            _written(inner, each) if inner > 2 else bytes([each]) for each in values
        )
    if kind == STRUCT:
        return write(value)
    if kind == 3:
        return bytes([value])
    return value or b""
