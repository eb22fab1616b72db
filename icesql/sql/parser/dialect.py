"""The parser of one SQL spelling with Iceberg's time travel, and positions in its source.

``icesql`` is DuckDB's spelling; any other sqlglot dialect gets the same time-travel clauses
through ``reading(name)``. sqlglot drops some clauses silently (a missing version, ``t@v1``, an
empty ON): what this parser cannot understand, it refuses at its position.
"""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING, Any, ClassVar, Final, NoReturn

from sqlglot import exp, parser, tokens
from sqlglot.dialects.dialect import Dialect
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.errors import ParseError
from sqlglot.tokenizer_core import Token, TokenType

from icesql.errors import ProgrammingError, similar_names
from icesql.sql.files import reader_of
from icesql.sql.parser.open_parser import open_class
from icesql.sql.parser.words import ENDS_CLAUSE
from icesql.sql.positions import syntax_error, unsupported

DEFAULT_DIALECT: Final = "icesql"

# Longest first, so that FOR SYSTEM TIME is not taken for something shorter.
_PHRASES: Final[tuple[tuple[tuple[str, ...], str, bool], ...]] = (
    (("FOR", "SYSTEM", "VERSION"), "VERSION", True),
    (("FOR", "SYSTEM", "TIME"), "TIMESTAMP", True),
    (("FOR", "SYSTEM_VERSION"), "VERSION", True),
    (("FOR", "SYSTEM_TIME"), "TIMESTAMP", True),
    (("FOR", "TIMESTAMP"), "TIMESTAMP", True),
    (("FOR", "VERSION"), "VERSION", True),
    (("SYSTEM_VERSION", "AS", "OF"), "VERSION", False),
    (("SYSTEM_TIME", "AS", "OF"), "TIMESTAMP", False),
    (("TIMESTAMP", "AS", "OF"), "TIMESTAMP", False),
    (("VERSION", "AS", "OF"), "VERSION", False),
    (("AS", "OF", "TIMESTAMP"), "TIMESTAMP", False),
    (("AS", "OF", "VERSION"), "VERSION", False),
    (("AT", "SNAPSHOT"), "VERSION", False),
    (("AT", "BRANCH"), "BRANCH", False),
    (("AT", "TAG"), "TAG", False),
)
_PHRASE_STARTS: Final = frozenset(words[0] for words, _, _ in _PHRASES)
_AT_KINDS: Final = {
    "VERSION": "VERSION",
    "SNAPSHOT": "VERSION",
    "TIMESTAMP": "TIMESTAMP",
    "VERSION_REF": "VERSION_REF",
    "VERSION_TAG": "VERSION_TAG",
    "BRANCH": "BRANCH",
    "TAG": "TAG",
}


if TYPE_CHECKING:
    _Parser = parser.Parser
else:
    _Parser = open_class(parser.Parser)

_ONE_AMOUNT: Final = re.compile(r"\s*[+-]?[0-9]+(\.[0-9]*)?\s*[A-Za-z]+\s*")


