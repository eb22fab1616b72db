"""Statements other than queries, parsed from tokens: EXPLAIN, SHOW, DESCRIBE, SET, COPY …"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from icesql.errors import ProgrammingError, UnsupportedSqlError, near_or_all
from icesql.file_format import FileFormat, compressed_by_ending, format_of_path, named_format
from icesql.sql.cursor import TokenCursor, read_constant
from icesql.sql.keywords import CHANGES_ROWS, PIVOT_WORDS, QUERY_WORDS, TABLE_WORDS
from icesql.sql.lexer import (
    CLOSING,
    NUMBER,
    OPENING,
    TEXT,
    WORD,
    Token,
    Tokens,
    closing,
    span_of,
    words_at,
)
from icesql.sql.positions import offset_of, syntax_error, unsupported
from icesql.sql.show import check_compared, compared_at
from icesql.sql.statement import (
    Copy,
    Explain,
    Query,
    ResetSetting,
    SetSetting,
    SetSnapshotTime,
    SetVariable,
    Shown,
    Statement,
    TableReference,
    Use,
)
from icesql.sql.trees import exp, parts_of

if TYPE_CHECKING:
    from icesql.sql.parse import Parse


_EXPLAIN_FORMATS = ("text", "json", "tree", "html")
_EXPLAIN_OPTIONS = ("FORMAT", "ANALYZE", "ENGINE")
_NAMESPACES = ("SCHEMA", "NAMESPACE", "DATABASE")
# Words that begin a query in parentheses.
_IN_PARENTHESES = (*QUERY_WORDS, *TABLE_WORDS, "PIVOT", "UNPIVOT")


def read_command(tokens: Tokens, parse: Parse) -> Statement:
    """Parse a statement that begins with one of COMMAND_WORDS.

    Raises SqlSyntaxError, UnsupportedSqlError.
    """
    reader = Commands(tokens, parse.sql, parse)
    match reader.take():
        case "PREPARE" | "EXECUTE" | "DEALLOCATE":
            from icesql.sql.session_objects import read_prepared

            return read_prepared(tokens, parse)
        case "EXPLAIN":
            return reader.explain()
        case "SHOW":
            from icesql.sql.show import read_show

            return read_show(reader)
        case "SET":
            return reader.set()
        case "COPY":
            return read_copy(tokens, parse)
        case "RESET" if reader.is_word("VARIABLE"):
            reader.take()
            variable = SetVariable(".".join(reader.name()).lower(), None)
            reader.end()
            return variable
        case "RESET":
            name = "snapshot_time" if reader.skip("SNAPSHOT TIME") else reader.key()
            reader.end()
            return ResetSetting(None if name.upper() == "ALL" else name)
        case "DIFF":
            return reader.diff_summary()
        case "USE":
            reader.either(*_NAMESPACES)
            parts = reader.name()
            reader.end()
            return Use(parts)
        case _:
            return reader.describe()


class Commands(TokenCursor):
    """Reads one statement, starting after its first word."""

    # ------------------------------------------------------------ statements

    def explain(self) -> Explain:
        """Read EXPLAIN of a query."""
        analyze, engine, format_name, file = False, False, "text", None
        while True:
            if self.skip("ANALYZE"):
                analyze = True
            elif file is None and self.is_word("FILE"):
                self.take()
                file = self.text("a text")
            elif self.peek() == "(" and self.peek(1) not in _IN_PARENTHESES:
                self.take()
                while not self.skip(")"):
                    match self.take():
                        case "ANALYZE":
                            analyze = True
                        case "ENGINE":
                            engine = True
                        case "FORMAT":
                            format_name = self.take().lower()
                        case ",":
                            pass
                        case _:
                            self.index -= 1
                            raise self.unexpected(*_EXPLAIN_OPTIONS, ")")
            elif self.peek() in ("EXTENDED", "FORMATTED", "VERBOSE", "CODEGEN", "COST"):
                word = self.peek()
                raise unsupported(f"EXPLAIN {word}", self.here, "use EXPLAIN or EXPLAIN ANALYZE")
            else:
                break
        if format_name not in _EXPLAIN_FORMATS:
            what = f"EXPLAIN (FORMAT {format_name.upper()})"
            raise unsupported(what, self.tokens[0].start, "use TEXT, JSON, TREE or HTML")
        rest = self.following("EXPLAIN", "a query")
        if self.index > 1 and rest[0].word in CHANGES_ROWS:
            what = f"EXPLAIN with options of {rest[0].word}"
            raise unsupported(what, rest[0], "EXPLAIN alone shows a change WITH SCHEMA EVOLUTION")
        for option, given in (("(ENGINE)", engine), ("FILE", file is not None)):
            if given and (analyze or format_name != "text" or (engine and file is not None)):
                start = self.tokens[0].start
                raise unsupported(f"EXPLAIN {option} with other options", start, "use them apart")
        form = "engine" if engine else format_name
        return Explain(self.parse.any_query(rest), analyze, form, file)

    def diff_summary(self) -> Shown:
        """Read DIFF SUMMARY table BETWEEN version AND version, which is parsed as DIFF."""
        self.index += 1  # SUMMARY
        tokens = [self.tokens[0], *self.rest]
        check_compared(tokens)
        query = self.parse.any_query(tokens)
        self._check_one_table("DIFF SUMMARY", query, self.here)
        reference = query.references[0]
        if reference.changes is not None and reference.changes.keys:
            raise unsupported("KEYED BY in DIFF SUMMARY", reference.offset, "it compares no rows")
        return Shown("DIFF SUMMARY", reference)

    def describe(self) -> Statement:
        """Read DESCRIBE of a table or a query."""
        is_table = self.skip("TABLE")
        if not is_table and self.is_word("QUERY"):
            self.take()
        words = (*QUERY_WORDS, "TABLE", *PIVOT_WORDS)
        is_query = self.peek() in words or 0 in compared_at(self.rest)
        if not is_table and is_query:
            return replace(self.parse.any_query(self.rest), about="DESCRIBE")
        what = self.peek()
        if what in ("EXTENDED", "FORMATTED", "DETAIL", "HISTORY") and self.is_word(what):
            self.take()
            what = "EXTENDED" if what == "FORMATTED" else what
            return Shown(what, self.table(f"DESCRIBE {what}"))
        if what in _NAMESPACES and self.peek(1) not in ("", ".", ";"):
            hint = f"SHOW TABLES FROM {self.tokens[self.index + 1].text} lists its tables"
            raise unsupported(f"DESCRIBE {what}", self.here, hint)
        return Shown("DESCRIBE", self.table("DESCRIBE"))

    def _time_of_snapshots(self) -> Statement:
        """Read the time after ``SET SNAPSHOT TIME =``; DEFAULT resets it."""
        rest = self.following("SET SNAPSHOT TIME =", "a time")
        if len(rest) == 1 and rest[0].word in ("DEFAULT", "NONE", "NULL"):
            return ResetSetting("snapshot_time")
        at = self.tokens[1].start  # the inserted words have no text here
        given = [*words_at("t TIMESTAMP AS OF", at), *rest]
        query = self.table_query("SET SNAPSHOT TIME", given=given)
        travel = query.references[0].travel
        assert travel is not None
        return SetSnapshotTime(travel)

    def set(self) -> Statement:
        """Read SET of a setting or a variable."""
        self.skip("SESSION")
        if self.is_word("VARIABLE") and self.peek(1) not in ("=", "TO"):
            return self._variable()
        if self.skip("TIME ZONE"):
            self.either("=", "TO")
            return SetSetting("timezone", self._value("SET TIME ZONE"))
        name = "SNAPSHOT TIME" if self.skip("SNAPSHOT TIME") else self.key()
        self._assign(name)
        if name.lower() in ("snapshot time", "snapshot_time", "snapshot-time"):
            return self._time_of_snapshots()
        return SetSetting(name, self._value(f"SET {name} ="))

    def _assign(self, name: str) -> None:
        if not self.either("=", "TO", ":="):
            raise syntax_error(f"nothing is given to {name}", self.here, ("=", "TO"))

    def _variable(self) -> SetVariable:
        """Read SET VARIABLE name = constant."""
        self.take()
        name = ".".join(self.name())
        self._assign(name)
        start, rest = self.here, self.following(f"SET VARIABLE {name} =", "a constant")
        constant = read_constant(rest)
        if constant is not None and constant[1] == len(rest):
            return SetVariable(name.lower(), constant[0])
        from icesql.sql.writes.definitions import constant_query

        what = "SET VARIABLE to anything else than a constant"
        hint = "give it a constant: 3, 'a', true, NULL, DATE '2026-01-31'"
        value = constant_query(self, rest, what, hint).tree.expressions[0].unalias()
        constants = exp.Literal | exp.Neg | exp.Boolean | exp.Null | exp.Cast
        constants |= exp.DataType | exp.DataTypeParam
        if not all(isinstance(each, constants) for each in value.walk()):
            raise unsupported(what, start, hint)
        return SetVariable(name.lower(), value)

    # ------------------------------------------------------------ pieces

    def take(self) -> str:
        """Return the next token in upper case and step over it; "" at the end."""
        token = self.token
        self.index += 1
        return token.text.upper() if token is not None else ""

    def is_word(self, word: str) -> bool:
        """True if the next token is this keyword and not the name of a table: a name follows it."""
        follows = self.kind(self.index + 1) and self.peek(1) not in _AFTER_TABLE
        return self.peek() == word and bool(follows)

    def _value(self, after: str) -> str:
        rest = self.following(after, "a value")
        if len(rest) == 1:
            return rest[0].text
        if any(not token.word for token in rest):
            self.index += 1
            raise self.unexpected("the end of the statement")
        for first, second in pairwise(rest):
            apart = first.kind in (NUMBER, WORD) and first.stop < second.start
            if apart and second.kind == NUMBER:
                raise syntax_error(f'unexpected "{second.text}"', second)
        # 512 MB, 1.5GiB, -1, Europe/Berlin, +02:00: as written, without the spaces around it.
        return self.written(self.index, len(self.tokens))

    def table(self, what: str, stop: int | None = None) -> TableReference:
        """Read the one table that the tokens up to ``stop`` name. Raises SqlSyntaxError."""
        named = _named(self.tokens[self.index : stop])
        if named is not None:
            return named
        reference = self.table_query(what, stop).references[0]
        if reference.changes is not None or reference.shown is not None:
            raise syntax_error(f"{what} takes one table", reference.offset, ("a table",))
        return reference

    def table_query(self, what: str, stop: int | None = None, given: Tokens = ()) -> Query:
        """Parse ``SELECT * FROM`` the one table that the tokens name. Raises SqlSyntaxError."""
        rest = given or self.tokens[self.index : stop]
        if not rest:
            raise syntax_error(f"nothing follows {what}", self.here, ("a table",))
        at = rest[0].start
        query = self.parse.any_query([*words_at("SELECT * FROM", at), *rest])
        self._check_one_table(what, query, at)
        return query

    def _check_one_table(self, what: str, query: Query, at: int) -> None:
        """Raise SqlSyntaxError for a query of anything but all columns of one table."""
        if len(query.references) != 1 or parts_of(query.tree) - {"expressions", "from_"}:
            raise syntax_error(f"{what} takes one table", at, ("a table",))
        for table in query.tree.find_all(exp.Table):
            alias = table.args.get("alias")
            if alias is None or alias.this is None:
                continue
            place = offset_of(alias.this)
            # An alias in the text, not the generated one at the table's own offset.
            if place is not None and place != offset_of(table):
                raise syntax_error(
                    f'unexpected "{alias.name}": {what} takes one table and no column or alias',
                    place,
                    ("the end of the statement",),
                )


# Tokens that follow a table's name: a word before them is the name, not a keyword.
_AFTER_TABLE = (".", ";", "@", "VERSION", "TIMESTAMP", "FOR", "AT", "BEFORE")


def _named(tokens: Tokens) -> TableReference | None:
    """Return the table if the tokens are only its name; None otherwise."""
    names = tokens[::2]
    if (
        len(tokens) % 2 == 0
        or not all(each.is_name and each.text for each in names)
        or any(each.word != "." for each in tokens[1::2])
    ):
        return None
    parts = tuple(each.text for each in names)
    if any(each.startswith("__") or each.lower() == "information_schema" for each in parts):
        return None
    start, stop = span_of(tokens)
    return TableReference(0, parts, offset=start, end=stop, given_alias=parts[-1])


# ------------------------------------------------------------------ COPY … TO


_ENDINGS: Final = ("csv", "tsv", "json", "jsonl", "parquet", "arrow")


def read_copy(tokens: Tokens, parse: Parse) -> Copy:
    """Read the COPY statement in ``tokens``, the first of which is COPY.

    Raises SqlSyntaxError, UnsupportedSqlError, and ProgrammingError for the value of an option.
    """
    to = _to(tokens)
    source = tokens[1:to]
    if not source:
        raise syntax_error("nothing follows COPY", tokens[0].stop, ("a query", "a table"))
    path, rest = tokens[to + 1], tokens[to + 2 :]
    if source[0].text == "(" and closing(source, 0) == len(source) - 1:
        query = parse.any_query(source[1:-1])
    elif source[-1].text == ")" and source[0].text != "(" and not _is_call(source[0]):
        raise unsupported("COPY table (columns)", source[0].start, "COPY (SELECT columns …) TO")
    else:
        # An engine does not run the bare name of a table as a text.
        query = Commands(source, parse.sql, parse).table_query("COPY")
        query = replace(query, user_text=None, spark=None)
    form, overwrite = _options(path.text, rest, tokens[-1].stop)
    return Copy(query, path.text, form, overwrite)


def _is_call(token: Token) -> bool:
    return token.text.lower().startswith("iceberg_")


def _to(tokens: Tokens) -> int:
    """Return the index of the last TO outside brackets that precedes a string literal."""
    depth, found, other = 0, None, None
    for place, token in enumerate(tokens):
        depth += (token.word in OPENING) - (token.word in CLOSING)
        if depth == 0 and token.word == "TO":
            after = tokens[place + 1] if place + 1 < len(tokens) else None
            if after is not None and after.kind == TEXT:
                found = place
            else:
                other = token if after is None else after
        is_from = depth == 0 and token.word == "FROM" and tokens[place - 1].word != "CHANGES"
        if is_from and tokens[1].word not in ("(", "SELECT"):
            if [each.kind for each in tokens[place + 1 : place + 2]] == [TEXT]:
                raise unsupported("COPY … FROM", tokens[0].start)
            raise syntax_error("COPY … FROM takes the path of a file", token.stop, ("a text",))
        if place == 1 and token.word == "INTO":
            raise unsupported("COPY INTO", tokens[0].start, "write COPY (query) TO 'file'")
    if found is not None:
        return found
    if other is not None:
        raise syntax_error("COPY … TO takes the path of a file", other.start, ("a text",))
    raise syntax_error("COPY names no file", tokens[-1].stop, ("TO 'file'",))


def _options(path: str, tokens: Tokens, end: int) -> tuple[FileFormat, bool]:
    given = list(tokens)
    if given and given[0].word == "WITH":
        given = given[1:]
    if not given:
        return _format(path, None, end), False
    if given[0].text != "(" or closing(given, 0) != len(given) - 1:
        bad = given[0] if given[0].text != "(" else given[-1]
        raise syntax_error(f'unexpected "{bad.text}" after the file', bad.start, ("(",))
    read = _pairs(given[1:-1])
    named = [(value, at) for name, value, at in read if name == "format"]
    form = _format(path, *(named[-1] if named else (None, end)))
    overwrite = False
    for name, value, at in read:
        try:
            if name == "overwrite":
                overwrite = FileFormat("csv").with_option("header", value).option("header")
            elif name != "format":
                form = form.with_option(name, value)
        except UnsupportedSqlError as error:
            error.offset = at
            raise
    return compressed_by_ending(form, path), overwrite


def _format(path: str, name: Any, at: int) -> FileFormat:
    if name is None:
        by_ending = format_of_path(path)
        # As in DuckDB, where json is one object per line.
        name = by_ending if by_ending in _ENDINGS else "csv"
    if str(name).lower() == "json":
        name = "jsonl"
    if not isinstance(name, str) or name.lower() not in _ENDINGS:
        hint = near_or_all(str(name).lower(), _ENDINGS)
        raise UnsupportedSqlError(f"COPY … TO in the format {name}", hint=hint, offset=at)
    return compressed_by_ending(named_format(name), path)


def _pairs(tokens: Tokens) -> list[tuple[str, Any, int]]:
    """Return name, value and offset of each option."""
    pairs: list[tuple[str, Any, int]] = []
    words = TokenCursor(tokens, "")
    for part in words.listed(words.until):
        if not part:
            raise syntax_error("an option is missing", tokens[-1].stop if tokens else None)
        name, value = part[0], part[1:]
        if value and value[0].text == "=":
            value = value[1:]
        pairs.append((name.text.lower(), _value(name, value), name.start))
    return pairs


def _value(name: Token, tokens: Tokens) -> Any:
    match list(tokens):
        case []:
            return True
        case [Token(kind="number", text=text)] if text.isdigit():
            return int(text)
        case [Token(word="*")]:
            return ("*",)
        case [Token(word="TRUE" | "FALSE", text=text)]:
            return text.lower() == "true"
        case [Token(word=word, text=text)] if word not in ("$", "?"):
            return text
        case [Token(text="("), *inner, Token(text=")")]:
            return tuple(token.text for token in inner if token.text != ",")
    raise ProgrammingError(f"the option {name.text.upper()}: its value has to be a literal")
