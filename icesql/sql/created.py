"""CREATE TEMP VIEW and TEMP TABLE, DROP VIEW and TABLE, read from tokens."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from icesql.errors import Error
from icesql.quoting import quoted
from icesql.sql.cursor import TokenCursor
from icesql.sql.keywords import word_set
from icesql.sql.lexer import Tokens
from icesql.sql.macros.macro import TEMPORARY
from icesql.sql.parameters import Parameters
from icesql.sql.positions import syntax_error, unsupported
from icesql.sql.statement import CreateTemporary, Drop, Query, Statement

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
