"""Messages about unexpected words: a likely correction, what to write instead, what may follow."""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from icesql.errors import (
    ColumnNotFoundError,
    Error,
    SqlSyntaxError,
    TableNotFoundError,
    UnsupportedSqlError,
    nearest,
    similar_names,
)
from icesql.sql.grammar import TRANSLATED, sections, table_rows
from icesql.sql.keywords import (
    COMMAND_WORDS,
    NO_COLUMN,
    PIVOT_WORDS,
    QUERY_WORDS,
    TABLE_WORDS,
    word_set,
)
from icesql.sql.lexer import WORD, Token, Tokens, before, check_tokens, ends_clause
from icesql.sql.parser.depth import too_many_terms
from icesql.sql.positions import syntax_error, unsupported
from icesql.sql.trees import exp

if TYPE_CHECKING:
    from sqlglot.errors import ParseError


# ------------------------------------------------------------------ reserved words
# icesql's own dialect reads them as a column name only in double quotes.


# Usually a mistake, not a column: these need a second occurrence that is not a column.
_CLAUSES: Final = word_set("select from where as on and or not limit for")
# Words before a column, except those that may also precede such a word as a clause.
_BEFORE_COLUMNS: Final = word_set(", ( select where and or not by on")
_MOST_TOKENS: Final = 500


def check_name(name: str, offset: int | None, sql: str) -> None:
    """Raise UnsupportedSqlError for a new column with a reserved word as its unquoted name."""
    if offset is None or name.lower() not in NO_COLUMN or not sql[offset : offset + 1].isalpha():
        return
    raise UnsupportedSqlError(
        f"{name} as the name of a column",
        hint=f'it is a word of SQL, and queries need quotes for it: write "{name}", or rename it',
        offset=offset,
    )


def advice_to_quote(error: SqlSyntaxError, sql: str) -> str:
    """Return advice to quote a reserved word at or before an error, if the text then parses."""
    from icesql.sql.lexer import reading, tokenize
    from icesql.sql.parse import parses

    assert error.offset is not None
    try:
        tokens = tokenize(sql, reading(None))
    except Error:
        return ""
    if len(tokens) > _MOST_TOKENS:
        return ""
    bare = [
        each
        for each, after in zip(tokens, [*tokens[1:], None], strict=True)
        if each.text.lower() in NO_COLUMN and sql[each.start : each.start + 1].isalpha()
        # GROUP BY, not a column of this name.
        if each.word != "BY" and (after is None or after.word != "BY")
    ]
    columns = [
        each
        for left, each in itertools.pairwise(tokens)
        if each in bare and _is_column(left.text.lower(), each.text.lower())
    ]
    before = [each for each in tokens if each.start <= error.offset][-2:]
    for token in reversed(before):
        word = token.text.lower()
        same = [each for each in bare if each.text.lower() == word]
        if token not in columns or (word in _CLAUSES and len(same) < 2):
            continue
        for quoted in (same, [token], columns):
            text = sql
            for each in reversed(quoted):
                start, end = each.start, each.start + len(each.text)
                text = f'{text[:start]}"{text[start:end]}"{text[end:]}'
            if parses(text):
                return f'a column of the name {token.text}, a word of SQL, is "{token.text}"'
    return ""


def _is_column(left: str, word: str) -> bool:
    """True if a reserved word is at a place for a column; a misplaced clause seldom is."""
    return word not in _CLAUSES or (word != "select" and left in _BEFORE_COLUMNS)


# ------------------------------------------------------------------ unexpected words


_BEGINNINGS: Final = ("SELECT", "WITH", "EXPLAIN", "SHOW", "SET")
_TRAVEL: Final = ("FOR VERSION AS OF", "FOR TIMESTAMP AS OF")
# Shorter words resemble too many keywords; the length of a keyword for a three-letter word may
# differ by one.
_SHORTEST_MISSPELT: Final = 3
_MOST_EXPECTED: Final = 8
# What people type into a shell.
_SHELL_WORDS: Final = {
    "EXIT": "in the shell, \\q or Ctrl-D leaves",
    "QUIT": "in the shell, \\q or Ctrl-D leaves",
    "HELP": "in the shell, \\? lists its commands",
    ".": "in the shell, \\? lists its commands and \\d the tables",
    "\\": "commands with a backslash are of the shell, which opens without -c, -f and a pipe; "
    "in SQL there are SHOW TABLES and DESCRIBE t",
}
_JOIN_WORDS: Final = ("INNER", "OUTER", "LEFT", "RIGHT", "FULL", "SEMI", "ANTI")
# An earlier mistake may be up to this many words before the one that DuckDB reports.
_NEAR: Final = 3
_QUERY_LISTED: Final = ["IN", "(", "SELECT"]


