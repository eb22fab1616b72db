"""UPDATE: rows get new values, keep their ids, and move to the partition of the new values."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

import icesql
from tests.tables import read_table

MODES = [
    (1, "copy-on-write"), (1, "merge-on-read"), (2, "copy-on-write"), (2, "merge-on-read"),
    (3, "copy-on-write"), (3, "merge-on-read"),
]  # fmt: skip
STATEMENTS = read_table(__file__, "update_statements.tsv")


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
    known = [statement for each, statement in STATEMENTS if each == kind]
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
    columns = read_table(__file__, "update_types.tsv")
    spelled = ", ".join(f"{name} {kind}" for name, kind, _ in columns)
    names, values = (", ".join(row[at] for row in columns) for at in (0, 2))
    con.execute(f"CREATE TABLE s.t (i INT, {spelled}) TBLPROPERTIES ('format-version' = '3')")
    con.execute(f"INSERT INTO s.t SELECT 1, {values}")
    con.execute(f"INSERT INTO s.t (i, {names}) SELECT 2{', NULL' * len(columns)}")
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
