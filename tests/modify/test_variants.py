"""Statements that write variants and geometries."""

from __future__ import annotations

import struct
from typing import Any

import duckdb
import pytest

import icesql
from icesql import errors

TYPED = "{'d': DATE '2020-02-29', 'n': 1.50, 'u': 'x', 'b': 'ab'::BLOB}"
AS_TEXT = '{"b":"YWI=","d":"2020-02-29","n":1.50,"u":"x"}'


def files(con: icesql.Connection) -> list[str]:
    return [path for (path,) in con.execute("SELECT file_path FROM s.t.files").fetchall()]


def made(con: icesql.Connection, mode: str) -> None:
    modes = ", ".join(f"'write.{each}.mode' = '{mode}'" for each in ("delete", "update", "merge"))
    con.execute(
        "CREATE TABLE s.t (id INT, v VARIANT, p STRUCT<a: INT, v: VARIANT>, l LIST<VARIANT>) "
        f"TBLPROPERTIES ('format-version' = '3', {modes})"
    )
    con.execute(f"INSERT INTO s.t SELECT 1, {TYPED}, {{'a': 1, 'v': '[1]'}}, ['2', NULL, 'null']")
    con.execute("INSERT INTO s.t VALUES (2, NULL, NULL, NULL), (3, 'null', {'a': 3}, [])")


def rows(con: icesql.Connection) -> list[tuple[Any, ...]]:
    return con.execute("SELECT * FROM s.t ORDER BY id").fetchall()


FIRST = (1, AS_TEXT, {"a": 1, "v": "[1]"}, ["2", None, "null"])
SECOND = (2, None, None, None)
THIRD = (3, "null", {"a": 3, "v": None}, [])


@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
def test_variants_stay_as_they_are(con: icesql.Connection, mode: str) -> None:
    """Columns that a statement does not assign keep their bytes: a date stays a date."""
    made(con, mode)
    assert rows(con) == [FIRST, SECOND, THIRD]
    con.execute("UPDATE s.t SET p.a = p.a + 10 WHERE id = 1")
    con.execute("MERGE INTO s.t USING (VALUES (1), (5)) m(id) ON t.id = m.id "
        "WHEN MATCHED THEN UPDATE SET p.a = t.p.a + 100 "
        "WHEN NOT MATCHED THEN INSERT (id, v) VALUES (m.id, {'n': m.id})")  # fmt: skip
    con.execute("UPDATE s.t SET v = '{\"new\":1}' WHERE id = 3")
    con.execute("DELETE FROM s.t WHERE id = 2")
    changed = [
        (1, AS_TEXT, {"a": 111, "v": "[1]"}, ["2", None, "null"]),
        (3, '{"new":1}', {"a": 3, "v": None}, []),
        (5, '{"n":5}', None, None),
    ]
    assert rows(con) == changed
    everything = "options => map('rewrite-all', 'true')"
    con.execute(f"CALL system.rewrite_data_files('s.t', {everything})")
    assert rows(con) == changed
    con.execute(
        "CALL system.rewrite_data_files('s.t', strategy => 'sort', sort_order => 'id desc', "
        f"{everything})"
    )
    assert rows(con) == changed
    (path,) = files(con)
    # DuckDB recognizes the column by its logical type.
    found = duckdb.execute(
        "SELECT id, v.d, typeof(v.d::DATE), variant_typeof(v.d), typeof(v) FROM read_parquet(?) "
        "WHERE id = 1",
        [path],
    ).fetchall()
    assert [str(each) for each in found[0]] == ["1", "2020-02-29", "DATE", "DATE", "VARIANT"]


def test_geometries(con: icesql.Connection) -> None:
    con.execute(
        "CREATE TABLE s.t (id INT, g GEOMETRY, h GEOGRAPHY) TBLPROPERTIES ('format-version' = '3')"
    )
    con.execute("INSERT INTO s.t VALUES (1, 'POINT (1 2)'::GEOMETRY, 'POINT (3 4)'::GEOMETRY)")
    con.execute("INSERT INTO s.t SELECT 2, ST_AsWKB('LINESTRING (0 5, 9 -1)'::GEOMETRY), NULL")
    con.execute("UPDATE s.t SET id = id + 1")
    con.execute("CALL system.rewrite_data_files('s.t', options => map('rewrite-all', 'true'))")
    found = con.execute("SELECT id, ST_AsText(g::GEOMETRY), h FROM s.t ORDER BY id").fetchall()
    assert [each[:2] for each in found] == [(2, "POINT (1 2)"), (3, "LINESTRING (0 5, 9 -1)")]
    (path,) = files(con)
    kinds = duckdb.execute("SELECT name, logical_type FROM parquet_schema(?)", [path]).fetchall()
    assert {name: kind.partition("(")[0] for name, kind in kinds[2:4]} == {
        "g": "GeometryType",
        "h": "GeographyType",
    }
    lower, upper, nulls = con.execute(
        "SELECT lower_bounds, upper_bounds, null_value_counts FROM s.t.files"
    ).fetchall()[0]
    assert struct.unpack("<2d", dict(lower)[2]) == (0, -1)
    assert struct.unpack("<2d", dict(upper)[2]) == (9, 5)
    assert (struct.unpack("<2d", dict(lower)[3]), dict(nulls)[3]) == ((3, 4), 1)
    with pytest.raises(errors.TypeMismatchError, match="CAST it"):
        con.execute("INSERT INTO s.t (g) VALUES ('POINT (1 2)')")
    with pytest.raises(errors.DataError, match="no WKB"):
        con.execute("INSERT INTO s.t (g) VALUES ('ab'::BLOB)")
