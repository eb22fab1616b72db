"""DuckDB's tree of a text: the text at each offset is that of its node."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from typing import Any

import duckdb
import pytest

from icesql.errors import SqlSyntaxError, UnsupportedSqlError
from icesql.sql.reading.engine_tree import _decode_deep, parse
from icesql.stack import start


@pytest.fixture(scope="module")
def cursor() -> Iterator[Any]:
    with duckdb.connect() as connection:
        yield connection


def _texts(cursor: Any, sql: str) -> list[tuple[str, str]]:
    tree = parse(cursor, sql)
    spans = [(each["type"], tree.span(each)) for each in tree.walk()]
    return [(kind, sql[slice(*span)]) for kind, span in spans if span is not None]


def test_nodes_come_with_the_text_that_they_were_read_from(cursor: Any) -> None:
    sql = "SELECT upper(a.b), $p FROM c.d AS e, range(3) f WHERE x NOT IN (1, 'z')"
    found = _texts(cursor, sql)
    for expected in (
        ("FUNCTION", "upper(a.b)"),
        ("COLUMN_REF", "a.b"),
        ("VALUE_PARAMETER", "$p"),
        ("BASE_TABLE", "c.d AS e"),
        ("TABLE_FUNCTION", "range(3) f"),
        ("OPERATOR_NOT", "x NOT IN (1, 'z')"),
        ("VALUE_CONSTANT", "'z'"),
    ):
        assert expected in found


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 'é', é FROM tü WHERE '🦆' = ü",
        "SELECT\u00a0a,\u2003'\u2003b',\u00a0é\u3000FROM\u00a0té",
        'SELECT "\u00a0x".é, $ü$\u00a0\'$ü$ -- \u00a0\n,\u00a0c /*\u00a0*/ , d',
        "SELECT a -- '\u00a0\r,\u00a0b, ''''\u00a0, c",
    ],
)
def test_places_are_characters(cursor: Any, sql: str) -> None:
    tree = parse(cursor, sql)
    columns = [each for each in tree.walk() if each["type"] == "COLUMN_REF"]
    assert columns
    for each in columns:
        span = tree.span(each)
        assert span is not None
        written = sql[slice(*span)].replace('"', "")
        assert written == ".".join(each["column_names"])


def test_one_text_may_hold_several_statements(cursor: Any) -> None:
    assert len(parse(cursor, "SELECT 1; SELECT 2;").statements) == 2
    assert parse(cursor, "-- nothing").statements == ()


@pytest.mark.parametrize(("sql", "offset"), [("SELCT 1", 0), ("SELECT é é é", 11)])
def test_a_syntax_error_is_placed(cursor: Any, sql: str, offset: int) -> None:
    with pytest.raises(SqlSyntaxError, match="unexpected") as caught:
        parse(cursor, sql)
    assert caught.value.offset == offset


@pytest.mark.parametrize("sql", ["PIVOT t ON a USING sum(b)", "SELECT ?, $a", "SET x = 1"])
def test_what_has_no_tree_is_refused(cursor: Any, sql: str) -> None:
    with pytest.raises(UnsupportedSqlError):
        parse(cursor, sql)


@pytest.mark.parametrize("count", [10, 900])
def test_deep_chains_have_trees(cursor: Any, count: int) -> None:
    sql = "SELECT " + " || ".join(["'é'"] * count)
    found: list[int] = []

    def run() -> None:
        found.append(sum(each["type"] == "VALUE_CONSTANT" for each in parse(cursor, sql).walk()))

    thread = threading.Thread(target=run)
    start(thread)
    thread.join()
    assert found == [count]


def test_deep_json_is_decoded_as_json(cursor: Any) -> None:
    sql = """SELECT 'a"b\\c{[é', 1.5, true, NULL, x -> 'y' FROM t WHERE a IN (1, 2)"""
    text = cursor.execute("SELECT json_serialize_sql($1::VARCHAR)", [sql]).fetchone()[0]

    assert _decode_deep(text) == json.loads(text)
