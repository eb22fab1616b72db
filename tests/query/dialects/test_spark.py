"""Spark's dialect on the local engine: PySpark's results for the same statements, or a refusal.

ICESQL_SPARK_VALUES=2500 compares all of them.
"""

from __future__ import annotations

import itertools
import json
import os
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import icesql
from icesql.errors import UnsupportedSqlError
from icesql.query.dialects.functions import functions
from icesql.query.dialects.spark.functions.special import SPECIAL
from icesql.sql.grammar import function_names
from tests.query.dialects.canonical import answer
from tests.query.dialects.spark_rows import write
from tests.tables import read_cases, read_table

VALUES = Path(__file__).with_name("spark_values.jsonl")
# PySpark's results in Berlin, where clocks repeat an hour.
IN_BERLIN = Path(__file__).with_name("spark_values_berlin.jsonl")
DRAWN = int(os.environ.get("ICESQL_SPARK_VALUES", "500"))
# Results that depend on the order of rows, which differs between engines and between runs.
ANY_ROW = re.compile(
    r"\b(any_value|first|last|collect_list|collect_set|array_agg|listagg|string_agg|mode)\("
)
SETTLED = re.compile(r"OVER|sort_array|k > 100|^SELECT \w+\((1|NULL)\)$")
GENERATORS = {"explode", "posexplode", "inline", "stack"}


def values() -> dict[str, Any]:
    return dict(map(json.loads, VALUES.read_text(encoding="utf-8").splitlines()))


@pytest.fixture(scope="module")
def spark(tmp_path_factory) -> Iterator[icesql.Connection]:
    folder = tmp_path_factory.mktemp("spark")
    write(folder)
    with icesql.connect(warehouse=str(folder), dialect="spark", timezone="UTC") as connection:
        connection.execute("USE n").close()
        yield connection


def test_no_row_differs_from_what_pyspark_gave(spark: icesql.Connection, capfd) -> None:
    known = values()
    drawn = [
        sql
        for sql in random.Random(10).sample(sorted(known), min(DRAWN, len(known)))
        if not ANY_ROW.search(sql) or SETTLED.search(sql)
    ]
    found: dict[str, list[Any]] = {}
    for sql in drawn:
        kind, got = answer(spark, sql, known[sql])
        found.setdefault(kind, []).append((sql, known[sql], got))
    assert not found.get("wrong")
    assert len(found["same"]) > 0.8 * len(drawn)
    assert capfd.readouterr() == ("", "")


def test_no_row_differs_in_a_zone_with_repeated_hours(tmp_path) -> None:
    write(tmp_path)
    lines = IN_BERLIN.read_text(encoding="utf-8").splitlines()
    lines = random.Random(10).sample(lines, min(DRAWN, len(lines)))
    found: dict[str, list[Any]] = {}
    with icesql.connect(
        warehouse=str(tmp_path), dialect="spark", timezone="Europe/Berlin"
    ) as connection:
        connection.execute("USE n").close()
        for sql, expected in map(json.loads, lines):
            kind, got = answer(connection, sql, expected)
            found.setdefault(kind, []).append((sql, expected, got))
    assert not found.get("wrong")
    assert len(found["same"]) > 0.75 * len(lines)


def test_the_table_and_the_code_know_the_same_names() -> None:
    by_code = {name.removesuffix("_ignore_nulls") for name in SPECIAL}
    made = GENERATORS | {f"{name}_outer" for name in GENERATORS - {"stack"}} | {"range"}
    assert function_names("spark") == set(functions("spark")) | by_code | made


@pytest.mark.parametrize("name", sorted(functions("spark")))
def test_every_row_of_the_table_is_an_expression(name: str) -> None:
    for row in functions("spark")[name]:
        if not row.built:
            assert row.tree(len(row.takes)) is not None


@pytest.mark.parametrize(
    ("sql", "construct", "place"), read_cases(__file__, "spark_refusals.tsv", 0, 1, 2)
)
def test_what_the_table_has_not_is_refused_at_its_place(
    spark: icesql.Connection, sql: str, construct: str | None, place: tuple[int, int] | None
) -> None:
    if construct is None:
        with pytest.raises(icesql.DatabaseError):
            spark.execute(sql).fetchall()
        return
    with pytest.raises(icesql.UnsupportedSqlError) as caught:
        spark.execute(sql).fetchall()
    assert caught.value.construct == construct
    if place is not None:
        assert caught.value.position == place


