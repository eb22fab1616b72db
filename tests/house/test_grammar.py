"""The Lark grammar, acceptance and the two SQL files tell one story."""

from __future__ import annotations

import logging
import random
import re
from ast import literal_eval
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra.lark import from_lark
from lark import Lark
from lark import logger as lark_logger

from icesql.context import QueryContext
from icesql.errors import Error, ProgrammingError, SqlSyntaxError, UnsupportedSqlError
from icesql.query.snapshot_selection import at_instant
from icesql.sql import grammar
from icesql.sql.lexer import reading, tokenize
from icesql.sql.parse import parse, split_statements
from tests.tables import read_table

SLT = Path(__file__).parents[1] / "slt"
STATEMENT = re.compile(r"(?ms)^(?:query|statement ok)[^\n]*\n(.*?)(?=\n----|\n\n|\Z)")


def accepted() -> list[str]:
    script = (grammar.folder() / "accepted.sql").read_text(encoding="utf-8")
    return [text for _, text in split_statements(script)]


def rejected() -> Iterator[tuple[str, str]]:
    text = (grammar.folder() / "rejected.sql").read_text(encoding="utf-8")
    for message, statement in re.findall(r"-- refused: (.*)\n((?:(?!--).*\n)+)", text + "\n"):
        yield message, statement.strip().removesuffix(";")


def takes(statement: str) -> bool:
    found = grammar.next_terminals(statement)
    return found is not None and "$END" in found


def test_the_grammar_is_free_of_conflicts(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lark_logger, "level", logging.DEBUG)
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


def parse_with_times(statement: str) -> None:
    for parsed in parse(statement):
        for reference in getattr(parsed, "references", ()):
            at_instant(reference.travel, QueryContext())


@pytest.mark.parametrize(("message", "statement"), list(rejected()))
def test_a_rejected_statement_fails_both(message: str, statement: str) -> None:
    assert not takes(statement)
    with pytest.raises(Error) as caught:
        parse_with_times(statement)
    assert message in str(caught.value)
    assert type(caught.value) in (SqlSyntaxError, UnsupportedSqlError)


def test_the_files_are_not_empty() -> None:
    assert len(accepted()) > 60
    assert len(list(rejected())) > 45


_COMMENT = " -- x\n"
_CHOICES = {name: literal_eval(words) for name, words in read_table(__file__, "terminals.tsv")}
_WORDS = {
    **{name: st.sampled_from(words) for name, words in _CHOICES.items()},
    **{name: st.just(f" {name} ") for name in grammar.keywords()},
}


def statements(start: str) -> st.SearchStrategy[str]:
    lark = grammar.load()
    terminals = {terminal.name for terminal in lark.grammar.compile([start], set())[0]}
    words = {name: strategy for name, strategy in _WORDS.items() if name in terminals}
    return from_lark(lark, start=start, explicit=words)


def is_accepted(statement: str) -> bool:
    values = ["2026-01-31 12:00:00"] * statement.count("?")
    try:
        return len(parse(statement, parameters=values)) == 1
    except (SqlSyntaxError, UnsupportedSqlError) as error:
        # What a WITH query of that name means is a question of scope, not of grammar.
        # The grammar takes any name for a function, and comments between any words, where sqlglot
        # reads ORDER BY and the like as one.
        # What DuckDB's parser says of windows, names and recursion is no grammar's, either, nor is
        # that a query inside of a view has no parameters.
        reasons = (
            "time travel on the WITH query", "the function ", "there is a comment inside of",
            "ORDER BY ALL in a window", "Frame ", "is already defined", "Duplicate ", "cannot occur in both",
            "in a recursive query", "a parameter in a view",
        )  # fmt: skip
        return any(each in str(error) for each in reasons)
    except ProgrammingError as error:
        return "two tables of one FROM" in str(error)


_bounded = settings(
    max_examples=150, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True
)


@_bounded
@given(statements("statement"))
def test_a_generated_statement_is_accepted_by_the_parser(statement: str) -> None:
    # Two signs side by side are a comment.
    assume("--" not in statement.replace(_COMMENT, ""))
    assert takes(statement), "the generator and the grammar's own parser agree"
    assert is_accepted(statement)


