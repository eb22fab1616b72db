"""Geometries as WKB, and the box around them."""

from __future__ import annotations

import math
import struct
from typing import Any

import pyarrow as pa
import pytest

from icesql.iceberg import types as t
from icesql.write.values.geometry import bounds, extents, geometry_array, geometry_columns
from icesql.write.values.misfit import Misfit


def point(*values: float, code: int = 1, order: str = "<") -> bytes:
    return struct.pack(f"{order}BI{len(values)}d", order == "<", code, *values)


def line(*points: tuple[float, ...], code: int = 2) -> bytes:
    flat = [each for point in points for each in point]
    return struct.pack(f"<BII{len(flat)}d", 1, code, len(points), *flat)


def box(values: list[Any], kind: t.IcebergType) -> tuple[Any, ...] | None:
    fields = (t.NestedField(3, "g", kind),)
    table = pa.table({"g": pa.array(values, pa.binary())})
    found = bounds([extents(table, geometry_columns(fields))[3]])
    return found and tuple(struct.unpack(f"<{len(each) // 8}d", each) for each in found)


@pytest.mark.parametrize(
    ("values", "low", "high"),
    [
        ([point(1, 2), None, point(-3, 5, order=">")], (-3, 2), (1, 5)),
        ([line((0, 0), (10, -4)), point(math.nan, math.nan)], (0, -4), (10, 0)),
        ([line((0, 0, 7), (1, 1, 8), code=1002)], (0, 0, 7), (1, 1, 8)),
        ([struct.pack("<BII", 1, 7, 2) + point(1, 1) + line((5, 5), (6, 0))], (1, 0), (6, 5)),
        ([struct.pack("<BIII4d", 1, 3, 1, 2, 0, 1, 2, 3)], (0, 1), (2, 3)),
        ([point(1, 2, 3, 4, code=3001), point(5, 6)], (1, 2, 3, 4), (5, 6, 3, 4)),
    ],
)
def test_the_box_is_around_all_coordinates(values: Any, low: Any, high: Any) -> None:
    assert box(values, t.GeometryType()) == (low, high)


def test_coordinates_that_are_missing() -> None:
    found = box([point(1, 2, 9, code=2001)], t.GeometryType())
    assert found is not None
    assert found[0][:2] == (1, 2)
    assert math.isnan(found[0][2])
    assert found[0][3] == 9
    assert box([None], t.GeometryType()) is None
    assert box([point(math.nan, math.nan)], t.GeometryType()) is None


def test_edges_on_a_sphere_leave_the_box_of_their_ends() -> None:
    assert box([point(1, 2), point(3, 4)], t.GeographyType()) == ((1, 2), (3, 4))
    assert box([line((0, 50), (90, 50))], t.GeographyType()) is None


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (b"", "ends early"), (point(1, 2)[:-1], "ends early"), (point(1, 2) + b"\0", "left behind"),
        (b"\2" + point(1, 2)[1:], "byte order"), (point(1, 2, code=9), "type is 9"),
        (point(1, 2, code=0x20000001), "SRID"), (struct.pack("<BII", 1, 2, 1 << 31), "ends early"),
        (struct.pack("<BII", 1, 7, 1) * 60, "too deeply"),
    ],
)  # fmt: skip
def test_other_bytes_are_refused(value: bytes, reason: str) -> None:
    with pytest.raises(Misfit, match=reason) as caught:
        geometry_array(t.GeometryType(), pa.array([point(0, 0), value]))
    assert caught.value.row == 1


def test_a_text_is_no_geometry() -> None:
    with pytest.raises(Misfit, match="CAST"):
        geometry_array(t.GeometryType(), pa.array(["POINT (1 2)"]))
