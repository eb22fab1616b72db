"""Convert numbers of Arrow to numpy, over the same memory, and back.

pyarrow's own ways (``to_numpy``, ``pa.array``, and scalars of Python in its functions) import
pandas wherever it is installed, which takes a process 0.2 s of CPU time. Code that reads and writes
many rows and needs only plain numbers avoids that import here.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from icesql.errors import InternalError

# Whole numbers have the same names in both.
_FLOATS: Final = {"halffloat": "float16", "float": "float32", "double": "float64"}


def to_numbers(array: pa.Array) -> npt.NDArray[Any]:
    """The values of an array of whole numbers or floats, read-only.

    Raises InternalError for one with NULL.
    """
    if array.null_count:
        raise InternalError(f"numbers of which {array.null_count} are NULL")
    kind = str(array.type)
    dtype = np.dtype(_FLOATS.get(kind, kind))
    data = array.buffers()[1]
    if data is None or not len(array):
        return np.zeros(len(array), dtype)
    return np.frombuffer(data, dtype, len(array), array.offset * dtype.itemsize)


def from_numbers(numbers: npt.NDArray[Any]) -> pa.Array:
    """An array of whole numbers or floats without NULL; do not change ``numbers`` afterwards."""
    data = pa.py_buffer(np.ascontiguousarray(numbers))
    return pa.Array.from_buffers(pa.from_numpy_dtype(numbers.dtype), len(numbers), [None, data])
