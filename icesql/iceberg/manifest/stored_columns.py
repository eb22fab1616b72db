"""The columns of a manifest that a filter needed, as bytes to be stored and read again.

Values are encoded as in the manifest, so pruning evaluates them anew each time. Columns are
unpacked when they are first used.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterator, Mapping
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Struct

if TYPE_CHECKING:
    from icesql.iceberg.manifest.narrow_entries import Columns

_VERSION: Final = 2
_LENGTH: Final = "I"
_WHOLE: Final = -1


class _Column(Struct, frozen=True, array_like=True):
    """One column; ``field_id`` is that of a bound or count, -1 for a column that is not a map."""

    name: str
    field_id: int
    lengths: bytes
    values: bytes


class _Stored(Struct, frozen=True, array_like=True):
    version: int
    order: str
    entries: bytes
    columns: list[_Column]


class StoredColumns(Mapping["str | tuple[str, int]", list[bytes]]):
    """The columns by name, or (map, field id); ``lengths`` are those of the whole entries."""

    def __init__(self, lengths: array[int], columns: Mapping[str | tuple[str, int], _Column]):
        self.lengths = lengths
        self._packed = dict(columns)
        self._unpacked: dict[str | tuple[str, int], list[bytes]] = {}
        self.size = sum(len(each.values) + len(each.lengths) for each in columns.values())

    def __getitem__(self, key: str | tuple[str, int]) -> list[bytes]:
        found = self._unpacked.get(key)
        if found is None:
            column = self._packed[key]
            lengths = array(_LENGTH, column.lengths)
            values = column.values
            ends = accumulate(lengths, initial=0)
            found = self._unpacked[key] = [values[start:end] for start, end in pairwise(ends)]
        return found

    def __iter__(self) -> Iterator[str | tuple[str, int]]:
        return iter(self._packed)

    def __len__(self) -> int:
        return len(self._packed)


def packed(lengths: array[int], columns: Columns) -> bytes:
    """The bytes of columns of entries that have these lengths."""
    found = [
        _Column(
            key if isinstance(key, str) else key[0],
            _WHOLE if isinstance(key, str) else key[1],
            array(_LENGTH, map(len, values)).tobytes(),
            b"".join(values),
        )
        for key, values in columns.items()
    ]
    return msgspec.msgpack.encode(_Stored(_VERSION, sys.byteorder, lengths.tobytes(), found))


def unpacked(data: bytes) -> StoredColumns | None:
    """The columns again; None for bytes that ``packed`` did not write on such a machine."""
    try:
        stored = msgspec.msgpack.decode(data, type=_Stored)
        if (stored.version, stored.order) != (_VERSION, sys.byteorder):
            return None
        lengths = array(_LENGTH, stored.entries)
        columns = {
            each.name if each.field_id == _WHOLE else (each.name, each.field_id): each
            for each in stored.columns
        }
        for each in columns.values():
            own = array(_LENGTH, each.lengths)
            if len(own) not in (0, len(lengths)) or sum(own) != len(each.values):
                return None
    except (msgspec.DecodeError, ValueError):
        return None
    return StoredColumns(lengths, columns)
