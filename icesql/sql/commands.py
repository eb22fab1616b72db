"""Statements other than queries, parsed from tokens: EXPLAIN, SHOW, DESCRIBE, SET, COPY …"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec.structs import replace
from sqlglot import exp
from sqlglot.tokens import Token, TokenType

from icesql.sql.acceptance import CHANGES_ROWS, PIVOT_WORDS, QUERY_WORDS
from icesql.sql.positions import offset_of, syntax_error, unsupported
from icesql.sql.show_statements.in_from import begins_comparison
from icesql.sql.show_statements.words import SHOWN, read_show
from icesql.sql.statement import (
    Describe,
    Explain,
    Query,
    ResetSetting,
    SetSetting,
    SetSnapshotTime,
    SetVariable,
    ShowNamespaces,
    ShowOfTable,
    ShowRefs,
    ShowSnapshots,
    ShowTables,
    Statement,
    TableReference,
    Use,
)

EXPLAIN_FORMATS = ("text", "json", "tree", "html")
_EXPLAIN_OPTIONS = ("FORMAT", "ANALYZE", "ENGINE")
# What a query in parentheses begins with.
_IN_PARENTHESES = (
    "SELECT",
    "WITH",
    "FROM",
    "VALUES",
    "TABLE",
    "SUMMARIZE",
    "PIVOT",
    "UNPIVOT",
    "(",
)
ReadQuery = Callable[[Sequence[Token]], Query]


def read_command(tokens: Sequence[Token], sql: str, read_query: ReadQuery) -> Statement:
    """The statement that begins with one of acceptance's COMMAND_WORDS.

    ``sql`` is the text of the tokens, ``read_query`` parses the tokens of a query. Raises
    SqlSyntaxError, UnsupportedSqlError.
    """
    reader = _Reader(tokens, sql, read_query)
    match reader.word():
        case "PREPARE" | "EXECUTE" | "DEALLOCATE":
            from icesql.sql.show_statements.prepared import read_prepared

            return read_prepared(tokens, sql, read_query)
        case "EXPLAIN":
            return reader.explain()
        case "SHOW":
            return reader.show()
        case "SET":
            return reader.set()
        case "COPY":
            from icesql.sql.parser.copy_to import read_copy

            return read_copy(
                tokens, read_query, lambda part: _Reader(part, sql, read_query).table_query("COPY")
            )
        case "RESET" if reader.is_word("VARIABLE"):
            reader.word()
            variable = SetVariable(".".join(reader.name()).lower(), None)
            reader.end()
            return variable
        case "RESET":
            name = "snapshot_time" if reader.snapshot_time() else reader.setting_name()
            reader.end()
            return ResetSetting(None if name.upper() == "ALL" else name)
        case "DIFF":
            return reader.diff_summary()
        case "USE":
            reader.skip("SCHEMA", "NAMESPACE", "DATABASE")
            parts = reader.name()
            reader.end()
            return Use(parts)
        case _:
            return reader.describe()


class _Reader:
    def __init__(self, tokens: Sequence[Token], sql: str, read_query: ReadQuery) -> None:
        self._tokens, self._sql, self._read_query = tokens, sql, read_query
        self._index = 0

    # ------------------------------------------------------------ statements

    def explain(self) -> Explain:
        analyze, engine, format_name, file = False, False, "text", None
        while True:
            if self.skip("ANALYZE"):
                analyze = True
            elif file is None and self.is_word("FILE"):
                self.word()
                file = self._text()
            elif self._peek().upper() == "(" and self._peek(1).upper() not in _IN_PARENTHESES:
                self.word()
                while not self.skip(")"):
                    match self.word():
                        case "ANALYZE":
                            analyze = True
                        case "ENGINE":
                            engine = True
                        case "FORMAT":
                            format_name = self.word().lower()
                        case ",":
                            pass
                        case word:
                            raise self._unexpected(word, (*_EXPLAIN_OPTIONS, ")"))
            elif self._peek().upper() in ("EXTENDED", "FORMATTED", "VERBOSE", "CODEGEN", "COST"):
                word = self._peek().upper()
                raise unsupported(f"EXPLAIN {word}", self._here(), "use EXPLAIN or EXPLAIN ANALYZE")
            else:
                break
        if format_name not in EXPLAIN_FORMATS:
            hint = f"use {', '.join(EXPLAIN_FORMATS[:-1]).upper()} or {EXPLAIN_FORMATS[-1].upper()}"
            what = f"EXPLAIN (FORMAT {format_name.upper()})"
            raise unsupported(what, self._tokens[0].start, hint)
        rest = self._tokens[self._index :]
        if not rest:
            raise syntax_error("nothing follows EXPLAIN", self._here(), ("a query",))
        if self._index > 1 and rest[0].text.upper() in CHANGES_ROWS:
            what = f"EXPLAIN with options of {rest[0].text.upper()}"
            raise unsupported(what, rest[0], "EXPLAIN alone shows a change WITH SCHEMA EVOLUTION")
        for option, given in (("(ENGINE)", engine), ("FILE", file is not None)):
            if given and (analyze or format_name != "text" or (engine and file is not None)):
                start = self._tokens[0].start
                raise unsupported(f"EXPLAIN {option} with other options", start, "use them apart")
        form = "engine" if engine else format_name
        return Explain(self._read_query(rest), analyze, form, file)

    def show(self) -> Statement:
        at = self._here()
        match self.word():
            case "TABLES":
                namespace = self.name() if self.skip("FROM", "IN") else None
                return self._ended(ShowTables(namespace, self.like()))
            case "SCHEMAS" | "NAMESPACES" | "DATABASES":
                parent = self.name() if self.skip("FROM", "IN") else None
                return self._ended(ShowNamespaces(parent, self.like()))
            case "SNAPSHOTS":
                extended = self.is_word("EXTENDED") and bool(self.word())
                self.skip("FROM", "IN", "OF")
                return ShowSnapshots(self.table("SHOW SNAPSHOTS"), extended)
            case "REFS":
                self.skip("FROM", "IN", "OF")
                return ShowRefs(self.table("SHOW REFS"))
            case "":
                raise syntax_error("nothing follows SHOW", at, SHOWN)
            case word:
                return read_show(self, word, at)

    def diff_summary(self) -> ShowOfTable:
        """DIFF SUMMARY table BETWEEN version AND version, which reads as DIFF."""
        from icesql.sql.show_statements.differences import check_compared

        self._index += 1  # SUMMARY
        tokens = [self._tokens[0], *self.rest]
        check_compared(tokens)
        query = self._read_query(tokens)
        self._check_one_table("DIFF SUMMARY", query, self._here())
        reference = query.references[0]
        if reference.changes is not None and reference.changes.keys:
            raise unsupported("KEYED BY in DIFF SUMMARY", reference.offset, "it compares no rows")
        return ShowOfTable("DIFF SUMMARY", reference)

    def describe(self) -> Statement:
        is_table = self.skip("TABLE")
        if not is_table and self.is_word("QUERY"):
            self.word()
        words = (*QUERY_WORDS, "TABLE", *PIVOT_WORDS)
        is_query = self._peek().upper() in words or begins_comparison(self.rest)
        if not is_table and is_query:
            return replace(self._read_query(self._tokens[self._index :]), about="DESCRIBE")
        what = self._peek().upper()
        if what in ("EXTENDED", "FORMATTED", "DETAIL", "HISTORY") and self.is_word(what):
            self.word()
            what = "EXTENDED" if what == "FORMATTED" else what
            return ShowOfTable(what, self.table(f"DESCRIBE {what}"))
        for word in ("NAMESPACE", "SCHEMA", "DATABASE"):
            if self._peek().upper() == word and self._peek(1) not in ("", ".", ";"):
                hint = f"SHOW TABLES FROM {self._peek(1)} lists its tables"
                raise unsupported(f"DESCRIBE {word}", self._here(), hint)
        return Describe(self.table("DESCRIBE"))

    def snapshot_time(self) -> bool:
        """Step over SNAPSHOT TIME, if they come next."""
        found = self._peek().upper() == "SNAPSHOT" and self._peek(1).upper() == "TIME"
        self._index += 2 if found else 0
        return found

    def _time_of_snapshots(self) -> SetSnapshotTime | ResetSetting:
        """The time after ``SET SNAPSHOT TIME =``; DEFAULT is none."""
        rest = self.rest
        if not rest:
            raise syntax_error("nothing follows SET SNAPSHOT TIME =", self._here(), ("a time",))
        if len(rest) == 1 and rest[0].text.upper() in ("DEFAULT", "NONE", "NULL"):
            return ResetSetting("snapshot_time")
        at = self._tokens[1].start  # no text stands there
        words = ("t", "TIMESTAMP", "AS", "OF")
        clause = [Token(TokenType.VAR, word, 1, 1, at, at) for word in words]
        query = self.table_query("SET SNAPSHOT TIME", given=[*clause, *rest])
        travel = query.references[0].travel
        assert travel is not None
        return SetSnapshotTime(travel)

    def set(self) -> SetSetting | SetSnapshotTime | ResetSetting | SetVariable:
        self.skip("SESSION")
        if self.is_word("VARIABLE") and self._peek(1) not in ("=", "TO"):
            return self._variable()
        if self._peek().upper() == "TIME" and self._peek(1).upper() == "ZONE":
            self._index += 2
            self.skip("=", "TO")
            return SetSetting("timezone", self._value("SET TIME ZONE"))
        name = "SNAPSHOT TIME" if self.snapshot_time() else self.setting_name()
        if not self.skip("=", "TO", ":="):
            raise syntax_error(f"nothing is given to {name}", self._here(), ("=", "TO"))
        if name.lower() in ("snapshot time", "snapshot_time", "snapshot-time"):
            return self._time_of_snapshots()
        return SetSetting(name, self._value(f"SET {name} ="))

    def _variable(self) -> SetVariable:
        """SET VARIABLE name = constant."""
        self.word()
        at, name = self._here(), ".".join(self.name())
        if not self.skip("=", "TO", ":="):
            raise syntax_error(f"nothing is given to {name}", self._here(), ("=", "TO"))
        start, rest = self._here(), self.rest
        if not rest:
            raise syntax_error(f"nothing follows SET VARIABLE {name} =", start, ("a constant",))
        opening = Token(TokenType.SELECT, "SELECT", 1, 1, at, at)
        query = self._read_query([opening, *rest])
        items = query.tree.expressions
        used = {part for part, value in query.tree.args.items() if value}
        value = items[0].unalias() if len(items) == 1 and used == {"expressions"} else None
        if value is None or not all(isinstance(node, _CONSTANT) for node in value.walk()):
            hint = "give it a constant: 3, 'a', true, NULL, DATE '2026-01-31'"
            raise unsupported("SET VARIABLE to anything else than a constant", start, hint)
        return SetVariable(name.lower(), value)

    # ------------------------------------------------------------ pieces

    def word(self) -> str:
        """The next token in upper case, and step over it; "" at the end."""
        word = self._peek().upper()
        self._index += 1
        return word

    def skip(self, *words: str) -> str:
        """Step over the next token if it is one of the words."""
        token = self._tokens[self._index] if self._index < len(self._tokens) else None
        if token is None or token.token_type in (TokenType.STRING, TokenType.IDENTIFIER):
            return ""
        if token.text.upper() not in words:
            return ""
        self._index += 1
        return token.text.upper()

    def name(self) -> tuple[str, ...]:
        """A dotted name of one or more parts."""
        parts = []
        while True:
            token = self._token()
            if token is None or not _is_name(token):
                raise self._unexpected(self._peek(), ("a name",))
            parts.append(token.text)
            self._index += 1
            if not self.skip("."):
                return tuple(parts)

    def setting_name(self) -> str:
        """The name of a setting: words joined by dots or dashes."""
        start = self._here()
        text = ".".join(self.name())
        while self.skip("-"):
            text += "-" + ".".join(self.name())
        if not text:
            raise syntax_error("a setting has a name", start, ("a name",))
        return text

    def end(self) -> None:
        """Raises SqlSyntaxError unless all tokens are used."""
        if self._index < len(self._tokens):
            raise self._unexpected(self._peek(), ("the end of the statement",))

    def _ended(self, statement: Statement) -> Statement:
        self.end()
        return statement

    def is_word(self, word: str) -> bool:
        """Whether the next token is this word and not the name of a table: a name follows it."""
        token = self._token()
        if token is None or token.token_type in (TokenType.STRING, TokenType.IDENTIFIER):
            return False
        after = self._peek(1).upper()
        return token.text.upper() == word and after not in _AFTER_TABLE

    def _text(self) -> str:
        token = self._token()
        if token is None or token.token_type != TokenType.STRING:
            raise self._unexpected(self._peek(), ("a text",))
        self._index += 1
        return token.text

    def like(self) -> str | None:
        """The pattern of LIKE or ILIKE, both in any case; None without one."""
        if not self.skip("LIKE", "ILIKE"):
            return None
        return self._text()

    def _value(self, after: str) -> str:
        rest = self._tokens[self._index :]
        if not rest:
            raise syntax_error(f"nothing follows {after}", self._here(), ("a value",))
        if len(rest) == 1:
            return rest[0].text
        if any(token.token_type in (TokenType.STRING, TokenType.IDENTIFIER) for token in rest):
            raise self._unexpected(rest[1].text, ("the end of the statement",), rest[1].start)
        # 512 MB, 1.5GiB, -1, Europe/Berlin, +02:00: as written, without the spaces around it.
        return self._sql[rest[0].start : rest[-1].end + 1]

    def table(self, what: str, stop: int | None = None) -> TableReference:
        """The one table that the tokens up to ``stop`` name. Raises SqlSyntaxError otherwise."""
        reference = self.table_query(what, stop).references[0]
        if reference.changes is not None or reference.shown is not None:
            raise syntax_error(f"{what} takes one table", reference.offset, ("a table",))
        return reference

    def table_query(self, what: str, stop: int | None = None, given: Sequence[Token] = ()) -> Query:
        """``SELECT * FROM`` the one table that the tokens name. Raises SqlSyntaxError."""
        rest = given or self._tokens[self._index : stop]
        if not rest:
            raise syntax_error(f"nothing follows {what}", self._here(), ("a table",))
        at = rest[0].start
        opening = [
            Token(token_type=kind, text=text, line=1, col=1, start=at, end=at)
            for kind, text in (
                (TokenType.SELECT, "SELECT"),
                (TokenType.STAR, "*"),
                (TokenType.FROM, "FROM"),
            )
        ]
        query = self._read_query([*opening, *rest])
        self._check_one_table(what, query, at)
        return query

    def _check_one_table(self, what: str, query: Query, at: int) -> None:
        """Raises SqlSyntaxError for a query of anything but all columns of one table."""
        used = {name for name, value in query.tree.args.items() if value}
        if len(query.references) != 1 or used - {"expressions", "from_"}:
            raise syntax_error(f"{what} takes one table", at, ("a table",))
        for table in query.tree.find_all(exp.Table):
            alias = table.args.get("alias")
            if alias is None or alias.this is None:
                continue
            place = offset_of(alias.this)
            # A name that stands in the text: not the one that each table is given.
            if place is not None and place != offset_of(table):
                raise syntax_error(
                    f'unexpected "{alias.name}": {what} takes one table and no column or alias',
                    place,
                    ("the end of the statement",),
                )

    @property
    def rest(self) -> Sequence[Token]:
        """The tokens that are left."""
        return self._tokens[self._index :]

    def _token(self) -> Token | None:
        return self._tokens[self._index] if self._index < len(self._tokens) else None

    def _peek(self, ahead: int = 0) -> str:
        index = self._index + ahead
        return self._tokens[index].text if index < len(self._tokens) else ""

    def _here(self) -> int:
        token = self._token()
        return token.start if token is not None else self._tokens[-1].end + 1

    def _unexpected(
        self, word: str, expected: tuple[str, ...], offset: int | None = None
    ) -> Exception:
        problem = f'unexpected "{word}"' if word else "unexpected end of the statement"
        return syntax_error(problem, self._here() if offset is None else offset, expected)


_CONSTANT = (exp.Literal, exp.Neg, exp.Boolean, exp.Null, exp.Cast, exp.DataType, exp.DataTypeParam)
# What follows a table: a word before it is the table's name.
_AFTER_TABLE = ("", ".", ";", "@", "VERSION", "TIMESTAMP", "FOR", "AT", "BEFORE")


def _is_name(token: Token) -> bool:
    if token.token_type == TokenType.IDENTIFIER:
        return True
    return token.token_type != TokenType.STRING and token.text[:1].replace("_", "a").isalpha()
