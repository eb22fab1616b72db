"""DELETE, UPDATE and MERGE with engine = spark: tasks change the rows; the tables become the
same."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import icesql
from icesql.engine.spark.types import declared_batch
from icesql.engine.spark.writing import frame, task_runs
from icesql.modify.tasks import broadcast, run
from tests.spark.conftest import here, lake
from tests.spark.test_compaction import killed_where_armed

NOTHING = "UPDATE s.t SET v = -1 WHERE id < 0"
STATEMENTS = [
    "DELETE FROM s.t WHERE k = 3 AND id > 20",
    "DELETE FROM s.t WHERE id IN (SELECT id FROM s.source WHERE k = 1)",
    "UPDATE s.t SET v = v + 1000, n = upper(n) WHERE k = 2",
    "UPDATE s.t SET v = r.v, k = r.k FROM s.source r WHERE r.id = t.id AND r.k = 4",
    NOTHING,
    "MERGE INTO s.t USING (SELECT * FROM s.source WHERE k < 6) r ON r.id = t.id "
    "WHEN MATCHED AND r.k = 5 THEN DELETE WHEN MATCHED THEN UPDATE SET v = r.v + t.v "
    "WHEN NOT MATCHED AND r.k <> 3 THEN INSERT *",
    "MERGE INTO s.t USING s.source r ON r.id = t.id WHEN MATCHED AND r.v > 50 THEN UPDATE SET * "
    "WHEN NOT MATCHED BY SOURCE AND t.id < 10 THEN UPDATE SET n = NULL",
    "MERGE INTO s.t USING (SELECT nullif(id + 500, 550) AS id, k, v, n FROM s.source) r "
    "ON r.id = t.id WHEN NOT MATCHED AND r.v < 60 THEN INSERT (n, id) VALUES (upper(r.n), r.id) "
    "WHEN NOT MATCHED THEN INSERT *",
]


@pytest.mark.parametrize(
    ("version", "mode", "joins"),
    [
        (2, "merge-on-read", "tasks"),
        (3, "copy-on-write", "tasks"),
        (1, "copy-on-write", "Spark"),
        (3, "merge-on-read", "Spark"),
    ],
)
def test_the_tables_become_the_same(
    connect: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    version: int,
    mode: str,
    joins: str,
) -> None:
    """Rows are found by tasks that each read all of the other tables, or by Spark's joins."""
    if joins == "Spark":
        monkeypatch.setattr(run, "_MOST_WHOLE_BYTES", 0)
    modes = ", ".join(f"'write.{each}.mode' = '{mode}'" for each in ("delete", "update", "merge"))
    found: dict[str, list[Any]] = {}
    for engine in ("local", "spark"):
        with lake(
            connect,
            tmp_path / engine,
            "CREATE TABLE s.t (id BIGINT, k INT, v DOUBLE, n VARCHAR) PARTITIONED BY (k) "
            f"TBLPROPERTIES ('format-version' = '{version}', {modes})",
            "CREATE TABLE s.source (id BIGINT, k INT, v DOUBLE, n VARCHAR)",
            "INSERT INTO s.t SELECT i, (i % 5)::INT, i / 4, 'a' || i FROM range(60) r(i)",
            "INSERT INTO s.source SELECT i, (i % 7)::INT, i, 'b' || i FROM range(40, 80) r(i)",
        ) as con:
            lineage = ", _last_updated_sequence_number, _row_id" if version > 2 else ""
            told: list[Any] = []
            numbers: dict[int, int] = {}
            for each in ("SELECT 1", *STATEMENTS):
                con.execute(f"SET engine = '{engine}'")
                with monkeypatch.context() as patch:
                    if engine == "spark" and each != NOTHING:
                        # Writes on the driver would fail.
                        patch.setattr("icesql.modify.rows.commit.RowFiles", None)
                    told.append(con.execute(each).rowcount)
                rows = here(con, f"SELECT *{lineage} FROM s.t ORDER BY id")
                if lineage:
                    # The order of several new rows is not defined; each keeps its row id.
                    now = {row[0]: row[-1] for row in rows}
                    assert all(numbers.get(key, own) == own for key, own in now.items()), each
                    numbers = now
                told.append([row[:5] for row in rows])
            found[engine] = told
    for place, (mine, other) in enumerate(zip(found["spark"], found["local"], strict=True)):
        assert mine == other, ("SELECT 1", *STATEMENTS)[place // 2]


@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
def test_columns_come_with_a_merge(
    connect: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    """WITH SCHEMA EVOLUTION, in tasks as locally."""
    found: dict[str, Any] = {}
    for engine in ("local", "spark"):
        with lake(
            connect,
            tmp_path / engine,
            "CREATE TABLE s.t (id INT, k INT, st STRUCT<x INT>) PARTITIONED BY (k) "
            f"TBLPROPERTIES ('format-version' = '3', 'write.merge.mode' = '{mode}')",
            "INSERT INTO s.t SELECT i::INT, (i % 5)::INT, {'x': i::INT} FROM range(60) r(i)",
            "CREATE TABLE s.u AS SELECT i AS id, (i % 5)::INT AS k, "
            "{'n': [i], 'x': i + 5000000000} AS st, 'b' || i AS w FROM range(40, 80) r(i)",
        ) as con:
            con.execute(f"SET engine = '{engine}'")
            with monkeypatch.context() as patch:
                if engine == "spark":
                    patch.setattr("icesql.modify.rows.commit.RowFiles", None)
                count = con.execute(
                    "MERGE WITH SCHEMA EVOLUTION INTO s.t USING s.u r ON r.id = t.id "
                    "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
                ).rowcount
            rows = here(con, "SELECT * FROM s.t ORDER BY id")
            found[engine] = count, here(con, "DESCRIBE s.t"), rows
    assert found["spark"] == found["local"]
    assert found["spark"][0] == 40
    assert found["spark"][2][39:41] == [
        (39, 4, {"x": 39, "n": None}, None), (40, 0, {"x": 5000000040, "n": [40]}, "b40"),
    ]  # fmt: skip


def joined(connect: Any, folder: Path, mode: str = "copy-on-write", first: int = 30) -> Any:
    """A connection to a table of 40 rows and one of the rows up to 49, joined by Spark."""
    return lake(
        connect,
        folder,
        "CREATE TABLE s.t (id BIGINT, k INT) PARTITIONED BY (k) "
        f"TBLPROPERTIES ('write.delete.mode' = '{mode}', 'write.update.mode' = '{mode}')",
        "INSERT INTO s.t SELECT i, (i % 4)::INT FROM range(40) r(i)",
        f"CREATE TABLE s.u AS SELECT i AS id, 7 AS k FROM range({first}, 50) r(i)",
    )


def on_disk(folder: Path) -> set[str]:
    return {each.name for each in (folder / "s/t/data").rglob("*") if each.is_file()}


def named(con: icesql.Connection) -> set[str]:
    """The names of the files of all snapshots."""
    return {Path(path).name for (path,) in here(con, "SELECT file_path FROM s.t.all_files")}


@pytest.mark.parametrize("first", [30, 40])
def test_a_worker_that_is_killed_loses_nothing_and_doubles_nothing(
    connect: Any, tmp_path: Path, armed: Path, monkeypatch: pytest.MonkeyPatch, first: int
) -> None:
    """If all rows of the source are new, the worker is one that inserts."""
    with joined(connect, tmp_path / "w", first=first) as con:
        monkeypatch.setattr(task_runs, "by_name", killed_where_armed(armed))
        done = con.execute(
            "MERGE INTO s.t USING s.u r ON r.id = t.id WHEN MATCHED THEN UPDATE SET k = r.k "
            "WHEN NOT MATCHED THEN INSERT *"
        )
        assert done.rowcount == 50 - first
        assert not [*armed.iterdir()]
        found = here(con, "SELECT id, k FROM s.t ORDER BY id")
        assert found == [(i, i % 4 if i < first else 7) for i in range(50)]
        assert on_disk(tmp_path / "w") == named(con)


@pytest.mark.parametrize(
    ("sql", "mode"),
    [
        ("UPDATE s.t SET k = u.k FROM s.u WHERE u.id = t.id", "merge-on-read"),
        ("DELETE FROM s.t WHERE id IN (SELECT id FROM s.u)", "copy-on-write"),
        ("DELETE FROM s.t USING s.u WHERE u.id = t.id", "merge-on-read"),
    ],
)
def test_a_killed_worker_that_writes_what_spark_joined_doubles_nothing(
    connect: Any, tmp_path: Path, armed: Path, monkeypatch: pytest.MonkeyPatch, sql: str, mode: str
) -> None:
    monkeypatch.setattr(run, "_MOST_WHOLE_BYTES", 0)
    with joined(connect, tmp_path / "w", mode) as con:
        monkeypatch.setattr(frame, "by_name", killed_where_armed(armed))
        assert con.execute(sql).rowcount == 10
        assert not [*armed.iterdir()]
        changed = [(i, 7) for i in range(30, 40)] if sql.startswith("UPDATE") else []
        found = here(con, "SELECT id, k FROM s.t ORDER BY id")
        assert found == [(i, i % 4) for i in range(30)] + changed
        assert on_disk(tmp_path / "w") == named(con)


@pytest.mark.parametrize(
    ("sql", "error", "told"),
    [
        (
            "UPDATE s.t SET k = u.k FROM (FROM s.u UNION ALL FROM s.u) u WHERE u.id = t.id",
            icesql.ProgrammingError,
            "matches several rows of FROM",
        ),
        ("UPDATE s.t SET k = u.k + 3000000000 FROM s.u WHERE u.id = t.id", icesql.DataError, "k"),
        (
            "UPDATE s.t SET k = DATE '2026-01-01' FROM s.u WHERE u.id = t.id AND u.k < 0",
            icesql.errors.TypeMismatchError,
            "k",
        ),
    ],
)
def test_what_fails_after_spark_joined_leaves_the_table_and_no_file(
    connect: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sql: str, error: Any, told: str
) -> None:
    monkeypatch.setattr(run, "_MOST_WHOLE_BYTES", 0)
    with joined(connect, tmp_path / "w") as con:
        before = on_disk(tmp_path / "w")
        with pytest.raises(error, match=told):
            con.execute(sql)
        assert on_disk(tmp_path / "w") == before
        assert con.execute("SELECT sum(k), count(*) FROM s.t").fetchall() == [(60, 40)]


def test_a_table_of_many_files_is_written_on_the_driver(
    connect: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "_MOST_WHOLE_BYTES", 0)
    monkeypatch.setattr(run, "_MOST_FILES", 0)
    with joined(connect, tmp_path / "w") as con:
        assert con.execute("DELETE FROM s.t WHERE id IN (SELECT id FROM s.u)").rowcount == 10
        assert con.execute("SELECT count(*) FROM s.t").fetchall() == [(30,)]


TYPES = (
    "id BIGINT, a DECIMAL(38, 10), b TIMESTAMPTZ, c UUID, d STRUCT(x INT, y VARCHAR[]), "
    "e MAP(VARCHAR, DOUBLE), f BLOB, g TIME, h DATE, n VARCHAR"
)
VALUES = (
    "SELECT i AS id, (i / 7)::DECIMAL(38, 10) AS a, TIMESTAMPTZ '2026-01-01 00:00:00+00' + to_hours(i::INT) AS b, "
    "('0000000a-0000-0000-0000-0000000000' || (i + 10))::UUID AS c, "
    "{'x': i::INT, 'y': ['a', NULL, 'b' || i]} AS d, MAP {'k': i / 3, 'nan': 'nan'::DOUBLE} AS e, "
    "encode('blob' || i) AS f, TIME '12:00:00.000001' + to_seconds(i) AS g, "
    "DATE '2026-01-01' + i::INT AS h, nullif('n' || i, 'n31') AS n FROM range(20, 60) r(i)"
)


@pytest.mark.parametrize("inline", [256 << 10, 0])
def test_the_source_of_a_merge_never_comes_to_the_driver(
    connect: Any, tmp_path: Path, armed: Path, monkeypatch: pytest.MonkeyPatch, inline: int
) -> None:
    """Tasks write the source once, for all others; files of lost attempts are not used."""
    came: list[int] = []
    monkeypatch.setattr(broadcast, "_MOST_INLINE", inline)

    def declared(batch: Any, columns: Any) -> Any:
        came.append(batch.num_rows)
        return declared_batch(batch, columns)

    monkeypatch.setattr("icesql.engine.spark.engine.declared_batch", declared)
    monkeypatch.setattr(frame, "by_name", killed_where_armed(armed))
    found = []
    for engine in ("local", "spark"):
        with lake(
            connect,
            tmp_path / engine,
            f"CREATE TABLE s.t ({TYPES}) PARTITIONED BY (bucket(2, id))",
            f"INSERT INTO s.t SELECT * FROM ({VALUES}) WHERE id < 40",
            f"CREATE TABLE s.u AS {VALUES}",
        ) as con:
            con.execute(f"SET engine = '{engine}'")
            (armed / "0").touch()
            done = con.execute(
                "MERGE INTO s.t USING (SELECT * REPLACE (id + 10 AS id) FROM s.u) r ON r.id = t.id "
                "AND r.h > t.h - 20 WHEN MATCHED THEN UPDATE SET n = r.n, d = r.d "
                "WHEN NOT MATCHED THEN INSERT *"
            )
            assert done.rowcount == 40
            if engine == "spark":
                assert not [*armed.iterdir()]
            found.append(here(con, "SELECT * FROM s.t ORDER BY id"))
            assert (left := on_disk(tmp_path / engine)) == named(con)
    assert str(found[0]) == str(found[1])
    assert came == []
    with connect(warehouse=str(tmp_path / "spark")) as con:
        # A source without rows, and a statement whose values do not fit.
        empty = "MERGE INTO s.t USING (FROM s.u WHERE id < 0) r ON r.id = t.id "
        assert con.execute(empty + "WHEN NOT MATCHED THEN INSERT *").rowcount == 0
        with pytest.raises(icesql.errors.TypeMismatchError):
            con.execute(
                "MERGE INTO s.t USING s.u r ON r.id = t.id WHEN MATCHED THEN UPDATE SET h = r.d"
            )
        with pytest.raises(icesql.DataError):
            con.execute(
                "MERGE INTO s.t USING (SELECT id, CAST(n AS INT) AS k FROM s.u) r ON r.id = t.id "
                "WHEN MATCHED THEN DELETE"
            )
    assert on_disk(tmp_path / "spark") == left
    assert came == []


@pytest.mark.parametrize("joins", ["tasks", "Spark"])
def test_what_lost_to_another_writer_is_planned_again(
    connect: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, joins: str
) -> None:
    """As locally: with the time of the first attempt, and without its files."""
    if joins == "Spark":
        monkeypatch.setattr(run, "_MOST_WHOLE_BYTES", 0)
    from icesql.commit import attempts

    own, begun = attempts._until_known, list[datetime]()

    with connect(warehouse=str(tmp_path)) as con, icesql.connect(warehouse=str(tmp_path)) as other:
        other.execute("CREATE SCHEMA s")
        other.execute("CREATE TABLE s.t (id BIGINT, v BIGINT, seen TIMESTAMP)")
        other.execute("CREATE TABLE s.u AS SELECT 3 AS id")
        other.execute("INSERT INTO s.t SELECT range, 0, NULL FROM range(10)")

        def tried(*given: Any) -> Any:
            monkeypatch.setattr(attempts, "_until_known", own)
            begun.append(datetime.now(UTC))
            other.execute("UPDATE s.t SET v = 5 WHERE id IN (3, 4)")
            other.execute("INSERT INTO s.u VALUES (4)")
            return own(*given)

        con.execute("SET engine = 'spark'")
        monkeypatch.setattr(attempts, "_until_known", tried)
        changed = con.execute(
            "UPDATE s.t SET v = v + 1, seen = now()::TIMESTAMP WHERE id IN (SELECT id FROM s.u)"
        ).fetchall()
        assert changed[0][0] == 2
        found = other.execute("SELECT id, v, seen FROM s.t WHERE v > 0 ORDER BY id").fetchall()
        assert [row[:2] for row in found] == [(3, 6), (4, 6)]
        assert all(row[2].replace(tzinfo=UTC) < begun[0] for row in found)
        known = other.execute("SELECT DISTINCT file_path FROM s.t.all_files").fetchall()
        names = {Path(row[0]).name for row in known}
        assert {each.name for each in (tmp_path / "s" / "t").rglob("*.parquet")} == names
        monkeypatch.setattr(attempts, "_until_known", tried)
        with pytest.raises(icesql.errors.CommitConflictError, match="not planned again"):
            con.execute("DELETE FROM s.t WHERE id < 5 AND random() < 2")
        assert other.execute("SELECT count(*) FROM s.t").fetchone() == (10,)
