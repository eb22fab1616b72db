"""One dialect, two engines: a statement returns the same rows and types on both."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import icesql
from icesql.repl.render import text_of
from icesql.sql.grammar import functions
from tests.spark.comparison import both, same
from tests.spark.conftest import is_of_newer_release
from tests.spark.statements import EXPRESSIONS, QUERIES
from tests.tables import read_table

# Columns and constants of times, which alone may mean something else in another time zone.
TIMES = re.compile(r"\b(?:tz|ts|dt)\b|\d{4}-\d\d-|\* (?:EXCLUDE|FROM t )")


@pytest.fixture(scope="module", params=["UTC", "America/New_York"])
def zone(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def engines(zone: str, connect: Any, all_types: str) -> Iterator[Any]:
    with both(connect, {"t": all_types}, timezone=zone) as opened:
        yield opened


def of_zone(zone: str, texts: list[str]) -> list[str]:
    """All in UTC, and elsewhere those that have times."""
    return [each for each in texts if zone == "UTC" or TIMES.search(each)]


def compare(engines: Any, sql: str, *, by_id: bool = False) -> None:
    answers = []
    for engine in engines:
        cursor = engine.execute(sql)
        rows = cursor.fetchall()
        if by_id:  # Spark would run a scan twice to sort its rows
            rows.sort(key=lambda row: row[0])
        answers.append(([column[:2] for column in cursor.description], rows))
    (local_columns, local_rows), (spark_columns, spark_rows) = answers
    assert spark_columns == local_columns
    if not same(local_rows, spark_rows):
        different = [pair for pair in zip(local_rows, spark_rows, strict=False) if not same(*pair)]
        raise AssertionError(f"(local, spark) {different or (local_rows, spark_rows)}")


def report(wrong: list[str]) -> None:
    if wrong:
        pytest.fail("\n".join(wrong), pytrace=False)


def test_expressions_mean_the_same(zone: str, engines: Any) -> None:
    """All expressions in one test, because each statement takes Spark almost a second."""
    wrong, expressions = [], of_zone(zone, EXPRESSIONS)
    for start in range(0, len(expressions), 24):
        chunk = expressions[start : start + 24]
        columns = ", ".join(_shown(text, at) for at, text in enumerate(chunk))
        try:
            compare(engines, f"SELECT id, {columns} FROM t", by_id=True)
        except (AssertionError, icesql.Error):
            for text in chunk:
                try:
                    compare(engines, f"SELECT id, {_shown(text, 0)} FROM t", by_id=True)
                except (AssertionError, icesql.Error) as error:
                    wrong.append(f"{text}: {str(error)[:900]}")
    report(wrong)


def _shown(text: str, at: int) -> str:
    expression, marked, _ = text.partition(" FILTERED")
    # If a cast fails for some row, there is no answer to compare.
    guarded = f"CASE WHEN id IN (1, 6) THEN {expression} END" if marked else expression
    return f"{guarded} AS c{at}"


def test_queries_mean_the_same(zone: str, engines: Any) -> None:
    wrong = []
    for sql in of_zone(zone, QUERIES):
        try:
            compare(engines, sql)
        except (AssertionError, icesql.Error) as error:
            if isinstance(error, icesql.UnsupportedSqlError) and is_of_newer_release(error):
                continue
            wrong.append(f"{sql}: {str(error)[:900]}")
    report(wrong)


def test_every_function_of_the_table_gives_its_value_on_both_engines(
    connect: Any, all_types: str
) -> None:
    wrong = []
    with both(connect, {"t": all_types}) as opened:
        for engine, name in zip(opened, ("local", "spark"), strict=True):
            for start in range(0, len(functions()), 12):
                chunk = functions()[start : start + 12]
                # Aggregates, windows and unnest cannot be combined in one SELECT; subqueries can.
                columns = ", ".join(
                    f"(SELECT {row.example}) AS c{at}" for at, row in enumerate(chunk)
                )
                values = engine.execute(f"SELECT {columns}").fetchone()
                wrong += [
                    f"{name}: {row.example} is {text_of(value)}, not {row.value}"
                    for row, value in zip(chunk, values, strict=True)
                    if text_of(value) != row.value
                ]
    report(wrong)


@pytest.mark.parametrize("zone", ["UTC"], indirect=True)
@pytest.mark.parametrize(("sql", "named"), read_table(__file__, "refused.tsv"))
def test_what_has_no_equal_is_refused_by_name(engines: Any, sql: str, named: str) -> None:
    _, spark = engines
    with pytest.raises(icesql.UnsupportedSqlError, match=named):
        spark.execute(sql).fetchall()


def test_differences_of_instants_are_those_of_utc_and_refused_elsewhere(engines: Any) -> None:
    local, spark = engines
    sql = "SELECT id, tz - TIMESTAMPTZ '2024-03-01 00:00:00+00' FROM t ORDER BY id"
    if local.execute("SELECT hour(TIMESTAMPTZ '2024-01-01 00:00:00+00')").fetchone() == (0,):
        compare(engines, sql)
    else:
        with pytest.raises(icesql.UnsupportedSqlError, match="difference of instants"):
            spark.execute(sql)


def test_explain_shows_the_plan_of_spark(spark: Any, all_types: str) -> None:
    spark.register_table("t", all_types)
    cursor = spark.execute("EXPLAIN (ENGINE) SELECT i, count(*) FROM t WHERE id > 1 GROUP BY i")
    text = "\n".join(line for (line,) in cursor)
    assert "== Physical Plan ==" in text
    assert "HashAggregate" in text


@pytest.mark.parametrize("dialect", [None, "spark"])
def test_a_count_of_which_metadata_knows_a_part(
    connect: Any, cluster_tables: dict[str, str], dialect: str | None
) -> None:
    sql = "SELECT count(*) AS n, count(k), max(x) FROM t WHERE x >= 12000"
    with both(connect, {"t": cluster_tables["numbers"]}, dialect=dialect) as (local, spark):
        local.execute("SET prune = off")
        expected = local.execute(sql).fetchall()
        cursor = spark.execute(sql)
        assert cursor.fetchall() == expected
        assert sum(each.result_data_files for each in cursor.scan_reports) == 2
        assert [tuple(row.values()) for row in spark.execute(sql).arrow().to_pylist()] == expected


@pytest.mark.parametrize("dialect", [None, "spark"])
def test_bytes_as_parameters(connect: Any, tmp_path: Path, dialect: str | None) -> None:
    given = [b"\x00\xff"] * 4
    sql = "SELECT id, b = ?, b IN (?), b < ?, ? = b FROM n.t ORDER BY id"
    with icesql.connect(warehouse=tmp_path, dialect=dialect) as local:
        local.execute("CREATE SCHEMA n")
        local.execute("CREATE TABLE n.t (id INT, b BINARY)")
        local.execute("INSERT INTO n.t VALUES (1, ?), (2, ?), (3, NULL)", [given[0], b"\x00\x80"])
        rows = local.execute(sql, given).fetchall()
    with connect(warehouse=tmp_path, dialect=dialect) as spark:
        assert spark.execute(sql, given).fetchall() == rows
    found = [(1, True, True, False, True), (2, False, False, True, False), (3, *[None] * 4)]
    assert rows == found
