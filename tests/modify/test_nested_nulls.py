"""NULL and empty lists and maps around values that Arrow has as extension types."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import icesql

U = "'12345678-1234-5678-1234-567812345678'::UUID"
SHAPES = {
    "UUID": U,
    "STRUCT(a UUID)": f"{{'a': {U}}}",
    "UUID[]": f"[{U}]",
    "STRUCT(a UUID)[]": f"[{{'a': {U}}}]",
    "MAP(VARCHAR, UUID)": f"MAP{{'k': {U}}}",
    "MAP(UUID, INT)": f"MAP{{{U}: 1}}",
    "MAP(VARCHAR, UUID[])": f"MAP{{'k': [{U}]}}",
    "MAP(VARCHAR, STRUCT(a UUID))": f"MAP{{'k': {{'a': {U}}}}}",
    "STRUCT(a STRUCT(x UUID)[])": f"{{'a': [{{'x': {U}}}]}}",
    "STRUCT(m MAP(VARCHAR, UUID), t TIMESTAMP)": f"{{'m': MAP{{'k': {U}}}, 't': NULL}}",
    "UUID[][]": f"[[{U}], NULL, []]",
    "STRUCT(a STRUCT(x UUID)[])[]": f"[{{'a': [{{'x': {U}}}]}}, {{'a': NULL}}]",
    "MAP(VARCHAR, UUID)[]": f"[MAP{{'k': {U}}}, NULL]",
    "STRUCT(d DATE, u UUID)[]": f"[{{'d': DATE '2024-01-01', 'u': {U}}}]",
}
# What a list or map of the shape has none of.
EMPTY = {each: "NULL" if "(" in each and each[0] in "SU" else "[]" for each in SHAPES}
EMPTY.update({each: "MAP{}" for each in SHAPES if each[0] == "M" and not each.endswith("]")})
EMPTY.update({each: "[]" for each in SHAPES if each.endswith("]")})
EMPTY["UUID"] = "NULL"
STATEMENTS = [
    "INSERT INTO s.t SELECT id + 10, n, u FROM s.t WHERE id > 1",
    "INSERT INTO s.t SELECT id + 10, n, u FROM s.t WHERE id > 5",
    "UPDATE s.t SET n = 'x' WHERE id = 2",
    "UPDATE s.t SET n = 'x' WHERE id >= 2",
    "MERGE INTO s.t USING (SELECT 2 AS i) x ON id = i WHEN MATCHED THEN UPDATE SET n = 'm'",
    "MERGE INTO s.t USING (SELECT * FROM s.t WHERE id = 3) x ON t.id = x.id + 1 "
    "WHEN NOT MATCHED THEN INSERT *",
    "CREATE TABLE s.c AS SELECT * FROM s.t WHERE id > 1",
    "CREATE TABLE s.c AS SELECT * FROM s.t WHERE id > 5",
    "DELETE FROM s.t WHERE id = 1",
]


@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
@pytest.mark.parametrize("shape", SHAPES)
def test_rows_that_are_written_again(tmp_path: Path, shape: str, mode: str) -> None:
    with icesql.connect(warehouse=str(tmp_path)) as con:
        con.execute("CREATE SCHEMA s")
        for statement in STATEMENTS[mode == "merge-on-read" :: 2]:
            for name in ("s.t", "s.c"):
                con.execute(f"DROP TABLE IF EXISTS {name} PURGE")
            modes = ", ".join(f"'write.{each}.mode' = '{mode}'" for each in ("update", "merge"))
            con.execute(f"CREATE TABLE s.t (id INT, n VARCHAR, u {shape}) TBLPROPERTIES ({modes})")
            con.execute(
                f"INSERT INTO s.t VALUES (1, 'a', {SHAPES[shape]}), (2, 'b', NULL), (3, 'c', NULL), "
                f"(4, 'd', {EMPTY[shape]})"
            )
            before = dict(con.execute("SELECT id, u FROM s.t").fetchall())
            con.execute(statement)
            for name in ("s.t", "s.c") if "CREATE" in statement else ("s.t",):
                for number, value in con.execute(f"SELECT id, u FROM {name}").fetchall():
                    assert value == before[number % 10], (statement, number)


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
def test_given_rows_without_any_value(tmp_path: Path, kind: Any, column: str) -> None:
    rows = pa.table({"id": pa.array([1, 2], pa.int32()), "u": pa.nulls(2, kind)})
    with icesql.connect(warehouse=str(tmp_path)) as con:
        con.execute("CREATE SCHEMA s")
        con.execute(f"CREATE TABLE s.t (id INT, u {column}) TBLPROPERTIES ('format-version' = '3')")
        con.execute("INSERT INTO s.t SELECT * FROM f", tables={"f": rows})
        assert con.execute("SELECT * FROM s.t ORDER BY id").fetchall() == [(1, None), (2, None)]
