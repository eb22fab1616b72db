"""SQL text in, statements out: tokens, sqlglot's tree, acceptance, parameters, table references."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from copy import copy
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, TypeVar

from msgspec import DecodeError
from msgspec.structs import replace

from icesql.context import check_reading, read_in_time
from icesql.errors import (
    Error,
    InternalError,
    ProgrammingError,
    SqlSyntaxError,
    UnsupportedSqlError,
    placing,
    position,
    similar_names,
)
from icesql.sql.grammar import SPARK, TRANSLATED
from icesql.sql.keywords import (
    CHANGES_ROWS,
    COMMAND_WORDS,
    COPY_HINT,
    EXPLAIN_HINT,
    EXPLAINED_WRITES,
    FILES_HINT,
    PIVOT_WORDS,
    QUERY_WORDS,
    TABLE_WORDS,
    WRITE_WORDS,
    word_list,
)
from icesql.sql.lexer import (
    SPARK_NAMES,
    TEXT,
    WORD,
    Token,
    Tokens,
    closing,
    promised_name,
    reading,
    span_of,
    tokenize,
    too_deep,
    with_plain_blanks,
    word_at,
)
from icesql.sql.parameters import Parameters
from icesql.sql.parser.literal_list import Cut, take_lists, without_lists
from icesql.sql.positions import of_files, syntax_error, unsupported
from icesql.sql.show import (
    COMPARED,
    PREFIX,
    check_compared,
    compared_at,
    is_summary,
    marked,
    read_as_from,
    statements_in_from,
)
from icesql.sql.statement import Explain, MacroStatement, Query, Shown, Statement
from icesql.stack import with_deep_stack

if TYPE_CHECKING:
    from sqlglot import exp

    from icesql.sql.edited_text import Sources
    from icesql.sql.macro import Macros

Read = TypeVar("Read", bound=Statement)
_NUMBERS_ARE_SECONDS = ("spark", "databricks")
# Words that may begin a form of another system; see ``macros.other_spellings``.
_OTHER = ("FLATTEN", "ROLLUP", "CUBE")
# DuckDB's ago() reads its own clock, so that its conditions prune no file; see ``macro.AGO``.
_OF_THE_CLOCK = "ago"
# The kinds of objects that can be created, changed and dropped.
_MADE = word_list(
    "TABLE VIEW SCHEMA NAMESPACE DATABASE BRANCH TAG MACRO FUNCTION INDEX SEQUENCE "
    "TEMP TEMPORARY EXTERNAL UNIQUE"
)


def parse(
    sql: str,
    *,
    dialect: str | None = None,
    parameters: Sequence[Any] | Mapping[str, Any] | None = None,
    files: bool = False,
    copies: bool = False,
    macros: Macros | None = None,
) -> list[Statement]:
    """Return the statements of a text, in order; an empty text has none.

    ``dialect`` is a sqlglot dialect, None is icesql's own (DuckDB's spelling). ``files``: whether
    a query may read files (``read_csv('x')``, ``'x.csv'``). ``copies``: whether COPY may write
    files. ``macros`` are those that the statements may call. Raises SqlSyntaxError,
    UnsupportedSqlError, ProgrammingError, DataError.
    """
    read_all = partial(_parse_all, sql, dialect, parameters, files, copies, macros or {})

    def read() -> list[Statement]:
        with placing(sql):
            try:
                return with_deep_stack(read_all)
            except RecursionError:
                raise too_deep(None) from None
            except (SqlSyntaxError, UnsupportedSqlError) as error:
                from icesql.sql.syntax_errors import add_remedy

                add_remedy(error, sql, own=reading(dialect).is_own)
                raise
            except (Error, OSError, ImportError, MemoryError):
                raise
            except (StopIteration, DecodeError, UnicodeError) as error:
                # An odd character, after which DuckDB's offsets do not agree with the text.
                raise SqlSyntaxError("the statement cannot be read as SQL") from error
            except Exception as error:
                raise InternalError(
                    f"a bug in icesql: reading the statement raised {type(error).__name__}: {error}"
                ) from error

    return read_in_time(read, len(sql))


def parses(sql: str) -> bool:
    """True if a text in icesql's own dialect is read without an error."""
    try:
        with_deep_stack(partial(_parse_all, sql, None, None, True, True, {}))
    except Exception:
        return False
    return True


