"""BoundedCache: what was read or decoded once, kept while it fits; files never change."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, TypeVar
from weakref import WeakValueDictionary

if TYPE_CHECKING:
    from icesql.storage.stores.cached import Blocks

T = TypeVar("T")

DEFAULT_BYTES: Final = 256 << 20


class BoundedCache:
    """Least recently used values up to ``max_bytes`` in all; safe to share between threads.

    Keys name immutable things, such as (what, location, length). A value is returned as it was
    put: treat it as frozen. What is larger than the whole cache is found while somebody else holds
    it, if it can be referred to weakly. ``blocks`` is what is kept on disk, of object stores only.
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
            old = self._kept.pop(key, None)
            if old is not None:
                self.bytes_used -= old[1]
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
        """Forget the value of ``key``, if it is here."""
        with self._lock:
            self._large.pop(key, None)
            old = self._kept.pop(key, None)
            if old is not None:
                self.bytes_used -= old[1]

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._kept.clear()
            self._large.clear()
            self.bytes_used = 0

    def __len__(self) -> int:
        return len(self._kept)


def kept(cache: BoundedCache | None, key: Hashable | None, make: Callable[[], tuple[T, int]]) -> T:
    """The value of ``key``; when it is not here ``make`` gives it, with the bytes that it takes.

    Without a cache or a key it is made each time. Two threads may make the same value at once.
    """
    if cache is None or key is None:
        return make()[0]
    found: T | None = cache.get(key)
    if found is None:
        found, size = make()
        cache.put(key, found, size)
    return found