class TravelParser(_Parser):
    """What every reading dialect's parser gets on top of sqlglot's own."""

    # Whether 'data.parquet' may be a table.
    files = False
    # Offsets of the travel clauses consumed, so that ``parse`` can prove that none was dropped.
    travel_offsets: set[int]
    # What DuckDB's parser does not read: where the travel clauses begin and end, and the colons of
    # named parameters.
    travel_spans: dict[int, int]
    colons: list[int]
    reads_duckdb: ClassVar[bool] = False

    def reset(self) -> None:
        """Forget the statement before."""
        super().reset()
        self.travel_offsets = set()
        self.travel_spans, self.colons = {}, []

    def raise_error(self, message: str, token: Token = parser.SENTINEL_NONE) -> None:
        """As sqlglot does, with the offset of the token that did not fit."""
        at_end = not token and not self._curr
        token = token or self._curr or self._prev
        try:
            super().raise_error(message, token)
        except ParseError as error:
            if error.errors:
                error.errors[0]["icesql_offset"] = token.end + 1 if at_end else token.start
                error.errors[0]["icesql_token"] = None if at_end else token
            raise

    def _refuse(self, construct: str, offset: int, hint: str = "") -> NoReturn:
        raise unsupported(construct, offset, hint)

    def _parse_version(self) -> exp.Version | None:
        if self._curr.text.upper() not in _PHRASE_STARTS or self._curr.token_type in (
            TokenType.STRING,
            TokenType.IDENTIFIER,
        ):
            return None
        start = self._curr.start
        phrase = next((phrase for phrase in _PHRASES if self._match_text_seq(*phrase[0])), None)
        if phrase is None:
            return None
        words, kind, needs_as_of = phrase
        if needs_as_of and not self._match_text_seq("AS", "OF"):
            found = self._curr.text.upper() if self._curr else ""
            if found in ("BEFORE", "BETWEEN", "FROM", "ALL", "CONTAINED"):
                self._refuse(
                    f"{' '.join(words)} {found}",
                    start,
                    f"only {' '.join(words)} AS OF is supported",
                )
            raise syntax_error(
                f"a time-travel clause without AS OF: {' '.join(words)} {found}".rstrip(),
                self._here(),
                ("AS OF",),
            )
        first = self._here()
        value = self._parse_bitwise() if self._starts_value() else None
        if value is None:
            wanted = "a time" if kind == "TIMESTAMP" else "a snapshot id, a branch or a tag"
            raise syntax_error(
                f"nothing follows {' '.join(words)}{' AS OF' if needs_as_of else ''}",
                first,
                (wanted,),
            )
        clause = self.expression(exp.Version(this=kind, kind="AS OF", expression=value))
        self._remember(clause, start, first)
        return clause

    def _parse_historical_data(self) -> exp.HistoricalData | exp.Version | None:  # type: ignore[override]
        index, start, word = self._index, self._curr.start, self._curr.text.upper()
        quoted = self._curr.token_type in (TokenType.STRING, TokenType.IDENTIFIER)
        if word in ("AT", "BEFORE", "END") and not quoted and self._next.text == "(":
            self._advance(2)
            kind = self._curr.text.upper()
            self._advance()
            if not self._match(TokenType.FARROW):
                self._retreat(index)
                return None
            if word != "AT":
                self._refuse(f"{word} ({kind} => …)", start, "use AT (TIMESTAMP => …)")
            if kind not in _AT_KINDS:
                self._refuse(
                    f"AT ({kind} => …)", start, "use AT (VERSION => …) or AT (TIMESTAMP => …)"
                )
            first = self._here()
            value = self._parse_bitwise() if self._starts_value() else None
            if value is None:
                raise syntax_error(f"nothing follows AT ({kind} =>", first)
            clause = self.expression(
                exp.HistoricalData(this="AT", kind=_AT_KINDS[kind], expression=value)
            )
            self._remember(clause, start, first)
            if not self._match(TokenType.R_PAREN):
                raise syntax_error("unterminated AT (", self._here(), (")",))
            self.travel_spans[start] = self._prev.end + 1
            return clause
        return self._parse_version()

    def _here(self) -> int:
        return self._curr.start if self._curr else self._prev.end + 1

    def _starts_value(self) -> bool:
        return bool(self._curr) and self._curr.token_type not in ENDS_CLAUSE

    def _remember(self, clause: exp.Expr, start: int, first: int) -> None:
        clause.meta["start"] = start
        clause.meta["text"] = self.sql[first : self._prev.end + 1].strip()
        clause.meta["has_parameter"] = bool(clause.find(exp.Placeholder, exp.Parameter))
        self.travel_offsets.add(start)
        self.travel_spans[start] = self._prev.end + 1

    def _parse_placeholder(self) -> exp.Expr | None:
        start, colon = self._curr.start, self._curr.token_type == TokenType.COLON
        found = super()._parse_placeholder()
        if found is not None and colon:
            self.colons.append(start)
        return found

    def _parse_changes(self) -> exp.Changes | None:
        if self._match_text_seq("CHANGES", "(", advance=False):
            self._refuse("CHANGES (…)", self._curr.start)
        return super()._parse_changes()

    def _parse_table_part(self, schema: bool = False) -> exp.Expr | None:
        if self._curr.token_type == TokenType.STRING:
            text, start = self._curr.text, self._curr.start
            reader = reader_of(text) if self.files else None
            if reader is not None:
                self._advance()
                table = exp.Anonymous(this=reader, expressions=[exp.Literal.string(text)])
                # As DuckDB has it: the file's name up to its first dot.
                stem = text.rsplit("/", 1)[-1].partition(".")[0] or text
                table.meta.update(start=start, alias=stem)
                return table
            self._refuse(
                f"a file as a table: '{text}'",
                self._curr.start,
                f"an Iceberg table folder is read with iceberg_scan('{text}')",
            )
        return super()._parse_table_part(schema=schema)

    def _parse_table(self, *args: Any, **options: Any) -> exp.Expr | None:
        start = self._curr.start
        table = super()._parse_table(*args, **options)
        if table is None:
            return None
        table.meta.setdefault("start", start)
        if isinstance(table, exp.Table) and not table.args.get("version"):
            return table
        offset, here = self._curr.start, self._index
        if self._curr.text.upper() in _PHRASE_STARTS | {"BEFORE"} and (
            self._parse_historical_data() is not None
        ):
            if isinstance(table, exp.Table):
                self._refuse("two time-travel clauses on one table", offset)
            self._refuse(
                f"time travel on {_table_kind(table)}",
                offset,
                "put the clause after each table inside it",
            )
        self._retreat(here)
        return table

    def _parse_interval_span(
        self, this: exp.Expr, parse_function_unit: bool = True
    ) -> exp.Interval:
        text = this.name if isinstance(this, exp.Literal) and this.is_string else ""
        interval = super()._parse_interval_span(this, parse_function_unit=parse_function_unit)
        if text and interval.this.name != text and not _ONE_AMOUNT.fullmatch(text):
            # sqlglot keeps the first amount of '1 day 02:00:00' or '3 days ago' and drops the rest.
            interval.set("this", exp.Literal.string(text))
            interval.set("unit", None)
        return interval

    def _parse_type(self, *args: Any, **options: Any) -> exp.Expr | None:
        literal = self._next.token_type == TokenType.STRING
        if literal and self._curr.text.upper() == "TIMESTAMPTZ_NS":
            # A type that sqlglot does not know by name, before a literal as the others stand.
            to = exp.DataType.build("TIMESTAMPTZ_NS", udt=True)
            self._advance()
            return self.expression(exp.Cast(this=self._parse_string(), to=to))
        return super()._parse_type(*args, **options)

    def _parse_join(self, *args: Any, **options: Any) -> exp.Join | None:
        comma, start = self._curr.token_type == TokenType.COMMA, self._curr.start
        join = super()._parse_join(*args, **options)
        if join is not None and not comma and self.reads_duckdb:
            # sqlglot turns a JOIN without a condition into a comma: acceptance refuses it.
            join.meta["join_at"] = start
        return join

    def _parse_expression(self) -> exp.Expr | None:
        # DuckDB's prefix alias (a: expression) takes any word for a name, also SELECT in
        # "SELECT :parameter"; only a name can be one.
        if (
            self.reads_duckdb
            and self._next.token_type == TokenType.COLON
            and self._curr.token_type not in (TokenType.VAR, TokenType.IDENTIFIER)
        ):
            return _Parser._parse_expression(self)
        return super()._parse_expression()


