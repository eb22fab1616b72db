"""CREATE TEMP VIEW and TEMP TABLE, DROP VIEW and TABLE, read from tokens."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, Protocol

from msgspec.structs import replace

from icesql.errors import Error
from icesql.sql.cursor import TokenCursor
from icesql.sql.lexer import Token
from icesql.sql.positions import syntax_error, unsupported
from icesql.sql.statement import CreateTable, CreateView, Drop, Query, Statement

_TEMPORARY: Final = ("TEMP", "TEMPORARY")
# The schema of temporary objects.
SCHEMA: Final = "temp"


class Readers(Protocol):
    """Parses the queries in a statement."""

    def query(self, tokens: Sequence[Token]) -> Query:
        """Parse a query of these tokens."""

    def without_parameters(self, tokens: Sequence[Token]) -> Query:
        """Parse the same; raises UnsupportedSqlError for a parameter."""

    def columns(self, sql: str) -> Query:
        """Parse a query in a separate text."""


def is_temporary(tokens: Sequence[Token]) -> bool:
    """True if a CREATE makes a view or table of the session, or a DROP removes such a view."""
    words = [token.word for token in tokens[:5]]
    if words[0] == "DROP":
        return words[1:2] == ["VIEW"] and not _is_dotted(tokens[2:])
    rest = words[3:] if words[1:3] == ["OR", "REPLACE"] else words[1:]
    return rest[:1] in (["TEMP"], ["TEMPORARY"]) and rest[1:2] in (["VIEW"], ["TABLE"])


def _is_dotted(tokens: Sequence[Token]) -> bool:
    """True if the name is that of a view of a catalog: in a namespace other than temp."""
    name = tokens[2:] if [each.word for each in tokens[:2]] == ["IF", "EXISTS"] else tokens
    return len(name) > 2 and name[1].text == "." and name[0].text.lower() != SCHEMA


def read_created(tokens: Sequence[Token], sql: str, readers: Readers) -> Statement:
    """Read the statement of tokens that ``is_temporary`` accepts.

    Raises SqlSyntaxError, UnsupportedSqlError, and the errors of reading its query.
    """
    reader = _Reader(tokens, sql, readers)
    return reader.drop() if reader.either("DROP") else reader.create()


class _Reader(TokenCursor):
    def __init__(self, tokens: Sequence[Token], sql: str, readers: Readers) -> None:
        super().__init__(tokens, sql)
        self._readers = readers

    def create(self) -> Statement:
        self.skip("CREATE")
        replaced = self.skip("OR")
        if replaced:
            self.skip("REPLACE")
        self.either(*_TEMPORARY)
        kind = self.either("VIEW", "TABLE")
        if_missing = self.skip("IF", "NOT", "EXISTS")
        if replaced and if_missing:
            raise unsupported("OR REPLACE with IF NOT EXISTS", self.here, "write one of them")
        name = self._name(kind)
        if kind == "VIEW":
            columns = self._names() if self.peek() == "(" else ()
            query = self._query(kind, self._readers.without_parameters)
            return CreateView(name, query, columns, replaced, if_missing)
        columns, query = self._table(name)
        return CreateTable(name, query, columns, replaced, if_missing)

    def drop(self) -> Statement:
        kind = self.either("VIEW", "TABLE")
        if_exists = self.skip("IF", "EXISTS")
        at = self.here
        name = self._name(kind)
        self.either("CASCADE", "RESTRICT")
        if self.index < len(self.tokens):
            raise self.unexpected("the end of the statement")
        return Drop(kind, name, if_exists, at)

    # ------------------------------------------------------------ pieces

    def _name(self, kind: str) -> str:
        """Read the name of a temporary object: ``v`` or ``temp.v``."""
        at, parts = self.here, [self.identifier()]
        while self.skip("."):
            parts.append(self.identifier())
        if len(parts) > 1 and (len(parts) > 2 or parts[0].lower() != SCHEMA):
            what = f"the {kind.lower()} {'.'.join(parts)}"
            hint = f"temporary ones have one name, as in CREATE TEMP {kind} {parts[-1]}"
            raise unsupported(what, at, hint)
        return parts[-1]

    def _names(self) -> tuple[str, ...]:
        """Read ``(a, b COMMENT 'x')``; return the names."""
        self.skip("(")
        names = [self.identifier()]
        while True:
            if self.skip("COMMENT"):
                self.index += 1
            elif self.skip(","):
                names.append(self.identifier())
            elif self.skip(")"):
                return tuple(names)
            else:
                raise self.unexpected(",", ")")

    def _query(self, kind: str, read: Callable[[Sequence[Token]], Query]) -> Query:
        at = self.here
        if not self.skip("AS"):
            if self.peek() in ("USING", "OPTIONS", "WITH", "ON", "COMMENT", "TBLPROPERTIES"):
                raise unsupported(f"{self.peek()} of a temporary {kind.lower()}", at)
            raise self.unexpected("AS")
        rest = self.tokens[self.index :]
        if not rest:
            raise syntax_error("nothing follows AS", self.here, ("a query",))
        return read(rest)

    def _table(self, name: str) -> tuple[tuple[str, ...], Query]:
        """Read the columns' names, () if the query's names are used, and the query."""
        if self.peek() != "(":
            return (), self._query("TABLE", self._readers.query)
        start, columns = self.here, self._definitions()
        if self.peek() == "AS":
            if any(kind for _, kind in columns):
                raise unsupported("types beside AS", start, f"write CREATE TEMP TABLE {name} AS …")
            return tuple(each for each, _ in columns), self._query("TABLE", self._readers.query)
        if self.index < len(self.tokens):
            raise self.unexpected("AS", "the end of the statement")
        for each, kind in columns:
            if not kind:
                raise syntax_error(f'the column "{each}" has no type', start, ("a type",))
        names = [each.replace('"', '""') for each, _ in columns]
        made = ", ".join(
            f'CAST(NULL AS {kind}) AS "{each}"'
            for each, (_, kind) in zip(names, columns, strict=True)
        )
        try:
            query = self._readers.columns(f"SELECT {made} WHERE false")
        except Error as error:
            raise syntax_error(f"columns of {name}: {error}", start) from error
        return (), replace(query, given=(None, 0))

    def _definitions(self) -> list[tuple[str, str]]:
        """Read ``(a INTEGER, b VARCHAR NOT NULL)``: names, and types as written; "" for no type."""
        self.skip("(")
        found: list[tuple[str, str]] = []
        while True:
            name = self.identifier()
            found.append((name, self._type(self.until())))
            if self.skip(")"):
                return found
            if not self.skip(","):
                raise self.unexpected(",", ")")

    def _type(self, tokens: Sequence[Token]) -> str:
        words = [token.word for token in tokens]
        end = next((i for i, word in enumerate(words) if word in _CONSTRAINTS), len(tokens))
        if any(word in _RULES for word in words[end:]):
            raise unsupported("a rule for a column", tokens[end], "give its name and type")
        if not tokens[:end]:
            return ""
        return self.sql[tokens[0].start : tokens[end - 1].stop]


_CONSTRAINTS: Final = (
    "NOT", "NULL", "PRIMARY", "UNIQUE", "CHECK", "DEFAULT", "REFERENCES", "COLLATE", "GENERATED",
    "COMMENT", "CONSTRAINT",
)  # fmt: skip
# A table without rows satisfies every rule; these provide values for new rows.
_RULES: Final = ("DEFAULT", "GENERATED", "COLLATE")
