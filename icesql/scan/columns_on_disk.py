"""Columns of manifests in the cache folder, so that a new process plans without unpacking them.

One file holds the columns that a filter needed from the manifests of a snapshot. For an object
store it is kept with the blocks that the same principal fetched from the store; for local manifests
it serves users who may read them. CPU time of planning in a new process, one column
(tests/benchmarks planning, "disk"): 10,000 entries 53 ms with them, 111 without, 169 decoded whole;
50,000 entries 118, 386 and 773 ms.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import msgspec

from icesql.frozen import Frozen
from icesql.storage.open import is_local

if TYPE_CHECKING:
    from icesql.iceberg.manifest.filtered_manifest import NarrowEntries
    from icesql.storage.open import Storage
    from icesql.storage.stores.blocks import Shelf

_KIND: Final = "columns of manifests"
# Unpacking fewer new entries again is faster than writing them.
_LEAST: Final = 2_000
_MOST_BYTES: Final = 64 << 20


class _Kept(Frozen, array_like=True):
    """The packed columns of a manifest, and the fingerprint of the file they came from."""

    version: tuple[int, int]
    columns: bytes


class ColumnsOnDisk:
    """Columns of one snapshot's manifests that are on disk, for one walk with one filter."""

    def __init__(self, storage: Storage, manifest_list: str, wanted: Iterable[tuple[str, int]]):
        self._storage = storage
        self._place = _place(storage, manifest_list, wanted)
        self._kept = _read(self._place)
        self._new: dict[str, _Kept] = {}
        self._count = 0

    def find(self, path: str, length: int | None) -> bytes | None:
        """The columns of a manifest; None where they are not kept, or are not this file's."""
        kept = self._kept.get(path)
        if kept is None or kept.version != _version(self._storage, path, length):
            return None
        return kept.columns

    def add(self, path: str, length: int | None, found: NarrowEntries) -> None:
        """Note what was unpacked of a manifest."""
        version = None if self._place is None else _version(self._storage, path, length)
        if version is not None:
            self._new[path] = _Kept(version, found.packed())
            self._count += found.count

    def write(self) -> None:
        """Write the new columns with the old ones, if there are enough, and they fit."""
        if self._place is None or self._count < _LEAST:
            return
        every = {**self._kept, **self._new}
        if sum(len(each.columns) for each in every.values()) <= _MOST_BYTES:
            shelf, name = self._place
            with suppress(OSError):
                shelf.put_whole(name, msgspec.msgpack.encode(every))


def _read(place: tuple[Shelf, str] | None) -> dict[str, _Kept]:
    data = None if place is None else place[0].read_whole(place[1])
    if place is None or data is None:
        return {}
    try:
        return msgspec.msgpack.decode(data, type=dict[str, _Kept])
    except msgspec.DecodeError:
        place[0].remove(place[1])
        return {}


def _version(storage: Storage, path: str, length: int | None) -> tuple[int, int] | None:
    """The fingerprint of a manifest; None where this user may not read it."""
    found = storage.version_of(path)
    if found is not None:
        return (found[1], found[2]) if os.access(found[0], os.R_OK) else None
    return None if length is None or is_local(storage.location(path)) else (0, length)


def _place(
    storage: Storage, manifest_list: str, wanted: Iterable[tuple[str, int]]
) -> tuple[Shelf, str] | None:
    blocks = None if storage.cache is None else storage.cache.blocks
    # A cache that ends with the connection is better kept in its memory.
    if blocks is None or not blocks.settings.cache or blocks.settings.cache_size == 0:
        return None
    location = storage.location(manifest_list)
    if is_local(location):
        store = blocks.store()
        shelf = None if store is None or blocks.problem else store.shelf(_KIND)
    else:
        shelf = storage.remote_files().shelf(location)
    columns = ",".join(f"{name}:{field_id}" for name, field_id in sorted(wanted))
    return None if shelf is None else (shelf, shelf.name(f"{_KIND} {columns} {location}", None))