def no_statement(tokens: Tokens) -> SqlSyntaxError | UnsupportedSqlError:
    """Return the error for tokens whose first word begins no statement."""
    first, word = tokens[0], tokens[0].text.upper()
    if word in _SHELL_WORDS:
        return syntax_error(f'"{first.text}" is no SQL statement; {_SHELL_WORDS[word]}', first)

    words = [*QUERY_WORDS[:-1], *TABLE_WORDS, *COMMAND_WORDS, *refusals("statements")]
    hint = nearest(word, words)
    problem = f'unexpected "{first.text}" at the start of a statement{hint}'
    return syntax_error(problem, first, () if hint else _BEGINNINGS)


def mistake(
    reason: SqlSyntaxError | UnsupportedSqlError,
    tokens: Tokens,
    sql: str,
    is_cut_off: Callable[[], bool],
) -> SqlSyntaxError | UnsupportedSqlError:
    """Return an error of DuckDB's parser in ``tokens`` with icesql's own message.

    ``is_cut_off``: whether the text is an incomplete query. DuckDB then reports the last word.
    """
    place = reason.offset
    if place is None:
        return _statement(reason, tokens)
    at_end = place >= tokens[-1].start and is_cut_off()
    before = [token for token in tokens if token.start < place]
    # Words of a composed query are in another order than in the statement.
    here = (number for number, token in enumerate(tokens) if token.start == place)
    index = len(tokens) if at_end else next(here, len(before))
    try:
        check_tokens(tokens)
    except SqlSyntaxError as error:
        nearest = before[-_NEAR:][0].start if before else 0
        if error.offset is None or error.offset >= nearest:
            return error
    if at_end and (last := tokens[-1].word) in ("ORDER", "GROUP"):
        return syntax_error(f"nothing follows {last}", tokens[-1], ("BY",))
    token = tokens[index] if index < len(tokens) else None
    refused = _refused_clause(token, index, tokens) or _join_without_condition(index, tokens)
    if refused is not None:
        return refused
    return _unexpected(token, tokens[-1].stop if at_end else place, tokens, sql)


def _statement(
    reason: SqlSyntaxError | UnsupportedSqlError, tokens: Tokens
) -> SqlSyntaxError | UnsupportedSqlError:
    """Return the error for a whole statement that DuckDB's parser refuses without an offset."""
    words = [token.word for token in tokens]
    if isinstance(reason, SqlSyntaxError):
        if "expression depth" in reason.problem:
            return too_many_terms(tokens)
        for index, word in enumerate(words if "selection list" in reason.problem else ()):
            index += words[index + 1 : index + 2] == ["DISTINCT"]
            following = tokens[index + 1] if index + 1 < len(tokens) else None
            if word == "SELECT" and ends_clause(tokens, index + 1):
                place = tokens[index].stop if following is None else following.start
                return syntax_error("SELECT without a column", place, ("a column",))
        return reason
    for index, word in enumerate(words):
        if word in PIVOT_WORDS and "ON" in words[index:]:
            listed = [n for n in range(index, len(words)) if words[n : n + 3] == _QUERY_LISTED]
            column = listed[0] - 1 if listed else words.index("ON", index) + 1
            return _unlisted(tokens[column])
    return reason if words[0] in QUERY_WORDS else unsupported(words[0], tokens[0])


def _refused_clause(token: Token | None, index: int, tokens: Tokens) -> UnsupportedSqlError | None:
    """Return the error for a clause of other systems that DuckDB's parser does not know."""
    words = [each.word for each in tokens[max(index - 2, 0) : index + 3]]
    here = words[min(index, 2) :]
    match here[:2]:
        case ["INTO", *_]:
            return unsupported("SELECT INTO", token)
        case ["FOR", "UPDATE" | "SHARE"]:
            return unsupported("FOR UPDATE and FOR SHARE", token)
        case ["@", name]:
            table, word = tokens[index - 1].text, tokens[index + 1].text
            shown = word
            if name in ("BRANCH", "TAG") and here[2:3] == ["("]:
                word = tokens[index + 3].text
                shown += f"({word})"
            what = f"{table}@{shown} or {table}${shown} as a table name"
            hint = f"write {table} FOR VERSION AS OF '{word}', or quote the name"
            return unsupported(what, tokens[index - 1], hint)
        case ["WITH", "("]:
            return unsupported("table hints", token)
    if words[:3] == _QUERY_LISTED and any(each.word in PIVOT_WORDS for each in tokens):
        return _unlisted(tokens[index - 3])
    return None


def _unlisted(column: Token) -> UnsupportedSqlError:
    from icesql.sql.show import LISTED

    return unsupported("PIVOT without a list of values", column, LISTED)


