"""EXPLAIN, SHOW, DESCRIBE, SET, RESET and USE."""

from __future__ import annotations

import pytest

from icesql.errors import Error
from icesql.sql.parse import parse
from icesql.sql.statement import (
    Describe,
    Explain,
    ResetSetting,
    SetSetting,
    ShowNamespaces,
    ShowSnapshots,
    ShowTables,
    Statement,
    Use,
)
from icesql.sql.time_travel import SnapshotId


@pytest.mark.parametrize("dialect", [None, "spark", "trino", "snowflake"])
@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SET local_reader = arrow", SetSetting("local_reader", "arrow")),
        ("SET local_reader = 'arrow'", SetSetting("local_reader", "arrow")),
        ("set memory_limit to 512MB", SetSetting("memory_limit", "512MB")),
        ("SET query_timeout = 1.5", SetSetting("query_timeout", "1.5")),
        ("SET timezone = 'Europe/Vienna'", SetSetting("timezone", "Europe/Vienna")),
        ("SET TIME ZONE 'Europe/Vienna'", SetSetting("timezone", "Europe/Vienna")),
        ("SET TIME ZONE UTC", SetSetting("timezone", "UTC")),
        ("SET a.b-c = 'x y'", SetSetting("a.b-c", "x y")),
        ("SET prune = off", SetSetting("prune", "off")),
        ("RESET threads", ResetSetting("threads")),
        ("RESET ALL", ResetSetting(None)),
        ("SHOW TABLES", ShowTables()),
        ("show tables in a.b like 'x%'", ShowTables(("a", "b"), "x%")),
        ("SHOW SCHEMAS", ShowNamespaces()),
        ("SHOW NAMESPACES FROM a", ShowNamespaces(("a",))),
        ("SHOW DATABASES LIKE 'x'", ShowNamespaces(None, "x")),
        ("USE a.b", Use(("a", "b"))),
    ],
)
def test_a_command_is_read_in_every_dialect(
    sql: str, expected: Statement, dialect: str | None
) -> None:
    assert parse(sql, dialect=dialect) == [expected]


def test_commands_about_a_table_hold_a_reference() -> None:
    (shown,) = parse("SHOW SNAPSHOTS a.t")
    assert isinstance(shown, ShowSnapshots)
    assert (shown.reference.parts, shown.reference.offset) == (("a", "t"), 15)
    (shown,) = parse("SHOW SNAPSHOTS FROM iceberg_scan('/x/t')")
    assert isinstance(shown, ShowSnapshots)
    assert shown.reference.path == "/x/t"
    (described,) = parse("DESC t VERSION AS OF 12")
    assert isinstance(described, Describe)
    assert described.reference.travel == SnapshotId(12)


@pytest.mark.parametrize(
    ("sql", "analyze", "form"),
    [
        ("EXPLAIN SELECT a FROM t", False, "text"),
        ("EXPLAIN ANALYZE SELECT a FROM t", True, "text"),
        ("EXPLAIN (FORMAT JSON) SELECT a FROM t", False, "json"),
        ("EXPLAIN (ANALYZE, FORMAT json) SELECT a FROM t", True, "json"),
        ("EXPLAIN ANALYZE (FORMAT TEXT) (SELECT a FROM t)", True, "text"),
        ("EXPLAIN WITH x AS (SELECT * FROM t) SELECT a FROM x", False, "text"),
    ],
)
def test_explain_holds_the_query(sql: str, analyze: bool, form: str) -> None:
    (statement,) = parse(sql)
    assert isinstance(statement, Explain)
    assert (statement.analyze, statement.format) == (analyze, form)
    assert statement.query.references[0].parts == ("t",)


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("EXPLAIN", "nothing follows EXPLAIN"),
        ("EXPLAIN EXTENDED SELECT 1", "EXPLAIN EXTENDED"),
        ("EXPLAIN (FORMAT xml) SELECT 1", "FORMAT XML"),
        ("EXPLAIN DROP TABLE t", "DROP"),
        ("SHOW", "expected TABLES"),
        ("SHOW TBLES", 'unexpected "TBLES"'),
        ("SHOW CREATE TABLE t", "SHOW CREATE"),
        ("SHOW TABLES FROM", "a name"),
        ("SHOW TABLES x", "the end of the statement"),
        ("SHOW SNAPSHOTS", "nothing follows SHOW SNAPSHOTS"),
        ("SHOW SNAPSHOTS a, b", "one table"),
        ("SHOW SNAPSHOTS t WHERE a = 1", "one table"),
        ("DESCRIBE", "nothing follows DESCRIBE"),
        ("DESCRIBE SELECT 1", "DESCRIBE SELECT"),
        ("SET x", "expected = or TO"),
        ("SET x =", "nothing follows"),
        ("SET x = 'a' 'b'", "unexpected"),
        ("SET = 3", "a name"),
        ("RESET", "a name"),
        ("USE", "a name"),
        ("USE a b", "the end of the statement"),
    ],
)
def test_a_wrong_command_is_an_error(sql: str, message: str) -> None:
    with pytest.raises(Error) as caught:
        parse(sql)
    assert message in str(caught.value)
