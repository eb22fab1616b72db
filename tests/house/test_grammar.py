"""The Lark grammar, acceptance and the two SQL files tell one story."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.lark import from_lark
from lark import Lark
from lark import logger as lark_logger

from icesql.errors import Error, ProgrammingError, SqlSyntaxError, UnsupportedSqlError
from icesql.sql import grammar
from icesql.sql.parse import parse, split_statements


def accepted() -> list[str]:
    return split_statements((grammar.folder() / "accepted.sql").read_text(encoding="utf-8"))


def rejected() -> Iterator[tuple[str, str]]:
    text = (grammar.folder() / "rejected.sql").read_text(encoding="utf-8")
    for message, statement in re.findall(r"-- refused: (.*)\n((?:(?!--).*\n)+)", text + "\n"):
        yield message, statement.strip().removesuffix(";")


def takes(statement: str) -> bool:
    found = grammar.next_terminals(statement)
    return found is not None and "$END" in found


def test_the_grammar_is_free_of_conflicts(caplog: pytest.LogCaptureFixture) -> None:
    lark_logger.setLevel(logging.DEBUG)
    lark_logger.propagate = True
    with caplog.at_level(logging.DEBUG, logger="lark"):
        Lark(grammar.text(), parser="lalr", lexer="contextual", debug=True)
    conflicts = [record.getMessage() for record in caplog.records]
    assert not [message for message in conflicts if "conflict" in message.lower()]


def test_each_keyword_stands_once() -> None:
    names = re.findall(r"^([A-Z_]+)[.:]", grammar.text(), re.MULTILINE)
    assert len(names) == len(set(names))
    assert {"SELECT", "VERSION", "SYSTEM_TIME", "EXPLAIN"} <= set(grammar.keywords())


@pytest.mark.parametrize("statement", accepted())
def test_an_accepted_statement_passes_both(statement: str) -> None:
    assert takes(statement)
    assert len(parse(statement)) == 1


@pytest.mark.parametrize(("message", "statement"), list(rejected()))
def test_a_rejected_statement_fails_both(message: str, statement: str) -> None:
    assert not takes(statement)
    with pytest.raises(Error) as caught:
        parse(statement)
    assert message in str(caught.value)
    assert type(caught.value) in (SqlSyntaxError, UnsupportedSqlError)


def test_the_files_are_not_empty() -> None:
    assert len(accepted()) > 60
    assert len(list(rejected())) > 45


_WORDS = {
    "IDENTIFIER": st.sampled_from(["a", "b", "c1", "region", "d_2"]).map(" {} ".format),
    "QUOTED_NAME": st.sampled_from([' "x y" ', ' "Order" ']),
    "STRING": st.just(" '2026-01-31 12:00:00' "),
    "PERIOD": st.sampled_from([" '1 day' ", " '2 hours' "]),
    "BYTES": st.just(" x'00ff' "),
    "INTEGER": st.integers(0, 9).map(" {} ".format),
    "NUMBER": st.sampled_from([" 1.5 ", " .5 ", " 2e3 "]),
    "PARAMETER": st.just(" ? "),
    "UNIT": st.sampled_from([" day ", " HOUR "]),
    "TYPE_NAME": st.sampled_from([" INTEGER ", " varchar ", " DATE "]),
    "COMPARISON": st.sampled_from([" = ", " <> ", " >= "]),
    "SHARE": st.sampled_from([" / ", " % ", " // "]),
    "LIST_OF": st.just("[]"),
    **{name: st.just(f" {name} ") for name in grammar.keywords()},
}


@settings(
    max_examples=150, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True
)
@given(from_lark(grammar.load(), start="statement", explicit=_WORDS))
def test_a_generated_statement_is_accepted_by_the_parser(statement: str) -> None:
    assert takes(statement), "the generator and the grammar's own parser agree"
    values = ["2026-01-31 12:00:00"] * statement.count("?")
    try:
        assert len(parse(statement, parameters=values)) == 1
    except (SqlSyntaxError, UnsupportedSqlError) as error:
        # What a WITH query of that name means is a question of scope, not of grammar.
        assert "time travel on the WITH query" in str(error), statement
    except ProgrammingError as error:
        assert "two tables of one FROM" in str(error), statement


def test_expectations_follow_the_text() -> None:
    assert grammar.expected_after("SELECT a FROM t VERSION") == ("AS",)
    assert grammar.expected_after("SELECT a FROM t FOR ") == (
        "SYSTEM_TIME", "SYSTEM_VERSION", "TIMESTAMP", "VERSION",
    )  # fmt: skip
    assert grammar.expected_after("SELECT a FROM t WHERE a =") == ("an expression",)
    assert {"WHERE", "JOIN", "VERSION", "a name"} <= set(grammar.expected_after("SELECT a FROM t "))
    assert grammar.expected_after("SELECT FROM FROM") == ()


def test_completions_say_whether_a_name_may_come() -> None:
    words, name = grammar.completions("SELECT a FROM ")
    assert "ICEBERG_SCAN" in words
    assert name
    words, name = grammar.completions("SHOW ")
    assert words == ("DATABASES", "NAMESPACES", "SCHEMAS", "SNAPSHOTS", "TABLES")
    assert not name
