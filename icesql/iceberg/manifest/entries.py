"""The entries of a manifest as columns, with counts and bounds decoded only when needed."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from msgspec import Struct, field

from icesql.errors import CorruptFileError
from icesql.frozen import Frozen
from icesql.iceberg.avro.schema import AvroNode
from icesql.iceberg.avro.values import (
    BadAvro,
    compile_reader,
    encode_varint,
    read_block_count,
    read_bytes,
    read_varint,
)
from icesql.iceberg.manifest.data_file import DataFile, FileContent

if TYPE_CHECKING:
    from icesql.iceberg.manifest.filtered_manifest import NarrowEntries


# Maps and arrays of a manifest left in their Avro bytes, decoded for one field id at a time.
#
# A manifest has six maps per entry with an item for every column of the table, and a query needs
# one or two columns. Regular expressions step over the items many times faster than Python could;
# maps that they do not recognise (long values, several blocks in one map) are read item by item.

Kind = Literal["long", "bytes"]
Match = Callable[[bytes, int], "re.Match[bytes] | None"]

_VARINT: Final = rb"[\x80-\xff]*+[\x00-\x7f]"
# Lengths of bounds in one byte, the commonest first: the alternatives are tried in order.
_COMMON: Final = (8, 4, 16, 0)
_LENGTHS: Final = (*_COMMON, *(each for each in range(64) if each not in _COMMON))
_SHORT_BYTES: Final = b"|".join(
    re.escape(bytes([2 * length])) + (b".{%d}" % length if length else b"") for length in _LENGTHS
)
# The number of fields that are always looked up: their expressions serve all manifests of a table,
# while maps are decoded per manifest (3,000 entries of 20 columns, 4 of them needed: 25 ms, not
# 108).
_LOOKED_UP_FIRST: Final = 16
# Looking one field up costs about as much as decoding this many items, plus this fraction of all
# items. Maps of 100 columns and 3,000 entries: all columns take 570 ms with it, 1,160 without.
_LOOK_UP: Final = 2_000
_STEP: Final = 0.02
# Each takes about fifty bytes.
_MOST_DECODED: Final = 2_000_000
_ITEM: Final = {"long": _VARINT + _VARINT, "bytes": _VARINT + b"(?:" + _SHORT_BYTES + b")"}


class Skips(dict[int, Match]):
    """Item count → pattern that skips that many items and the terminating zero."""

    def __init__(self, item: bytes) -> None:
        super().__init__()
        self._item = item

    def __missing__(self, count: int) -> Match:
        match = re.compile(b"(?:%s){%d}\\x00" % (self._item, count), re.DOTALL).match
        self[count] = match
        return match


LONG_MAP_SKIPS: Final = Skips(_ITEM["long"])
BYTES_MAP_SKIPS: Final = Skips(_ITEM["bytes"])
LONG_ARRAY_SKIPS: Final = Skips(_VARINT)


class _Finds(dict[int, Match]):
    """Item count → pattern that ends after the key of one field among that many items."""

    def __init__(self, key: bytes, item: bytes) -> None:
        super().__init__()
        self._key, self._item = re.escape(key), item

    def __missing__(self, count: int) -> Match:
        pattern = b"(?:(?!%s)%s){0,%d}+%s" % (self._key, self._item, count, self._key)
        match = re.compile(pattern, re.DOTALL).match
        self[count] = match
        return match


def read_map(data: bytes, position: int, kind: Kind) -> tuple[dict[int, Any], int]:
    """The map that starts at ``position``, and where it ends, whatever form it has."""
    read_value: Callable[[bytes, int], tuple[Any, int]]
    read_value = read_varint if kind == "long" else read_bytes
    values: dict[int, Any] = {}
    count, position = read_block_count(data, position)
    while count:
        for _ in range(count):
            key, position = read_varint(data, position)
            values[key], position = read_value(data, position)
        count, position = read_block_count(data, position)
    return values, position


def end_of_map(data: bytes, position: int, kind: Kind) -> int:
    """The end of the map that starts at ``position``; a block with a byte count is jumped over."""
    while True:
        count, position = read_varint(data, position)
        if count == 0:
            return position
        if count < 0:
            count = -count
            size, position = read_varint(data, position)
            # The byte count is used only if the map ends there, as nearly all do.
            if size > 0 and not data[position + size]:
                return position + size + 1
        for _ in range(count):
            _, position = read_varint(data, position)
            value, position = read_varint(data, position)
            if kind == "bytes":
                if value < 0:
                    raise BadAvro("negative length")
                position += value


# The array of integers that starts at a position, and where it ends.
read_long_array: Final = compile_reader(AvroNode("array", items=(AvroNode("long"),)))


def _decoded(what: str, path: str, read: Callable[..., Any], *where: Any) -> Any:
    """The result of ``read``; its errors are in the bytes of the manifest at ``path``."""
    try:
        return read(*where)
    except (IndexError, BadAvro) as error:
        raise CorruptFileError(path, f"bad Avro {what}: {error}") from error


class EncodedMaps:
    """One column of maps; ``offsets`` says where each begins in ``data``, -1 for none.

    The maps have been stepped over before, so they are known to lie inside the data; those with an
    index in ``irregular`` were not recognised by the expressions. Where a query needs so many
    fields that looking each up costs more, all maps are decoded once.
    """

    __slots__ = (
        "_data",
        "_irregular",
        "_items",
        "_kind",
        "_lookups",
        "_offsets",
        "_path",
        "_values",
    )

    def __init__(
        self,
        data: bytes,
        offsets: Sequence[int],
        irregular: set[int],
        kind: Kind,
        path: str,
    ) -> None:
        self._data, self._offsets, self._irregular = data, offsets, irregular
        self._kind, self._path = kind, path
        self._lookups, self._items = 0, -1
        self._values: Mapping[int, list[Any]] | None = None

    def values_of(self, field_id: int) -> list[Any]:
        """The value of one field in every entry, None where there is none."""
        self._lookups += 1
        if self._values is None and self._is_worth_decoding():
            self._values = self._decoded_maps()
        if self._values is None:
            found: list[Any] = _decoded("map", self._path, self._looked_up, field_id)
            return found
        return self._values.get(field_id) or [None] * len(self._offsets)

    def _is_worth_decoding(self) -> bool:
        if self._lookups <= _LOOKED_UP_FIRST:
            return False
        if self._items < 0:
            starts = (each for each in self._offsets if each >= 0)
            self._items = sum(abs(read_varint(self._data, each)[0]) for each in starts)
        items = self._items
        return items <= _MOST_DECODED and self._lookups * (_LOOK_UP + items * _STEP) > items

    def _decoded_maps(self) -> Mapping[int, list[Any]]:
        """The value of each field in every entry, None where it has none."""
        values: defaultdict[int, list[Any]] = defaultdict(lambda: [None] * len(self._offsets))
        for index, offset in enumerate(self._offsets):
            for field_id, value in (self._map_at(offset) if offset >= 0 else {}).items():
                values[field_id][index] = value
        return values

    def _looked_up(self, field_id: int) -> list[Any]:
        data, irregular = self._data, self._irregular
        if field_id <= 0:  # a zero key looks like the end of a map
            return [self._irregular_value(offset, field_id) for offset in self._offsets]
        finds = _Finds(encode_varint(field_id), _ITEM[self._kind])
        is_bytes = self._kind == "bytes"
        values: list[Any] = []
        append = values.append
        for index, position in enumerate(self._offsets):
            if position < 0:
                append(None)
                continue
            if irregular and index in irregular:
                append(self._irregular_value(position, field_id))
                continue
            count = data[position]
            position += 1
            if count == 0:
                append(None)
                continue
            if count > 127:
                count = count & 127 | data[position] << 7
                position += 1
            found = finds[count >> 1](data, position)
            if found is None:
                append(None)
                continue
            position = found.end()
            byte = data[position]
            if is_bytes:
                append(data[position + 1 : position + 1 + (byte >> 1)])
            elif byte < 128:
                append((byte >> 1) ^ -(byte & 1))
            else:
                append(read_varint(data, position)[0])
        return values

    def _irregular_value(self, position: int, field_id: int) -> Any:
        return None if position < 0 else self._map_at(position).get(field_id)

    def _map_at(self, position: int) -> dict[int, Any]:
        found: dict[int, Any]
        found, _ = _decoded("map", self._path, read_map, self._data, position, self._kind)
        return found

    def __getitem__(self, index: int) -> Mapping[int, Any] | None:
        position = self._offsets[index]
        return None if position < 0 else EncodedMap(self, position)

    def __reduce__(self) -> tuple[Any, ...]:
        state = (self._data, self._offsets, self._irregular, self._kind, self._path)
        return type(self), state


class EncodedMap(Mapping[int, Any]):
    """The map of one entry, decoded at the first look; pickles as what it decodes to."""

    __slots__ = ("_column", "_decoded", "_position")

    def __init__(self, column: EncodedMaps, position: int) -> None:
        self._column, self._position = column, position
        self._decoded: dict[int, Any] | None = None

    def _map(self) -> dict[int, Any]:
        if self._decoded is None:
            self._decoded = self._column._map_at(self._position)
        return self._decoded

    def __getitem__(self, field_id: int) -> Any:
        return self._map()[field_id]

    def __iter__(self) -> Iterator[int]:
        return iter(self._map())

    def __len__(self) -> int:
        return len(self._map())

    def __repr__(self) -> str:
        return repr(self._map())

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, (self._map(),)


class EncodedArrays(Mapping[int, tuple[int, ...]]):
    """Arrays of integers by entry index; ``offsets`` says where each begins in ``data``."""

    __slots__ = ("_data", "_offsets", "_path")

    def __init__(self, data: bytes, offsets: Mapping[int, int], path: str) -> None:
        self._data, self._offsets, self._path = data, offsets, path

    def __getitem__(self, index: int) -> tuple[int, ...]:
        place = self._offsets[index]
        return tuple(_decoded("array", self._path, read_long_array, self._data, place)[0])

    def __contains__(self, index: object) -> bool:
        return index in self._offsets

    def __iter__(self) -> Iterator[int]:
        return iter(self._offsets)

    def __len__(self) -> int:
        return len(self._offsets)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._data, self._offsets, self._path)


EXISTING: Final = 0
ADDED: Final = 1
DELETED: Final = 2
_LOOKED_UP: Final = ("_columns", "live", "unknown_counts")


# The columns of a manifest that pruning uses: lists with one item for each entry.
FilterColumns: TypeAlias = "ManifestEntries | NarrowEntries"


class PlainMaps(Frozen):
    """A column of maps held as they are."""

    maps: Sequence[Mapping[int, Any] | None]

    def values_of(self, field_id: int) -> list[Any]:
        """The value of one field in every entry, None where there is none."""
        return [None if each is None else each.get(field_id) for each in self.maps]

    def __getitem__(self, index: int) -> Mapping[int, Any] | None:
        return self.maps[index]


# A column of maps from field id to a count or a bound; None for an entry without the map.
IntKeyedColumn: TypeAlias = EncodedMaps | PlainMaps


class ManifestEntries(Frozen, dict=True):
    """All entries of one manifest, inherited values filled in.

    Every list has ``count`` items, in file order. ``partition`` holds tuples in the internal form
    of ``iceberg.types``; bounds are raw bytes; DELETED entries are included. ``rare`` holds, by
    the name of the DataFile attribute, the values few entries have: index → value.
    """

    spec_id: int
    status: list[int]
    snapshot_id: list[int | None]
    sequence_number: list[int]
    file_sequence_number: list[int | None]
    content: list[int]
    path: list[str]
    file_format: list[str]
    partition: list[tuple[Any, ...]]
    record_count: list[int]
    file_size_in_bytes: list[int]
    maps: Mapping[str, IntKeyedColumn] = field(default_factory=dict)
    rare: Mapping[str, Mapping[int, Any]] = field(default_factory=dict)

    @property
    def count(self) -> int:
        """The number of entries."""
        return len(self.status)

    def __len__(self) -> int:
        return len(self.status)

    @cached_property
    def live(self) -> list[bool]:
        """Whether each entry is part of the table, that is not DELETED."""
        return [status != DELETED for status in self.status]

    @property
    def live_indexes(self) -> list[int]:
        """The indexes of the entries that are part of the table."""
        return [index for index, live in enumerate(self.live) if live]

    @cached_property
    def unknown_counts(self) -> Sequence[int]:
        """The entries of unknown record counts, those below 0."""
        return [index for index, count in enumerate(self.record_count) if count < 0]

    @property
    def whole(self) -> ManifestEntries:
        """These entries."""
        return self

    def narrowed_to(self, indexes: Sequence[int]) -> tuple[ManifestEntries, Sequence[int]]:
        """The entries themselves, which have everything."""
        return self, indexes

    @cached_property
    def _columns(self) -> dict[tuple[str, int], list[Any]]:
        return {}

    def values_of(self, name: str, field_id: int) -> list[Any]:
        """The count or bound of one column in every file, by the name of its map."""
        # Several leaves of a predicate may need the same column, each of them for all entries.
        found = self._columns.get((name, field_id))
        if found is None:
            column = self.maps.get(name)
            found = [None] * self.count if column is None else column.values_of(field_id)
            self._columns[name, field_id] = found
        return found

    def data_file(self, index: int) -> DataFile:
        """The file of one entry, with everything the manifest says about it."""
        others: dict[str, Any] = {name: column[index] for name, column in self.maps.items()}
        others.update({name: each[index] for name, each in self.rare.items() if index in each})
        return DataFile(
            content=FileContent(self.content[index]),
            path=self.path[index],
            file_format=self.file_format[index],
            spec_id=self.spec_id,
            partition=self.partition[index],
            record_count=self.record_count[index],
            file_size_in_bytes=self.file_size_in_bytes[index],
            sequence_number=self.sequence_number[index],
            file_sequence_number=self.file_sequence_number[index],
            snapshot_id=self.snapshot_id[index],
            **others,
        )

    def __getstate__(self) -> dict[str, Any]:
        # What was looked up can be looked up again; it need not travel.
        return {k: v for k, v in self.__dict__.items() if k not in _LOOKED_UP}


# ------------------------------------------------------------------ columns as stored
# The columns of a manifest as stored, before values are inherited.


class ManifestColumns(Struct):
    """The columns that a decoder returns; None in the three id columns means "inherit"."""

    status: list[int]
    snapshot_id: list[int | None]
    sequence_number: list[int | None]
    file_sequence_number: list[int | None]
    content: list[int]
    path: list[str]
    file_format: list[str]
    partition: list[tuple[Any, ...]]
    record_count: list[int]
    file_size_in_bytes: list[int]
    maps: dict[str, IntKeyedColumn] = field(default_factory=dict)
    rare: dict[str, Mapping[int, Any]] = field(default_factory=dict)