def _table_kind(table: exp.Expr) -> str:
    match table:
        case exp.Subquery():
            return "a subquery"
        case exp.Unnest():
            return "UNNEST"
        case exp.Values():
            return "VALUES"
        case exp.Lateral():
            return "LATERAL"
        case _:
            return "a table function"


def _hexadecimal(reader: parser.Parser, token: Token) -> exp.Expr:
    """0xFF is a number and x'FF' is bytes in DuckDB."""
    if reader.sql[token.start] == "0":
        return exp.Literal.number(int(token.text, 16))
    return exp.HexString(this=token.text)


def _subclass(base: type[Dialect], name: str) -> type[Dialect]:
    """``base`` with the travel parser, and a tokenizer that leaves commands to icesql."""
    additions: dict[str, Any] = {
        # A command token would swallow the rest of the text up to ";", even inside quotes.
        "COMMANDS": set(),
    }
    parsing: dict[str, Any] = {}
    base_parser: Any = open_class(base.parser_class)
    if issubclass(base, DuckDB):
        # "?::" would be one operator: a parameter and a cast could not stand together.
        keywords = base.tokenizer_class.KEYWORDS
        additions["KEYWORDS"] = {word: kind for word, kind in keywords.items() if word != "?::"}
        additions["HEX_STRINGS"] = [("x'", "'"), ("X'", "'")]
        parsing["PRIMARY_PARSERS"] = {
            **base_parser.PRIMARY_PARSERS,
            TokenType.HEX_STRING: _hexadecimal,
        }
        parsing["reads_duckdb"] = True
    tokenizer = type("Tokenizer", (base.tokenizer_class,), additions)
    own_parser = type("Parser", (TravelParser, base_parser), parsing)
    # sqlglot counts subscripts from 0 in its trees, by adding to integers as far as it can tell
    # that they are: a parameter, or a map once its type is known, comes back as another element.
    # Here they stay as written, and ``parse`` marks each with what it counts from.
    counting = {"INDEX_OFFSET": 0, "icesql_subscript_base": base.INDEX_OFFSET}
    return type(name, (base,), {"Tokenizer": tokenizer, "Parser": own_parser, **counting})


