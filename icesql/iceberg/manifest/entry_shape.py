"""One regular expression for a whole manifest entry, learnt from an entry that is there.

The entries of a table are alike: the same maps with the same fields in the same order, numbers and
paths of about the same length. An expression of such a shape reads an entry in one step of C, and
captures the few values that a filter needs. It is exact: each part of it is an encoding that ends
in one place only, so what it matches is what a reader of Avro would read, and an entry of any other
shape does not match. The literals in it come from files and are escaped; no other text of a file
enters it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from functools import partial
from typing import Final

from icesql.frozen import Frozen
from icesql.iceberg.avro.schema import AvroField, AvroNode, OddSchema
from icesql.iceberg.avro.values import BadAvro, encode_varint, read_varint
from icesql.iceberg.manifest import schema as known

# A value that a filter needs: the name of the map and the field id.
Wanted = tuple[str, int]
Rows = list[tuple[bytes, ...]]

# Continuation bytes, and then the one that is none: nothing else is left.
VARINT: Final = rb"[\x80-\xff]*+."
_FIXED_LENGTHS: Final = frozenset((1, 4, 8, 16))
_SPREAD: Final = 12
_MOST_LENGTHS: Final = 100
# In longer maps, items that the filter does not need are skipped without matching their keys.
_UNROLLED: Final = 100
_MOST_ITEMS: Final = 2_000
_SHORT_ARRAY: Final = 4
_SCALARS: Final = {
    "int": VARINT,
    "long": VARINT,
    "boolean": rb"[\x00\x01]",
    "float": b".{4}",
    "double": b".{8}",
}


class EntryShape(Frozen):
    """``findall`` reads entries one after another up to the first of another shape.

    Each gives a row: its own bytes, then a value for each of ``names``. What is left over gives a
    last row of empty values.
    """

    names: tuple[str | Wanted, ...]
    findall: Callable[[bytes, int, int], Rows]


def learn_shape(
    root: AvroNode,
    wanted: Iterable[Wanted],
    data: bytes,
    position: int,
    lengths: dict[str | Wanted, set[int]],
) -> EntryShape:
    """The shape of the data-file entry at ``position``.

    It captures "status", "record_count" and "partition", "first_row_id" if the schema has it, and
    the values ``wanted``: integers and partitions as they are encoded, bounds with their length
    before them, nothing for one that this shape lacks. ``lengths`` holds the lengths of texts and
    bounds seen so far, and is added to. Raises OddSchema, BadAvro or IndexError where there is no
    such shape.
    """
    learner = _Learner(frozenset(wanted), data, position, lengths)
    learner.entry(root)
    entry = b"".join(learner.parts)
    # What is left over is taken whole, or findall would look for an entry at each of its bytes.
    findall = re.compile(b"(%s)|.+" % entry, re.DOTALL).findall
    return EntryShape(tuple(learner.names), findall)


class _Learner:
    """Walks over one entry and writes the expression of what it meets."""

    def __init__(
        self,
        wanted: frozenset[Wanted],
        data: bytes,
        position: int,
        lengths: dict[str | Wanted, set[int]],
    ) -> None:
        self.wanted, self.data, self.position = wanted, data, position
        self.lengths = lengths
        self.parts: list[bytes] = []
        self.names: list[str | Wanted] = []

    # ------------------------------------------------------------------ records

    def entry(self, root: AvroNode) -> None:
        fields = known.entry_fields(root)
        if root.kind != "record":
            raise OddSchema("entries that are a union")
        for each in root.fields:
            if each is fields[known.STATUS]:
                self.capture("status", partial(self.one_of, each.node, b"\0\2\4"))
            elif each is fields[known.DATA_FILE]:
                self.data_file(each.node)
            else:
                self.value(each.node, each.name)

    def data_file(self, node: AvroNode) -> None:
        if node.kind != "record":
            raise OddSchema("data files that are a union")
        fields = known.file_fields(node, known.NEEDED | {known.RECORD_COUNT, known.PARTITION})
        ids = {id(each): field_id for field_id, each in fields.items()}
        for each in node.fields:
            self.data_file_field(ids.get(id(each), -1), each)

    def data_file_field(self, field_id: int, field: AvroField) -> None:
        node = field.node
        match field_id:
            case known.CONTENT:
                self.one_of(node, b"\0")
            case known.PARTITION:
                if node.kind != "record":
                    raise OddSchema("partitions that are a union")
                self.capture("partition", lambda: self.value(node, "partition"))
            case known.RECORD_COUNT:
                # A count below 0 is unknown: the first byte of a negative number is odd.
                self.capture("record_count", lambda: self.even_integer(node))
            case known.FIRST_ROW_ID:
                if node.kind != "union":
                    raise OddSchema("row ids that are not optional")
                self.capture("first_row_id", lambda: self.value(node, "first_row_id"))
            case _ if field_id in known.MAPS:
                self.optional_map(known.MAPS[field_id], node, field_id in known.BOUND_MAPS)
            case _:
                self.value(node, f"field {field.name}")

    def capture(self, name: str | Wanted, write: Callable[[], None]) -> None:
        self.names.append(name)
        self.parts.append(b"(")
        write()
        self.parts.append(b")")

    # ------------------------------------------------------------------ values

    def varint(self) -> int:
        value, self.position = read_varint(self.data, self.position)
        return value

    def one_of(self, node: AvroNode, encoded: bytes) -> None:
        """An integer that must be one of some of one byte."""
        if node.kind not in known.INTEGERS:
            raise OddSchema(f"a {node.kind} where a number belongs")
        if self.varint() not in (each >> 1 for each in encoded):
            raise BadAvro("another number")
        self.parts.append(b"[%s]" % re.escape(encoded))

    def even_integer(self, node: AvroNode) -> None:
        if node.kind not in known.INTEGERS:
            raise OddSchema(f"a record count that is a {node.kind}")
        if self.varint() < 0:
            raise BadAvro("an unknown number of records")
        even = b"".join(re.escape(bytes([each])) for each in range(0, 256, 2))
        self.parts.append(rb"(?=[%s])" % even + VARINT)

    def value(self, node: AvroNode, place: str) -> None:
        match node.kind:
            case "null":
                pass
            case "union":
                self.optional(node, place)
            case "int" | "long" | "boolean" | "float" | "double":
                self.scalar(node.kind)
                self.parts.append(_SCALARS[node.kind])
            case "string" | "bytes":
                self.text(place, self.text_length())
            case "record":
                for each in node.fields:
                    self.value(each.node, f"{place}.{each.name}")
            case "array":
                self.array(node)
            case _:  # what Java writes for a fixed is not what its schema says
                raise OddSchema(f"a {node.kind}")

    def scalar(self, kind: str) -> None:
        match kind:
            case "int" | "long":
                self.varint()
            case "boolean":
                if self.data[self.position] > 1:
                    raise BadAvro("not a boolean")
                self.position += 1
            case _:
                self.position += 4 if kind == "float" else 8

    def branch(self, node: AvroNode) -> tuple[AvroNode, bytes, bytes, bool]:
        """The type of an optional, and the branch bytes before null and before a value.

        Also returns whether this entry has a value.
        """
        inner = node.non_null
        if inner is None or inner.kind == "null":
            raise OddSchema("an unusual union")
        null, value = (b"\0", b"\2") if node.items[0].kind == "null" else (b"\2", b"\0")
        here = self.data[self.position : self.position + 1]
        if here not in (null, value):
            raise BadAvro("a union has no such branch")
        self.position += 1
        return inner, null, value, here == value

    def optional(self, node: AvroNode, place: str) -> None:
        inner, null, value, is_there = self.branch(node)
        if inner.kind in _SCALARS:
            if is_there:
                self.scalar(inner.kind)
            self.parts.append(b"(?:%s|%s%s)" % (_lit(null), _lit(value), _SCALARS[inner.kind]))
        elif inner.kind in ("string", "bytes"):
            length = self.text_length() if is_there else -1
            if length < 0 and not self.lengths.get(place):
                self.parts.append(_lit(null))
                return
            self.parts.append(b"(?:%s|%s" % (_lit(null), _lit(value)))
            self.text(place, length)
            self.parts.append(b")")
        elif is_there:
            self.parts.append(_lit(value))
            self.value(inner, place)
        else:
            self.parts.append(_lit(null))

    def text_length(self) -> int:
        length = self.varint()
        if length < 0 or self.position + length > len(self.data):
            raise BadAvro("a length beyond the data")
        self.position += length
        return length

    def text(self, place: str | Wanted, length: int, common: Iterable[int] = ()) -> None:
        """A text of one of the lengths that are usual here, -1: any that was seen.

        Those that are ``common`` are tried first: lengths are tried one after the other.
        """
        usual = self.usual(place, length)
        first = (*dict.fromkeys(common),) if length < 0 else (length,)
        ordered = (*first, *sorted(usual.difference(first)))
        texts = (_lit(encode_varint(each)) + _any(each) for each in ordered)
        self.parts.append(b"(?:%s)" % b"|".join(texts))

    def usual(self, place: str | Wanted, length: int) -> set[int]:
        """The lengths that are usual at a place, this one among them unless it is -1."""
        usual = self.lengths.setdefault(place, set())
        if length >= 0 and length not in usual:
            exact = not usual and isinstance(place, tuple) and length in _FIXED_LENGTHS
            spread = 0 if exact else _SPREAD
            usual.update(range(max(0, length - spread), length + spread + 1))
            if not exact and isinstance(place, tuple):
                usual.update(range(17))  # texts of bounds are cut to 16
        if len(usual) > _MOST_LENGTHS:
            raise OddSchema("texts of many lengths")
        return usual

    def array(self, node: AvroNode) -> None:
        if node.items[0].kind not in known.INTEGERS:
            raise OddSchema("an array of other than numbers")
        count = self.varint()
        if not 0 <= count <= _MOST_LENGTHS:
            raise OddSchema("a long array")
        for _ in range(count):
            self.varint()
        if count and self.varint():
            raise OddSchema("an array in several blocks")
        counts = sorted({count, *range(_SHORT_ARRAY + 1)})
        self.parts.append(
            b"(?:%s)"
            % b"|".join(_lit(encode_varint(each)) + VARINT * each + b"\0" * bool(each)
                        for each in counts)
        )  # fmt: skip

    # ------------------------------------------------------------------ maps

    def optional_map(self, name: str, node: AvroNode, is_bytes: bool) -> None:
        if not known.is_plain_map(node, is_bytes):
            raise OddSchema(f"{name} is not a map from field ids")
        is_there = True
        if node.kind == "union":
            _, null, there, is_there = self.branch(node)
            self.parts.append(_lit(there if is_there else null))
        wanted = {field_id for map_name, field_id in self.wanted if map_name == name}
        if is_there:
            self.items(name, is_bytes, wanted)
        for field_id in sorted(wanted):  # what is left is not in this map
            self.capture((name, field_id), lambda: None)

    def items(self, name: str, is_bytes: bool, wanted: set[int]) -> None:
        """The items of a map; removes the captured fields from ``wanted``."""
        count = self.varint()
        self.parts.append(_lit(encode_varint(count)))
        if count < 0:  # then its bytes are counted
            self.varint()
            self.parts.append(VARINT)
            count = -count
        if count > _MOST_ITEMS:
            raise OddSchema("a map of many items")
        if count == 0:
            return
        keys: set[int] = set()
        if count <= _UNROLLED:
            for _ in range(count):
                self.item(name, is_bytes, wanted, keys)
        else:
            self.long_map(name, is_bytes, wanted, keys, count)
        if len(keys) < count:
            raise OddSchema("a map with a key twice")
        if self.varint():
            raise OddSchema("a map in several blocks")
        self.parts.append(b"\0")

    def item(self, name: str, is_bytes: bool, wanted: set[int], keys: set[int]) -> None:
        key = self.varint()
        keys.add(key)
        length = self.text_length() if is_bytes else self.varint()
        self.parts.append(_lit(encode_varint(key)))

        def write() -> None:
            if is_bytes:
                self.text((name, key), length)
            else:
                self.parts.append(VARINT)

        if key in wanted:
            wanted.remove(key)
            self.capture((name, key), write)
        else:
            write()

    def long_map(
        self, name: str, is_bytes: bool, wanted: set[int], keys: set[int], count: int
    ) -> None:
        """Match each run of items that the filter does not need as one part, with any keys."""
        run, place = 0, (name, -1)
        lengths: Counter[int] = Counter()
        for index in range(count):
            start = self.position
            key = self.varint()
            if key not in wanted:
                keys.add(key)
                run += 1
                if is_bytes:
                    length = self.text_length()
                    lengths[length] += 1
                    self.usual(place, length)
                else:
                    self.varint()
            if run and (key in wanted or index == count - 1):
                self.parts.append(b"(?:" + VARINT)
                if is_bytes:
                    self.text(place, -1, [each for each, _ in lengths.most_common()])
                else:
                    self.parts.append(VARINT)
                self.parts.append(b"){%d}" % run)
                run = 0
            if key in wanted:
                self.position = start
                self.item(name, is_bytes, wanted, keys)


def _lit(data: bytes) -> bytes:
    return re.escape(data)


def _any(length: int) -> bytes:
    return b".{%d}" % length if length else b""


def whole_value(encoded: bytes) -> bytes | None:
    """The bound in a captured value, None where the entry has none."""
    if not encoded:
        return None
    if encoded[0] < 128:
        return encoded[1:]
    return encoded[read_varint(encoded, 0)[1] :]
