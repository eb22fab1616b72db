"""UPDATE: rows get their new values, keep their ids, and move to the partition of what they are."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

import icesql
from icesql import errors

MODES = [
    (1, "merge-on-read"), (2, "copy-on-write"), (2, "merge-on-read"), (3, "copy-on-write"),
    (3, "merge-on-read"),
]  # fmt: skip


def filled(con: icesql.Connection, version: int, mode: str) -> None:
    con.execute(
        "CREATE TABLE s.t (i INT, s VARCHAR, x DOUBLE) PARTITIONED BY (truncate(1, s)) TBLPROPERTIES "
        f"('format-version' = '{version}', 'write.update.mode' = '{mode}', "
        "'write.delete.mode' = 'merge-on-read')"
    )
    con.execute(
        "INSERT INTO s.t SELECT i, CASE WHEN i % 10 = 9 THEN NULL ELSE chr(97 + (i % 3)::INT) || i END, "
        "CASE WHEN i % 7 = 0 THEN NULL ELSE i / 2 END FROM range(60) r(i)"
    )
    con.execute("INSERT INTO s.t VALUES (NULL, 'b', 1), (100, NULL, 'nan'::DOUBLE)")


def rows(con: icesql.Connection, columns: str = "*") -> list[tuple[Any, ...]]:
    sql = f"SELECT {columns} FROM s.t ORDER BY i, s, x"
    con.execute("SET local_reader = 'arrow'")
    by_arrow = con.execute(sql).fetchall()
    con.execute("SET local_reader = 'auto'")
    found = con.execute(sql).fetchall()
    assert repr(found) == repr(by_arrow)
    return found


STATEMENTS = [
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


@pytest.mark.parametrize(("version", "mode"), MODES)
def test_the_rows_that_match_change(con: icesql.Connection, version: int, mode: str) -> None:
    """Judged by DuckDB, which changes the same rows of a table of its own."""
    import duckdb

    filled(con, version, mode)
    other = duckdb.connect()
    other.register("given", con.execute("SELECT * FROM s.t").arrow())
    other.execute("CREATE TABLE t AS SELECT * FROM given")
    statements = random.Random(version + len(mode)).sample(STATEMENTS, 5)
    for statement in [*statements, "DELETE FROM {t} WHERE x > 5", "UPDATE {t} SET x = 0, s = 'a'"]:
        cursor = con.execute(statement.format(t="s.t"))
        (count,) = other.execute(statement.format(t="t")).fetchone()
        assert cursor.rowcount == count, statement
        expected = other.execute("SELECT * FROM t ORDER BY i, s, x").fetchall()
        assert repr(rows(con)) == repr(expected), statement
        for each in ("s IS NULL", "s LIKE 'a%'", "x >= 5"):
            sql = f"SELECT count(*) FROM {{}} WHERE {each}"
            assert con.execute(sql.format("s.t")).fetchone() == (
                other.execute(sql.format("t")).fetchone()
            ), statement


@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
def test_row_ids_stay(con: icesql.Connection, mode: str) -> None:
    filled(con, 3, mode)
    lineage = "s, x, i, _row_id, _last_updated_sequence_number"
    before = {row[3]: row for row in rows(con, lineage)}
    con.execute("UPDATE s.t SET x = 1000 + i, s = 'z' WHERE i % 4 = 1")
    after = {row[3]: row for row in rows(con, lineage)}
    assert before.keys() == after.keys()
    for key, row in after.items():
        changed = row[2] is not None and row[2] % 4 == 1
        expected = ("z", 1000.0 + row[2], row[2], key, 3) if changed else before[key]
        assert repr(row) == repr(expected)
    con.execute("UPDATE s.t SET x = 0 WHERE i = 1")
    assert {row[2]: row[4] for row in rows(con, lineage) if row[2] in (1, 5)} == {1: 4, 5: 3}


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
    """Values pass through the engine; compared as Parquet readers see them before and after."""
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


def test_in_sparks_spelling(catalog: dict[str, Any]) -> None:
    with icesql.connect(**catalog, dialect="spark") as con:
        con.execute("CREATE SCHEMA s")
        con.execute("CREATE TABLE s.t (i INT, p STRUCT<a: INT, b: STRING>) USING iceberg")
        con.execute("INSERT INTO s.t VALUES (1, named_struct('a', 1, 'b', 'x')), (2, NULL)")
        done = con.execute(
            "UPDATE s.t AS u SET u.p.b = concat_ws('-', `p`.b, 'y'), i = u.i + ? WHERE u.i <=> 1",
            [10],
        )
        assert done.rowcount == 1
        found = con.execute("SELECT i, p.a, p.b FROM s.t ORDER BY i").fetchall()
        assert found == [(2, None, None), (11, 1, "x-y")]


def test_parameters_are_in_the_order_of_the_text(con: icesql.Connection) -> None:
    con.execute("CREATE TABLE s.t (i INT, s VARCHAR)")
    con.execute("INSERT INTO s.t VALUES (1, 'a'), (2, 'b')")
    con.execute(
        "UPDATE s.t SET s = ? || v.z, i = ? FROM (SELECT ? AS z) v WHERE i = ?", ["p", 9, "q", 2]
    )
    assert con.execute("SELECT * FROM s.t ORDER BY i").fetchall() == [(1, "a"), (9, "pq")]


@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
def test_a_row_that_another_writer_changes(
    con: icesql.Connection, catalog: dict[str, Any], monkeypatch: Any, mode: str
) -> None:
    """Both would write the row anew, and there would be two of it."""
    import icesql.modify.rows.commit as module

    filled(con, 2, mode)
    for name in ("commit_overwrite", "commit_row_delta"):
        real = getattr(module, name)

        def meanwhile(*given: Any, real: Any = real, name: str = name, **more: Any) -> Any:
            monkeypatch.setattr(module, name, real)
            with icesql.connect(**catalog) as other:
                other.execute("UPDATE s.t SET x = -5 WHERE i = 5")
            return real(*given, **more)

        monkeypatch.setattr(module, name, meanwhile)
    con.execute("SET conflict_retries = 0")
    with pytest.raises(errors.CommitConflictError, match="run the statement again"):
        con.execute("UPDATE s.t SET x = -6 WHERE i = 5")
    assert [r[2] for r in rows(con) if r[0] == 5] == [-5]
    folder = Path(catalog["warehouse"]) / "s" / "t" / "data"
    listed = "SELECT count(DISTINCT file_path) FROM s.t.all_files"
    assert con.execute(listed).fetchone() == (len([*folder.rglob("*.parquet")]),)


def test_a_limited_connection_updates_nothing(
    con: icesql.Connection, catalog: dict[str, Any]
) -> None:
    con.execute("CREATE TABLE s.t (i INT)")
    con.execute("INSERT INTO s.t VALUES (1)")
    with (
        icesql.connect(**catalog, read_only=True) as other,
        pytest.raises(errors.AccessDeniedError, match="only reads"),
    ):
        other.execute("UPDATE s.t SET i = 2")
    assert con.execute("SELECT i FROM s.t").fetchall() == [(1,)]
