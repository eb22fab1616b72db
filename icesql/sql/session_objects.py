"""Temporary views and tables, and prepared statements: read from tokens, kept by a session."""

from __future__ import annotations

import re
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from icesql.errors import Error
from icesql.quoting import quoted
from icesql.sql.cursor import TokenCursor
from icesql.sql.keywords import QUERY_WORDS, TABLE_WORDS, word_set
from icesql.sql.lexer import TEXT, Token, Tokens, span_of, word_at
from icesql.sql.macro import TEMPORARY
from icesql.sql.parameters import Parameters
from icesql.sql.positions import syntax_error, unsupported
from icesql.sql.statement import (
    CreateTemporary,
    Deallocate,
    Drop,
    Execute,
    Prepare,
    Prepared,
    Query,
    Statement,
)
from icesql.sql.trees import exp, parts_of

if TYPE_CHECKING:
    from icesql.sql.parse import Parse


# The schema of temporary objects.
SCHEMA: Final = "temp"


def is_temporary(tokens: Tokens) -> bool:
    """True if a CREATE makes a view or table of the session, or a DROP removes such a view."""
    words = " ".join(token.word for token in tokens[:5])
    if re.match(r"DROP VIEW\b", words):
        # A name in a namespace other than temp is that of a view of a catalog.
        name = tokens[4:] if re.match(r"DROP VIEW IF EXISTS\b", words) else tokens[2:]
        return len(name) < 3 or name[1].text != "." or name[0].text.lower() == SCHEMA
    return re.match(r"CREATE (OR REPLACE )?TEMP(ORARY)? (VIEW|TABLE)\b", words) is not None


def read_created(tokens: Tokens, parse: Parse) -> Statement:
    """Read the statement of tokens that ``is_temporary`` accepts.

    Raises SqlSyntaxError, UnsupportedSqlError, and the errors of reading its query.
    """
    reader = _Reader(tokens, parse.sql, parse)
    return reader.drop() if reader.either("DROP") else reader.create()


class _Reader(TokenCursor):
    def create(self) -> Statement:
        self.need("CREATE")
        replaced = self.skip("OR REPLACE")
        self.either(*TEMPORARY)
        kind = self.either("VIEW", "TABLE")
        if_missing = self.skip("IF NOT EXISTS")
        if replaced and if_missing:
            raise unsupported("OR REPLACE with IF NOT EXISTS", self.here, "write one of them")
        name = self._name(kind)
        if kind == "VIEW":
            columns = tuple(self.bracketed(_column)) if self.peek() == "(" else ()
            query = self._query(kind, self.parse.alone("a view"))
        else:
            columns, query = self._table(name)
        return CreateTemporary(kind, name, query, columns, replaced, if_missing)

    def drop(self) -> Statement:
        kind = self.either("VIEW", "TABLE")
        if_exists = self.skip("IF EXISTS")
        at = self.here
        name = self._name(kind)
        self.either("CASCADE", "RESTRICT")
        self.end()
        return Drop(kind, name, if_exists, at)

    # ------------------------------------------------------------ pieces

    def _name(self, kind: str) -> str:
        """Read the name of a temporary object: ``v`` or ``temp.v``."""
        at, parts = self.here, self.name()
        if len(parts) > 1 and (len(parts) > 2 or parts[0].lower() != SCHEMA):
            what = f"the {kind.lower()} {'.'.join(parts)}"
            hint = f"temporary ones have one name, as in CREATE TEMP {kind} {parts[-1]}"
            raise unsupported(what, at, hint)
        return parts[-1]

    def _query(self, kind: str, parse: Parse) -> Query:
        at = self.here
        if not self.skip("AS"):
            if self.peek() in ("USING", "OPTIONS", "WITH", "ON", "COMMENT", "TBLPROPERTIES"):
                raise unsupported(f"{self.peek()} of a temporary {kind.lower()}", at)
            raise self.unexpected("AS")
        return parse.any_query(self.following("AS", "a query"))

    def _table(self, name: str) -> tuple[tuple[str, ...], Query]:
        """Read the columns' names, () if the query's names are used, and the query."""
        if self.peek() != "(":
            return (), self._query("TABLE", self.parse)
        start, columns = self.here, self.bracketed(_definition)
        if self.peek() == "AS":
            if any(kind for _, kind in columns):
                raise unsupported("types beside AS", start, f"write CREATE TEMP TABLE {name} AS …")
            return tuple(each for each, _ in columns), self._query("TABLE", self.parse)
        if self.token is not None:
            raise self.unexpected("AS", "the end of the statement")
        for each, kind in columns:
            if not kind:
                raise syntax_error(f'the column "{each}" has no type', start, ("a type",))
        made = ", ".join(f"CAST(NULL AS {kind}) AS {quoted(each)}" for each, kind in columns)
        try:
            from icesql.sql.parse import Parse

            alone, tokens = Parse(None, Parameters(None)).over(f"SELECT {made} WHERE false")
            query = alone.any_query(tokens)
        except Error as error:
            raise syntax_error(f"columns of {name}: {error}", start) from error
        return (), replace(query, given=(None, 0))


def _column(words: TokenCursor) -> str:
    """Read ``a COMMENT 'x'``; return the name."""
    name = words.identifier()
    if words.skip("COMMENT"):
        words.text()
    return name


def _definition(words: TokenCursor) -> tuple[str, str]:
    """Read ``b VARCHAR NOT NULL``: the name, and the type as written; "" for no type."""
    name, first = words.identifier(), words.index
    found = [token.word for token in words.until()]
    end = next((at for at, word in enumerate(found) if word in _CONSTRAINTS), len(found))
    if any(word in _RULES for word in found[end:]):
        what = "a rule for a column"
        raise unsupported(what, words.tokens[first + end], "give its name and type")
    return name, words.written(first, first + end)


_CONSTRAINTS: Final = word_set(
    "NOT NULL PRIMARY UNIQUE CHECK DEFAULT REFERENCES COLLATE GENERATED COMMENT CONSTRAINT"
)
# A table without rows satisfies every rule; these provide values for new rows.
_RULES: Final = ("DEFAULT", "GENERATED", "COLLATE")


# ------------------------------------------------------------------ prepared statements
# In the syntax of DuckDB and of Trino.


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
