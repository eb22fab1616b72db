"""What a data file and its metrics hold, type by type, is what the page of ``icesql.write`` says."""

from __future__ import annotations

import math
import struct
from ast import literal_eval
from itertools import pairwise
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import icesql.write
from icesql.iceberg.bounds import decode_bound
from icesql.write.parquet_schema import parquet_schema
from tests.columns import array, type_of
from tests.tables import read_table
from tests.write.test_write_task import metadata, written

# Three rows of each type; the second is NULL.
TYPES = {name: rest for name, *rest in read_table(__file__, "types.tsv")}


def page() -> dict[str, list[str]]:
    """The rows of the table in the docstring by type, their cells in order."""
    found = {}
    for line in (icesql.write.__doc__ or "").splitlines():
        type = line[4:20].strip()
        if line.startswith("    ") and type in {*TYPES, "geometry", "variant"}:
            cuts = (20, 32, 44, 59, 71, 83, 200)
            found[type] = [line[a:b].strip() for a, b in pairwise(cuts)]
    return found


def table_of(name: str) -> pa.Table:
    schema = parquet_schema(metadata(Path(), f"1 c {name}").schema)
    return pa.Table.from_arrays([array(name, literal_eval(TYPES[name][0]))], schema=schema)


def cells(path: str) -> tuple[str, str, Any]:
    """Physical type, logical type and the column chunk of a file of one row group."""
    file = pq.ParquetFile(path)
    leaf, chunk = file.schema.column(0), file.metadata.row_group(0).column(0)
    physical = f"FIXED[{leaf.length}]" if "FIXED" in chunk.physical_type else chunk.physical_type
    logical = str(leaf.logical_type).partition("(")[0]
    return physical, {"None": "-"}.get(logical, logical), chunk


def test_the_page_has_every_type() -> None:
    assert set(page()) == {*TYPES, "geometry", "variant"}


@pytest.mark.parametrize("name", TYPES)
def test_a_column_is_what_the_page_says(tmp_path, name: str) -> None:
    physical, logical, limits, *_ = page()[name]
    (file,) = written(metadata(tmp_path, f"1 c {name}"), table_of(name))
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
    found_bounds = [
        repr(decode_bound(type_of(name), each[1]))
        for each in (file.lower_bounds, file.upper_bounds)
    ]
    assert [limits, *found_bounds] == TYPES[name][1:]


@pytest.mark.parametrize("name", TYPES)
def test_copy_differs_where_the_page_says(tmp_path, name: str) -> None:
    own_physical, own_logical, _, physical, logical, limits = page()[name]
    path = str(tmp_path / "x.parquet")
    with duckdb.connect() as con:
        con.register("rows", table_of(name))
        con.execute(f"COPY (SELECT * FROM rows) TO '{path}' (FIELD_IDS {{c: 1}})")
    found = cells(path)
    assert found[0] == (own_physical if physical == "=" else physical)
    assert found[1] == (own_logical if logical == "=" else logical)
    chunk = found[2]
    assert not chunk.has_column_index
    assert not chunk.has_offset_index
    assert chunk.statistics.has_min_max is (limits == "=")


def test_what_is_nested_has_counts_unless_it_repeats(tmp_path) -> None:
    table = metadata(
        tmp_path,
        "1 s struct<2 d double!, 3 t string>, 4 l list<5 double!>, 6 m map<7 string, 8 long>, "
        "9 n unknown, 10 i int!",
    )
    rows = pa.table(
        {
            "s": [{"d": math.nan, "t": "x"}, None],
            "l": [[math.nan], []],
            "m": array("map<1 string, 2 long>", [[("k", 1)], None]),
            "n": [None, None],
            "i": [1, 2],
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


def test_geometries_and_variants_are_what_the_page_says(tmp_path) -> None:
    fields = "1 g geometry, 2 v variant"
    point = struct.pack("<BIdd", 1, 1, 3.0, -4.0)
    rows = pa.table(
        {"g": pa.array([point, None], pa.binary()), "v": pa.array(['{"a": 1}', None], pa.string())}
    )
    (file,) = written(metadata(tmp_path, fields), rows)
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