def _join_without_condition(index: int, tokens: Tokens) -> SqlSyntaxError | None:
    """Return the error for a JOIN that another clause follows instead of a condition."""
    following = tokens[index] if index < len(tokens) else None
    if not (ends_clause(tokens, index) or (following and following.word in _JOIN_WORDS)):
        return None
    first = before(tokens, index - 1, ("ON", "USING", "JOIN"))
    if first in (-1, index - 1) or tokens[first].word != "JOIN":
        return None
    while first and tokens[first - 1].word in _JOIN_WORDS:
        first -= 1
    expected = ("ON", "USING", "CROSS JOIN")
    return syntax_error("a JOIN without a condition", tokens[first], expected)


def parse_error(
    error: ParseError, tokens: Tokens, sql: str
) -> SqlSyntaxError | UnsupportedSqlError:
    """Return sqlglot's error as icesql's, at the unexpected token."""
    details: dict[str, Any] = dict(error.errors[0]) if error.errors else {}
    offset, token = details.get("icesql_offset"), details.get("icesql_token")
    if offset is None:
        offset = tokens[-1].stop
    if token is not None:
        token = next((each for each in tokens if each.start == offset), token)
    description = str(details.get("description") or "")
    found = _arguments(description, offset, tokens)
    expecting = description.startswith("Expecting ")
    wanted = (description.removeprefix("Expecting "),) if expecting else ()
    return found or _unexpected(token, offset, tokens, sql, wanted)


def _unexpected(
    token: Token | None,
    offset: int,
    tokens: Tokens,
    sql: str,
    wanted: tuple[str, ...] = (),
) -> SqlSyntaxError:
    """Return the error for an unexpected token (None: the end); ``wanted`` is a fallback."""
    found = _misspelt_keyword(tokens, offset, sql) or _travel(token, tokens)
    if found is not None:
        return found
    problem = f'unexpected "{token.text}"' if token else "unexpected end of the statement"
    from icesql.sql.grammar import expected_after

    word = token.word if token else ""
    expected = tuple(each for each in expected_after(sql[tokens[0].start : offset]) if each != word)
    near = similar_names(token.text, expected, 1) if token else ()
    if near and near[0].isupper():
        problem += f"; did you mean {near[0]}?"
        expected = ()
    if not expected and not near:
        expected = wanted
    return syntax_error(problem, offset, expected[:_MOST_EXPECTED])


def _travel(token: Token | None, tokens: Tokens) -> SqlSyntaxError | None:
    """Return the error for FOR and AS OF that do not begin a time-travel clause."""
    if token is None or not token.word or token not in tokens:
        return None
    index = tokens.index(token)
    words = [each.word for each in tokens[index : index + 4]]
    if words[0] == "FOR":
        shown = " ".join(each.text for each in tokens[index : index + 2])
        return syntax_error(f'"{shown}" begins no clause of time travel', token, _TRAVEL)
    if words[:2] == ["AS", "OF"] and index:
        before = tokens[index - 1]
        shown = f"{before.text} {token.text} {tokens[index + 1].text}"
        return syntax_error(f'"{shown}" is no clause of time travel', before, _TRAVEL)
    return None


def _arguments(description: str, offset: int, tokens: Tokens) -> SqlSyntaxError | None:
    """Return the error for a call with too few or too many arguments, at its name."""
    too_many = description.startswith("The number of provided arguments")
    if not too_many and not _misses_argument(description):
        return None
    depth, name = 0, None
    before = [token for token in tokens if token.start <= offset]
    for index in range(len(before) - 1, 0, -1):
        kind = before[index].word
        depth += (kind == ")") - (kind == "(")
        if depth <= 0 and kind == "(":
            name = before[index - 1]
            break
    if name is None or not name.text[:1].isalpha():
        return None
    amount = "too many" if too_many else "too few"
    return syntax_error(f"{amount} arguments of {name.text}()", name)


def _misses_argument(description: str) -> bool:
    """True if sqlglot reports a missing part of a function, not of an operator."""
    found = re.search(r"missing for <class '[\w.]*\.(\w+)'>", description)
    name = found[1] if found else ""
    return any(
        each.__name__ == name and not issubclass(each, exp.Binary) for each in exp.ALL_FUNCTIONS
    )


