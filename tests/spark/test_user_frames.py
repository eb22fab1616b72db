"""DataFrames and temporary views of Spark, named in SQL: their rows stay in Spark's tasks."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import icesql
from icesql.engine.spark.engine import SparkResult
from icesql.engine.spark.start_up import without_warnings
from tests.spark.conftest import here, lake, needs
from tests.tables import read_table

ROWS = [(1, "A"), (2, None), (9, "Z")]


@pytest.fixture
def con(connect: Any, session: Any, tmp_path: Path) -> Iterator[icesql.Connection]:
    made = "CREATE TABLE s.t (id BIGINT, name VARCHAR)"
    filled = "INSERT INTO s.t VALUES (1, 'a'), (2, 'b'), (3, NULL)"
    with lake(connect, tmp_path / "lake", made, filled) as con:
        con.register("df", session.createDataFrame(ROWS, "id bigint, name string"))
        yield con
    for view in ("seen", "t"):
        session.catalog.dropTempView(view)
    # icesql looks where its master was started.
    root(session).catalog.dropTempView("seen")


def root(session: Any) -> Any:
    return type(session).builder.getOrCreate()


def rows(con: icesql.Connection, sql: str, **more: Any) -> list[tuple[Any, ...]]:
    return sorted(con.execute(sql, **more).fetchall(), key=repr)


QUERIES: list[tuple[str, list[Any]]] = [
    ("SELECT * FROM df", ROWS),
    ("SELECT count(*), count(name), max(id) FROM df WHERE id < 5", [(2, 1, 2)]),
    ("SELECT t.id, f.name FROM s.t LEFT JOIN df f USING (id) WHERE t.id > 1",
     [(2, None), (3, None)]),
    ("SELECT a.id FROM df a JOIN df b ON a.id = b.id - 1", [(1,)]),
    ("WITH x AS (SELECT id FROM df) SELECT name FROM s.t WHERE id IN (SELECT id FROM x)",
     [("a",), ("b",)]),
    ("SELECT id FROM s.t WHERE name IS NULL EXCEPT SELECT id FROM df", [(3,)]),
    ("SELECT count(*) FROM s.t.snapshots, df", [(3,)]),
]  # fmt: skip


def test_a_data_frame_is_a_table_of_a_query(con: icesql.Connection, session: Any) -> None:
    for query, expected in QUERIES:
        assert rows(con, query) == sorted(expected, key=repr), query
    assert rows(con, "SELECT count(*) FROM temp.DF") == [(3,)]
    found = rows(con, "SELECT id FROM g JOIN df USING (id)", tables={"g": session.range(2)})
    assert found == [(1,)]


def test_it_is_the_source_of_changes_and_none_of_its_rows_come_here(
    con: icesql.Connection, session: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(self: SparkResult) -> Any:
        raise AssertionError("rows came to the driver")

    computed = session.sparkContext.accumulator(0)

    def seen(value: int) -> int:
        computed.add(1)
        return value

    from pyspark.sql.functions import udf

    with without_warnings():  # PySpark's about pandas
        noted = session.range(8, 11).select(udf(seen, "bigint")("id").alias("id"))
    con.register("noted", noted)
    con.execute("CREATE TEMPORARY VIEW v AS SELECT id, 'v' AS name FROM noted WHERE id > 9")
    assert computed.value == 0
    with monkeypatch.context() as patch:
        patch.setattr(SparkResult, "_batches", never)
        con.execute("INSERT INTO s.t SELECT id + 100, name FROM df")
        con.execute("CREATE TABLE s.made AS SELECT * FROM df JOIN noted USING (id)")
        assert computed.value == 3
        # The source is computed once: a second time it could have other rows.
        con.execute("MERGE INTO s.t USING noted n ON t.id = n.id WHEN MATCHED THEN DELETE "
                    "WHEN NOT MATCHED THEN INSERT VALUES (n.id, 'new')")  # fmt: skip
        assert computed.value == 6
        con.execute(
            "MERGE INTO s.t USING v ON t.id = v.id WHEN MATCHED THEN UPDATE SET name = v.name"
        )
        con.execute("DELETE FROM s.t WHERE id IN (SELECT id + 100 FROM df WHERE name IS NULL)")
        con.execute("INSERT OVERWRITE s.made SELECT * FROM v")
    assert here(con, "SELECT * FROM s.t ORDER BY id") == [
        (1, "a"), (2, "b"), (3, None), (8, "new"), (9, "new"), (10, "v"), (101, "A"), (109, "Z"),
    ]  # fmt: skip
    assert here(con, "SELECT * FROM s.made") == [(10, "v")]


def test_names(con: icesql.Connection, session: Any) -> None:
    first = con.execute("SELECT * FROM df LIMIT 0").description
    assert first is not None
    assert [each[0] for each in first] == ["id", "name"]
    con.register("Df", session.createDataFrame([(5, 6)], "`a b.c` int, `A B.C` int"))
    described = con.execute("SELECT * FROM df")
    assert [each[:2] for each in described.description or []] == [
        ("a b.c", "integer"), ("A B.C_1", "integer"),
    ]  # fmt: skip
    assert described.fetchall() == [(5, 6)]
    assert con.execute('SELECT "A B.C_1" FROM df').fetchall() == [(6,)]
    con.execute("USE s")
    con.register("t", session.range(1))
    assert rows(con, "SELECT * FROM t") == [(0,)]
    con.unregister("T")
    assert len(rows(con, "SELECT * FROM t")) == 3
    con.unregister("df")
    with pytest.raises(icesql.TableNotFoundError):
        con.execute("SELECT * FROM df")


WIDE = """
SELECT CAST(1 AS TINYINT) b, CAST(2 AS SMALLINT) sh, 4L l, CAST(1.5 AS FLOAT) f, 2.5D d,
  CAST(1.25 AS DECIMAL(10,2)) de, DATE'1582-10-04' da, TIMESTAMP_NTZ'2020-01-01 10:00:00' n,
  TIMESTAMP_LTZ'2020-01-01 10:00:00 UTC' z, X'00ff' bi, true bo, CAST(NULL AS STRING) nu,
  array(CAST(1 AS TINYINT), NULL) ar, map('k', named_struct('a', CAST(1 AS SMALLINT))) m,
  named_struct('p', 1, 'q q', array(1.5)) st
