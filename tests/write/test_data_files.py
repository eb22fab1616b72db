"""What a data file and its metrics hold, type by type, is what the page of ``icesql.write`` says."""

from __future__ import annotations

import math
import struct
from datetime import date, datetime, timedelta
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import icesql.write
from icesql.iceberg import types as t
from icesql.iceberg.bounds import decode_bound
from icesql.iceberg.manifest.data_file import DataFile
from icesql.write.parquet_schema import parquet_schema
from tests.write.test_write_task import column, metadata, written

LONG = "日本" * 200
FAR = datetime(9999, 12, 31, 23, 59, 59, 999999)
DAY = timedelta(days=1)
TYPES = {
    str(each): each
    for each in (
        t.BOOLEAN, t.INTEGER, t.LONG, t.FLOAT, t.DOUBLE, t.DecimalType(9, 2), t.DecimalType(18, 2),
        t.DecimalType(20, 2), t.DecimalType(38, 2), t.DATE, t.TIME, t.TIMESTAMP, t.TIMESTAMPTZ,
        t.TIMESTAMP_NS, t.TIMESTAMPTZ_NS, t.STRING, t.BINARY, t.FixedType(5), t.UUID,
    )
}  # fmt: skip
# Three rows of each type with its least and greatest values; the second is NULL.
ROWS: dict[str, tuple[Any, Any]] = {
    "boolean": (False, True),
    "int": (-(2**31), 2**31 - 1),
    "long": (-(2**63), 2**63 - 1),
    "float": (0.0, math.nan),
    "double": (-0.0, math.nan),
    "date": (date(1, 1, 1), date(9999, 12, 31)),
    "time": (0, 86_399_999_999),
    "timestamp": (datetime(1, 1, 1), FAR),
    "timestamptz": (datetime(1, 1, 1), FAR),
    "timestamp_ns": (-(2**63) + 10**9, 2**63 - 10**9),
    "timestamptz_ns": (-(2**63) + 10**9, 2**63 - 10**9),
    "string": ("", LONG),
    "binary": (b"", b"\xfe" * 400),
    "fixed[5]": (b"\0" * 5, b"\xff" * 5),
    "uuid": (b"\0" * 16, b"\xff" * 16),
}


def page() -> dict[str, list[str]]:
    """The rows of the table in the docstring by type, their cells in order."""
    found = {}
    for line in (icesql.write.__doc__ or "").splitlines():
        type = line[4:20].strip()
        if line.startswith("    ") and type in {*TYPES, "geometry", "variant"}:
            cuts = (20, 32, 44, 59, 71, 83, 200)
            found[type] = [line[a:b].strip() for a, b in pairwise(cuts)]
    return found


def table_of(type: t.IcebergType) -> pa.Table:
    name = str(type)
    if isinstance(type, t.DecimalType):
        # Not by a minus sign, which rounds to 28 digits.
        least, greatest = (Decimal((n, (9,) * type.precision, -type.scale)) for n in (1, 0))
    else:
        least, greatest = ROWS[name]
    (field,) = parquet_schema(metadata(Path(), column(1, "c", type)).schema)
    kind = pa.int64() if isinstance(least, int) and pa.types.is_temporal(field.type) else field.type
    if isinstance(kind, pa.BaseExtensionType):
        kind = kind.storage_type
    values = pa.array([least, None, greatest], kind)
    if isinstance(field.type, pa.BaseExtensionType):
        values = pa.ExtensionArray.from_storage(field.type, values)
    return pa.Table.from_arrays([values.cast(field.type)], schema=pa.schema([field]))


def cells(path: str) -> tuple[str, str, Any]:
    """Physical type, logical type and the column chunk of a file of one row group."""
    file = pq.ParquetFile(path)
    leaf, chunk = file.schema.column(0), file.metadata.row_group(0).column(0)
    physical = f"FIXED[{leaf.length}]" if "FIXED" in chunk.physical_type else chunk.physical_type
    logical = str(leaf.logical_type).partition("(")[0]
    return physical, {"None": "-"}.get(logical, logical), chunk


def bounds(type: t.IcebergType, file: DataFile) -> tuple[Any, Any]:
    return decode_bound(type, file.lower_bounds[1]), decode_bound(type, file.upper_bounds[1])


def test_the_page_has_every_type() -> None:
    assert set(page()) == {*TYPES, "geometry", "variant"}


@pytest.mark.parametrize("name", TYPES)
def test_a_column_is_what_the_page_says(tmp_path: Path, name: str) -> None:
    type = TYPES[name]
    physical, logical, limits, *_ = page()[name]
    rows = table_of(type)
    (file,) = written(metadata(tmp_path, column(1, "c", type)), rows)
    found = cells(file.path)
    assert found[:2] == (physical, logical)
    chunk = found[2]
    assert chunk.statistics.null_count == 1
    assert chunk.statistics.has_min_max
    assert chunk.has_column_index
    assert chunk.has_offset_index
    assert chunk.has_dictionary_page is (name != "boolean")
    assert (file.value_counts[1], file.null_value_counts[1]) == (3, 1)
    assert file.nan_value_counts == ({1: 1} if limits == "without NaN" else {})
    assert file.column_sizes[1] == chunk.total_compressed_size
    assert (file.split_offsets, file.sort_order_id) == ((4,), 0)
    low, high = bounds(type, file)
    match limits:
        case "without NaN":
            # The zero of the rows is the other one for each of the two types.
            assert [math.copysign(1, each) for each in (low, high)] == [-1, 1]
            assert low == high == 0
        case "cut" if name == "string":
            assert (low, high) == ("", LONG[:15] + chr(ord(LONG[15]) + 1))
        case "cut":
            assert (low, high) == (b"", b"\xfe" * 15 + b"\xff")
        case "values" if name.endswith("_ns"):
            assert (low, high) == ROWS[name]
        case "values":
            assert [low, high] == [internal(rows["c"][n].as_py(), type) for n in (0, 2)]
        case _:
            raise AssertionError(limits)