def _misspelt_keyword(tokens: Tokens, offset: int, sql: str) -> SqlSyntaxError | None:
    """Return the error for a word before ``offset`` that was read as a name, nearly a keyword."""
    before = [token for token in tokens if token.stop <= offset]
    if len(before) < 2 or before[-1].kind != WORD or not before[-1].is_name:
        return None
    word = before[-1]
    if len(word.text) < _SHORTEST_MISSPELT:
        return None
    from icesql.sql.grammar import completions

    keywords, name_may_follow = completions(sql[tokens[0].start : word.start])
    near = similar_names(word.text, keywords, 1)
    if not near or word.word in keywords:
        return None
    if len(word.text) == _SHORTEST_MISSPELT and abs(len(near[0]) - len(word.text)) > 1:
        return None
    if not name_may_follow:
        return syntax_error(f'unexpected "{word.text}"; did you mean {near[0]}?', word)
    return syntax_error(f'"{word.text}" is taken for a name; did you mean {near[0]}?', word)


# ------------------------------------------------------------------ remedies
# For words and functions of other systems. Meaning comes before spelling: ``nvl`` is ``coalesce``,
# not the most similar name, ``ntile``.


# The hints for a function that a dialect lacks.
SIMILAR: Final = "did you mean {}()?"
NO_ROW: Final = "it is not in the table of its functions"
# Longer remedies help less than the name of the dialect that has the function.
_SHORT: Final = 60
_SYSTEMS: Final = ("spark", "snowflake", "trino")


def meaning(name: str, dialect: str = "") -> str:
    """Return the hint for a function that ``dialect`` lacks and other systems have; "" for none.

    ``dialect`` is one of function_table's TRANSLATED, "" for icesql's own.
    """
    name = name.lower()
    text = _sections()["functions"].get(name, "")
    if dialect:
        same = _forms(dialect)
        found = next((same[each] for each in (text, *_texts(name)) if each in same), "")
        return f"did you mean {found}()?" if found and found != name else ""
    short = (each for each in _texts(name) if len(each) <= _SHORT and "error(" not in each)
    text = text or next(short, "")
    if text:
        return f"write {text}"
    has = next((each for each in _SYSTEMS if name in {row.name for row in table_rows(each)}), "")
    return f"{has.capitalize()} has it: --dialect {has}, connect(dialect='{has}')" if has else ""


def _texts(name: str) -> list[str]:
    """Return remedies from the tables of other systems, with the arguments named a, b, c."""
    return [
        _lettered(row.text)
        for each in _SYSTEMS
        for row in table_rows(each)
        if row.name == name and row.sign != "@"
    ]


@functools.cache
def _forms(dialect: str) -> dict[str, str]:
    """Return the functions of a dialect by their equivalents in DuckDB's spelling."""
    rows = table_rows(dialect) if dialect in TRANSLATED else ()
    return {_lettered(row.text): row.name for row in reversed(rows) if row.sign != "@"}


def _lettered(text: str) -> str:
    return re.sub(r"\$(\d)", lambda found: "abcdefghi"[int(found[1]) - 1], text)


@functools.cache
def _sections() -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    for section, rows in sections("remedies.txt").items():
        parts = (f"{row} ".partition(" = ") for row in rows)
        found[section] = {words: remedy.rstrip() for words, _, remedy in parts}
    return found


def refusals(section: str) -> dict[str, str]:
    """Return what there is instead of each word of the section "statements" or "created"."""
    rows = _sections()[section].items()
    return {word: instead for words, instead in rows for word in words.split("|")}


def add_remedy(error: Error, sql: str, *, own: bool) -> None:
    """Add to an error what to write instead of the words at its offset, if a remedy is known.

    ``own``: the statement is in icesql's own dialect.
    """
    offset = getattr(error, "offset", None)
    if not isinstance(offset, int) or 'write "' in getattr(error, "hint", ""):
        return
    if own and isinstance(error, UnsupportedSqlError):
        called = re.fullmatch(r"the function (\w+)\(\)", error.construct)
        if called and (means := meaning(called[1])):
            _say(error, means)
            return
    for section in ("any", "own") if own else ("any",):
        for words, remedy in _sections()[section].items():
            for found in _pattern(words).finditer(sql, max(offset - 200, 0), offset + 200):
                if found.start() <= offset <= found.end():
                    _say(error, found.expand(remedy))
                    return
    if own and isinstance(error, SqlSyntaxError) and (advice := advice_to_quote(error, sql)):
        _say(error, advice)


@functools.cache
def _pattern(words: str) -> re.Pattern[str]:
    text = words.replace(" ", r"\s+").replace(r"\s+?", r"\s*")
    return re.compile(rf"(?<![\w.]){text}" if words[0].isalpha() else text, re.IGNORECASE)


def _say(error: Error, remedy: str) -> None:
    match error:
        case SqlSyntaxError():
            error.problem, error.expected = f"{error.problem.partition('; ')[0]}; {remedy}", ()
        case UnsupportedSqlError():
            error.hint = remedy
        case TableNotFoundError() | ColumnNotFoundError():
            error.similar, error.hint = (), remedy
        case _:
            return
    error.args = (error._message(),)
