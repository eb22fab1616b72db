"""Geometries as WKB, and the box around them."""

from __future__ import annotations

import struct

import pyarrow as pa
import pytest

from icesql.iceberg import types as t
from icesql.write.binary_values import bounds, extents, geometry_array
from icesql.write.casts import Misfit
from icesql.write.parquet_schema import inner_columns
from tests.columns import columns
from tests.tables import read_table


@pytest.mark.parametrize(("kind", "values", "expected"), read_table(__file__, "boxes.tsv"))
def test_the_box_is_around_all_coordinates(kind: str, values: str, expected: str) -> None:
    geometries = [None if each == "NULL" else bytes.fromhex(each) for each in values.split()]
    table = pa.table({"g": pa.array(geometries, pa.binary())})
    column = next(inner_columns(columns(f"3 g {kind}"), t.GeometryType, t.GeographyType))
    found = bounds([extents(table, [column])[3]])
    corners = found and [struct.unpack(f"<{len(each) // 8}d", each) for each in found]
    assert str(corners) == expected


@pytest.mark.parametrize(("value", "reason"), read_table(__file__, "no_wkb.tsv"))
def test_other_bytes_are_refused(value: str, reason: str) -> None:
    origin = struct.pack("<BIdd", 1, 1, 0, 0)
    with pytest.raises(Misfit, match=reason) as caught:
        geometry_array(t.GeometryType(), pa.array([origin, bytes.fromhex(value)]))
    assert caught.value.row == 1


def test_a_text_is_no_geometry() -> None:
    with pytest.raises(Misfit, match="CAST"):
        geometry_array(t.GeometryType(), pa.array(["POINT (1 2)"]))
