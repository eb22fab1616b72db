"""Theta sketches of distinct values, as Apache DataSketches stores them.

A sketch keeps the smallest of all hashes; their range gives an estimate of the number of distinct
values. Source: Iceberg's Puffin spec, "apache-datasketches-theta-v1"; DataSketches,
``CompactOperations``.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from msgspec import Struct

SEED: Final = 9001
# Sketches with different seeds cannot be merged: the last bytes of the seed's own hash.
_SEED_HASH: Final = b"\xcc\x93"
_NOMINAL: Final = 4096
_MOST: Final = 16 * _NOMINAL
_WHOLE: Final = (1 << 63) - 1
_VERSION, _COMPACT_FAMILY = 3, 3
# Flags: read-only, compact, ordered; then for an empty sketch, and for a single hash.
_FLAGS, _EMPTY, _SINGLE = 0x1A, 0x04, 0x20


class ThetaSketch(Struct):
    """A sketch of byte strings; exact for up to 4,096 distinct ones."""

    _hashes: set[int] = set()
    _theta: int = _WHOLE
    _empty: bool = True

    def update(self, values: Iterable[bytes]) -> None:
        """Add values, repeated or not; empty ones are ignored, as in DataSketches."""
        from mmh3 import hash64

        hashes, theta = self._hashes, self._theta
        for value in values:
            if not value:
                continue
            self._empty = False
            found = hash64(value, SEED, signed=False)[0] >> 1
            if 0 < found < theta:
                hashes.add(found)
                if len(hashes) > _MOST:
                    theta = self._trim()
                    hashes = self._hashes

    def _trim(self) -> int:
        """Keep the smallest hashes; the next one becomes the upper bound."""
        if len(self._hashes) > _NOMINAL:
            ordered = sorted(self._hashes)
            self._theta = ordered[_NOMINAL]
            self._hashes = set(ordered[:_NOMINAL])
        return self._theta

    @property
    def estimate(self) -> int:
        """The estimated number of distinct values, rounded down."""
        self._trim()
        if self._theta == _WHOLE:
            return len(self._hashes)
        return len(self._hashes) * (1 << 63) // self._theta

    def to_bytes(self) -> bytes:
        """The compact form, with hashes in order."""
        self._trim()
        count, is_exact = len(self._hashes), self._theta == _WHOLE
        flags, longs = _FLAGS, 2 if is_exact else 3
        if self._empty:
            flags, longs = flags | _EMPTY, 1
        elif is_exact and count == 1:
            flags, longs = flags | _SINGLE, 1
        parts = [bytes((longs, _VERSION, _COMPACT_FAMILY, 0, 0, flags)), _SEED_HASH]
        if longs > 1:
            parts += [count.to_bytes(4, "little"), b"\0\0\x80\x3f"]  # sampled in full: 1.0
        if longs > 2:
            parts.append(self._theta.to_bytes(8, "little"))
        parts += [each.to_bytes(8, "little") for each in sorted(self._hashes)]
        return b"".join(parts)
