"""Geometries as well-known binary (WKB): validation and bounding boxes.

Source: OGC 06-103r4, section 8, and ISO 13249-3 for coordinates with z and m.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa
from msgspec import Struct

from icesql.iceberg import types as t
from icesql.write.casts import plain_array
from icesql.write.inner_columns import InnerColumn
from icesql.write.values.misfit import Misfit

# Least and greatest x, y, z, m; infinities in reverse order for a dimension without values.
Box = tuple[tuple[float, ...], tuple[float, ...]]
_NO_BOX: Final[Box] = ((math.inf,) * 4, (-math.inf,) * 4)
_POINT, _LINE, _POLYGON, _MULTIPOINT = 1, 2, 3, 4
_DEEPEST: Final = 50


class Extent(Struct, frozen=True):
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
    for row, value in enumerate(values.to_pylist()):
        if value is None:
            continue
        try:
            _Walk(value).whole()
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
        box: Box | None = _NO_BOX
        for value in values.to_pylist():
            if value is None:
                continue
            walk = _Walk(value)
            walk.whole()
            if on_sphere and not walk.points_alone:
                box = None
                break
            assert box is not None
            box = _joined(box, walk.box)
        found[each.field_id] = Extent(values.null_count, box)
    return found


def bounds(found: Sequence[Extent]) -> tuple[bytes, bytes] | None:
    """The lower and upper bound of a column from its extents; None if there is none."""
    box = _NO_BOX
    for each in found:
        if each.box is None:
            return None
        box = _joined(box, each.box)
    low, high = box
    if low[0] > high[0] or low[1] > high[1]:
        return None
    return _bound(low, high), _bound(high, low)


def _bound(own: tuple[float, ...], other: tuple[float, ...]) -> bytes:
    has_z, has_m = (math.isfinite(own[place]) and math.isfinite(other[place]) for place in (2, 3))
    values = [*own[:2]]
    if has_z or has_m:
        values.append(own[2] if has_z else math.nan)
    if has_m:
        values.append(own[3])
    return struct.pack(f"<{len(values)}d", *values)


def _joined(one: Box, other: Box) -> Box:
    return (
        tuple(map(min, one[0], other[0])),
        tuple(map(max, one[1], other[1])),
    )


class _Walk:
    """Parses the coordinates of one WKB value."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0
        self.box: Box = _NO_BOX
        self.points_alone = True

    def whole(self) -> None:
        """Parse all bytes. Raises ValueError, struct.error and IndexError."""
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
        places = {0: (0, 1), 1: (0, 1, 2), 2: (0, 1, 3), 3: (0, 1, 2, 3)}[dimensions]
        size = 8 * len(places) * count
        if self._at + size > len(self._data):
            raise ValueError("it ends early")
        if not count:
            return
        found = np.frombuffer(self._data, f"{sign}f8", len(places) * count, self._at)
        self._at += size
        rows = found.reshape(count, len(places))
        low, high = [*self.box[0]], [*self.box[1]]
        for column, place in enumerate(places):
            # NaN is a missing coordinate; all coordinates of an empty point are missing.
            known = rows[:, column][~np.isnan(rows[:, column])]
            if len(known):
                low[place] = min(low[place], float(known.min()))
                high[place] = max(high[place], float(known.max()))
        self.box = tuple(low), tuple(high)
