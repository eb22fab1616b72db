"""Statements in tasks leave the same rows, row ids and files as on one machine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import icesql
from icesql import errors
from icesql.modify.merge.source import _Spilled
from icesql.modify.tasks import broadcast, run
from icesql.scan import planner
from tests.maintain.rewrite.test_on_spark import Workers
from tests.modify.tasks.conftest import Connect
from tests.writer.table import TableWriter

IDS = [
    {"id": 1, "name": "id", "required": False, "type": "long"},
    {"id": 2, "name": "k", "required": False, "type": "int"},
]
KEYED = "MERGE INTO s.t USING s.source r ON r.id = t.id "
STATEMENTS = [
    "DELETE FROM s.t WHERE id % 7 = 3 AND k <> 1",
    "DELETE FROM s.t WHERE id IN (SELECT id FROM s.source WHERE k = 1)",
    "UPDATE s.t SET v = v + 1000, n = upper(n), k = 9 WHERE k = 2",
    "UPDATE s.t SET v = r.v, k = r.k FROM s.source r WHERE r.id = t.id AND r.k = 4",
    KEYED + "WHEN MATCHED AND r.k = 5 THEN DELETE WHEN MATCHED THEN UPDATE SET v = r.v + t.v "
    "WHEN NOT MATCHED AND r.k <> 6 THEN INSERT *",
    KEYED + "AND t.k < 4 WHEN MATCHED AND r.v > 50 THEN UPDATE SET * "
    "WHEN NOT MATCHED BY SOURCE AND t.id < 10 THEN UPDATE SET n = NULL "
    "WHEN NOT MATCHED BY SOURCE AND t.id < 15 THEN DELETE",
    "MERGE INTO s.t USING (SELECT id + 30 AS id, n FROM s.source) r ON r.id = t.id "
    "WHEN NOT MATCHED THEN INSERT (n, id) VALUES (lower(r.n), r.id)",
    "MERGE INTO s.t USING (FROM s.source UNION ALL FROM s.source) r USING (id) "
    "WHEN MATCHED THEN DELETE",
    "DELETE FROM s.t WHERE v > (SELECT avg(v) FROM s.t)",
    "UPDATE s.t SET v = 0",
]


def made(con: icesql.Connection, version: int, mode: str) -> None:
    modes = ", ".join(f"'write.{e}.mode' = '{mode}'" for e in ("delete", "update", "merge"))
    con.execute("CREATE SCHEMA s")
    con.execute(
        "CREATE TABLE s.t (id BIGINT, gone INT, k INT, v DOUBLE, n VARCHAR) PARTITIONED BY (k) "
        f"TBLPROPERTIES ('format-version' = '{version}', {modes})"
    )
    con.execute("INSERT INTO s.t SELECT i, 1, (i % 5)::INT, i / 4, 'a' || i FROM range(30) r(i)")
    con.execute("ALTER TABLE s.t DROP COLUMN gone")
    con.execute("ALTER TABLE s.t ADD PARTITION FIELD bucket(2, id)")
    con.execute("INSERT INTO s.t SELECT i, (i % 5)::INT, i / 4, 'a' || i FROM range(30, 60) r(i)")
    con.execute("CREATE TABLE s.source (id BIGINT, k INT, v DOUBLE, n VARCHAR)")
    con.execute("INSERT INTO s.source SELECT i, (i % 7)::INT, i, 'b' || i FROM range(40, 80) r(i)")


def rows(con: icesql.Connection, version: int) -> list[Any]:
    lineage = ", _row_id, _last_updated_sequence_number" if version > 2 else ", 0, 0"
    return con.execute(f"SELECT *{lineage} FROM s.t ORDER BY id, n").fetchall()


def left_over(con: icesql.Connection, folder: Path, *others: str) -> set[str]:
    """Files that no table references."""
    named = set()
    for table in ("t", "source", *others):
        found = con.execute(f"SELECT file_path FROM s.{table}.all_files").fetchall()
        named |= {Path(path.removeprefix("file://")).name for (path,) in found}
    return {each.name for each in folder.rglob("data/**/*") if each.is_file()} - named


@pytest.mark.parametrize(
    ("version", "mode"),
    [(1, "copy-on-write"), (3, "merge-on-read")],
)
def test_the_tables_become_the_same(
    connect: Connect, workers: Workers, tmp_path, version: int, mode: str
) -> None:
    one, other = connect("local"), connect("auto")
    for con in (one, other):
        made(con, version, mode)
    numbers: dict[Any, int] = {}
    for each in STATEMENTS:
        before = len(workers.chunks)
        assert other.execute(each).rowcount == one.execute(each).rowcount, each
        assert len(workers.chunks) > before, each
        mine, wanted = rows(other, version), rows(one, version)
        assert [row[:4] for row in mine] == [row[:4] for row in wanted], each
        # The order of several new rows is not defined; each keeps its row id from then on.
        assert [row[5] for row in mine] == [row[5] for row in wanted], each
        if version > 2:
            now = {row[0]: row[4] for row in mine}
            assert all(numbers.get(key, own) == own for key, own in now.items()), each
            assert len({*now.values()}) == len(now)
            numbers = now
    assert left_over(other, tmp_path / "auto") == set()


INSERTS = [
    # No row of the table can match, so that no file is read.
    "MERGE INTO s.t USING (SELECT id + 1000 AS id, k, v, n FROM s.source) r ON r.id = t.id "
    "WHEN NOT MATCHED THEN INSERT *",
    "MERGE INTO s.bare USING (FROM s.source UNION ALL FROM s.source) r ON r.id = bare.id "
    "WHEN MATCHED THEN DELETE WHEN NOT MATCHED AND r.k <> 2 THEN INSERT *",
    # NULL matches nothing.
    "MERGE INTO s.t USING (SELECT nullif(id, 70) AS id, k, v, n FROM s.source) r ON r.id = t.id "
    "WHEN NOT MATCHED AND r.n LIKE '%7%' THEN INSERT (id, n, v) VALUES (r.id, r.n, r.v + 1) "
    "WHEN NOT MATCHED THEN INSERT (n, k) VALUES ('other', r.k) WHEN MATCHED THEN UPDATE SET k = 8",
    "MERGE INTO s.t USING s.source r ON r.id = t.id AND t.n = 'no such row' "
    "WHEN NOT MATCHED AND r.id IN (SELECT id + 1 FROM s.source WHERE k = 3) THEN INSERT *",
    "MERGE INTO s.t USING s.source r ON r.id + 3000 = t.id "
    "WHEN NOT MATCHED BY SOURCE AND t.k = 8 THEN DELETE WHEN NOT MATCHED THEN INSERT *",
]


@pytest.mark.parametrize("mode", ["merge-on-read", "copy-on-write"])
def test_rows_that_match_nothing_are_written_in_tasks_too(
    connect: Connect,
    workers: Workers,
    tmp_path,
    monkeypatch,
    mode: str,
) -> None:
    monkeypatch.setattr(run, "_TASK_BYTES", 700)
    one, other = connect("local"), connect("auto")
    for con in (one, other):
        made(con, 3, mode)
        con.execute(
            "CREATE TABLE s.bare (id BIGINT, k INT, v DOUBLE, n VARCHAR) "
            "TBLPROPERTIES ('format-version' = '3')"
        )
        con.execute("ALTER TABLE s.bare WRITE ORDERED BY v DESC")
    for each in INSERTS:
        told = one.execute(each).rowcount
        with monkeypatch.context() as patch:
            # Writes on this machine would fail.
            patch.setattr("icesql.modify.rows.commit.RowFiles", None)
            before = sum(workers.chunks)
            assert other.execute(each).rowcount == told, each
        assert sum(workers.chunks) >= before + 2
        everything = "SELECT * FROM s.t ORDER BY ALL"
        assert other.execute(everything).fetchall() == one.execute(everything).fetchall(), each
        bare = "SELECT *, _last_updated_sequence_number FROM s.bare ORDER BY ALL"
        assert other.execute(bare).fetchall() == one.execute(bare).fetchall()
        count, ids = other.execute("SELECT count(*), count(DISTINCT _row_id) FROM s.t").fetchone()
        assert count == ids
    assert left_over(other, tmp_path / "auto", "bare") == set()


def test_a_lost_try_inserts_nothing_twice(
    connect: Connect, workers: Workers, tmp_path, monkeypatch
) -> None:
    monkeypatch.setattr(run, "_TASK_BYTES", 700)
    monkeypatch.setattr(broadcast, "_MOST_INLINE", 0)
    workers._loses = lambda number: True
    con = connect("auto")
    made(con, 3, "merge-on-read")
    done = con.execute(KEYED + "WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT *")
    assert done.rowcount == 40
    assert workers.chunks[-1] == 2
    assert rows(con, 2)[-20:] == [(i, i % 7, float(i), f"b{i}", 0, 0) for i in range(60, 80)]
    assert con.execute("SELECT count(*), count(DISTINCT id) FROM s.t").fetchall() == [(60, 60)]
    assert left_over(con, tmp_path / "auto") == set()


def test_a_large_source_lies_in_a_file_that_goes(
    connect: Connect, workers: Workers, tmp_path, monkeypatch
) -> None:
    def refuse(*_: Any) -> None:
        raise AssertionError("the folder of the table was listed")

    monkeypatch.setattr(broadcast, "_MOST_INLINE", 0)
    monkeypatch.setattr("icesql.storage.new_files._remove_leftovers", refuse)
    con = connect("auto")
    made(con, 2, "merge-on-read")
    source = pa.table({"id": [1, 2, 500], "v": [7.5, None, 1.0], "u": ["x", "y", "z"]})
    done = con.execute(
        "MERGE INTO s.t USING source r ON r.id = t.id AND r.u <> 'y' "
        "WHEN MATCHED THEN UPDATE SET v = r.v WHEN NOT MATCHED THEN INSERT (id, n) VALUES (id, u)",
        tables={"source": source},
    )
    assert done.rowcount == 3
    found = con.execute("SELECT id, v, n FROM s.t WHERE id IN (1, 2, 500) ORDER BY id, n")
    assert found.fetchall() == [(1, 7.5, "a1"), (2, 0.5, "a2"), (2, None, "y"), (500, None, "z")]
    assert workers.chunks
    assert left_over(con, tmp_path / "auto") == set()


def test_the_types_of_a_source_of_spark_are_known(
    connect: Connect, workers: Workers, monkeypatch
) -> None:
    con = connect("auto")
    made(con, 2, "copy-on-write")
    monkeypatch.setattr(con._session, "dialect", "spark")

    class WithoutTypes(_Spilled):
        def __init__(self, *given: Any) -> None:
            super().__init__(*given)
            # Only the local engine has them.
            self.engine_types = ()

    monkeypatch.setattr("icesql.modify.merge.source._Spilled", WithoutTypes)
    done = con.execute(
        "MERGE INTO s.t USING (SELECT CAST(41 AS BIGINT) AS id, CAST(2 AS INT) AS k, 'x' AS n) r "
        "ON t.id = r.id WHEN MATCHED AND t.k > r.k THEN DELETE WHEN MATCHED THEN UPDATE SET n = r.n"
    )
    assert done.rowcount == 1
    assert workers.chunks
    assert con.execute("SELECT n FROM s.t WHERE id = 41").fetchall() == [("x",)]


@pytest.mark.parametrize(
    ("sql", "error", "told"),
    [
        (
            "MERGE INTO s.t USING (SELECT 41 AS id UNION ALL SELECT 41) r ON r.id = t.id "
            "WHEN MATCHED THEN UPDATE SET v = 1",
            errors.ProgrammingError,
            "match the row with id = 41 in",
        ),
        (
            "UPDATE s.t SET v = r.v FROM (FROM s.source UNION ALL FROM s.source) r "
            "WHERE r.id = t.id",
            errors.ProgrammingError,
            "matches several rows of FROM",
        ),
        ("UPDATE s.t SET k = id + 3000000000", errors.DataError, 'column "k"'),
        (
            KEYED + "WHEN MATCHED THEN UPDATE SET v = 0 "
            "WHEN NOT MATCHED THEN INSERT (id, k) VALUES (r.id, r.id + 3000000000)",
            errors.DataError,
            'column "k"',
        ),
        ("DELETE FROM s.t WHERE ('x' || id)::INT = 1", errors.DataError, "x"),
        ("UPDATE s.t SET k = TIMESTAMP '2026-01-01' WHERE id > 3", errors.TypeMismatchError, "k"),
    ],
)
def test_what_fails_leaves_the_table_and_no_file(
    connect: Connect, workers: Workers, tmp_path, sql: str, error: Any, told: str
) -> None:
    con = connect("auto")
    made(con, 2, "merge-on-read")
    before = rows(con, 2)
    with pytest.raises(error, match=told):
        con.execute(sql)
    assert workers.chunks
    assert rows(con, 2) == before
    assert left_over(con, tmp_path / "auto") == set()


def test_a_lost_try_leaves_no_file(connect: Connect, workers: Workers, tmp_path) -> None:
    workers._loses = lambda number: True
    con = connect("auto")
    made(con, 3, "merge-on-read")
    assert con.execute("UPDATE s.t SET v = -1 WHERE id % 3 = 0").rowcount == 20
    assert con.execute("SELECT count(*), sum(v) FROM s.t WHERE v = -1").fetchall() == [(20, -20)]
    assert left_over(con, tmp_path / "auto") == set()


def test_branches_transactions_and_tables_that_have_nothing_to_change(
    connect: Connect, workers: Workers
) -> None:
    con = connect("auto")
    made(con, 2, "copy-on-write")
    con.execute("ALTER TABLE s.t CREATE BRANCH audit")
    con.execute("DELETE FROM s.t.branch_audit WHERE id % 3 = 0")
    con.execute("BEGIN")
    con.execute("UPDATE s.t SET v = 5 WHERE id % 7 = 3")
    con.execute(KEYED + "WHEN MATCHED AND t.v = 5 THEN DELETE")
    con.execute("COMMIT")
    assert len(workers.chunks) >= 3
    counts = "SELECT count(*), count(*) FILTER (v = 5) FROM s.t"
    assert con.execute(counts).fetchall() == [(57, 7)]
    assert con.execute(f"{counts} VERSION AS OF 'audit'").fetchall()[0][0] == 40
    before = len(workers.chunks)
    with pytest.raises(errors.TypeMismatchError, match="k"):
        con.execute("UPDATE s.t SET k = DATE '2026-01-01' WHERE id < 0")
    assert con.execute("UPDATE s.t SET k = 1 WHERE id < 0").rowcount == 0
    assert len(workers.chunks) == before


def test_a_condition_that_tasks_cannot_read_is_refused(connect: Connect, workers: Workers) -> None:
    con = connect("auto")
    made(con, 2, "copy-on-write")
    sql = (
        "MERGE INTO s.t USING source r ON r.id = t.id "
        "AND r.id > (SELECT count(*) FROM s.t.snapshots) WHEN MATCHED THEN DELETE"
    )
    tables = {"source": pa.table({"id": [41, 1]})}
    con.execute("SET engine = 'spark'")
    with pytest.raises(errors.UnsupportedSqlError, match="metadata table"):
        con.execute(sql, tables=tables)
    con.execute("SET engine = 'auto'")
    assert con.execute(sql, tables=tables).rowcount == 1
    assert not workers.chunks


@pytest.mark.parametrize(
    ("sql", "walks"),
    [
        # Metadata decides first whether whole files can be deleted.
        ("DELETE FROM s.t WHERE id = 11 AND k = 1", 2),
        ("UPDATE s.t SET k = 9 WHERE id = 11", 1),
        (KEYED + "AND t.id > 10 WHEN MATCHED THEN UPDATE SET k = r.k", 1),
        # Source rows that match nothing are read with the columns of the table.
        (KEYED + "AND t.id > 10 WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT *", 2),
    ],
)
def test_a_table_is_planned_once_with_all_deletes_of_what_is_left(
    connect: Connect,
    workers: Workers,
    tmp_path,
    monkeypatch,
    sql: str,
    walks: int,
) -> None:
    con = connect("auto")
    table = TableWriter(tmp_path / "auto" / "s" / "t", IDS)
    table.commit([table.data_file([{"id": id, "k": id % 5} for id in range(20)])])
    # The statement's filter would leave this delete out: a rewritten file would have its row again.
    table.commit([table.equality_deletes([{"id": 3}], [1])])
    con.execute("CREATE TABLE s.source AS SELECT i AS id, 7 AS k FROM range(18, 22) r(i)")
    begun: list[str] = []
    walk = planner._Walk

    def counted(scan: Any, query: Any) -> Any:
        begun.append(scan.table.name)
        return walk(scan, query)

    monkeypatch.setattr(planner, "_Walk", counted)
    before = len(workers.chunks)
    con.execute(sql)
    assert len(workers.chunks) > before
    assert begun.count("s.t") == walks
    ids = con.execute("SELECT id FROM s.t ORDER BY id").fetchall()
    assert (3,) not in ids
    assert (10,) in ids
