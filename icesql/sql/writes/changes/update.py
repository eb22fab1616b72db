"""UPDATE: the assigned columns, and the query that finds the rows and computes the values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from msgspec.structs import replace

from icesql.sql.cursor import TokenCursor
from icesql.sql.lexer import Token, Tokens, phrase, word_at
from icesql.sql.positions import syntax_error, unsupported
from icesql.sql.statement import Query
from icesql.sql.trees import exp
from icesql.sql.writes.changes.conditions import (
    BEHIND_WHERE,
    alias_of,
    before_word,
    check_condition,
    read_target,
    refuse_endings,
)
from icesql.sql.writes.statements import ColumnValue, Update

# Words that end a value.
_FOLLOWING: Final = ("FROM", "WHERE", "RETURNING", *BEHIND_WHERE)


def read_update(words: TokenCursor) -> Update:
    """Read the statement after UPDATE: ``table [alias] SET column = value, … [FROM …] [WHERE …]``.

    The query selects the values, in order, from the table and those of FROM.
    """
    first = words.index
    table = read_target(words)
    alias = alias_of(words.until("SET"), "SET")
    named = words.tokens[first : words.index]
    words.need("SET")
    assigned = words.listed(lambda: _read_assignment(words))
    rest = words.rest
    place = before_word(rest, "WHERE")
    others, condition = rest[:place], rest[place:]
    refuse_endings(rest)
    if others and others[0].word != "FROM":
        word = others[0].word
        if word in _FOLLOWING:
            raise unsupported(f"UPDATE … {phrase(others, 0)}", others[0], "put it into a subquery")
        raise words.unexpected("WHERE", "FROM", "the end of the statement")
    if others and len(others) == 1:
        raise syntax_error("nothing follows FROM", others[0].stop, ("a table",))
    if len(condition) == 1:
        raise syntax_error("nothing follows WHERE", condition[0].stop, ("a condition",))
    tokens = [*_selected(named[0], [value for _, value in assigned])]
    tokens += [word_at("FROM", named[0].start), *named]
    if others:
        tokens += [word_at(",", others[0].start), *others[1:]]
    # An inserted WHERE, because SET and its values precede the condition in the text.
    at = condition[0] if condition else words.tokens[-1]
    tokens += [word_at("WHERE", at.start)]
    tokens += condition[1:] or [word_at("TRUE", at.start)]
    query = words.parse.any_query(tokens)
    check_condition(query, condition, "UPDATE", ("joins", "laterals") if others else ())
    _check_values(query, assigned)
    if query.only_text:
        raise unsupported(f"{query.only_text} in UPDATE", named[0], "put its rows into a table")
    # The engine runs the tree, because the user's text has these words in another order.
    query = replace(query, user_text=None, spark=None)
    written = None if alias is None else str(alias.text)
    return Update(table, tuple(each for each, _ in assigned), query, written)


def _read_assignment(words: TokenCursor) -> tuple[ColumnValue, Tokens]:
    """Read ``column = value``; also return the tokens of the value."""
    if words.peek() == "(":
        raise unsupported("SET (a, b) = …", words.here, "write SET a = …, b = …")
    at = words.here
    path = words.name("a column")
    words.need("=")
    start = words.index
    words.until(*_FOLLOWING)
    # IS DISTINCT FROM is one comparison.
    while words.peek() == "FROM" and words.tokens[words.index - 1].word == "DISTINCT":
        words.index += 1
        words.until(*_FOLLOWING)
    value = words.tokens[start : words.index]
    if not value:
        raise words.unexpected("a value", "DEFAULT")
    default = len(value) == 1 and value[0].word == "DEFAULT"
    return ColumnValue(path, at, default), value


def _selected(at: Token, values: Sequence[Tokens]) -> Iterator[Token]:
    """Yield SELECT and the values, each in brackets, so that it is one value without an alias."""
    yield word_at("SELECT", at.start)
    for number, value in enumerate(values):
        if number:
            yield word_at(",", value[0].start)
        if len(value) == 1 and value[0].word == "DEFAULT":
            yield word_at("NULL", value[0].start)
            continue
        yield word_at("(", value[0].start)
        yield from value
        yield word_at(")", value[-1].stop)


def _check_values(query: Query, assigned: Sequence[tuple[ColumnValue, Tokens]]) -> None:
    """Refuse assignments that are not one value for each column, computed from one row."""
    values = query.tree.expressions
    if len(values) != len(assigned):
        raise unsupported("several values for one column", assigned[0][0].offset)
    for node, (_, tokens) in zip(values, assigned, strict=True):
        if isinstance(node.unnest(), exp.Alias):
            raise syntax_error("a value has no alias", tokens[-1])
        for inner in node.walk(prune=lambda each: isinstance(each, exp.Query)):
            if isinstance(inner, exp.Query):
                continue
            if isinstance(inner, exp.AggFunc | exp.Window):
                raise unsupported(
                    "an aggregate or window function in SET", tokens[0], "put it into a subquery"
                )
            if isinstance(inner, exp.Star | exp.Columns | exp.UDTF):
                raise unsupported("several values for one column", tokens[0])
