"""PREPARE, EXECUTE and DEALLOCATE, in DuckDB's and Trino's syntax."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from icesql.sql.keywords import QUERY_WORDS, TABLE_WORDS
from icesql.sql.lexer import TEXT, Token, Tokens, span_of, word_at
from icesql.sql.positions import syntax_error, unsupported
from icesql.sql.statement import Deallocate, Execute, Prepare, Prepared
from icesql.sql.trees import exp, parts_of

if TYPE_CHECKING:
    from icesql.sql.parse import Parse

WORDS: Final = ("PREPARE", "EXECUTE", "DEALLOCATE")
_PREPARED: Final = (*QUERY_WORDS, *TABLE_WORDS, "EXPLAIN", "DIFF", "BLAME")
_CONSTANT: Final = "give it constants: 3, 'a', true, NULL, DATE '2026-01-31'"


def read_prepared(tokens: Tokens, parse: Parse) -> Prepared:
    """Read a statement that begins with one of ``WORDS``.

    Raises SqlSyntaxError, UnsupportedSqlError.
    """
    word, rest = tokens[0].word, list(tokens[1:])
    if word == "DEALLOCATE" and rest and rest[0].word == "PREPARE" and len(rest) > 1:
        rest = rest[1:]
    if not rest or rest[0].kind == TEXT or rest[0].text[:1] in "(?$":
        raise syntax_error(f"{word} names a statement", tokens[0].stop, ("a name",))
    name, rest = rest[0].text.lower(), rest[1:]
    match word:
        case "PREPARE":
            return _prepare(name, rest, parse.sql, tokens[-1].stop)
        case "EXECUTE":
            return Execute(name, _values(rest, parse))
        case _:
            if rest:
                raise syntax_error(f'unexpected "{rest[0].text}"', rest[0], ("the end",))
            return Deallocate(None if name == "all" else name)


def _prepare(name: str, rest: list[Token], sql: str, end: int) -> Prepare:
    if not rest or rest[0].word not in ("AS", "FROM"):
        raise syntax_error(f"PREPARE {name} has no query", rest[0] if rest else end, ("AS",))
    body = rest[1:]
    if not body:
        raise syntax_error(f"PREPARE {name} has no query", end, ("a query",))
    if body[0].word not in _PREPARED:
        raise unsupported(f"PREPARE of {body[0].text.upper()}", body[0], "prepare a query")
    return Prepare(name, sql[slice(*span_of(body))])


def _values(rest: list[Token], parse: Parse) -> tuple[Any, ...]:
    if not rest:
        return ()
    if rest[0].text == "(" and rest[-1].text == ")":
        inner = rest[1:-1]
    elif rest[0].word == "USING":
        inner = rest[1:]
    else:
        raise syntax_error(f'unexpected "{rest[0].text}"', rest[0], ("(", "USING"))
    if not inner:
        return ()
    at = rest[0].start
    query = parse.any_query([word_at("SELECT", at), *inner])
    if parts_of(query.tree) != {"expressions"}:
        raise unsupported("EXECUTE with anything else than constants", at, _CONSTANT)
    return tuple(_value(each.unalias(), at) for each in query.tree.expressions)


def _value(node: exp.Expr, at: int) -> Any:
    match node:
        case exp.Null():
            return None
        case exp.Boolean():
            return bool(node.this)
        case exp.Literal() if node.is_string:
            return str(node.this)
        case exp.Literal():
            text = str(node.this)
            return int(text) if text.isdigit() else Decimal(text)
        case exp.Neg(this=exp.Literal() as inner) if not inner.is_string:
            return -_value(inner, at)
        case exp.Cast(this=exp.Literal() as inner) if inner.is_string:
            return _moment(str(inner.this), node, at)
        case _:
            raise unsupported("EXECUTE with anything else than constants", at, _CONSTANT)


def _moment(text: str, node: exp.Cast, at: int) -> Any:
    kinds = {"DATE": date, "TIMESTAMP": datetime}
    try:
        return kinds[node.to.sql(dialect="duckdb")].fromisoformat(text)
    except (KeyError, ValueError):
        raise unsupported("EXECUTE with this constant", at, _CONSTANT) from None
