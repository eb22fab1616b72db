"""UPDATE: rows get new values, keep their ids, and move to the partition of the new values."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

import icesql

MODES = [
    (1, "copy-on-write"), (1, "merge-on-read"), (2, "copy-on-write"), (2, "merge-on-read"),
    (3, "copy-on-write"), (3, "merge-on-read"),
]  # fmt: skip
DELETES = [
    f"DELETE FROM {{t}} AS x WHERE {condition}"
    for condition in (
        "i = 5", "i <> 7 AND i < 12", "s IS NULL AND i > 20", "x > 25", "s LIKE 'a%' AND i % 2 = 0",
        "i NOT IN (SELECT i FROM {t} WHERE i > 30)", "i IN (SELECT i + 1 FROM {t} WHERE x IS NULL)",
        "isnan(x)", "i > 1000", "s = 'b'", "s LIKE 'c%'", "NOT (i < 40)",
    )
]  # fmt: skip
UPDATES = [
    "UPDATE {t} SET x = i",
    "UPDATE {t} SET x = NULL, s = 'c' || i WHERE i = 5",
    "UPDATE {t} AS u SET s = upper(u.s) WHERE u.s LIKE 'b%'",
    "UPDATE {t} u SET i = x, x = i WHERE x = floor(x) AND x < 1000",
    "UPDATE {t} SET s = NULL WHERE s IS NULL OR x > 20",
    "UPDATE {t} SET x = x + 1 WHERE NOT (i < 40)",
    "UPDATE {t} SET x = (SELECT max(i) FROM {t}) WHERE i IN (SELECT i + 1 FROM {t} WHERE x IS NULL)",
    "UPDATE {t} SET x = -1 WHERE i NOT IN (SELECT i FROM {t} WHERE i > 30)",
    "UPDATE {t} SET i = i WHERE i IS DISTINCT FROM 3",
    "UPDATE {t} SET x = v.y FROM (VALUES (1, 10), (2, 20), (200, 5)) v(k, y) WHERE i = v.k",
    "UPDATE {t} SET s = 'a' || v.y FROM (SELECT 4 AS k) w JOIN (SELECT 4 AS k, 7 AS y) v "
    "ON v.k = w.k WHERE i = v.k",
    "UPDATE {t} SET x = 3 WHERE i > 1000",
    "UPDATE {t} SET s = CASE WHEN x > 4 THEN 'd' ELSE s END, x = CASE WHEN i IS DISTINCT FROM 4 THEN 1 END WHERE i < 9",
]


@pytest.mark.parametrize("kind", ["delete", "update"])
@pytest.mark.parametrize(("version", "mode"), MODES)
def test_the_rows_that_match_change(
    con: icesql.Connection, version: int, mode: str, kind: str
) -> None:
    """Compared with DuckDB, which changes the same rows in its own table."""
    import duckdb

    deletes = mode if kind == "delete" else "merge-on-read"
    con.execute(
        "CREATE TABLE s.t (i INT, s VARCHAR, x DOUBLE) PARTITIONED BY (truncate(1, s)) TBLPROPERTIES "
        f"('format-version' = '{version}', 'write.update.mode' = '{mode}', "
        f"'write.delete.mode' = '{deletes}')"
    )
    con.execute(
        "INSERT INTO s.t SELECT i, CASE WHEN i % 10 = 9 THEN NULL ELSE chr(97 + (i % 3)::INT) || i END, "
        "CASE WHEN i % 7 = 0 THEN NULL ELSE i / 2 END FROM range(60) r(i)"
    )
    con.execute("INSERT INTO s.t VALUES (NULL, 'b', 1), (100, NULL, 'nan'::DOUBLE)")
    other = duckdb.connect()
    other.register("given", con.execute("SELECT * FROM s.t").arrow())
    other.execute("CREATE TABLE t AS SELECT * FROM given")
    all_rows = "SELECT * FROM {} ORDER BY i, s, x"
    known = DELETES if kind == "delete" else UPDATES
    statements = random.Random(version + len(mode)).sample(known, 6)
    for statement in [*statements, "DELETE FROM {t} WHERE x > 5", "UPDATE {t} SET x = 0, s = 'a'"]:
        cursor = con.execute(statement.format(t="s.t"))
        (count,) = other.execute(statement.format(t="t")).fetchone()
        assert cursor.rowcount == count, statement
        expected = repr(other.execute(all_rows.format("t")).fetchall())
        for reader in ("arrow", "auto"):
            con.execute(f"SET local_reader = '{reader}'")
            assert repr(con.execute(all_rows.format("s.t")).fetchall()) == expected, statement
        for each in ("s IS NULL", "s LIKE 'a%'", "x >= 5"):
            sql = f"SELECT count(*) FROM {{}} WHERE {each}"
            assert con.execute(sql.format("s.t")).fetchone() == (
                other.execute(sql.format("t")).fetchone()
            ), statement


def test_only_files_that_may_match_are_read(
    con: icesql.Connection, catalog: dict[str, Any]
) -> None:
    con.execute("CREATE TABLE s.t (i INT, p VARCHAR) PARTITIONED BY (p)")
    con.execute("INSERT INTO s.t VALUES (1, 'a'), (2, 'b'), (3, 'c'), (4, 'c')")
    for each in Path(catalog["warehouse"]).rglob("p=[ab]/*.parquet"):
        each.unlink()
    assert con.execute("UPDATE s.t SET i = i + 10 WHERE p = 'c' AND i < 4").rowcount == 1
    con.execute("CREATE TABLE s.u AS SELECT 4 AS k, 'c' AS q")
    assert con.execute("UPDATE s.t SET i = 5 FROM s.u u WHERE i = k AND p = q").rowcount == 1
    found = con.execute("SELECT i FROM s.t WHERE p = 'c' ORDER BY i").fetchall()
    assert found == [(5,), (13,)]


def test_what_is_not_assigned_stays_exactly(con: icesql.Connection) -> None:
    """Values pass through the engine; they are compared in the Parquet files before and after."""
    columns = {
        "b": ("BOOLEAN", "true"), "l": ("BIGINT", "-9223372036854775808"),
        "f": ("FLOAT", "'-0.0'::FLOAT"), "x": ("DOUBLE", "'nan'::DOUBLE"),
        "n": ("DECIMAL(38, 10)", "-1234567890123456789012345678.0123456789"),
        "d": ("DATE", "DATE '0001-01-01'"), "t": ("TIME", "TIME '23:59:59.999999'"),
        "ts": ("TIMESTAMP", "TIMESTAMP '1969-12-31 23:59:59.999999'"),
        "tz": ("TIMESTAMPTZ", "TIMESTAMPTZ '9999-12-31 23:59:59.999999+00'"),
        "ns": ("TIMESTAMP_NS", "TIMESTAMP_NS '1970-01-01 00:00:00.123456789'"),
        "s": ("VARCHAR", "'é' || chr(0) || '😀'"), "u": ("UUID", "uuid()"),
        "bin": ("BLOB", "'\\x00\\xFF'::BLOB"), "fix": ("FIXED(3)", "'abc'::BLOB"),
        "arr": ("INT[]", "[1, NULL]"), "m": ("MAP(VARCHAR, DOUBLE)", "MAP {'k': 1.5}"),
        "st": ("STRUCT(a INT, b VARCHAR[])", "{'a': NULL, 'b': ['x', NULL]}"),
    }  # fmt: skip
    spelled = ", ".join(f"{name} {kind}" for name, (kind, _) in columns.items())
    con.execute(f"CREATE TABLE s.t (i INT, {spelled}) TBLPROPERTIES ('format-version' = '3')")
    con.execute(f"INSERT INTO s.t SELECT 1, {', '.join(value for _, value in columns.values())}")
    con.execute(f"INSERT INTO s.t (i, {', '.join(columns)}) SELECT 2, {', '.join(['NULL'] * 17)}")
    con.execute("SET local_reader = 'arrow'")
    before = con.execute("SELECT * EXCLUDE (i) FROM s.t ORDER BY i").arrow()
    con.execute("UPDATE s.t SET i = i + 5")
    after = con.execute("SELECT * EXCLUDE (i) FROM s.t ORDER BY i").arrow()
    assert repr(after.to_pylist()) == repr(before.to_pylist())
    assert after.schema == before.schema


def test_parameters_are_in_the_order_of_the_text(con: icesql.Connection) -> None:
    con.execute("CREATE TABLE s.t (i INT, s VARCHAR)")
    con.execute("INSERT INTO s.t VALUES (1, 'a'), (2, 'b')")
    con.execute(
        "UPDATE s.t SET s = ? || v.z, i = ? FROM (SELECT ? AS z) v WHERE i = ?", ["p", 9, "q", 2]
    )
    assert con.execute("SELECT * FROM s.t ORDER BY i").fetchall() == [(1, "a"), (9, "pq")]
