"""INSERT, COPY … FROM and executemany's statement, as values."""

from __future__ import annotations

from typing import Any

import pytest

from icesql.errors import Error, UnsupportedSqlError
from icesql.sql.parse import parse
from icesql.sql.writes.statements import Insert


def one(sql: str, **more: Any) -> Any:
    (statement,) = parse(sql, files=True, **more)
    return statement


@pytest.mark.parametrize(
    ("sql", "columns", "by_name", "overwrite"),
    [
        ("INSERT INTO a.t VALUES (1, 'x')", None, False, False),
        ("INSERT INTO TABLE a.t SELECT * FROM u", None, False, False),
        ('INSERT INTO a.t (x, "y z") SELECT 1, 2', ("x", "y z"), False, False),
        ("INSERT INTO a.t BY NAME SELECT 1 AS x", None, True, False),
        ("INSERT INTO a.t BY POSITION SELECT 1 AS x", None, False, False),
        ("INSERT INTO a.t (SELECT 1)", None, False, False),
        ("INSERT INTO a.t WITH q AS (SELECT 1) SELECT * FROM q", None, False, False),
        ("INSERT INTO a.t FROM u", None, False, False),
        ("INSERT INTO a.t (x) (VALUES (1))", ("x",), False, False),
        ("INSERT OVERWRITE a.t SELECT 1", None, False, True),
        ("INSERT OVERWRITE TABLE a.t VALUES (1)", None, False, True),
        ("INSERT OVERWRITE INTO a.t SELECT 1", None, False, True),
    ],
)
def test_inserts(sql: str, columns: Any, by_name: bool, overwrite: bool) -> None:
    found = one(sql)
    assert isinstance(found, Insert)
    assert found.table.parts == ("a", "t")
    assert (found.columns, found.by_name, found.overwrite) == (columns, by_name, overwrite)


def test_the_query_is_the_users_own_text() -> None:
    sql = "INSERT INTO a.t SELECT first(x ORDER BY y) FROM u WHERE y > ? -- all"
    query = one(sql, parameters=[3]).query
    assert query.text == "SELECT first(x ORDER BY y) FROM u WHERE y > ?"
    assert query.user_text is not None
    assert sql[query.start :].startswith("SELECT first")
    assert query.references[0].offset == sql.index("u WHERE")


def test_parameters_and_several_statements() -> None:
    first, second = parse("INSERT INTO t VALUES (?); INSERT INTO t VALUES (?)", parameters=[1, 2])
    shown = [each.query.tree.sql("duckdb") for each in (first, second)]
    assert ["1" in shown[0], "2" in shown[1]] == [True, True]


def test_copy_from() -> None:
    found = one("COPY a.t (x, y) FROM '/tmp/x.csv' (DELIMITER ';', HEADER, NULL 'nix')")
    assert found.columns == ("x", "y")
    assert (found.copied.function, found.copied.paths) == ("read_csv", ("/tmp/x.csv",))
    assert found.copied.options == (("delim", "';'"), ("header", "true"), ("nullstr", "'nix'"))
    assert not found.by_name
    assert one("COPY t FROM 'x.parquet'").copied.function == "read_parquet"
    assert one("COPY t FROM 'x.json.gz'").by_name
    assert one("COPY t FROM 'x' (FORMAT parquet)").copied.function == "read_parquet"
    quoted = one("COPY t FROM 'x.csv' (DELIMITER '''')").copied.options
    assert quoted == (("delim", "''''"),)


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("INSERT t VALUES (1)", "expected INTO"),
        ("INSERT INTO t", "expected SELECT"),
        ("INSERT INTO t (a) BY NAME SELECT 1", "exclude each other"),
        ("INSERT INTO t DEFAULT VALUES", "DEFAULT VALUES"),
        ("INSERT OR REPLACE INTO t VALUES (1)", "INSERT OR REPLACE"),
        ("INSERT INTO t VALUES (1) ON CONFLICT DO NOTHING", "ON CONFLICT"),
        ("INSERT INTO t VALUES (1) RETURNING a", "RETURNING"),
        ("INSERT INTO t PARTITION (d = b) SELECT 1", "a value that is no constant"),
        ("INSERT INTO t (a) REPLACE WHERE a = 1 SELECT 1", "REPLACE WHERE with a column list"),
        ("INSERT INTO t SELECT", "a column"),
        ("INSERT INTO t SELECT * FROM read_blob('x')", "read_blob"),
        ("COPY t FROM 'x.bin'", "a file whose name says no format"),
        ("COPY t FROM 'x.csv' (FORMAT avro)", "COPY … FROM in the format avro"),
        ("COPY t FROM 'x.csv' (ALL_VARCHAR)", "the option ALL_VARCHAR"),
        ("COPY t FROM 'x.csv' (DELIMITER x)", "in quotes"),
        ("EXPLAIN INSERT INTO t VALUES (1)", "INSERT"),
        ("SELECT * FROM (INSERT INTO t VALUES (1))", ""),
    ],
)
def test_what_is_refused(sql: str, message: str) -> None:
    with pytest.raises(Error) as caught:
        one(sql)
    assert message in str(caught.value)


def test_copy_needs_its_permission() -> None:
    with pytest.raises(UnsupportedSqlError, match="COPY … FROM"):
        parse("COPY t FROM 'x.csv'")
    with pytest.raises(UnsupportedSqlError, match="connect\\(copy_to"):
        parse("COPY t TO 'x.csv'", files=True)
    assert isinstance(parse("COPY t FROM 'x.csv'", files=True)[0], Insert)