class Writer:
    """Random sentences of the grammar with a bounded depth, for what recurses too much above."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.rules: dict[str, list[list[str]]] = {}
        for rule in grammar.load().rules:
            names = [symbol.name for symbol in rule.expansion]
            self.rules.setdefault(rule.origin.name, []).append(names)
        self.literals = {
            terminal.name: f" {terminal.pattern.value} "
            for terminal in grammar.load().terminals
            if terminal.pattern.type == "str"
        }
        self.height = dict.fromkeys(self.rules, 1 << 20)
        for _ in range(len(self.rules)):
            for name, choices in self.rules.items():
                self.height[name] = min(map(self.tall, choices))

    def tall(self, expansion: list[str]) -> int:
        return 1 + max((self.height.get(name, 0) for name in expansion), default=0)

    def word(self, name: str) -> str:
        if name in self.literals:
            return self.literals[name]
        return self.random.choice(_CHOICES[name]) if name in _CHOICES else f" {name} "

    def sentence(self, name: str, depth: int) -> str:
        if name not in self.rules:
            return self.word(name)
        choices = [choice for choice in self.rules[name] if self.tall(choice) <= depth]
        least = min(map(self.tall, self.rules[name]))
        choices = choices or [c for c in self.rules[name] if self.tall(c) == least]
        chosen = self.random.choice(choices)
        return "".join(self.sentence(part, depth - 1) for part in chosen)


REFUSED = re.compile(
    r"\*\s+EXCEPT|GROUP\s+BY\s+ALL\s+(UNION|EXCEPT|INTERSECT)\s*\(\s*\(|"
    r"\?.*\(\s*(SHOW|DESC|DESCRIBE|SUMMARIZE)\b[^()]*(\(\s*)?\?",
    re.DOTALL | re.IGNORECASE,
)


@pytest.mark.parametrize("seed", range(8))
def test_a_random_query_is_accepted_by_the_parser(seed: int) -> None:
    writer = Writer(seed)
    for _ in range(40):
        statement = writer.sentence("query", writer.random.randrange(8, 17))
        # sqlglot takes EXCEPT right after a star for BigQuery's word for EXCLUDE; a ? in a statement
        # in FROM is refused behind another one; after GROUP BY ALL it takes UNION (( for a function.
        if len(statement) < 1500 and not REFUSED.search(statement):
            assert takes(statement), statement
            assert is_accepted(statement), statement


# DuckDB's own forms of expressions, which the grammar leaves to DuckDB's parser.
BEYOND = re.compile(
    r"\bFOR \w+ IN\b|\)?\.\w+\(|,\s+(FROM|ORDER|LIMIT)\b|\(\w+,\)|\bROW\(|#\d|\bROLLUP\b|"
    r"::(HUGEINT|UNION|TIMETZ)|INTERVAL '-?\d+ \w+ \d|INTERVAL '14 months'|MAP \{|^SHOW timezone$"
)


def slt_statements() -> Iterator[str]:
    # The grammar has the simplest definitions of columns alone, which the cases of changes have not.
    for path in sorted(SLT.glob("*.slt")):
        text = path.read_text(encoding="utf-8")
        for found in STATEMENT.finditer(text):
            yield found[1].strip().removesuffix(";")


def test_what_the_parser_reads_is_of_the_grammar() -> None:
    statements = {each for each in slt_statements() if not BEYOND.search(each)}
    assert len(statements) > 170
    assert [each for each in statements if not takes(each)] == []


def test_a_statement_that_lost_a_word_is_refused_by_both() -> None:
    chance = random.Random(2911)
    for statement in accepted():
        words = [statement[each.start : each.stop] for each in tokenize(statement, reading(None))]
        del words[chance.randrange(len(words))]
        changed = " ".join(words)
        # A unit alone is no alias to DuckDB.
        if changed and takes(changed) and not re.search(r"\d (HOUR|DAY)\b", changed):
            assert is_accepted(changed), changed


def test_expectations_follow_the_text() -> None:
    assert grammar.expected_after("SELECT a FROM t VERSION") == ("AS",)
    assert grammar.expected_after("SELECT a FROM t FOR ") == (
        "SYSTEM_TIME", "SYSTEM_VERSION", "TIMESTAMP", "VERSION",
    )  # fmt: skip
    assert grammar.expected_after("SELECT a FROM t WHERE a =") == ("an expression",)
    assert {"WHERE", "JOIN", "VERSION", "a name"} <= set(grammar.expected_after("SELECT a FROM t "))
    assert grammar.expected_after("SELECT FROM FROM") == ()
    # DATE may be the name of a table; nobody who asks wants to hear so.
    assert grammar.expected_after("SELECT a FROM ")[0] == "a table"
    assert "DATE" not in grammar.completions("SHOW TABLES IN ")[0]
    assert "DATE" in grammar.completions("SELECT ")[0]


def test_completions_say_whether_a_name_may_come() -> None:
    words, name = grammar.completions("SELECT a FROM ")
    assert "ICEBERG_SCAN" in words
    assert name
    words, name = grammar.completions("SHOW ")
    assert words == (
        "ALL", "BRANCHES", "CATALOGS", "COLUMNS", "CREATE", "DATABASES", "FUNCTIONS", "HISTORY",
        "NAMESPACES", "PARTITIONS", "PROCEDURES", "REFS", "SCHEMAS", "SNAPSHOTS", "TABLES", "TAGS",
        "TBLPROPERTIES", "VIEWS",
    )  # fmt: skip
    assert not name
