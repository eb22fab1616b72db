"""WHEN [NOT] MATCHED [BY TARGET | BY SOURCE] [AND condition] THEN action."""

from __future__ import annotations

from typing import Final

from icesql.sql.cursor import TokenCursor
from icesql.sql.lexer import Span, Tokens, span_of
from icesql.sql.positions import syntax_error, unsupported
from icesql.sql.table_name import Parts
from icesql.sql.writes.changes.conditions import before_word, plain_words
from icesql.sql.writes.merge.statement import (
    BY_SOURCE,
    MATCHED,
    NOT_MATCHED,
    MergeClause,
    MergeValue,
)

_MOST: Final = 64


def until(words: TokenCursor, *stops: str) -> Tokens:
    """Read up to one of these words outside brackets and CASE."""
    rest = words.rest
    count = before_word(rest, *stops)
    words.index += count
    return rest[:count]


def read_clauses(tokens: Tokens, sql: str) -> tuple[MergeClause, ...]:
    """Read the clauses of a statement; the first token is the first WHEN.

    Raises SqlSyntaxError and UnsupportedSqlError.
    """
    places = [index for index, word in plain_words(tokens) if word == "WHEN"]
    for index, word in plain_words(tokens):
        if word == "RETURNING":
            raise unsupported("MERGE … RETURNING", tokens[index], "query the table afterwards")
    if len(places) > _MOST:
        raise syntax_error(f"MERGE has more than {_MOST} clauses", tokens[places[_MOST]])
    ends = [*places[1:], len(tokens)]
    found: list[MergeClause] = []
    closed: set[str] = set()
    for start, end in zip(places, ends, strict=True):
        clause = _clause(TokenCursor(tokens[start:end], sql))
        if clause.kind in closed:
            raise syntax_error(
                f"this clause is never reached: the WHEN {clause.kind} before it has no condition",
                clause.offset,
            )
        if clause.condition is None:
            closed.add(clause.kind)
        found.append(clause)
    return tuple(found)


def _clause(words: TokenCursor) -> MergeClause:
    offset = words.here
    words.need("WHEN")
    negated = words.skip("NOT")
    words.need("MATCHED")
    kind = NOT_MATCHED if negated else MATCHED
    if negated and words.skip("BY SOURCE"):
        kind = BY_SOURCE
    elif negated:
        words.skip("BY TARGET")
    condition = _condition(words) if words.skip("AND") else None
    words.need("THEN")
    at = words.here
    if words.skip("DO NOTHING"):
        words.end()
        return MergeClause(kind, "nothing", condition, offset=offset)
    if words.peek() == "ERROR":
        raise unsupported("THEN ERROR", at, "query for such rows before the MERGE")
    wanted = "INSERT" if kind == NOT_MATCHED else "UPDATE"
    if kind != NOT_MATCHED and words.skip("DELETE"):
        words.end()
        return MergeClause(kind, "delete", condition, offset=offset)
    if not words.skip(wanted):
        expected = ("INSERT",) if kind == NOT_MATCHED else ("UPDATE", "DELETE")
        raise words.unexpected(*expected, "DO NOTHING")
    star, values = _inserted(words) if wanted == "INSERT" else _updated(words)
    if star and kind == BY_SOURCE:
        raise syntax_error("there is no source row to take values from; write SET", at)
    return MergeClause(kind, wanted.lower(), condition, values, star, offset)


def _condition(words: TokenCursor) -> Span:
    tokens = until(words, "THEN")
    if not tokens:
        raise words.unexpected("a condition")
    return span_of(tokens)


def _star(words: TokenCursor) -> str:
    """Return how values that are not listed are chosen; "" if the values are listed."""
    if (
        words.token is None
        or (words.peek() == "*" and words.skip("*"))
        or words.skip("ALL BY NAME")
    ):
        star = "all"
    elif words.skip("BY NAME"):
        star = "name"
    elif words.skip("BY POSITION"):
        star = "position"
    else:
        return ""
    words.skip("*")
    words.end()
    return star


def _updated(words: TokenCursor) -> tuple[str, tuple[MergeValue, ...]]:
    if not words.skip("SET"):
        star = _star(words)
        if not star:
            raise words.unexpected("SET")
        return star, ()
    if words.peek() == "*":
        return _star(words), ()

    def assignment() -> MergeValue:
        at = words.here
        if words.peek() == "(":
            raise unsupported("SET (columns) = (values)", at, "write SET a = x, b = y")
        path = words.name("a column")
        words.need("=")
        return MergeValue(path, _value(words), at)

    values = words.listed(assignment)
    words.end()
    return "", tuple(values)


def _inserted(words: TokenCursor) -> tuple[str, tuple[MergeValue, ...]]:
    if words.skip("DEFAULT VALUES"):
        words.end()
        return "default", ()
    star = "" if words.peek() in ("(", "VALUES") else _star(words)
    if star:
        return star, ()
    paths: list[tuple[int, Parts]] = []
    if words.peek() == "(":
        paths = words.bracketed(lambda inner: (inner.here, inner.name("a column")))
    at = words.here
    words.need("VALUES")
    given = words.bracketed(lambda inner: (inner.here, _value(inner)))
    words.end()
    if paths and len(paths) != len(given):
        counted = f"{len(paths)} column{'s' * (len(paths) != 1)}"
        raise syntax_error(
            f"INSERT names {counted} and gives {len(given)} value{'s' * (len(given) != 1)}", at
        )
    named = paths or [(place, ()) for place, _ in given]
    pairs = zip(named, given, strict=True)
    return "", tuple(MergeValue(path, value, offset) for (offset, path), (_, value) in pairs)


def _value(words: TokenCursor) -> Span | None:
    tokens = words.until(",")
    if not tokens:
        raise words.unexpected("a value")
    return None if [each.word for each in tokens] == ["DEFAULT"] else span_of(tokens)
