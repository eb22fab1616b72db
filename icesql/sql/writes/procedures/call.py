"""CALL: a procedure and its arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias, TypeVar

from icesql.frozen import Frozen
from icesql.sql.cursor import TokenCursor
from icesql.sql.lexer import CLOSING, NUMBER, OPENING, TEXT, Token
from icesql.sql.positions import syntax_error
from icesql.sql.statement import Query, Write
from icesql.sql.table_name import Parts
from icesql.sql.writes.definitions import constant_query
from icesql.sql.writes.statements import TableName

T = TypeVar("T")


class Duration(Frozen):
    """A duration before now."""

    milliseconds: int


class MapValue(Frozen):
    """``map(key, value, …)`` or ``{key: value}``."""

    entries: tuple[tuple[Value, Value], ...]


# A Query is evaluated to its one value.
Value: TypeAlias = "str | int | bool | Duration | list[Value] | MapValue | TableName | Query | None"


class CallArgument(Frozen):
    """An argument; ``name`` is "" for a positional one."""

    name: str
    value: Value
    offset: int


class CallProcedure(Write):
    """CALL [catalog.]system.procedure(…); ``explain`` only shows what it would do.

    ``head`` is the snapshot that must be the branch's head, if a person confirmed an undo of it.
    """

    name: Parts
    arguments: tuple[CallArgument, ...]
    offset: int
    explain: bool = False
    head: int | None = None


# ------------------------------------------------------------------ CALL


def read_call(words: TokenCursor) -> CallProcedure:
    """Read the statement after CALL."""
    at = words.here
    name = words.name("a procedure")
    arguments = read_arguments(words)
    words.end()
    return CallProcedure(name, arguments, at)


def read_arguments(words: TokenCursor) -> tuple[CallArgument, ...]:
    """Read the arguments in brackets, which may be empty."""
    if words.skip("( )"):
        return ()
    return tuple(words.bracketed(_argument))


def _argument(words: TokenCursor) -> CallArgument:
    """Read ``value`` or ``name => value``."""
    at, name = words.here, ""
    if words.peek(1) in ("=>", ":="):
        name = words.identifier("a parameter")
        words.index += 1
    return CallArgument(name, read_value(words), at)


def read_value(words: TokenCursor) -> Value:
    """Read a constant, up to the next comma or closing bracket."""
    start = words.index
    value = _literal(words)
    if value is not _NO_LITERAL and (words.token is None or words.peek() in (*CLOSING, ",", ":")):
        return value  # type: ignore[return-value]
    words.index = start
    tokens = words.until()
    if not tokens:
        raise words.unexpected("a value")
    hint = "write a literal; names in quotes"
    return constant_query(words, tokens, "an argument that is no constant", hint)


_NO_LITERAL: Final = object()


def _literal(words: TokenCursor) -> object:
    """Read a literal without an engine, and step over it; or return ``_NO_LITERAL``."""
    token = words.token
    if token is None:
        return _NO_LITERAL
    if token.kind == TEXT:
        return words.text()
    if token.kind == NUMBER and token.text.isdigit():
        return words.number()
    if words.peek() == "-" and words.peek(1).isdigit():
        words.index += 1
        return -words.number()
    for word, constant in (("TRUE", True), ("FALSE", False), ("NULL", None)):
        if words.skip(word):
            return constant
    if words.peek() == "TIMESTAMP" and words.kind(words.index + 1) == TEXT:
        words.index += 1
        return words.text()
    if words.peek() in ("MAP", "ARRAY") and words.peek(1) in OPENING:
        words.index += 1
        is_map = token.word == "MAP"
        if words.peek() == "(":
            items = _items(words, lambda: read_value(words), "(", ")")
            return _map_of(items, token) if is_map else items
        if is_map and words.peek() == "[":
            return _NO_LITERAL
    if words.peek() == "[":
        return _items(words, lambda: read_value(words), "[", "]")
    if words.peek() == "{":
        return MapValue(tuple(_items(words, lambda: _entry(words), "{", "}")))
    return _NO_LITERAL


def _items(words: TokenCursor, read: Callable[[], T], opening: str, closing: str) -> list[T]:
    words.need(opening)
    return [] if words.skip(closing) else words.listed(read, closing)


def _map_of(items: list[Value], at: Token) -> MapValue:
    """Return Spark's ``map(key, value, …)``, or one of two lists, as in DuckDB and Trino."""
    match items:
        case [list(keys), list(values)] if len(keys) == len(values):
            return MapValue(tuple(zip(keys, values, strict=True)))
    if len(items) % 2:
        raise syntax_error("a map has a value for each key", at, ("map('key', 'value')",))
    return MapValue(tuple(zip(items[::2], items[1::2], strict=True)))


def _entry(words: TokenCursor) -> tuple[Value, Value]:
    """Read ``'key': value`` or ``key = value``."""
    key = words.text_or_name("a key")
    if not words.skip(":"):
        words.need("=")
    return key, read_value(words)