def _parse_all(
    sql: str,
    dialect: str | None,
    parameters: Sequence[Any] | Mapping[str, Any] | None,
    files: bool,
    copies: bool,
    macros: Macros,
) -> list[Statement]:
    reader = reading(dialect)
    _check_encodable(sql)
    if reader.is_own:
        sql = with_plain_blanks(sql)
    notes: dict[int, str] = {}
    if "/*+" in sql:
        from icesql.sql.other_spellings import read_hints

        sql, notes = read_hints(sql, reader.name)
    made, tokens = Parse(dialect, Parameters(parameters), files, macros).over(sql, parameters)
    check_reading(len(tokens))
    if "`" in sql:
        made, tokens = made.over(double_quoted(sql, tokens), parameters)
    statements: list[Statement] = []
    for chunk in _split(tokens):
        if chunk[0].word == "COPY":
            _check_copy(chunk, files=files, copies=copies)
        first, last = span_of(chunk)
        made.notes = tuple(note for place, note in notes.items() if first <= place < last)
        statement = made.read(chunk)
        statements.append(statement)
        if isinstance(statement, MacroStatement):
            from icesql.sql.macro import changed

            # The following statements may call it; an error in it is raised before they run.
            with suppress(ProgrammingError):
                made.macros = changed(made.macros, statement)
    made.values.finish()
    return statements


def parse_expanded(
    sql: str,
    *,
    dialect: str | None,
    given: tuple[Any, int],
    shown: Mapping[int, Shown | Query],
    files: bool,
) -> Query:
    """Parse the text after view expansion; return the ``Query`` for it.

    ``shown`` are the statements in its FROM by the offsets of their names. Raises the same errors
    as ``parse``, without line and column.
    """

    def read() -> Query:
        values = Parameters(given[0])
        values.place = given[1]
        made, tokens = Parse(dialect, values, files).over(sql)
        made.shown, made.views = shown, True
        return with_deep_stack(lambda: made.query(tokens))

    return read_in_time(read, len(sql))


def first_tokens(sql: str, dialect: str | None) -> list[Token]:
    """Return the first two tokens of a query."""
    return tokenize(sql, reading(dialect))[:2]


def query_tokens(sql: str, dialect: str | None) -> tuple[Token, Token | None, int]:
    """Return the first two tokens of a query, and its end, inside brackets around the whole.

    DuckDB drops the inner WITH of ``WITH a AS (…) (WITH b AS (…) SELECT …)``.
    """
    tokens = tokenize(sql, reading(dialect))
    outer = 0
    while tokens[outer].word == "(" and closing(tokens, outer) == len(tokens) - 1 - outer:
        outer += 1
    second = tokens[outer + 1] if outer + 1 < len(tokens) else None
    return tokens[outer], second, tokens[-outer].start if outer else len(sql)


def _first_word(tokens: Tokens) -> str:
    """Return the word that decides the kind of a statement; MERGE for WITH … MERGE."""
    first = tokens[0].word
    if first == "WITH" and any(token.word == "MERGE" for token in tokens):
        from icesql.sql.writes.merge_reading import merge_at

        return first if merge_at(tokens) is None else "MERGE"
    return first


def _is_copy_from(tokens: Tokens) -> bool:
    """True for the tokens of COPY table … FROM 'file'."""
    if tokens[0].word != "COPY":
        return False
    deciding = ("TO", "SELECT", "FROM")
    place = next((n for n, each in enumerate(tokens) if n and each.word in deciding), 0)
    if tokens[place].word != "FROM" or tokens[1].word in ("(", "INTO"):
        return False
    return [each.kind for each in tokens[place + 1 : place + 2]] == [TEXT]


def _explained(statement: Statement, at: Token) -> Statement:
    """EXPLAIN of CALL or its like, or of INSERT or MERGE WITH SCHEMA EVOLUTION.

    Raises UnsupportedSqlError for others.
    """
    from icesql.sql.writes.merge_statement import Merge
    from icesql.sql.writes.procedure_calls import CallProcedure
    from icesql.sql.writes.statements import Insert

    match statement:
        case CallProcedure():
            return replace(statement, explain=True)
        case Insert(evolves=True):
            return Explain(statement.query, write=statement)
        case Merge(evolves=True):
            return Explain(statement.source, write=statement)
    if at.word in EXPLAINED_WRITES:
        raise unsupported("EXPLAIN of this statement", at, "EXPLAIN takes a query or CALL")
    raise unsupported(at.word, at, EXPLAIN_HINT)


