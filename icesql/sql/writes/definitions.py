"""Columns, types, partitions and properties, as written in CREATE TABLE and ALTER TABLE."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msgspec.structs import replace

from icesql.errors import ProgrammingError
from icesql.frozen import Frozen
from icesql.sql.cursor import TokenCursor
from icesql.sql.keywords import word_map
from icesql.sql.lexer import NUMBER, TEXT, WORD, Tokens, reading, tokenize, word_at
from icesql.sql.positions import syntax_error, unsupported
from icesql.sql.statement import Query
from icesql.sql.trees import exp, parts_of
from icesql.sql.writes.statements import (
    ColumnDefinition,
    PartitionTerm,
    Properties,
    SortTerm,
    TableName,
    TypeName,
)

_REFUSED: Final = word_map("""
PRIMARY = PRIMARY KEY
UNIQUE = UNIQUE
CHECK = CHECK
GENERATED = a generated column
REFERENCES = REFERENCES
COLLATE = COLLATE
CONSTRAINT = CONSTRAINT
FOREIGN = FOREIGN KEY
AS = a generated column
""")
_AFTER_COLUMN: Final = (",", ")", ">", "FIRST", "AFTER", "BEFORE")
_AFTER_TERM: Final = (",", ")", "AS", "ASC", "DESC", "NULLS", "WITH", "DISTRIBUTED")
_STRUCTS: Final = ("STRUCT", "ROW")
_LISTS: Final = ("ARRAY", "LIST")
# Iceberg's transforms by their names in Spark, DuckDB and Trino.
_PLAIN: Final = word_map("""
YEAR = year
YEARS = year
MONTH = month
MONTHS = month
DAY = day
DAYS = day
DATE = day
HOUR = hour
HOURS = hour
DATE_HOUR = hour
IDENTITY = identity
VOID = void
""")
_WITH_NUMBER: Final = {"BUCKET": "bucket", "TRUNCATE": "truncate"}


def constant_query(
    words: TokenCursor,
    tokens: Tokens,
    what: str = "a value that is no constant",
    hint: str = "write a literal",
) -> Query:
    """Return a query of an expression without columns; refuse anything else, named ``what``."""
    at = tokens[0].start
    query = words.parse.any_query([word_at("SELECT", at), *tokens])
    items = query.tree.expressions
    if (
        parts_of(query.tree) != {"expressions"}
        or len(items) != 1
        or items[0].find(exp.Column, exp.Query)
    ):
        raise unsupported(what, at, hint)
    # The engine runs the tree: the word SELECT is not in the user's text.
    return replace(query, user_text=None, spark=None)


def read_name(words: TokenCursor, what: str = "a table") -> TableName:
    """Read the dotted name of a table or view."""
    at = words.here
    return TableName(words.name(what), at)


# ------------------------------------------------------------------ columns


def read_column(words: TokenCursor, *, colon: bool = False) -> ColumnDefinition:
    """Read ``name type [NOT NULL] [DEFAULT constant] [COMMENT 'text']``."""
    at = words.here
    if words.peek() in ("PRIMARY", "UNIQUE", "CHECK", "CONSTRAINT", "FOREIGN") and (
        words.peek(1) in ("KEY", "(") or words.peek() == "CONSTRAINT"
    ):
        raise unsupported(_REFUSED[words.peek()], at, "Iceberg has NOT NULL and nothing more")
    name = words.identifier("a column")
    if colon:
        words.skip(":")
    type = read_type(words)
    required, comment, default = False, None, None
    while words.token is not None and words.peek() not in _AFTER_COLUMN:
        if words.skip("NOT NULL"):
            required = True
        elif words.skip("NULL"):
            pass
        elif words.skip("COMMENT"):
            comment = words.text()
        elif words.skip("DEFAULT"):
            start = words.here
            tokens = words.until("NOT", "COMMENT", "NULL", "FIRST", "AFTER", "BEFORE")
            if not tokens and words.skip("NULL"):
                tokens = words.tokens[words.index - 1 : words.index]
            if not tokens:
                raise syntax_error("nothing follows DEFAULT", start, ("a constant",))
            default = constant_query(words, tokens)
        elif words.peek() in _REFUSED:
            raise unsupported(_REFUSED[words.peek()], words.here)
        else:
            raise words.unexpected("NOT NULL", "DEFAULT", "COMMENT", ",", ")")
    return ColumnDefinition(name, type, required, comment, default, at)


def read_type(words: TokenCursor) -> TypeName:
    """Read a type and its nested types."""
    at = words.here
    name, more = words.identifier("a type").upper(), ""
    if name in ("CHARACTER", "CHAR") and words.skip("VARYING"):
        name = "VARCHAR"
    fields: tuple[ColumnDefinition, ...] = ()
    arguments: tuple[int | str, ...] = ()
    if name in _STRUCTS:
        fields = _inside(words, lambda: read_column(words, colon=True))
    elif name in (*_LISTS, "MAP"):
        fields = _inside(words, lambda: _unnamed(words))
        if name == "MAP" and len(fields) != 2:
            raise syntax_error(
                "a MAP has a type of keys and one of values", at, ("MAP<key, value>",)
            )
    else:
        if name == "DOUBLE":
            words.skip("PRECISION")
        if words.peek() == "(" or (name == "FIXED" and words.peek() == "["):
            arguments = _arguments(words)
        if name in ("TIMESTAMP", "TIME"):
            if words.skip("WITH TIME ZONE") or words.skip("WITH LOCAL TIME ZONE"):
                more = "TZ"
            elif words.skip("WITHOUT TIME ZONE"):
                more = "_NTZ"
            name += more
    found = TypeName(name, arguments, fields, at)
    while words.skip("[ ]"):
        found = TypeName("ARRAY", (), (ColumnDefinition("", found),), at)
    return found


def _unnamed(words: TokenCursor) -> ColumnDefinition:
    """Read the type of an element, which may be NOT NULL."""
    at = words.here
    type = read_type(words)
    return ColumnDefinition("", type, words.skip("NOT NULL"), offset=at)


def _inside(
    words: TokenCursor, read: Callable[[], ColumnDefinition]
) -> tuple[ColumnDefinition, ...]:
    """Read the fields between < and >, or between brackets."""
    closing = ">" if words.peek() == "<" else ")"
    words.need("<" if closing == ">" else "(")
    return tuple(words.listed(read, closing))


def _arguments(words: TokenCursor) -> tuple[int | str, ...]:
    closing = "]" if words.peek() == "[" else ")"
    words.index += 1

    def argument() -> int | str:
        is_name = words.kind(words.index) in (TEXT, WORD)
        return words.text_or_name() if is_name else words.number()

    return tuple(words.listed(argument, closing))


# ------------------------------------------------------------------ partitions and orders


def read_partitioning(words: TokenCursor) -> tuple[PartitionTerm, ...]:
    """Read the entries in the next brackets; ``()`` has none."""
    if words.skip("( )"):
        return ()
    return tuple(words.bracketed(read_term))


def read_term(words: TokenCursor) -> PartitionTerm:
    """Read ``column``, ``days(column)``, ``bucket(16, column)`` or ``bucket(column, 16)``."""
    at = words.here
    if words.peek(1) != "(":
        source = words.column()
        if words.token is not None and words.peek() not in _AFTER_TERM:
            raise unsupported("a new column in PARTITIONED BY", at, "list it among the columns")
        return PartitionTerm(source, offset=at)
    function = words.identifier().upper()
    inner = words.in_brackets()
    if function in _PLAIN:
        source = inner.column()
        inner.end()
        return PartitionTerm(source, _PLAIN[function], offset=at)
    if function not in _WITH_NUMBER:
        known = ("years", "months", "days", "hours", "bucket", "truncate")
        raise unsupported(
            f"partitioning by {function.lower()}()", at, f"there are {', '.join(known)}"
        )
    if inner.kind(inner.index) == NUMBER:
        number = inner.number()
        inner.need(",")
        source = inner.column()
    else:
        source = inner.column()
        inner.need(",")
        number = inner.number()
    inner.end()
    if number <= 0:
        raise syntax_error(f"{function.lower()} takes a number above 0", at, ("a number above 0",))
    return PartitionTerm(source, f"{_WITH_NUMBER[function]}[{number}]", offset=at)


def read_ordering(words: TokenCursor) -> tuple[SortTerm, ...]:
    """Read ``term, …`` to the end of the tokens."""
    return tuple(words.listed(lambda: read_sort_term(words)))


def read_sort_term(words: TokenCursor) -> SortTerm:
    """Read ``term [ASC | DESC] [NULLS FIRST | LAST]``."""
    term = read_term(words)
    descending = words.skip("DESC")
    if not descending:
        words.skip("ASC")
    first: bool | None = None
    if words.skip("NULLS"):
        first = words.skip("FIRST")
        if not first:
            words.need("LAST")
    return SortTerm(term.source, term.transform, descending, first, term.offset)


# ------------------------------------------------------------------ properties


def read_keys(words: TokenCursor) -> tuple[str, ...]:
    """Read ``('key', …)``: the properties that UNSET removes."""
    return tuple(words.bracketed(TokenCursor.text))


def read_properties(words: TokenCursor) -> Properties:
    """Read ``('key' = 'value', …)``."""
    return tuple(words.bracketed(read_property))


def read_property(words: TokenCursor) -> tuple[str, str]:
    """Read ``'key' = 'value'``; quotes around both are optional."""
    key = words.text() if words.is_text else words.key("a property")
    if not words.skip("="):
        words.skip(":")
    return key, _property_value(words)


def _property_value(words: TokenCursor) -> str:
    token = words.token
    if token is None:
        raise words.unexpected("a value")
    words.index += 1
    if token.kind in (TEXT, NUMBER):
        return str(token.text)
    if token.text.lower() in ("true", "false"):
        return str(token.text).lower()
    words.index -= 1
    raise words.unexpected("a text, a number, true or false")


# ------------------------------------------------------------------ a sort order as a text


class SortText(Frozen):
    """The terms of an order, or the columns of a z-order."""

    terms: tuple[SortTerm, ...] = ()
    z_columns: tuple[str, ...] = ()


def read_sort_text(text: str) -> SortText:
    """Read a sort order from a text; errors have offsets in this text.

    Raises SqlSyntaxError, and ProgrammingError for a Hilbert curve or a z-order beside other terms.
    """
    words = TokenCursor(tokenize(text, reading(None)), text)
    if not words.tokens:
        raise ProgrammingError("it is empty")
    if words.comes("HILBERT ("):
        raise ProgrammingError("hilbert(…) is not here; zorder(…) keeps neighbours together, too")
    if words.comes("ZORDER ("):
        words.index += 1
        names = words.bracketed(TokenCursor.column)
        if words.token is not None:
            raise ProgrammingError(
                "zorder(…) has to be alone in sort_order: no other column comes before or after it"
            )
        return SortText(z_columns=tuple(names))
    terms = read_ordering(words)
    words.end()
    return SortText(terms)
