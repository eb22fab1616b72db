"""Which snapshot a clause asks for, in every spelling; what sqlglot would drop is an error."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlglot import exp

import icesql
from icesql.context import QueryContext
from icesql.errors import SqlSyntaxError
from icesql.query.travel.instant import fold_instant
from icesql.sql.parse import parse
from icesql.sql.statement import Query
from icesql.sql.time_travel import AtTime, SnapshotId, TimeTravel, VersionText


def travel(sql: str, dialect: str | None = None) -> TimeTravel | None:
    statement = parse(sql, dialect=dialect)[0]
    assert isinstance(statement, Query)
    assert not list(statement.tree.find_all(exp.Version, exp.HistoricalData))
    return statement.references[0].travel


@pytest.mark.parametrize("dialect", [None, "duckdb", "spark", "trino", "snowflake", "athena"])
@pytest.mark.parametrize(
    ("clause", "expected"),
    [
        ("VERSION AS OF 10963874102873", SnapshotId(10963874102873)),
        ("FOR VERSION AS OF 12", SnapshotId(12)),
        ("FOR SYSTEM_VERSION AS OF 12", SnapshotId(12)),
        ("FOR SYSTEM_VERSION AS OF 'b1'", VersionText("b1")),
        ("VERSION AS OF 'audit-branch'", VersionText("audit-branch")),
        ("VERSION AS OF '123'", VersionText("123")),
        ("FOR VERSION AS OF main", VersionText("main")),
        ("AT (VERSION => 3)", SnapshotId(3)),
        ("AT (VERSION_TAG => 'q1')", VersionText("q1")),
        ("AT (VERSION_REF => 'main')", VersionText("main")),
        ("AT BRANCH main", VersionText("main")),
        ("AT TAG t1", VersionText("t1")),
        ("AT SNAPSHOT '5'", VersionText("5")),
    ],
)
@pytest.mark.parametrize("shape", ["t {}", "t {} x", "t {} AS x", "t x {}", "t AS x {}"])
def test_a_version_clause_is_never_lost(
    dialect: str | None, clause: str, expected: TimeTravel, shape: str
) -> None:
    assert travel(f"SELECT * FROM {shape.format(clause)}", dialect) == expected


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