def _refused(first: str, tokens: Tokens) -> UnsupportedSqlError:
    """Return the error for a statement of other systems, with what to write instead."""
    from icesql.sql.syntax_errors import refusals

    second = tokens[1].word if len(tokens) > 1 else ""
    near = similar_names(second, _MADE, 1) if first in ("CREATE", "DROP", "ALTER") else ()
    if near and second not in _MADE:
        return unsupported(f"{first} {second}", tokens[1].start, f"did you mean {near[0]}?")
    words = [token.word for token in tokens[1:5]] if first == "CREATE" else []
    made = [hint for word, hint in refusals("created").items() if word in words]
    return unsupported(first, tokens[0].start, (*made, refusals("statements")[first])[0])


def _check_copy(tokens: Tokens, *, files: bool, copies: bool) -> None:
    """Refuse COPY of files that the connection may not read or write."""
    if _is_copy_from(tokens):
        if not files:
            raise of_files("COPY … FROM", tokens[0].start, FILES_HINT)
    elif not copies:
        raise of_files("COPY", tokens[0].start, COPY_HINT)


def _check_encodable(sql: str) -> None:
    """Refuse lone surrogates, which come from bytes that were decoded with a wrong encoding."""
    if sql.isascii():
        return
    try:
        sql.encode()
    except UnicodeEncodeError as error:
        raise SqlSyntaxError(
            f"{sql[error.start]!a} is a lone surrogate (half of a character)",
            position=position(sql, error.start),
        ) from None


def split_statements(sql: str, *, dialect: str | None = None) -> list[tuple[int, str]]:
    """The offset and the SQL of each statement of a text, without ``;`` and empty statements.

    Raises SqlSyntaxError for an unfinished quote or comment.
    """
    with placing(sql):
        chunks = _split(tokenize(sql, reading(dialect)))
    return [(chunk[0].start, sql[slice(*span_of(chunk))]) for chunk in chunks]


def _split(tokens: Tokens) -> list[list[Token]]:
    chunks: list[list[Token]] = [[]]
    for token in tokens:
        if token.word == ";":
            chunks.append([])
        else:
            chunks[-1].append(token)
    return [chunk for chunk in chunks if chunk]


def _put(sql: str, start: int, stop: int, word: str) -> str:
    """Return ``sql`` with a shorter word, padded with blanks, from ``start`` to ``stop``."""
    return sql[:start] + word.ljust(stop - start) + sql[stop:]


def _local_only(query: Query, word: str, at: Token, hint: str) -> Query:
    """Return a query that the Spark engine refuses for its first word."""
    if query.spark is None:
        return query
    return replace(query, spark=unsupported(f"{word} on the Spark engine", at, hint))


