"""EXPLAIN, SHOW, DESCRIBE, SET, RESET and USE."""

from __future__ import annotations

import pytest

from icesql.errors import Error
from icesql.sql.parse import parse
from icesql.sql.statement import (
    Explain,
    Query,
    ResetSetting,
    SetSetting,
    Shown,
    Statement,
    TableReference,
    Use,
)
from icesql.sql.time_travel import SnapshotId


def about_table(sql: str, dialect: str | None = None) -> tuple[Shown, TableReference]:
    (shown,) = parse(sql, dialect=dialect)
    assert isinstance(shown, Shown)
    assert shown.reference is not None
    return shown, shown.reference


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
        ("SHOW TABLES", Shown("TABLES")),
        ("show tables in a.b like 'x%'", Shown("TABLES", namespace=("a", "b"), like="x%")),
        ("SHOW CATALOGS", Shown("CATALOGS")),
        ("show catalogs like 'p%'", Shown("CATALOGS", like="p%")),
        ("SHOW SCHEMAS", Shown("NAMESPACES")),
        ("SHOW NAMESPACES FROM a", Shown("NAMESPACES", namespace=("a",))),
        ("SHOW DATABASES LIKE 'x'", Shown("NAMESPACES", like="x")),
        ("USE a.b", Use(("a", "b"))),
    ],
)
def test_a_command_is_read_in_every_dialect(
    sql: str, expected: Statement, dialect: str | None
) -> None:
    assert parse(sql, dialect=dialect) == [expected]


@pytest.mark.parametrize("dialect", [None, "spark", "trino", "snowflake"])
@pytest.mark.parametrize(
    ("sql", "what", "parts", "like"),
    [
        ("SHOW COLUMNS FROM a.t", "COLUMNS", ("a", "t"), None),
        ("SHOW COLUMNS IN t IN a LIKE 'x%'", "COLUMNS", ("a", "t"), "x%"),
        ("show branches t", "BRANCHES", ("t",), None),
        ("SHOW TAGS IN a.t", "TAGS", ("a", "t"), None),
        ("SHOW PARTITIONS a.t", "PARTITIONS", ("a", "t"), None),
        ("SHOW HISTORY FROM t", "HISTORY", ("t",), None),
        ("DESCRIBE HISTORY t", "HISTORY", ("t",), None),
        ("SHOW CREATE TABLE a.t", "CREATE TABLE", ("a", "t"), None),
        ("SHOW TBLPROPERTIES a.t", "TBLPROPERTIES", ("a", "t"), None),
        ("SHOW TBLPROPERTIES a.t ('k.x')", "TBLPROPERTIES", ("a", "t"), "k.x"),
        ("SHOW TBLPROPERTIES t (k.x)", "TBLPROPERTIES", ("t",), "k.x"),
        ("DESCRIBE EXTENDED t", "EXTENDED", ("t",), None),
        ("DESC TABLE FORMATTED a.t", "EXTENDED", ("a", "t"), None),
        ("DESCRIBE DETAIL t", "DETAIL", ("t",), None),
    ],
)
def test_a_command_about_a_table_is_read_in_every_dialect(
    sql: str, what: str, parts: tuple[str, ...], like: str | None, dialect: str | None
) -> None:
    shown, reference = about_table(sql, dialect)
    assert (shown.what, reference.parts, shown.like) == (what, parts, like)


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SHOW ALL", Shown("ALL")),
        ("SHOW SESSION LIKE 'c%'", Shown("ALL", like="c%")),
        ("SHOW ALL TABLES", Shown("ALL TABLES")),
        ("SHOW FUNCTIONS", Shown("FUNCTIONS")),
        ("SHOW SYSTEM FUNCTIONS LIKE 'x'", Shown("FUNCTIONS", like="x")),
        ("SHOW FUNCTIONS trim", Shown("FUNCTIONS", like="trim")),
        ("SHOW TimeZone", Shown("SETTING", name="timezone")),
        ("SHOW TIME ZONE", Shown("SETTING", name="timezone")),
        ("SHOW cache-size", Shown("SETTING", name="cache_size")),
    ],
)
def test_a_command_about_the_session(sql: str, expected: Statement) -> None:
    assert parse(sql) == [expected]


@pytest.mark.parametrize("name", ["extended", "detail", "history"])
def test_a_table_may_be_called_like_a_word_of_describe(name: str) -> None:
    for sql in (f"DESCRIBE {name}", f"DESCRIBE {name} VERSION AS OF 1", f"DESCRIBE {name}.{name}"):
        described, reference = about_table(sql)
        assert (described.what, reference.parts[0]) == ("DESCRIBE", name)


