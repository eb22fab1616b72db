"""The parsed statements of each text, in every dialect, and refusals with their positions."""

from __future__ import annotations

from typing import Any

import pytest

import icesql
from icesql.errors import Error
from icesql.file_format import format_of_path
from icesql.sql.parse import parse
from tests.sql.shown import shown
from tests.tables import read_table


def read(dialect: str, allowed: str, sql: str) -> list[Any]:
    """The statements of a cell, in which ⏎ is a line break."""
    given = dict.fromkeys(allowed.split(), True)
    spoken = None if dialect == "own" else dialect
    return list(parse(sql.replace("⏎", "\n"), dialect=spoken, **given))


def dialects(cell: str) -> list[str]:
    return cell.replace("all", "own,spark,trino,snowflake").split(",")


@pytest.mark.parametrize(
    ("spoken", "allowed", "sql", "text"), read_table(__file__, "statements.tsv")
)
def test_what_a_text_is_read_as(spoken: str, allowed: str, sql: str, text: str) -> None:
    for dialect in dialects(spoken):
        assert shown(read(dialect, allowed, sql)) == text


@pytest.mark.parametrize(
    ("spoken", "allowed", "kind", "place", "sql", "message"), read_table(__file__, "refusals.tsv")
)
def test_what_is_refused(
    spoken: str, allowed: str, kind: str, place: str, sql: str, message: str
) -> None:
    for dialect in dialects(spoken):
        with pytest.raises(Error) as caught:
            read(dialect, allowed, sql)
        assert isinstance(caught.value, getattr(icesql, kind))
        assert message in str(caught.value)
        if place:
            assert caught.value.position == tuple(map(int, place.split(":")))


def test_the_query_of_an_insert_is_the_users_own_text() -> None:
    sql = "INSERT INTO a.t SELECT first(x ORDER BY y) FROM u WHERE y > ? -- all"
    found: Any = parse(sql, parameters=[3])[0]
    query = found.query
    assert query.text == "SELECT first(x ORDER BY y) FROM u WHERE y > ?"
    assert query.user_text is not None
    assert sql[query.start :].startswith("SELECT first")
    assert query.references[0].offset == sql.index("u WHERE")


def test_the_query_of_a_copy_is_parsed_as_any_other() -> None:
    sql = "SELECT ? AS a FROM t WHERE b = ?"
    copied: Any = parse(f"COPY ({sql}) TO 'x'", parameters=[1, "TO"], copies=True)[0]
    alone: Any = parse(sql, parameters=[1, "TO"])[0]
    assert (copied.query.tree, copied.query.text) == (alone.tree, sql)


def test_parameters_of_several_statements() -> None:
    found: Any = parse("INSERT INTO t VALUES (?); INSERT INTO t VALUES (?)", parameters=[1, 2])
    written = [each.query.tree.sql("duckdb") for each in found]
    assert ["1" in written[0], "2" in written[1]] == [True, True]


def test_endings_of_paths_name_formats() -> None:
    paths = ("a.b/c.pq", "x.CSV.GZ", ".csv", "x", "x.", "a.csv/x", "x.gz")
    assert [*map(format_of_path, paths)] == ["parquet", "csv", "csv", None, None, None, None]
