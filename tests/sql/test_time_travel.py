"""The snapshot that a clause requests, in every form; parts that sqlglot would drop are errors."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlglot import exp

import icesql
from icesql.context import QueryContext
from icesql.errors import SqlSyntaxError
from icesql.query.time_travel import fold_instant
from icesql.sql.parse import parse
from icesql.sql.statement import Query
from icesql.sql.time_travel import AtTime, TimeTravel
from tests.sql.shown import shown
from tests.tables import read_table


def travel(sql: str, dialect: str | None = None) -> TimeTravel | None:
    statement = parse(sql, dialect=dialect)[0]
    assert isinstance(statement, Query)
    assert not list(statement.tree.find_all(exp.Version, exp.HistoricalData))
    return statement.references[0].travel


@pytest.mark.parametrize("dialect", [None, "duckdb", "spark", "trino", "snowflake", "athena"])
@pytest.mark.parametrize(("clause", "expected"), read_table(__file__, "version_clauses.tsv"))
@pytest.mark.parametrize("shape", ["t {}", "t {} x", "t {} AS x", "t x {}", "t AS x {}"])
def test_a_version_clause_is_never_lost(
    dialect: str | None, clause: str, expected: str, shape: str
) -> None:
    assert shown(travel(f"SELECT * FROM {shape.format(clause)}", dialect)) == expected


@pytest.mark.parametrize(
    "clause",
    [
        "TIMESTAMP AS OF '2026-01-31 12:00:00'",
        "FOR TIMESTAMP AS OF TIMESTAMP '2026-01-31 12:00:00'",
        "FOR SYSTEM_TIME AS OF '2026-01-31 12:00:00'",
        "FOR SYSTEM TIME AS OF '2026-01-31 12:00:00'",
        "AT (TIMESTAMP => TIMESTAMP '2026-01-31 12:00:00')",
        "AS OF TIMESTAMP '2026-01-31 12:00:00'",
    ],
)
def test_an_instant_clause_is_folded(clause: str) -> None:
    found = travel(f"SELECT * FROM t {clause} JOIN u USING (id)")
    assert isinstance(found, AtTime)
    assert fold_instant(found, QueryContext()) == 1_769_860_800_000_000
    assert "2026-01-31 12:00:00" in found.text


@pytest.mark.parametrize("clause", ["FOR TIMESTAMP AS OF date()", "FOR VERSION AS OF date()"])
def test_a_call_without_its_arguments_is_no_value(warehouse: Path, clause: str) -> None:
    with (
        icesql.connect(warehouse=warehouse) as connection,
        pytest.raises(SqlSyntaxError, match=r"DATE\(\) is not "),
    ):
        connection.execute(f"SELECT * FROM shop.orders {clause}")
