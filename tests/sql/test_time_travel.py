"""Which snapshot a clause asks for, in every spelling; what sqlglot would drop is an error."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlglot import exp

import icesql
from icesql.context import QueryContext
from icesql.errors import Error, SqlSyntaxError, UnsupportedSqlError
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


@pytest.mark.parametrize(("dialect", "seconds"), [("spark", True), (None, False), ("trino", False)])
def test_a_bare_number_is_seconds_in_spark_only(dialect: str | None, seconds: bool) -> None:
    found = travel("SELECT * FROM t FOR TIMESTAMP AS OF 499162860", dialect)
    assert isinstance(found, AtTime)
    assert found.numbers_are_seconds == seconds


@pytest.mark.parametrize(
    ("sql", "dialect", "message"),
    [
        # sqlglot accepts each of these and reads the wrong snapshot
        ("SELECT * FROM t FOR VERSION AS OF", None, "nothing follows"),
        ("SELECT * FROM t FOR VERSION AS OF WHERE a = 1", None, "nothing follows"),
        ("SELECT * FROM t FOR VERSION 3", None, "without AS OF"),
        ("SELECT * FROM t FOR TIMESTAMP ALL", "spark", "FOR TIMESTAMP ALL"),
        ("SELECT * FROM t FOR TIMESTAMP BETWEEN 1 AND 2", "trino", "BETWEEN"),
        ("SELECT * FROM t FOR SYSTEM_TIME BETWEEN '2020-01-01' AND '2021-01-01'", None, "BETWEEN"),
        ("WITH c AS (SELECT 1) SELECT * FROM c VERSION AS OF 3", None, 'WITH query "c"'),
        ("SELECT * FROM range(1) VERSION AS OF 3", None, "time travel on"),
        ("SELECT * FROM (SELECT 1) x FOR VERSION AS OF 3", None, "a subquery"),
        ("SELECT * FROM t @v1", None, "FOR VERSION AS OF 'v1'"),
        ("SELECT * FROM t @main", "spark", "FOR VERSION AS OF 'main'"),
        ("SELECT * FROM t /*+ OPTIONS('branch') */", None, "hint"),
        ("SELECT /*+ OPTIONS('branch'='b1') */ * FROM t", "spark", "hint"),
        ("SELECT * FROM t /* x */ /*+ OPTIONS('branch'='b1') */", "spark", "hint"),
        ("SELECT a /*+ OPTIONS('branch'='b1') */ FROM t", None, "at this place"),
        ("SELECT * FROM t /*+ OPTIONS('branch'='b1', 'tag'='x') */", None, "two versions"),
        ("SELECT * FROM t VERSION AS OF 1 /*+ OPTIONS('branch'='b1') */", None, "two time-travel"),
        ("SELECT * FROM t WITH ('as-of-timestamp' = 'yesterday')", None, "counts milliseconds"),
        ("SELECT * FROM t WITH ('branch' = 'a' x)", None, "unterminated options"),
        ("SELECT * FROM t WITH ('branch' = x)", None, "an option is"),
        ("SELECT a WITH SNAPSHOT SCHEMA FROM t", None, "at this place"),
        ("SELECT * FROM t -- x\n /*+ OPTIONS('tag'='b1') */ WHERE a = 1", "trino", "hint"),
        ("SELECT * FROM t$snapshots", "spark", "quote the name"),
        ("SELECT * FROM t VERSION AS OF -1.5", None, "constant"),
        ("SELECT * FROM t VERSION AS OF audit-branch", None, "quote names"),
        ("SELECT * FROM t VERSION AS OF (SELECT ?)", None, "a parameter in a query"),
        ("SELECT * FROM t VERSION AS OF 1.5", None, "is not a snapshot id"),
        ("SELECT * FROM t VERSION AS OF ''", None, "empty text"),
        ("SELECT * FROM t VERSION AS OF 1" + "0" * 40, None, "too large"),
        ("SELECT * FROM t AT TAG 12", None, "is not a branch or tag name"),
        ("SELECT * FROM t AT (STATEMENT => 'x')", "snowflake", "STATEMENT"),
        ("SELECT * FROM t BEFORE (STATEMENT => 'x')", "snowflake", "BEFORE"),
        ("SELECT * FROM t CHANGES(INFORMATION => ALL) AT(VERSION => 1)", None, "ALL"),
        ("SELECT * FROM t VERSION AS OF 1 VERSION AS OF 2", None, "two time-travel clauses"),
        ("SELECT * FROM t AT (VERSION => 1) VERSION AS OF 2", None, "two time-travel clauses"),
        ("SELECT * FROM t VERSION AS OF 2 AT (VERSION => 1)", None, ""),
        ("SELECT * FROM t WITH ('split-size'='1')", "spark", "the option split-size"),
        ("SELECT * FROM t x JOIN u ON x.a = u.a FOR VERSION AS OF 3", None, ""),
    ],
)
def test_a_clause_that_would_be_dropped_is_an_error(
    sql: str, dialect: str | None, message: str
) -> None:
    with pytest.raises((SqlSyntaxError, UnsupportedSqlError)) as caught:
        parse(sql, dialect=dialect)
    assert message in str(caught.value)
    assert isinstance(caught.value, (SqlSyntaxError, UnsupportedSqlError))
    assert caught.value.line is not None


def test_the_position_is_that_of_the_clause() -> None:
    with pytest.raises(SqlSyntaxError) as caught:
        parse("SELECT *\nFROM t\n  FOR VERSION AS OF x.y")
    assert (caught.value.line, caught.value.column) == (3, 3)


def test_a_with_query_hides_a_table_and_its_own_body_reads_it() -> None:
    statement = parse("WITH t AS (SELECT * FROM t VERSION AS OF 4) SELECT * FROM t")[0]
    assert isinstance(statement, Query)
    assert [(r.parts, r.travel) for r in statement.references] == [(("t",), SnapshotId(4))]


def test_words_of_the_clause_are_names_elsewhere() -> None:
    assert travel("SELECT version, timestamp AS of FROM t version") is None
    assert travel('SELECT * FROM t AS "at"') is None


def test_a_name_of_a_dialect_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(Error, match="did you mean spark"):
        parse("SELECT 1", dialect="sparc")


@pytest.mark.parametrize("clause", ["FOR TIMESTAMP AS OF date()", "FOR VERSION AS OF date()"])
def test_a_call_without_its_arguments_is_no_value(warehouse: Path, clause: str) -> None:
    with (
        icesql.connect(warehouse=warehouse) as connection,
        pytest.raises(SqlSyntaxError, match=r"DATE\(\) is not "),
    ):
        connection.execute(f"SELECT * FROM shop.orders {clause}")