"""
VALUES = (
    1, 2, 4, 1.5, 2.5, Decimal("1.25"), date(1582, 10, 4), datetime(2020, 1, 1, 10),
    datetime(2020, 1, 1, 10, tzinfo=UTC), b"\x00\xff", True, None, [1, None], [("k", {"a": 1})],
    {"p": 1, "q q": [Decimal("1.5")]},
)  # fmt: skip


def test_types_are_those_of_a_table(con: icesql.Connection, session: Any) -> None:
    session.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    try:
        con.register("wide", session.sql(WIDE))
        assert con.execute("SELECT * FROM wide").fetchall() == [VALUES]
        con.execute("CREATE TABLE s.wide AS SELECT * FROM wide")
    finally:
        session.conf.unset("spark.sql.session.timeZone")
    assert here(con, "SELECT * FROM s.wide") == [VALUES]
    kinds = [row[1] for row in here(con, "DESCRIBE s.wide")]
    assert kinds[:3] == ["int", "int", "long"]
    assert kinds[7:9] == ["timestamp", "timestamptz"]
    con.register("none", session.sql(WIDE).where("l > 4"))
    assert con.execute("SELECT * FROM none").fetchall() == []
    assert con.execute("SELECT count(*), sum(l) FROM none").fetchall() == [(0, None)]


@needs("4.1", why="the type TIME")
@pytest.mark.parametrize(("value", "said"), read_table(__file__, "refused_columns.tsv"))
def test_what_a_table_cannot_have_is_refused_by_name(
    con: icesql.Connection, session: Any, value: str, said: str
) -> None:
    with pytest.raises(icesql.UnsupportedSqlError, match=said):
        con.register("n", session.sql(f"SELECT 1 AS a, array({value}) AS c"))
    with pytest.raises(icesql.TableNotFoundError):
        con.execute("SELECT * FROM n")


def test_what_is_no_table_of_this_spark_is_refused(con: icesql.Connection, session: Any) -> None:
    with pytest.raises(icesql.ProgrammingError, match="without columns"):
        con.register("n", session.range(1).select())
    with pytest.raises(icesql.ProgrammingError, match="no end"):
        con.register("n", session.readStream.format("rate").load())
    for module, said in (("connect", "Spark Connect"), ("classic", "another Spark")):
        kind = type("DataFrame", (), {"__module__": f"pyspark.sql.{module}.dataframe"})
        frame: Any = kind()
        frame.sparkSession = type("Session", (), {"sparkContext": None})()
        with pytest.raises(icesql.ProgrammingError, match=said):
            con.register("n", frame)
    for statement in ("SELECT * FROM df VERSION AS OF 1", "SUMMARIZE df"):
        with pytest.raises(icesql.UnsupportedSqlError):
            con.execute(statement)
    with pytest.raises(icesql.UnsupportedSqlError, match="levenshtein"):
        con.execute("MERGE INTO s.t USING (SELECT levenshtein(name, 'x') AS id FROM df) f "
                    "ON t.id = f.id WHEN MATCHED THEN DELETE")  # fmt: skip
    con.execute("SET engine = 'auto'")
    assert rows(con, "SELECT id FROM df JOIN s.t USING (id)") == [(1,), (2,)]
    con.execute("SET engine = 'local'")
    with pytest.raises(icesql.UnsupportedSqlError, match=r"DataFrame df of Spark.*toArrow"):
        con.execute("SELECT * FROM df")
    assert [row[:2] for row in con.execute("DESCRIBE SELECT * FROM df").fetchall()] == [
        ("id", "BIGINT"), ("name", "VARCHAR"),
    ]  # fmt: skip
    plan = con.execute("EXPLAIN (FORMAT tree) SELECT * FROM df").fetchall()
    assert plan[:2] == [("rows of temp.df",), ("   estimate: unknown, it is a DataFrame",)]


@pytest.mark.parametrize("dialect", [None, "spark"])
def test_a_temporary_view_of_the_session_is_a_table_of_last_resort(
    connect: Any, con: icesql.Connection, session: Any, tmp_path: Path, dialect: str | None
) -> None:
    options: dict[str, Any] = {"warehouse": str(tmp_path / "lake"), "dialect": dialect}
    with icesql.connect(engine="spark", spark=session, **options) as own:
        with pytest.raises(icesql.TableNotFoundError):
            own.execute("SELECT * FROM seen")
        for count in (2, 3):
            session.range(count).createOrReplaceTempView("seen")
            assert rows(own, "SELECT * FROM seen") == [(each,) for each in range(count)]
            assert rows(own, "SELECT t.name FROM s.t t JOIN Seen ON t.id = seen.id")[0] == ("a",)
        own.execute("CREATE TEMPORARY VIEW v AS SELECT id FROM seen WHERE id > 1")
        own.execute("INSERT INTO s.t SELECT id, 'view' FROM v")
        assert rows(own, "SELECT count(*) FROM s.t WHERE name = 'view'") == [(1,)]
        assert rows(own, "SELECT count(*) FROM s.t.snapshots") == [(2,)]
        session.range(7).createOrReplaceTempView("t")
        own.execute("USE s")
        assert rows(own, "SELECT count(*) FROM t") == [(4,)]
        session.catalog.dropTempView("seen")
        with pytest.raises(icesql.TableNotFoundError):
            own.execute("SELECT * FROM v")
    root(session).range(2).createOrReplaceTempView("seen")
    with connect(**options) as other:
        assert rows(other, "SELECT * FROM seen") == [(0,), (1,)]
    with connect(service=True, **options) as service, pytest.raises(icesql.TableNotFoundError):
        service.execute("SELECT * FROM seen")


def test_a_view_of_a_catalog_names_none_of_them(connect: Any, session: Any, tmp_path: Path) -> None:
    uri, folder = f"sqlite:///{tmp_path}/catalog.db", str(tmp_path)
    with icesql.connect(engine="spark", spark=session, uri=uri, warehouse=folder) as own:
        own.execute("CREATE SCHEMA s")
        session.range(1).createOrReplaceTempView("seen")
        own.register("df", session.range(1))
        for name in ("seen", "df"):
            with pytest.raises(icesql.UnsupportedSqlError, match="only this session knows"):
                own.execute(f"CREATE VIEW s.v AS SELECT * FROM {name}")
    session.catalog.dropTempView("seen")


def test_a_query_as_a_data_frame_reads_them(session: Any, warehouse: Path) -> None:
    session.range(3).createOrReplaceTempView("seen")
    try:
        frame = icesql.sql(session, "SELECT id + 1 AS n FROM seen", warehouse=str(warehouse))
        assert sorted(row.n for row in frame.collect()) == [1, 2, 3]
    finally:
        session.catalog.dropTempView("seen")
