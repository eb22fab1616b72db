"""Theta sketches of distinct values, as Apache DataSketches stores them.

A sketch keeps the smallest of all hashes; their range gives an estimate of the number of distinct
values. Source: Iceberg's Puffin spec, "apache-datasketches-theta-v1"; DataSketches,
``CompactOperations``.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

SEED: Final = 9001
_NOMINAL: Final = 4096
_MOST: Final = 16 * _NOMINAL
_WHOLE: Final = (1 << 63) - 1
_VERSION, _COMPACT_FAMILY = 3, 3
# Flags: read-only, compact, ordered; then for an empty sketch, and for a single hash.
_FLAGS, _EMPTY, _SINGLE = 0x1A, 0x04, 0x20


class ThetaSketch:
    """A sketch of byte strings; exact for up to 4,096 distinct ones."""

    def __init__(self) -> None:
        self._hashes: set[int] = set()
        self._theta = _WHOLE
        self._empty = True

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
        parts = [bytes((longs, _VERSION, _COMPACT_FAMILY, 0, 0, flags)), _seed_hash()]
        if longs > 1:
            parts += [count.to_bytes(4, "little"), b"\0\0\x80\x3f"]  # sampled in full: 1.0
        if longs > 2:
            parts.append(self._theta.to_bytes(8, "little"))
        parts += [each.to_bytes(8, "little") for each in sorted(self._hashes)]
        return b"".join(parts)


def _seed_hash() -> bytes:
    """A hash of the seed: sketches with different seeds cannot be merged."""
    from mmh3 import hash64

    found = hash64(SEED.to_bytes(8, "little"), signed=False)[0]
    return int(found & 0xFFFF).to_bytes(2, "little")
