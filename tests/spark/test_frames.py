"""``icesql.sql(session, query)``: SQL with time travel as a DataFrame of the user's session."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import icesql
from tests.spark.conftest import SOURCES, has_release, needs
from tests.tables import read_table


@pytest.fixture(scope="module")
def given(session: Any, cluster_tables: dict[str, str], tmp_path_factory: Any) -> Any:
    """The session, and a folder in which the cluster's tables have their names."""
    folder = tmp_path_factory.mktemp("named") / "db"
    folder.mkdir()
    for name, path in cluster_tables.items():
        (folder / name).symlink_to(Path(path).parents[1], target_is_directory=True)
    return session, {"warehouse": str(folder.parent)}


def rows(frame: Any) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in frame.collect()]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT k, count(*) AS n, sum(x) FROM db.numbers GROUP BY k ORDER BY k",
        "SELECT x, k FROM db.deleted ORDER BY x",
        "SELECT count(*), sum(x), avg(x) FROM db.numbers WHERE x < 100",
        "SELECT count(*) FROM db.numbers",
        "SELECT added, x FROM db.evolved ORDER BY x LIMIT 3",
        "SELECT a.k, count(*) FROM db.numbers a JOIN db.deleted b ON a.x = b.x GROUP BY a.k ORDER BY 1",
        "SELECT 1 AS one, 'a' AS two",
        "SELECT operation FROM db.numbers.snapshots ORDER BY committed_at",
    ],
)
def test_a_data_frame_has_the_rows_and_names_of_the_query(given: Any, query: str) -> None:
    session, options = given
    frame = icesql.sql(session, query, **options)
    with icesql.connect(**options) as local:
        cursor = local.execute(query)
        assert rows(frame) == cursor.fetchall()
        assert frame.columns == [each[0] for each in cursor.description]
    # Nothing is left in the session, and the DataFrame can run again.
    assert session.catalog.listTables() == []
    assert rows(frame) == rows(frame)


def test_it_travels_takes_parameters_and_joins_the_users_rows(given: Any) -> None:
    session, options = given
    query = "SELECT x, k FROM db.numbers VERSION AS OF 'half' WHERE x BETWEEN $low AND 40000"
    past = icesql.sql(session, query, {"low": 29_990}, **options)
    assert sorted(x for x, _ in rows(past)) == [*range(29_990, 30_000)]
    own = session.createDataFrame([(29_999, "mine"), (30_001, "later")], "x bigint, of string")
    assert rows(past.join(own, "x").select("x", "of")) == [(29_999, "mine")]
    assert rows(own.join(past, "x").select("x", "of")) == [(29_999, "mine")]
    past.createOrReplaceTempView("past")
    try:
        assert rows(session.sql("SELECT count(*) FROM past")) == [(10,)]
    finally:
        session.catalog.dropTempView("past")


def test_what_the_user_set_in_the_session_stays(given: Any) -> None:
    session, options = given
    before = {name: session.conf.get(name) for name in ("spark.sql.ansi.enabled",
                                                        "spark.sql.session.timeZone")}  # fmt: skip
    rows(icesql.sql(session, "SELECT max(x) FROM db.numbers WHERE x > 1", **options))
    assert {name: session.conf.get(name) for name in before} == before


@pytest.mark.parametrize(("query", "error"), read_table(__file__, "refused_frames.tsv"))
def test_what_is_no_query_is_refused_at_once(given: Any, query: str, error: str) -> None:
    session, options = given
    with pytest.raises(getattr(icesql, error)):
        icesql.sql(session, query, **options)


def test_an_error_of_a_task_is_the_last_line_of_sparks(given: Any, corrupt: Path) -> None:
    session, _ = given
    folder = str(corrupt.parents[2])
    frame = icesql.sql(session, "SELECT x + 1 FROM iceberg_scan($1)", [str(corrupt.parents[1])],
                       warehouse=folder, tables_by_path=True)  # fmt: skip
    with pytest.raises(Exception, match="CorruptFileError") as raised:
        frame.collect()
    # Java's own lines come before.
    said = [line.strip() for line in str(raised.value).splitlines() if line.strip()]
    assert said[-1].startswith("icesql.errors.CorruptFileError: ")
    assert str(corrupt) in said[-1]


@needs("4.0", why=SOURCES)
def test_without_options_it_looks_where_the_registered_source_does(
    session: Any, warehouse: Path
) -> None:
    found = {row[0] for row in rows(icesql.sql(session, "SHOW TABLES"))}
    with icesql.connect(warehouse=warehouse) as local:
        assert found == set(local.tables())


@pytest.mark.skipif(has_release(4, 0), reason="this PySpark has data sources")
def test_a_pyspark_without_data_sources_is_told_so(session: Any, warehouse: Path) -> None:
    with pytest.raises(icesql.NotSupportedError, match=r"needs PySpark 4\.0 or newer"):
        icesql.register_spark(session, warehouse=warehouse)