Icesql = _subclass(DuckDB, "Icesql")


@functools.cache
def _reading(name: str) -> type[Dialect]:
    if name in ("", "icesql", "duckdb"):
        return Icesql
    # Athena's queries are Trino's; sqlglot's own class hands each statement to a parser of Trino
    # or Hive that it makes itself.
    name = "trino" if name == "athena" else name
    try:
        base = type(Dialect.get_or_raise(name))
    except ValueError as error:
        from sqlglot.dialects.dialect import Dialects

        near = similar_names(name, [known.value for known in Dialects if known.value])
        hint = f"; did you mean {near[0]}?" if near else ""
        raise ProgrammingError(f'unknown SQL dialect "{name}"{hint}') from error
    return _subclass(base, f"Icesql_{name}")


def reading(name: str | None) -> Dialect:
    """The dialect that reads statements of ``connect(dialect=name)``; None is ``icesql``.

    Raises ProgrammingError for a name that sqlglot does not know.
    """
    return _reading((name or DEFAULT_DIALECT).lower())()


def subscript_base(dialect: Dialect) -> int:
    """What list subscripts count from in a reading dialect: 1 in DuckDB, 0 in Spark."""
    return int(getattr(dialect, "icesql_subscript_base", 0))


def tokenize(sql: str, dialect: Dialect) -> list[Token]:
    """The tokens of SQL text. Raises SqlSyntaxError for text that does not split into tokens."""
    from sqlglot.errors import TokenError

    scanner: tokens.Tokenizer = dialect.tokenizer()
    try:
        return scanner.tokenize(sql)
    except TokenError as error:
        offset, problem = _unfinished(sql)
        raise syntax_error(problem, offset) from error


def _unfinished(sql: str) -> tuple[int | None, str]:
    """Where a quote or comment that never ends begins, and what it is.

    The offset is None if nothing is open.
    """
    index, length = 0, len(sql)
    closers = {"'": "string literal", '"': "quoted name", "`": "quoted name"}
    while index < length:
        two = sql[index : index + 2]
        if two == "--":
            end = sql.find("\n", index)
            index = length if end < 0 else end
        elif two == "/*":
            end = sql.find("*/", index + 2)
            if end < 0:
                return index, "unterminated comment"
            index = end + 2
        elif sql[index] in closers:
            end = sql.find(sql[index], index + 1)
            if end < 0:
                return index, f"unterminated {closers[sql[index]]}"
            index = end + 1
        else:
            index += 1
    return None, "cannot tokenize the statement"