def internal(value: Any, type: t.IcebergType) -> Any:
    """A value of Arrow's as bounds have it."""
    match type:
        case t.DateType():
            return (value - date(1970, 1, 1)).days
        case t.TimeType():
            since = timedelta(
                hours=value.hour, minutes=value.minute, seconds=value.second,
                microseconds=value.microsecond,
            )  # fmt: skip
            return since // timedelta(microseconds=1)
        case t.TimestampType() | t.TimestamptzType():
            plain = value.replace(tzinfo=None)
            return (plain - datetime(1970, 1, 1)) // timedelta(microseconds=1)
        case t.UUIDType():
            return value.bytes
        case _:
            return value


@pytest.mark.parametrize("name", TYPES)
def test_copy_differs_where_the_page_says(tmp_path: Path, name: str) -> None:
    own_physical, own_logical, _, physical, logical, limits = page()[name]
    path = str(tmp_path / "x.parquet")
    with duckdb.connect() as con:
        con.register("rows", table_of(TYPES[name]))
        con.execute(f"COPY (SELECT * FROM rows) TO '{path}' (FIELD_IDS {{c: 1}})")
    found = cells(path)
    assert found[0] == (own_physical if physical == "=" else physical)
    assert found[1] == (own_logical if logical == "=" else logical)
    chunk = found[2]
    assert not chunk.has_column_index
    assert not chunk.has_offset_index
    assert chunk.statistics.has_min_max is (limits == "=")


def test_what_is_nested_has_counts_unless_it_repeats(tmp_path: Path) -> None:
    inner = t.StructType((column(2, "d", t.DOUBLE, required=True), column(3, "t", t.STRING)))
    fields = (
        column(1, "s", inner),
        column(4, "l", t.ListType(5, t.DOUBLE, True)),
        column(6, "m", t.MapType(7, t.STRING, 8, t.LONG)),
        column(9, "n", t.UNKNOWN),
        column(10, "i", t.INTEGER, required=True),
    )
    table = metadata(tmp_path, *fields)
    rows = pa.table(
        {
            "s": pa.array([{"d": math.nan, "t": "x"}, None], pa.struct([("d", pa.float64()), ("t", pa.string())])),
            "l": pa.array([[math.nan], []], pa.list_(pa.float64())),
            "m": pa.array([[("k", 1)], None], pa.map_(pa.string(), pa.int64())),
            "n": pa.nulls(2),
            "i": pa.array([1, 2], pa.int32()),
        }
    )  # fmt: skip
    (file,) = written(table, rows)
    assert set(file.column_sizes) == {2, 3, 5, 7, 8, 10}
    assert file.value_counts == {2: 2, 3: 2, 10: 2}
    assert file.null_value_counts == {2: 1, 3: 1, 10: 0}
    assert file.nan_value_counts == {2: 1}
    assert set(file.lower_bounds) == {3, 10}
    schema = pq.ParquetFile(file.path).schema
    assert {schema.column(n).path: schema.column(n).max_definition_level for n in range(6)} == {
        "s.d": 1, "s.t": 2, "l.list.element": 2, "m.key_value.key": 2, "m.key_value.value": 3,
        "i": 0,
    }  # fmt: skip


def test_geometries_and_variants_are_what_the_page_says(tmp_path: Path) -> None:
    fields = (column(1, "g", t.GeometryType("OGC:CRS84")), column(2, "v", t.VariantType()))
    point = struct.pack("<BIdd", 1, 1, 3.0, -4.0)
    rows = pa.table(
        {"g": pa.array([point, None], pa.binary()), "v": pa.array(['{"a": 1}', None], pa.string())}
    )
    (file,) = written(metadata(tmp_path, *fields), rows)
    physical, logical, limits, *_ = page()["geometry"]
    found = cells(file.path)
    assert found[:2] == (physical, logical)
    assert limits == "box"
    assert file.lower_bounds[1] == file.upper_bounds[1] == struct.pack("<dd", 3.0, -4.0)
    assert (file.value_counts[1], file.null_value_counts[1]) == (2, 1)
    physical, logical, limits, *_ = page()["variant"]
    leaves = pq.ParquetFile(file.path).metadata.row_group(0)
    kinds = [(leaves.column(n).path_in_schema, leaves.column(n).physical_type) for n in (1, 2)]
    assert kinds == [("v.metadata", physical), ("v.value", physical)]
    assert limits == "none"
    assert 2 not in file.lower_bounds
    assert (file.value_counts[2], file.null_value_counts[2]) == (2, 1)
