"""NULL and empty lists and maps of values that are extension types in Arrow."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import icesql


@pytest.mark.parametrize(
    ("kind", "column"),
    [
        (pa.list_(pa.struct([("x", pa.uuid())])), "STRUCT(x UUID)[]"),
        (pa.large_list(pa.struct([("x", pa.uuid())])), "STRUCT(x UUID)[]"),
        (pa.list_(pa.struct([("x", pa.uuid())]), 2), "STRUCT(x UUID)[]"),
        (pa.list_view(pa.struct([("x", pa.uuid())])), "STRUCT(x UUID)[]"),
        (pa.list_(pa.struct([("x", pa.json_())])), "STRUCT(x VARCHAR)[]"),
        (pa.list_(pa.struct([("x", pa.bool8())])), "STRUCT(x BOOLEAN)[]"),
        (pa.map_(pa.string(), pa.struct([("x", pa.json_())])), "MAP(VARCHAR, STRUCT(x VARCHAR))"),
        (pa.list_(pa.struct([("x", pa.uuid())])), "VARIANT"),
        (pa.map_(pa.string(), pa.json_()), "VARIANT"),
    ],
)
def test_given_rows_without_any_value(tmp_path, kind: Any, column: str) -> None:
    rows = pa.table({"id": pa.array([1, 2], pa.int32()), "u": pa.nulls(2, kind)})
    with icesql.connect(warehouse=str(tmp_path)) as con:
        con.execute("CREATE SCHEMA s")
        con.execute(f"CREATE TABLE s.t (id INT, u {column}) TBLPROPERTIES ('format-version' = '3')")
        con.execute("INSERT INTO s.t SELECT * FROM f", tables={"f": rows})
        assert con.execute("SELECT * FROM s.t ORDER BY id").fetchall() == [(1, None), (2, None)]
