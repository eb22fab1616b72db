"""The 32-bit hash of bucket partitions for whole Arrow arrays; see ``iceberg.bucket_hash``."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Numbers = npt.NDArray[Any]

_C1: Final = np.uint32(0xCC9E2D51)
_C2: Final = np.uint32(0x1B873593)
_ADDED: Final = np.uint32(0xE6546B64)


def hash_longs(values: npt.NDArray[np.int64]) -> npt.NDArray[np.uint32]:
    """The hash of each number as eight little-endian bytes."""
    words = np.ascontiguousarray(values).view(np.uint64)
    state = np.zeros(len(words), np.uint32)
    for word in (words & np.uint64(0xFFFFFFFF), words >> np.uint64(32)):
        scrambled = _rotated(word.astype(np.uint32) * _C1, 15) * _C2
        state = _rotated(state ^ scrambled, 13) * np.uint32(5) + _ADDED
    return _finished(state, np.full(len(words), 8, np.uint32))


def hash_bytes(array: pa.Array) -> npt.NDArray[np.uint32]:
    """The hash of each value of a binary or string array; arbitrary for NULL."""
    from mmh3 import hash as murmur3_x86_32

    hashes = [murmur3_x86_32(each or b"", signed=False) for each in array.to_pylist()]
    return np.array(hashes, np.uint32)


def _rotated(value: Numbers, by: int) -> Numbers:
    return (value << np.uint32(by)) | (value >> np.uint32(32 - by))


def _finished(state: Numbers, lengths: Numbers) -> Numbers:
    mixed: Numbers = state ^ lengths
    mixed = (mixed ^ (mixed >> np.uint32(16))) * np.uint32(0x85EBCA6B)
    mixed = (mixed ^ (mixed >> np.uint32(13))) * np.uint32(0xC2B2AE35)
    finished: Numbers = mixed ^ (mixed >> np.uint32(16))
    return finished


def buckets(hashes: npt.NDArray[np.uint32], count: int, nulls: pa.Array) -> pa.Array:
    """The bucket of each hash; NULL where ``nulls`` is true."""
    numbers = (hashes & np.uint32(0x7FFFFFFF)) % np.uint32(count)
    made = pa.array(numbers.astype(np.int32))
    return pc.if_else(nulls, pa.scalar(None, pa.int32()), made)
