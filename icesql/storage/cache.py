"""BoundedCache: keeps read or decoded values while they fit; files never change."""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, TypeVar
from weakref import WeakValueDictionary

from icesql.config import Settings

if TYPE_CHECKING:
    from icesql.storage.stores.blocks import BlockStore
    from icesql.storage.stores.eviction import Lease

T = TypeVar("T")

DEFAULT_BYTES: Final = 256 << 20


class BoundedCache:
    """Least recently used values up to ``max_bytes`` in all; safe to share between threads.

    Keys name immutable things, such as (what, location, length). A value is returned as it was
    put: treat it as frozen. A value larger than the whole cache is found while another object
    refers to it, if it allows weak references. ``blocks`` is the cache on disk, for object stores
    only.
    """

    def __init__(self, max_bytes: int = DEFAULT_BYTES, blocks: Blocks | None = None) -> None:
        self.max_bytes, self.bytes_used, self.blocks = max_bytes, 0, blocks
        self._kept: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()
        self._large: WeakValueDictionary[Hashable, Any] = WeakValueDictionary()
        self._lock = threading.Lock()

    def get(self, key: Hashable) -> Any | None:
        """The value of ``key``; None if it is not (or no longer) cached."""
        with self._lock:
            kept = self._kept.get(key)
            if kept is None:
                return self._large.get(key)
            self._kept.move_to_end(key)
            return kept[0]

    def put(self, key: Hashable, value: Any, size: int) -> None:
        """Cache ``value`` of about ``size`` bytes; evicts the oldest entries."""
        with self._lock:
            self._drop(key)
            if size > self.max_bytes:
                with suppress(TypeError):
                    self._large[key] = value
                return
            self._kept[key] = (value, size)
            self.bytes_used += size
            while self.bytes_used > self.max_bytes:
                _, (_, freed) = self._kept.popitem(last=False)
                self.bytes_used -= freed

    def remove(self, key: Hashable) -> None:
        """Remove the value of ``key``, if it is cached."""
        with self._lock:
            self._large.pop(key, None)
            self._drop(key)

    def _drop(self, key: Hashable) -> None:
        old = self._kept.pop(key, None)
        if old is not None:
            self.bytes_used -= old[1]

    def clear(self) -> None:
        """Remove all values."""
        with self._lock:
            self._kept.clear()
            self._large.clear()
            self.bytes_used = 0

    def __len__(self) -> int:
        return len(self._kept)


def kept(cache: BoundedCache | None, key: Hashable | None, make: Callable[[], tuple[T, int]]) -> T:
    """The value of ``key``; if it is not cached, ``make`` returns it with its bytes.

    Without a cache or a key it is made each time. Two threads may make the same value at once.
    """
    if cache is None or key is None:
        return make()[0]
    found: T | None = cache.get(key)
    if found is None:
        found, size = make()
        cache.put(key, found, size)
    return found


# Blocks: the block store that a connection's settings choose, opened on first use.

_TEMPORARY: Final = "blocks-"
# A younger folder may not yet hold the lease that its process takes.
_YOUNG_SECONDS: Final = 60.0


class Blocks:
    """The cache folder of ``settings``, which may change; a temporary one if off or unusable.

    ``problem`` is the reason why the folder of the settings is not used.
    """

    def __init__(self, settings: Settings) -> None:
        self._lock = threading.Lock()
        self._store: BlockStore | None = None
        self._chosen: tuple[object, ...] | None = None
        self._process = os.getpid()
        self.problem: str | None = None
        self.settings = settings

    def forget(self) -> None:
        """Start with an empty folder, unless the settings name a permanent one."""
        with self._lock:
            self._chosen = None

    def store(self) -> BlockStore | None:
        """The block store; None where not even a temporary folder can be written to."""
        settings = self.settings
        chosen = (
            settings.caches, settings.cache, settings.cache_directory, settings.cache_size,
            settings.temp_directory,
        )  # fmt: skip
        with self._lock:
            if self._chosen != chosen or self._process != os.getpid():
                self._chosen, self._process = chosen, os.getpid()
                self._store = self._open(settings)
            return self._store

    def _open(self, settings: Settings) -> BlockStore | None:
        import tempfile

        from icesql.storage.stores.blocks import BlockStore, UnusableCache, default_folder

        self.problem = None
        if settings.caches and settings.cache and settings.cache_size != 0:
            try:
                return BlockStore(settings.cache_directory or default_folder(), settings.cache_size)
            except UnusableCache as error:
                self.problem = str(error)
        try:
            os.makedirs(settings.temp_directory, exist_ok=True)
            remove_abandoned(settings.temp_directory)
            folder = tempfile.mkdtemp(prefix=_TEMPORARY, dir=settings.temp_directory)
            store = BlockStore(folder)
            lease = store.eviction.lease()
        except (OSError, ValueError, UnusableCache) as error:
            self.problem = self.problem or str(error)
            return None
        weakref.finalize(store, _remove, folder, lease, os.getpid())
        return store


def describe_cache(settings: Settings, *, clear: bool = False) -> list[str]:
    """Describe the cache folder of these settings, a line each; ``clear`` empties it.

    Files that running queries use stay. Raises UnusableCache.
    """
    from icesql.storage.stores.blocks import BlockStore, default_folder

    store = BlockStore(settings.cache_directory or default_folder(), settings.cache_size)
    lines = [f"cache_directory  {os.path.dirname(store.folder)}"]
    if not settings.cache or settings.cache_size == 0:
        lines.append("cache            off")
    if clear:
        before = store.eviction.count()
        store.eviction.sweep(0)
        lines.append(f"removed          {_size(before[1] - store.eviction.count()[1])}")
    files, used = store.eviction.count()
    lines.append(f"kept             {_size(used)} of {_size(store.size)}, in {files:,} files")
    return lines


def _size(count: int) -> str:
    value, units = float(count), ["B", "KB", "MB", "GB", "TB"]
    while value >= 1024 and len(units) > 1:
        value, units = value / 1024, units[1:]
    return f"{value:.1f} {units[0]}" if units[0] != "B" else f"{count} B"


def remove_abandoned(parent: str) -> None:
    """Remove temporary block stores that no process holds, as after a kill."""
    from icesql.storage.stores.eviction import Eviction

    with suppress(OSError):
        for entry in os.scandir(parent):
            if not entry.name.startswith(_TEMPORARY) or entry.is_symlink():
                continue
            with suppress(OSError):
                if entry.stat().st_mtime < time.time() - _YOUNG_SECONDS:
                    eviction = Eviction(os.path.join(entry.path, "v1"), 0)
                    if not eviction.has_leases():
                        _remove(entry.path, None, os.getpid())


def _remove(folder: str, lease: Lease | None, process: int) -> None:
    if os.getpid() == process:
        import shutil

        with suppress(OSError):
            shutil.rmtree(folder)
        if lease is not None:
            lease.close()
