"""DELETE, TRUNCATE and INSERT OVERWRITE: the right rows go, the others stay as they were."""

from __future__ import annotations

import random
from typing import Any

import pytest

import icesql
from icesql import errors
from icesql.catalog.targets import table_to_change

MODES = [
    (1, "copy-on-write"), (2, "copy-on-write"), (2, "merge-on-read"), (3, "copy-on-write"),
    (3, "merge-on-read"),
]  # fmt: skip


def filled(
    con: icesql.Connection, version: int, mode: str, isolation: str = "serializable"
) -> None:
    con.execute(
        "CREATE TABLE s.t (i INT, s VARCHAR, x DOUBLE) PARTITIONED BY (truncate(1, s)) TBLPROPERTIES "
        f"('format-version' = '{version}', 'write.delete.mode' = '{mode}', "
        f"'write.delete.isolation-level' = '{isolation}')"
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


@pytest.mark.parametrize(("version", "mode"), MODES)
def test_the_rows_that_match_go(con: icesql.Connection, version: int, mode: str) -> None:
    """Judged by DuckDB, which deletes the same rows from a table of its own."""
    import duckdb

    filled(con, version, mode)
    other = duckdb.connect()
    found = con.execute("SELECT * FROM s.t").arrow()
    other.register("given", found)
    other.execute("CREATE TABLE t AS SELECT * FROM given")
    conditions = [
        "i = 5", "i <> 7 AND i < 12", "s IS NULL AND i > 20", "x > 25", "s LIKE 'a%' AND i % 2 = 0",
        "i NOT IN (SELECT i FROM {t} WHERE i > 30)", "i IN (SELECT i + 1 FROM {t} WHERE x IS NULL)",
        "isnan(x)", "i > 1000", "s = 'b'", "s LIKE 'c%'", "NOT (i < 40)",
    ]  # fmt: skip
    random.Random(version).shuffle(conditions)
    del conditions[6:]
    for condition in conditions:
        cursor = con.execute(f"DELETE FROM s.t AS x WHERE {condition.format(t='s.t')}")
        (count,) = other.execute(f"DELETE FROM t WHERE {condition.format(t='t')}").fetchone()
        assert cursor.rowcount == count, condition
        expected = other.execute("SELECT * FROM t ORDER BY i, s, x").fetchall()
        assert repr(rows(con)) == repr(expected), condition


def test_using_other_tables(con: icesql.Connection) -> None:
    filled(con, 3, "merge-on-read")
    other = "(SELECT i + k AS i FROM s.t, (VALUES (1), (2), (2)) v(k) WHERE i < 3) y"
    sql = f"DELETE FROM s.t x /* , */ USING {other}, (SELECT 1 AS n) z WHERE x.i = y.i AND z.n = ?"
    assert con.execute(sql, [1]).rowcount == 4
    assert [row[0] for row in rows(con)[:4]] == [0, 5, 6, 7]
    assert con.execute("DELETE FROM s.t USING (SELECT 6 AS k) t2 WHERE t.i = k").rowcount == 1
    assert con.execute("DELETE FROM s.t USING (SELECT 6 WHERE false) u").rowcount == 0
    assert con.execute("DELETE FROM s.t USING (SELECT 6) u").rowcount == 57


def test_copy_on_write_keeps_row_ids(con: icesql.Connection) -> None:
    filled(con, 3, "copy-on-write")
    lineage = "i, s, x, _row_id, _last_updated_sequence_number"
    before = rows(con, lineage)
    con.execute("DELETE FROM s.t WHERE i % 4 = 1")
    assert repr(rows(con, lineage)) == repr([r for r in before if r[0] is None or r[0] % 4 != 1])


def test_merge_on_read_writes_no_data(con: icesql.Connection) -> None:
    filled(con, 2, "merge-on-read")
    before = con.execute("SELECT count(*) FROM s.t.data_files").fetchall()
    for condition in ("i = 3", "i IN (4, 6)"):
        con.execute(f"DELETE FROM s.t WHERE {condition}")
    assert con.execute("SELECT count(*) FROM s.t.data_files").fetchall() == before
    files = con.execute("SELECT content, record_count FROM s.t.delete_files ORDER BY 2").fetchall()
    assert {content for content, _ in files} == {1}
    assert sum(count for _, count in files) == 3
    from pyiceberg.table import StaticTable

    table = table_to_change(con._session.state.names, ("s", "t"))[1]
    found = StaticTable.from_metadata(table.metadata_location).scan().to_arrow()
    assert found.num_rows == 59
    assert not {3, 4, 6} & set(found["i"].to_pylist())


@pytest.mark.parametrize(("version", "mode"), MODES)
def test_everything(con: icesql.Connection, version: int, mode: str) -> None:
    filled(con, version, mode)
    assert con.execute("DELETE FROM s.t").rowcount == 62
    assert rows(con) == []
    assert con.execute("TRUNCATE TABLE s.t").message == "0 rows, nothing to commit"
    con.execute("INSERT INTO s.t VALUES (1, 'a', 1)")
    assert con.execute("INSERT OVERWRITE s.t SELECT i + 1, s, x FROM s.t").rowcount == 1
    assert rows(con) == [(2, "a", 1.0)]
    con.execute("TRUNCATE TABLE s.t")
    found = con.execute("SELECT operation FROM s.t.snapshots ORDER BY committed_at").fetchall()
    assert [each for (each,) in found][-3:] == ["append", "overwrite", "delete"]


@pytest.mark.parametrize(("version", "mode"), MODES[1:3])
@pytest.mark.parametrize("isolation", ["serializable", "snapshot"])
def test_rows_that_come_meanwhile(
    con: icesql.Connection,
    catalog: dict[str, Any],
    monkeypatch: Any,
    version: int,
    mode: str,
    isolation: str,
) -> None:
    """Between the reading and the commit another writer adds rows that match."""
    filled(con, version, mode, isolation)
    import icesql.modify.rows.commit as module

    files = []
    for name in ("commit_overwrite", "commit_row_delta"):
        real = getattr(module, name)

        def meanwhile(*given: Any, real: Any = real, **more: Any) -> Any:
            with icesql.connect(**catalog) as other:
                other.execute("INSERT INTO s.t VALUES (5, 'late', 0)")
            files.append(more)
            return real(*given, **more)

        monkeypatch.setattr(module, name, meanwhile)
    con.execute("SET conflict_retries = 0")
    if isolation == "serializable":
        with pytest.raises(errors.CommitConflictError):
            con.execute("DELETE FROM s.t WHERE i = 5")
        assert [r[1] for r in rows(con) if r[0] == 5] == ["c5", "late"]
    else:
        con.execute("DELETE FROM s.t WHERE i = 5")
        assert [r[1] for r in rows(con) if r[0] == 5] == ["late"]
    assert files


def test_a_limited_connection_deletes_nothing(
    con: icesql.Connection, catalog: dict[str, Any]
) -> None:
    con.execute("CREATE TABLE s.t (i INT)")
    con.execute("INSERT INTO s.t VALUES (1)")
    with icesql.connect(**catalog, read_only=True) as other:
        for sql in (
            "DELETE FROM s.t",
            "DELETE FROM s.t WHERE i = 1",
            "TRUNCATE TABLE s.t",
            "INSERT OVERWRITE s.t SELECT 1",
        ):
            with pytest.raises(errors.AccessDeniedError, match="only reads"):
                other.execute(sql)
    assert con.execute("SELECT count(*) FROM s.t").fetchall() == [(1,)]


@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
def test_a_branch(con: icesql.Connection, mode: str) -> None:
    """What is deleted and updated of a branch is what the branch has, and main stays as it is."""
    from icesql.commit.change import change_table
    from icesql.commit.refs import create_ref

    filled(con, 3, mode)
    catalog, table = table_to_change(con._session.state.names, ("s", "t"))
    change_table(catalog, table, create_ref("b", kind="branch"))
    main = rows(con)
    con.execute("INSERT INTO s.t.branch_b VALUES (1000, 'late', 0)")
    con.execute("INSERT INTO s.t VALUES (1000, 'main', 0)")
    assert con.execute("DELETE FROM s.t.branch_b WHERE i >= 50 AND s <> 'x'").rowcount == 10
    assert con.execute("UPDATE s.t.branch_b SET s = 'new' WHERE i < 5").rowcount == 5
    assert con.execute("UPDATE s.t.branch_b AS y SET x = 1 WHERE y.s = 'new'").rowcount == 5
    found = con.execute("SELECT i FROM s.t VERSION AS OF 'b' WHERE s = 'new' AND x = 1 ORDER BY i")
    assert found.fetchall() == [(i,) for i in range(5)]
    (count,) = con.execute("SELECT count(*) FROM s.t VERSION AS OF 'b'").fetchone()
    assert count == 62 + 1 - 10
    assert [each for each in map(repr, rows(con)) if "main" not in each] == [*map(repr, main)]
    con.execute("DELETE FROM s.t.branch_b")
    assert con.execute("SELECT count(*) FROM s.t VERSION AS OF 'b'").fetchone() == (0,)
    assert len(rows(con)) == len(main) + 1


def test_a_branch_of_a_table_named_with_its_catalog(
    con: icesql.Connection, catalog: dict[str, Any]
) -> None:
    """Four parts, of which the last one is the branch."""
    filled(con, 2, "copy-on-write")
    con.execute("ALTER TABLE s.t CREATE BRANCH b")
    with icesql.connect("c", **catalog) as named:
        assert named.execute("DELETE FROM c.s.t.branch_b WHERE i < 5").rowcount == 5
        assert named.execute("UPDATE c.s.t.branch_b SET x = 1 WHERE i < 9").rowcount == 4
        found = named.execute("SELECT count(*) FROM c.s.t.branch_b WHERE x = 1 AND i < 9")
        assert found.fetchall() == [(4,)]
