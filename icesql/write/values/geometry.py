"""Geometries as well-known binary (WKB): validation and bounding boxes.

Source: OGC 06-103r4, section 8, and ISO 13249-3 for coordinates with z and m.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from icesql.frozen import Frozen
from icesql.iceberg import types as t
from icesql.write.casts import plain_array
from icesql.write.parquet_schema import InnerColumn
from icesql.write.values.misfit import Misfit

# Least and greatest x, y, z, m; infinities in reverse order for a dimension without values.
Box = tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]
# The places in a box of a point's coordinates, by the thousands of its type.
_PLACES: Final = ([0, 1], [0, 1, 2], [0, 1, 3], [0, 1, 2, 3])
_POINT, _LINE, _POLYGON, _MULTIPOINT = 1, 2, 3, 4
_DEEPEST: Final = 50


class Extent(Frozen):
    """Facts about the geometries of a column: the number of NULLs, and the box around all others.

    The box is None if it is unknown.
    """

    nulls: int
    box: Box | None


def geometry_array(type: t.IcebergType, values: pa.Array) -> pa.Array:
    """``values`` as WKB. Raises Misfit for values of other types, and for invalid WKB."""
    values = plain_array(values)
    if pa.types.is_string(values.type):
        raise Misfit(-1, "a text is no geometry; CAST it: 'POINT (1 2)'::GEOMETRY")
    if not pa.types.is_binary(values.type):
        raise Misfit(-1, f"a value of type {values.type} cannot be stored in it; give its WKB")
    walk = _Walk()
    for row, value in enumerate(values.to_pylist()):
        if value is None:
            continue
        try:
            walk.whole(value)
        except (struct.error, IndexError, ValueError) as error:
            reason = error if isinstance(error, ValueError) else "it ends early"
            raise Misfit(row, f"the bytes are no WKB of a {type}: {reason}") from error
    return values


def extents(table: pa.Table, columns: Sequence[InnerColumn]) -> dict[int, Extent]:
    """The extent of each column in ``table``, by field id.

    Of a geography only points have a box: edges between points can leave theirs on a sphere.
    """
    found: dict[int, Extent] = {}
    for each in columns:
        values, on_sphere = each.of(table), isinstance(each.type, t.GeographyType)
        walk = _Walk()
        for value in values.to_pylist():
            if value is not None:
                walk.whole(value)
            if on_sphere and not walk.points_alone:
                break
        is_known = walk.points_alone or not on_sphere
        found[each.field_id] = Extent(values.null_count, walk.box if is_known else None)
    return found


def bounds(found: Sequence[Extent]) -> tuple[bytes, bytes] | None:
    """The lower and upper bound of a column from its extents; None if there is none."""
    low, high = _no_box()
    for each in found:
        if each.box is None:
            return None
        low, high = np.minimum(low, each.box[0]), np.maximum(high, each.box[1])
    if low[0] > high[0] or low[1] > high[1]:
        return None
    return _bound(low, high), _bound(high, low)


def _no_box() -> Box:
    return np.full(4, math.inf), np.full(4, -math.inf)


def _bound(own: npt.NDArray[np.float64], other: npt.NDArray[np.float64]) -> bytes:
    has_z, has_m = (math.isfinite(own[place]) and math.isfinite(other[place]) for place in (2, 3))
    values = [*own[:2]]
    if has_z or has_m:
        values.append(own[2] if has_z else math.nan)
    if has_m:
        values.append(own[3])
    return struct.pack(f"<{len(values)}d", *values)


class _Walk:
    """Parses the coordinates of WKB values; ``box`` is around all of them."""

    def __init__(self) -> None:
        self.box, self.points_alone = _no_box(), True

    def whole(self, data: bytes) -> None:
        """Parse all bytes of a value. Raises ValueError, struct.error and IndexError."""
        self._data, self._at = data, 0
        self._geometry(0)
        if self._at != len(self._data):
            raise ValueError("bytes are left behind it")

    def _geometry(self, depth: int) -> None:
        if depth > _DEEPEST:
            raise ValueError("nested too deeply")
        order = self._data[self._at]
        if order > 1:
            raise ValueError(f"its byte order is {order}")
        sign = "<" if order else ">"
        (code,) = struct.unpack_from(f"{sign}I", self._data, self._at + 1)
        self._at += 5
        kind, dimensions = code % 1000, code // 1000
        if dimensions > 3 or not 1 <= kind <= 7:
            hint = "; it is EWKB, whose SRID is to be left out" if code >> 29 else ""
            raise ValueError(f"its type is {code}{hint}")
        self.points_alone &= kind in (_POINT, _MULTIPOINT)
        if kind == _POINT:
            self._points(sign, dimensions, 1)
        elif kind == _LINE:
            self._points(sign, dimensions, self._count(sign))
        elif kind == _POLYGON:
            for _ in range(self._count(sign)):
                self._points(sign, dimensions, self._count(sign))
        else:
            for _ in range(self._count(sign)):
                self._geometry(depth + 1)

    def _count(self, sign: str) -> int:
        (count,) = struct.unpack_from(f"{sign}I", self._data, self._at)
        self._at += 4
        return int(count)

    def _points(self, sign: str, dimensions: int, count: int) -> None:
        places = _PLACES[dimensions]
        size = 8 * len(places) * count
        if self._at + size > len(self._data):
            raise ValueError("it ends early")
        if not count:
            return
        found = np.frombuffer(self._data, f"{sign}f8", len(places) * count, self._at)
        self._at += size
        rows = found.reshape(count, len(places))
        low, high = self.box
        # NaN, which these functions ignore, is a missing coordinate, as are all of an empty point.
        low[places] = np.fmin(low[places], np.fmin.reduce(rows))
        high[places] = np.fmax(high[places], np.fmax.reduce(rows))