def test_conditions_on_clocks_keep_their_rows(tmp_path) -> None:
    moments = [f"2024-10-{day} {hour:02}:{minute}:00" for day in (26, 27, 28)
               for hour in range(5) for minute in ("00", "30")]  # fmt: skip
    with icesql.connect(
        warehouse=str(tmp_path), dialect="spark", timezone="Europe/Berlin"
    ) as connection:
        connection.execute("CREATE SCHEMA n").close()
        connection.execute("CREATE TABLE n.c (n TIMESTAMP_NTZ, z TIMESTAMP)").close()
        for number, each in enumerate(moments):
            z = 1729900800 + 3600 * number
            sql = f"INSERT INTO n.c VALUES (TIMESTAMP_NTZ '{each}', timestamp_seconds({z}))"
            connection.execute(sql).close()
        constants = (
            "timestamp_seconds(1729989000)", "timestamp_seconds(1729992600)", "DATE '2024-10-27'",
            "TIMESTAMP '2024-10-27 02:30:00'", "TIMESTAMP_NTZ '2024-10-27 02:30:00'",
        )  # fmt: skip
        values = (
            "{}", "CAST({} AS TIMESTAMP)", "date_trunc('HOUR', {})", "date_trunc('DAY', {})",
            "{} + INTERVAL 1 DAY", "{} - INTERVAL 1 MONTH", "to_timestamp({})",
        )  # fmt: skip
        operators = ("=", "<", "<=", ">", ">=", "<>")
        asked = list(itertools.product("nz", constants, values, operators))
        for column, constant, value, operator in random.Random(3).sample(asked, 90):
            found = []
            for prune in ("true", "false"):
                connection.execute(f"SET prune = {prune}").close()
                sql = f"SELECT count(*) FROM n.c WHERE {value.format(column)} {operator} {constant}"
                found.append(connection.execute(sql).fetchall())
            assert found[0] == found[1], sql


@pytest.fixture(scope="module")
def version_3(tmp_path_factory) -> Path:
    """A table with types of version 3 for which Spark's dialect has no literals."""
    folder: Path = tmp_path_factory.mktemp("version_3")
    with icesql.connect(warehouse=str(folder), timezone="UTC") as connection:
        connection.execute("CREATE SCHEMA n").close()
        connection.execute(
            "CREATE TABLE n.t (id INT, a TIMESTAMP_NS, z TIMESTAMPTZ_NS, v VARIANT) "
            "WITH ('format-version' = '3')"
        ).close()
        connection.execute(
            "INSERT INTO n.t SELECT i, TIMESTAMP_NS '2020-06-01 23:59:59.123456789' + to_days(i), "
            "(TIMESTAMP_NS '2020-06-01 23:59:59.123456789' + to_days(i))::TIMESTAMPTZ, "
            "'{\"a\": 1}'::JSON::VARIANT FROM range(3) r(i)"
        ).close()
    return folder


@pytest.mark.parametrize(("sql", "expected"), read_cases(__file__, "spark_nanoseconds.tsv", 1))
def test_columns_of_nanoseconds_are_times(version_3: Path, sql: str, expected: Any) -> None:
    with icesql.connect(warehouse=str(version_3), dialect="spark", timezone="UTC") as connection:
        assert connection.execute(sql).fetchall() == expected


@pytest.mark.parametrize(("dialect", "expression", "said"), read_table(__file__, "variants.tsv"))
def test_parts_of_variants_are_refused_by_name(
    version_3: Path, dialect: str, expression: str, said: str
) -> None:
    with (
        icesql.connect(warehouse=str(version_3), dialect=dialect) as connection,
        pytest.raises(UnsupportedSqlError, match=re.escape(said)) as caught,
    ):
        connection.execute(f"SELECT {expression} FROM n.t")
    assert "did you mean" not in str(caught.value)


def test_a_name_after_a_colon_is_a_parameter(spark: icesql.Connection) -> None:
    assert spark.execute("SELECT :a, abs(:a)", {"a": 1}).fetchall() == [(1, 1)]


def test_conditions_of_spark_prune(tmp_path) -> None:
    write(tmp_path)
    with icesql.connect(warehouse=str(tmp_path), dialect="spark") as connection:
        for condition in (
            "year(dt) = 1900", "dt < '1900-01-01'", "date_trunc('MONTH', ts) = '1900-01-01'",
            "k > 100", "k IN (100, 200)", "startswith(s, 'ÿ')", "s LIKE 'ÿ%'", "date(ts) = '1900-01-01'",
            "CAST(ts AS DATE) > '2100-01-01'", "dt > date_add(DATE '2100-01-01', 1)",
            "ts > TIMESTAMP_NTZ '2100-01-01 00:00:00' + INTERVAL 1 DAY", "extract(YEAR FROM dt) = 1900",
        ):  # fmt: skip
            cursor = connection.execute(f"EXPLAIN SELECT k FROM n.t WHERE {condition}")
            text = "\n".join(str(row[0]) for row in cursor.fetchall())
            assert "tasks: 0" in text, (condition, text)