class Parse:
    """Reads the statements of one text, and the queries in them."""

    def __init__(
        self,
        dialect: str | None,
        values: Parameters,
        files: bool = False,
        macros: Macros | None = None,
    ) -> None:
        self.reader, self.values, self.files = reading(dialect), values, files
        self.macros: Macros = macros or {}
        given, name = (dialect or "").lower(), promised_name(dialect)
        self.spark, self.seconds = given in SPARK_NAMES, given in _NUMBERS_ARE_SECONDS
        # The dialect whose function table defines the statement's functions.
        self.translated = SPARK if self.spark else name if name in TRANSLATED else ""
        self.sql = ""
        # The long lists of literals, by the offsets of the names that replace them.
        self.lists: Mapping[int, Cut] = {}
        # The statements in FROM, by their offsets.
        self.shown: Mapping[int, Shown | Query] = {}
        self.views = False  # whether the text contains the texts of views
        self.notes: tuple[str, ...] = ()  # notes for the user, shown with the result
        self.sources: Any = None  # the origin of its parts, unless all of it is the user's

    def over(self, sql: str, given: Any = None) -> tuple[Parse, list[Token]]:
        """Return a copy for another text, and its tokens, one for each long list of literals.

        ``given`` are the values of its parameters.
        """
        same = copy(self)
        same.sql, same.lists = sql, take_lists(sql, given, self.reader)
        return same, tokenize(without_lists(sql, same.lists), self.reader)

    def alone(self, inside: str) -> Parse:
        """Return a copy for a query in a construct without parameters, such as "a view"."""
        same = copy(self)
        same.values = Parameters(None, inside)
        return same

    def composed(self, text: str, sources: Sources, *, again: bool = False) -> Query:
        """Parse a query in a text that was made from the current one, whose ``sources`` it gets.

        ``again``: the caller parses its parameters once more, in another text.
        """
        same = copy(self)
        if again:
            same.values = copy(self.values)
        return same._derived(text, sources, Parse.any_query)

    # ------------------------------------------------------------ macros and other spellings

    def read(self, tokens: Tokens) -> Statement:
        """Parse a statement after replacing its calls of macros by their bodies."""
        word = tokens[0].word
        if word in ("CREATE", "DROP"):
            from icesql.sql.macro import is_macro_word

            if is_macro_word(tokens):
                from icesql.sql.macro import read_macro

                return read_macro(tokens, self)
        if word == "PREPARE":
            # EXECUTE parses the prepared text, with the macros defined at that time.
            return self.statement(tokens)
        if self.reader.is_own:
            found = None
            words = {each.word for each in tokens}
            if not words.isdisjoint(_OTHER):
                from icesql.sql.other_spellings import other_spellings

                found = other_spellings(self.sql, tokens)
            elif not words.isdisjoint(PIVOT_WORDS):
                found = marked(self.sql, tokens)
            if found is not None:
                return self._derived(*found, Parse._expanded)
        return self._expanded(tokens)

    def check_macro(self, tokens: Tokens, name: str, before: str) -> None:
        """Raise the errors of reading a query in which the macro ``name`` is not defined.

        ``before`` are words in front of it.
        """
        alone = self.alone("a macro")
        alone.macros = {key: each for key, each in self.macros.items() if key != name.lower()}
        if not isinstance(alone._expanded(tokens, before), Query):
            raise unsupported(f"{tokens[0].word} in a macro", tokens[0], "it has a query")

    def _expanded(self, tokens: Tokens, before: str = "") -> Statement:
        """Parse a statement after macro expansion; ``before`` are words in front of it."""
        found, macros = None, self.macros
        words = {token.text.lower() for token in tokens}
        if _OF_THE_CLOCK in words and self.reader.is_own:
            from icesql.sql.macro import AGO

            macros = {_OF_THE_CLOCK: AGO, **macros}
        if not macros.keys().isdisjoint(words):
            from icesql.sql.macro_calls import expand

            found = expand(self.sql, tokens, macros, self, before)
        if found is None:
            opening = [word_at(before.strip(), tokens[0].start)] if before else []
            return self.statement([*opening, *tokens])
        return self._derived(*found, Parse.statement)

    def _derived(self, text: str, sources: Sources, read: Callable[[Parse, Tokens], Read]) -> Read:
        """Parse a text that was made from the current one; errors get offsets in the original."""
        sources = replace(sources, under=self.sources)
        with sources.placing():
            same, tokens = self.over(text)
            same.sources = sources
            return read(same, tokens)

    def tree_of(self, sql: str, tokens: Tokens) -> exp.Expr:
        """Return the tree of a query of a text, with calls of macros among its functions."""
        from icesql.sql.queries import tree_of

        same = copy(self)
        same.sql, same.lists = sql, {}
        return tree_of(same, tokens)

    # ------------------------------------------------------------ statements and queries

    def statement(self, tokens: Tokens) -> Statement:
        """Parse the tokens of one statement. Raises the same errors as ``parse``."""
        first = _first_word(tokens)
        if first in (*QUERY_WORDS, *TABLE_WORDS):
            return self.any_query(tokens)
        if first in COMPARED and not is_summary(tokens, 0):
            check_compared(tokens)
            return self.any_query(tokens)
        if first in PIVOT_WORDS and self.reader.is_own:
            return self.query(tokens)
        explained = tokens[1:] if first == "EXPLAIN" else ()
        if explained and _first_word(explained) in (*EXPLAINED_WRITES, *CHANGES_ROWS):
            return _explained(self.statement(explained), explained[0])
        if first in (*COMMAND_WORDS, *COMPARED) and not _is_copy_from(tokens):
            from icesql.sql.commands import read_command

            return read_command(tokens, self)
        if first in WRITE_WORDS:
            written = self._written(tokens)
            if written is not None:
                return written
        from icesql.sql.syntax_errors import refusals

        if first in refusals("statements"):
            raise _refused(first, tokens)
        from icesql.sql.syntax_errors import no_statement

        raise no_statement(tokens)

    def _written(self, tokens: Tokens) -> Statement | None:
        """Read a statement that changes tables or creates temporary ones; None for others."""
        if tokens[0].word in ("CREATE", "DROP"):
            from icesql.sql.session_objects import is_temporary, read_created

            if is_temporary(tokens):
                return read_created(tokens, self)
        from icesql.sql.writes.read import check_names, read_write

        written = read_write(tokens, self)
        if written is not None and self.reader.is_own:
            check_names(written, self.sql)
        return written

    def any_query(self, tokens: Tokens) -> Query:
        """Parse a query, SUMMARIZE of a query or table, or ``TABLE t``."""
        first = tokens[0]
        word = first.word
        if word not in TABLE_WORDS:
            return self.query(tokens)
        if len(tokens) == 1:
            expected = ("a table",) if word == "TABLE" else ("a table", "a query")
            raise syntax_error(f"nothing follows {word}", first.stop, expected)
        if word == "SUMMARIZE" and (
            tokens[1].word in (*QUERY_WORDS, "TABLE", *PIVOT_WORDS) or 0 in compared_at(tokens[1:])
        ):
            query = self.any_query(tokens[1:])
        else:
            query = self._table_query(tokens)
        return replace(query, about="SUMMARIZE") if word == "SUMMARIZE" else query

    def _table_query(self, tokens: Tokens) -> Query:
        """Parse ``TABLE t`` or ``SUMMARIZE t`` as ``FROM t``; other words keep their offsets."""
        first = tokens[0]
        same = copy(self)
        same.sql = _put(self.sql, first.start, first.stop, "FROM")
        opening = Token(WORD, "FROM", first.start, first.start + 4, "FROM")
        query = same.query([opening, *tokens[1:]])
        return _local_only(query, first.word, first, "write SELECT * FROM t")

    def query(self, tokens: Tokens) -> Query:
        """Parse a SELECT, PIVOT, DIFF or BLAME."""
        places = compared_at(tokens)
        if not places:
            return self._shown_query(tokens)
        same = copy(self)
        for place in places:
            token = tokens[place]
            same.sql = _put(same.sql, token.start, token.stop, "FROM")
        query = same._shown_query(read_as_from(tokens, places))
        query = replace(query, text=self.sql[slice(*span_of(tokens))])
        return _local_only(query, tokens[places[0]].word, tokens[0], "SET engine = local")

    def _shown_query(self, tokens: Tokens) -> Query:
        found = statements_in_from(tokens, self._in_from)
        if not found:
            return self._plain_query(tokens)
        same, rest = copy(self), list(tokens)
        same.shown = {tokens[first].start: statement for first, _, statement in found}
        for number, (first, last, _) in reversed([*enumerate(found)]):
            name, start, stop = f"{PREFIX}{number}", tokens[first].start, tokens[last].stop
            same.sql = _put(same.sql, start, stop, name)
            rest[first : last + 1] = [Token(WORD, name, start, start + len(name), name.upper())]
        return same._plain_query(rest)

    def _in_from(self, tokens: Tokens) -> Statement:
        """Parse a statement in FROM; refuse a query's parameters, which would be counted early."""
        words = [token.word for token in tokens[:2]]
        if words[0] != "SUMMARIZE" and words[1] not in QUERY_WORDS:
            return self.statement(tokens)
        return self.alone(f"{words[0]} in FROM").statement(tokens)

    def _plain_query(self, tokens: Tokens) -> Query:
        from icesql.sql.queries import plain_query

        return plain_query(self, tokens)


# Names in backticks, as in BigQuery and Spark, rewritten for dialects with double quotes.

# Text that is the same name in double quotes, and begins no comment outside them.
_NAME: Final = re.compile(r"(?!.*--)[\w .$@:\-]+")


def double_quoted(sql: str, tokens: Tokens) -> str:
    """Return ``sql`` with double quotes for backticks; offsets do not change."""
    # Backticks are signs in dialects with only double quotes, and names in the default dialect.
    ticks = [each.start for each in tokens if each.word == "`"]
    names = [each for each in tokens if each.given is None and sql[each.start] == "`"]
    letters = list(sql)
    end = -1
    for start, after in [*pairwise(ticks), *((each.start, each.stop - 1) for each in names)]:
        if start > end and _NAME.fullmatch(sql, start + 1, after):
            letters[start] = letters[after] = '"'
            end = after
    return "".join(letters)