@pytest.mark.parametrize("dialect", [None, "spark", "trino", "snowflake"])
@pytest.mark.parametrize(
    ("sql", "about", "parts"),
    [
        ("TABLE a.t", "", ("a", "t")),
        ("SUMMARIZE a.t", "SUMMARIZE", ("a", "t")),
        ("SUMMARIZE SELECT x FROM t", "SUMMARIZE", ("t",)),
        ("SUMMARIZE TABLE t", "SUMMARIZE", ("t",)),
        ("DESCRIBE SELECT x FROM t", "DESCRIBE", ("t",)),
        ("DESCRIBE QUERY SELECT x FROM t", "DESCRIBE", ("t",)),
        ("DESC WITH c AS (SELECT 1 AS x FROM t) SELECT x FROM c", "DESCRIBE", ("t",)),
    ],
)
def test_queries_in_other_words(
    sql: str, about: str, parts: tuple[str, ...], dialect: str | None
) -> None:
    (query,) = parse(sql, dialect=dialect)
    assert isinstance(query, Query)
    assert query.about == about
    (reference,) = query.references
    assert reference.parts == parts
    assert reference.offset == sql.index(parts[0])


def test_commands_about_a_table_hold_a_reference() -> None:
    shown, reference = about_table("SHOW SNAPSHOTS a.t")
    assert (shown.what, reference.parts, reference.offset) == ("SNAPSHOTS", ("a", "t"), 15)
    shown, reference = about_table("SHOW SNAPSHOTS FROM iceberg_scan('/x/t')")
    assert (shown.what, reference.path) == ("SNAPSHOTS", "/x/t")
    shown, reference = about_table("DESC t VERSION AS OF 12")
    assert (shown.what, reference.travel) == ("DESCRIBE", SnapshotId(12))


@pytest.mark.parametrize(
    ("sql", "analyze", "form"),
    [
        ("EXPLAIN SELECT a FROM t", False, "text"),
        ("EXPLAIN ANALYZE SELECT a FROM t", True, "text"),
        ("EXPLAIN (FORMAT JSON) SELECT a FROM t", False, "json"),
        ("EXPLAIN (FORMAT tree) SELECT a FROM t", False, "tree"),
        ("EXPLAIN (ANALYZE, FORMAT html) SELECT a FROM t", True, "html"),
        ("EXPLAIN FILE 'x/y.parquet' SELECT a FROM t", False, "text"),
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
        ("EXPLAIN (FORMAT xml) SELECT 1", "use TEXT, JSON, TREE or HTML"),
        ("EXPLAIN FILE x SELECT 1", "a text"),
        ("EXPLAIN FILE 'x'", "nothing follows EXPLAIN"),
        ("EXPLAIN ANALYZE FILE 'x' SELECT 1", "EXPLAIN FILE with other options"),
        ("EXPLAIN (ENGINE) FILE 'x' SELECT 1", "with other options"),
        ("EXPLAIN DROP TABLE t", "DROP"),
        ("SHOW", "expected TABLES"),
        ("SHOW TBLES", 'unexpected "TBLES"'),
        ("SHOW CREATE t", 'unexpected "CREATE"'),
        ("SHOW VIEWS x", "the end of the statement"),
        ("SHOW COLUMNS", "nothing follows SHOW COLUMNS"),
        ("SHOW COLUMNS FROM t LIKE x", "a text"),
        ("SHOW COLUMNS FROM a, b", "one table"),
        ("SHOW HISTORY t CHANGES FROM VERSION 1", "one table"),
        ("SHOW CREATE TABLE", "nothing follows SHOW CREATE TABLE"),
        ("SHOW TBLPROPERTIES", "nothing follows SHOW TBLPROPERTIES"),
        ("SHOW FUNCTIONS LIKE", "a text"),
        ("SHOW ALL x", "the end of the statement"),
        ("SHOW HISTRY t", "did you mean HISTORY?"),
        ("SUMMARIZE", "nothing follows SUMMARIZE"),
        ("TABLE", "nothing follows TABLE"),
        ("SHOW TABLES FROM", "a name"),
        ("SHOW TABLES x", "the end of the statement"),
        ("SHOW SNAPSHOTS", "nothing follows SHOW SNAPSHOTS"),
        ("SHOW SNAPSHOTS a, b", "one table"),
        ("SHOW SNAPSHOTS t WHERE a = 1", "one table"),
        ("DESCRIBE", "nothing follows DESCRIBE"),
        ("SET x", "expected = or TO"),
        ("SET x =", "nothing follows"),
        ("SET x = 'a' 'b'", "unexpected"),
        ("SET threads TO 4 4", 'column 18: unexpected "4"'),
        ("SET VARIABLE x = 'a' 'b'", 'column 22: unexpected "b"'),
        ("SET SNAPSHOT TIME = '2026-01-31' '1'", 'column 34: unexpected "1"'),
        ("SHOW TBLPROPERTIES t ('x' 'y')", 'column 27: unexpected "y"'),
        ("SHOW COLUMNS FROM t AT (TIMESTAMP => 'a' 'b')", 'column 42: unexpected "b"'),
        ("SHOW COLUMNS FROM t VERSION AS OF 'a' 'b'", 'column 39: unexpected "b"'),
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
