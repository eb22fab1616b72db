"""Key columns of equality deletes as machine words: equal words if, and mostly only if, equal.

Equality is Java's: NULL equals NULL, NaN equals NaN, -0.0 and 0.0 differ. Columns of at most 16
bytes are their own words; longer values are hashed and must be compared again after a match.
"""

from __future__ import annotations

import hashlib
import math
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icesql.frozen import Frozen
from icesql.read.columns.arrow_schema import stored

Words: TypeAlias = npt.NDArray[np.uint64]

_LONG = 256
_NULL = np.uint64(0x9E3779B97F4A7C15)


class KeyWords(Frozen):
    """One key column: words per value (0 where NULL), and which values are NULL."""

    words: tuple[Words, ...]
    nulls: npt.NDArray[np.bool_] | None


def is_exact(type: pa.DataType) -> bool:
    """Whether values of a type are their words, so that equal words mean equal values."""
    if isinstance(type, pa.BaseExtensionType):
        return is_exact(type.storage_type)
    if pa.types.is_fixed_size_binary(type):
        return bool(type.byte_width <= 16)
    return not (pa.types.is_string(type) or pa.types.is_binary(type))


def word_count(type: pa.DataType) -> int:
    """Words per value of a type."""
    if isinstance(type, pa.BaseExtensionType):
        return word_count(type.storage_type)
    if pa.types.is_null(type) or not is_exact(type):
        return 1
    return int(max(1, -(-type.bit_width // 64)))


def key_words(array: pa.Array, seed: int) -> KeyWords:
    """The words of a key column in a table type; ``seed`` varies the hash of long values."""
    array = stored(array)
    nulls = np.asarray(array.is_null().to_numpy(zero_copy_only=False)) if array.null_count else None
    words: tuple[Words, ...]
    if pa.types.is_null(array.type):
        words = (np.zeros(len(array), np.uint64),)
    elif is_exact(array.type):
        words = _own_words(array)
    else:
        words = (_hash_bytes(array.cast(pa.binary()), seed),)
    if nulls is not None:
        words = tuple(np.where(nulls, np.uint64(0), word) for word in words)
    return KeyWords(words, nulls)


def row_hash(columns: list[KeyWords], count: int, seed: int) -> Words:
    """One word per row; of a single one-word column without NULLs it is a bijection."""
    hashed = np.full(count, seed, np.uint64)
    for column in columns:
        for word in column.words:
            hashed = mix(hashed ^ word)
        if column.nulls is not None:
            hashed = np.where(column.nulls, mix(hashed ^ _NULL), hashed)
    return hashed


def mix(words: Words) -> Words:
    """The finaliser of splitmix64, a bijection on 64-bit words."""
    mixed = words + np.uint64(0x9E3779B97F4A7C15)
    mixed ^= mixed >> np.uint64(30)
    mixed *= np.uint64(0xBF58476D1CE4E5B9)
    mixed ^= mixed >> np.uint64(27)
    mixed *= np.uint64(0x94D049BB133111EB)
    mixed ^= mixed >> np.uint64(31)
    return mixed


def _own_words(array: pa.Array) -> tuple[Words, ...]:
    """The bytes of values of fixed width, with zeros behind them."""
    if pa.types.is_boolean(array.type):
        array = array.cast(pa.uint8())
    if pa.types.is_floating(array.type):
        # Every NaN is one key, whatever its bits.
        array = pc.if_else(pc.is_nan(array), pa.scalar(math.nan, array.type), array)
    width, count = array.type.bit_width // 8, word_count(array.type)
    padded = np.zeros((len(array), count * 8), np.uint8)
    data = array.buffers()[1]
    if data is not None and width and len(array):
        kind = f"V{width}"
        values = np.frombuffer(data, kind, len(array), array.offset * width)
        padded[:, :width].view(kind)[:, 0] = values
    words = padded.view(np.uint64)
    return tuple(np.ascontiguousarray(words[:, index]) for index in range(count))


def _hash_bytes(array: pa.Array, seed: int) -> Words:
    """A hash of each value, eight bytes a step over all values at once."""
    count = len(array)
    offsets = np.frombuffer(array.buffers()[1], np.int32)[array.offset : array.offset + count + 1]
    starts, ends = offsets[:-1].astype(np.int64), offsets[1:].astype(np.int64)
    lengths = ends - starts
    hashed = mix(np.full(count, seed, np.uint64) ^ lengths.astype(np.uint64))
    data = array.buffers()[2]
    if data is None or not lengths.any():
        return hashed
    first, last = int(starts[0]), int(ends[-1])
    # Eight spare bytes, so that the last step may read past the end.
    flat = np.zeros(last - first + 8, np.uint8)
    flat[: last - first] = np.frombuffer(data, np.uint8)[first:last]
    windows = np.lib.stride_tricks.as_strided(
        flat.view(np.uint8), shape=(len(flat) - 7, 8), strides=(1, 1)
    )
    starts = starts - first
    rows = np.flatnonzero((lengths > 0) & (lengths <= _LONG))
    step = 0
    while len(rows):
        at = starts[rows] + step
        word = np.ascontiguousarray(windows[at]).view(np.uint64)[:, 0]
        rest = np.minimum(lengths[rows] - step, 8)
        word = word & _TAIL_MASKS[rest]
        hashed[rows] = mix(hashed[rows] ^ word)
        step += 8
        rows = rows[lengths[rows] > step]
    for row in np.flatnonzero(lengths > _LONG):
        value = flat[starts[row] : starts[row] + lengths[row]].tobytes()
        digest = hashlib.blake2b(value, digest_size=8, key=seed.to_bytes(8, "little")).digest()
        hashed[row] = np.frombuffer(digest, np.uint64)[0]
    return hashed


_TAIL_MASKS = np.array([(1 << (8 * size)) - 1 for size in range(9)], np.uint64)
