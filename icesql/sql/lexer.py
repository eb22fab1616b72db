"""SQL text in, tokens out: the default dialect is split as DuckDB splits it.

Texts of other dialects are parsed by sqlglot, and its tokenizer splits them: the words of its
tokens become tokens here, each with the sqlglot token that it is part of.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Collection, Iterator, Sequence
from typing import Any, Final

from icesql.errors import ProgrammingError, SqlSyntaxError, nearest
from icesql.frozen import Frozen
from icesql.sql.keywords import KEYWORDS, word_map, word_set
from icesql.sql.positions import syntax_error, unsupported

# Kinds of tokens: a string in single quotes, a quoted name, another kind of string (with escapes,
# in dollars, X'00'), a word, a number and a sign.
TEXT: Final = "text"
NAME: Final = "name"
OTHER: Final = "other"
WORD: Final = "word"
NUMBER: Final = "number"
SIGN: Final = "sign"
SPACE: Final = "space"
COMMENT: Final = "comment"
OPENING: Final = ("(", "[", "{")
CLOSING: Final = (")", "]", "}")

# Characters that DuckDB reads as a space outside quotes and line comments, and those it skips.
SPACES: Final = "\u00a0\u2000-\u200d\u202f\u205f\u2060\u3000\ufeff"
_BLANKS: Final = rf" \t\n\r\f\v{SPACES}"
_SIGNS: Final = r"!\"#%&'()*+,\-./:;<=>?@\[\\\]^`{|}~"
_BEYOND_ASCII: Final = "\\x80-\U0010ffff"
_TAG: Final = f"[A-Za-z_{_BEYOND_ASCII}][A-Za-z0-9_{_BEYOND_ASCII}]*"
_PLAIN: Final = "'(?:[^']|'')*+'"
_ESCAPED: Final = r"'(?:[^'\\]|\\.|'')*+'"
_DOLLARS: Final = rf"\$(?P<tag>{_TAG})?+\$.*?\$(?(tag)(?P=tag))\$"
_LINE: Final = r"--[^\n\r]*"
_BACKTICKS: Final = "`(?:[^`]|``)*+`"
_NAMES: Final = rf'"(?:[^"]|"")*+"|{_BACKTICKS}'
_NUMBER: Final = (
    "0[xXbBoO][0-9a-fA-F_]+"
    r"|(?:[0-9][0-9_]*+\.?[0-9_]*|\.[0-9][0-9_]*+)(?:[eE][+-]?[0-9]+)?"
)
_WORD: Final = rf"[^{_BLANKS}{_SIGNS}$0-9][^{_BLANKS}{_SIGNS}]*+"
_ARROWS: Final = (
    r"->>|->|=>|::|:=|<=>|<->|<=|>=|<>|!=|==|\|\||\|>|\*\*|//|<@|@>|~~"
    rf"""|(?!\$(?:{_TAG})?\$)[^'"`]"""
)
_DUCKDB: Final = (
    (SPACE, f"[{_BLANKS}]+"),
    (COMMENT, rf"{_LINE}|/\*"),
    (TEXT, _PLAIN),
    (NAME, _NAMES),
    (OTHER, rf"[eE]{_ESCAPED}|[xXbBnN]{_PLAIN}|{_DOLLARS}"),
    (NUMBER, _NUMBER),
    (WORD, _WORD),
    (SIGN, _ARROWS),
)
SPARK_NAMES: Final = word_set("spark databricks hive")
# Other dialects' quoting. Spark's pieces follow SqlBaseLexer.g4; any other character is a sign.
_QUOTING: Final[dict[str, dict[str, str]]] = {
    "snowflake": {TEXT: _ESCAPED},
    "spark": {
        SPACE: r"[ \t\r\n]+",
        COMMENT: r"--(?:\\\n|[^\r\n])*|/\*",
        TEXT: rf"""[rR]'[^']*'|[rR]"[^"]*"|{_ESCAPED}|"(?:[^"\\]|\\.|"")*+\"""",
        NAME: _BACKTICKS,
        OTHER: "(?!)",
        NUMBER: r"\d\w*",
        WORD: r"\w+",
        SIGN: r"""=>|->|\|>|[^'"`]""",
    },
}
_BRACKETS: Final = re.compile(r"/\*|\*/")


@functools.cache
def _piece(dialect: str, is_ascii: bool) -> re.Pattern[str]:
    """Return the pattern of a piece of text in the dialect; its group's name is the kind."""
    own = _QUOTING.get("spark" if dialect in SPARK_NAMES else dialect, {})
    kinds = (f"(?P<{kind}>{own.get(kind, pattern)})" for kind, pattern in _DUCKDB)
    pattern = "(?s)" + "|".join(kinds)
    if is_ascii:
        # Compiling the sets of non-ASCII characters takes a tenth of the time of a short command.
        pattern = pattern.replace(SPACES, "").replace(_BEYOND_ASCII, "")
    return re.compile(pattern)


# The dialects whose functions are tested. Every other accepted name is an alias or a variant of
# one of them.
PROMISED: Final = ("duckdb", "spark", "trino", "snowflake")
_KIN: Final = {
    "": "duckdb",
    "icesql": "duckdb",
    "databricks": "databricks",
    "hive": "hive",
    "presto": "trino",
    # Athena's queries are Trino's; sqlglot's own class passes each statement to a parser of Trino
    # or Hive that it creates itself.
    "athena": "trino",
}


class Token(Frozen, gc=False):
    """A token from the character ``start`` to before ``stop``.

    ``text`` is a string or name without its quotes, anything else as it is written. ``word`` is the
    same in upper case for tokens without quotes, "" for those with quotes. An inserted token, such
    as the SELECT before a condition, has no length. ``given`` is sqlglot's token of other dialects.
    """

    kind: str
    text: str
    start: int
    stop: int
    word: str = ""
    given: Any = None

    @property
    def is_name(self) -> bool:
        """True for a quoted name, and for a word that is not a keyword."""
        return self.kind == NAME or (self.kind == WORD and self.text.lower() not in KEYWORDS)

    def like(self, text: str, kind: str = "") -> Token:
        """Return another token with the same span."""
        word = "" if kind in _QUOTED else text.upper()
        return Token(kind or kind_of(text), text, self.start, self.stop, word)


Tokens = Sequence[Token]
# The start and the end of a part: offsets in a text, or indexes of tokens.
Span = tuple[int, int]
_QUOTED: Final = (TEXT, NAME, OTHER)


def word_at(text: str, place: int) -> Token:
    """Return a word or sign to insert at an offset."""
    return Token(kind_of(text), text, place, place, text.upper())


def kind_of(text: str) -> str:
    """Return WORD or SIGN."""
    return WORD if text[:1].isalpha() or text[:1] == "_" else SIGN


def words_at(text: str, place: int) -> list[Token]:
    """Return words and signs, separated by blanks in ``text``, to insert at an offset."""
    return [word_at(each, place) for each in text.split()]


class Dialect(Frozen):
    """A dialect: its name in sqlglot, and whether its spelling is DuckDB's."""

    name: str
    is_own: bool


def reading(name: str | None) -> Dialect:
    """Return the dialect of ``connect(dialect=name)``; None is the default.

    Raises ProgrammingError for a dialect that is not promised, naming those that are.
    """
    name = promised_name(name)
    if name in PROMISED or name in _KIN:
        return Dialect(name, name == "duckdb")
    hint = nearest(name, [each for each in (*PROMISED, *_KIN) if each], ";")
    raise ProgrammingError(
        f'icesql does not read the SQL dialect "{name}"{hint} it reads duckdb, spark (also called '
        "databricks and hive), trino (presto, athena) and snowflake"
    )


def promised_name(name: str | None) -> str:
    """Return the promised dialect for a name or alias: trino for athena."""
    given = (name or "").lower()
    return _KIN.get(given, given)


def tokenize(sql: str, dialect: Dialect) -> list[Token]:
    """Return the tokens of SQL text, without blanks and comments.

    Raises SqlSyntaxError for a quote or comment that does not end, and for too many brackets.
    """
    if not dialect.is_own:
        from icesql.sql.parser.dialect import split

        return split(sql, dialect)
    found, depth = [], 0
    for token in tokens_in(sql):
        found.append(token)
        if token.kind == SIGN:
            depth = max(depth + (token.word in OPENING) - (token.word in CLOSING), 0)
            if depth > MOST_LEVELS:
                raise too_deep(token.start)
    return found


# The maximum depth of brackets and CASE: far more than fits into Python's default limit of 1,000
# frames, and few enough for ``with_deep_stack`` if a program raised that limit.
MOST_LEVELS: Final = 300


def too_deep(offset: int | None) -> SqlSyntaxError:
    """Return the error for brackets, functions, CASE or subqueries nested too deeply."""
    return syntax_error(
        "the statement is nested too deeply here; name its inner parts in a WITH clause", offset
    )


def tokens_in(
    sql: str, at: int = 0, stop: int | None = None, dialect: str = "duckdb"
) -> Iterator[Token]:
    """Yield the tokens between two offsets of a text, lazily."""
    for kind, start, end in pieces(sql, at, stop, dialect):
        if kind in (SPACE, COMMENT):
            continue
        text = sql[start:end]
        if kind in (TEXT, NAME) and text[0] in "'\"`":
            text = text[1:-1].replace(text[0] * 2, text[0])
        elif kind == NUMBER:
            text = text.replace("_", "")
        yield Token(kind, text, start, end, "" if kind in _QUOTED else text.upper())


def pieces(
    sql: str, at: int = 0, stop: int | None = None, dialect: str = "duckdb"
) -> Iterator[tuple[str, int, int]]:
    """Yield kind, start and end of every piece between two offsets, with blanks and comments.

    Raises SqlSyntaxError for a quote or comment that does not end.
    """
    stop = len(sql) if stop is None else stop
    match_at = _piece(dialect, sql.isascii()).match
    while at < stop:
        match = match_at(sql, at)
        if match is None:
            raise syntax_error(_UNFINISHED.get(sql[at], "unterminated string literal"), at)
        kind, start, at = str(match.lastgroup), at, match.end()
        if kind == COMMENT and sql[start] == "/":
            at = end_of_comment(sql, start)
        yield kind, start, at


def with_plain_blanks(sql: str) -> str:
    """Return a text in DuckDB's spelling with a space for each Unicode blank outside quotes.

    DuckDB replaces them by shorter spaces, and its release 2.0.0 counts offsets after that. It does
    not change comments up to the end of a line.
    """
    if sql.isascii() or not re.search(f"[{SPACES}]", sql):
        return sql
    parts = [(kind, sql[start:end]) for kind, start, end in pieces(sql)]
    return "".join(
        part if kind not in (SPACE, COMMENT) or part[0] == "-" else re.sub(f"[{SPACES}]", " ", part)
        for kind, part in parts
    )


_UNFINISHED: Final = {'"': "unterminated quoted name", "`": "unterminated quoted name"}


def end_of_comment(sql: str, start: int) -> int:
    """Return the end of the block comment that begins at ``start``; such comments nest."""
    depth = 0
    for found in _BRACKETS.finditer(sql, start):
        depth += 1 if found[0] == "/*" else -1
        if depth == 0:
            return found.end()
    raise syntax_error("unterminated comment", start)


def span_of(tokens: Tokens) -> Span:
    """Return the offsets of the first character and of the end of some tokens."""
    return tokens[0].start, tokens[-1].stop


def closing(tokens: Tokens, first: int) -> int:
    """Return the index of the bracket that closes the one at ``first``; the end without one."""
    return outer(tokens, first + 1, ())


def outer(tokens: Tokens, first: int, words: Collection[str]) -> int:
    """Return the index of the first of ``words`` from ``first`` on, outside brackets.

    Without one, return the end of the brackets around ``first``, or of the text.
    """
    depth = 0
    for index in range(first, len(tokens)):
        word = tokens[index].word
        if depth == 0 and (word in CLOSING or word == ";" or word in words):
            return index
        depth += (word in OPENING) - (word in CLOSING)
    return len(tokens)


def before(tokens: Tokens, last: int, words: Collection[str]) -> int:
    """Return the index of the last of ``words`` up to ``last``, outside brackets; else -1."""
    depth = 0
    for index in range(last, -1, -1):
        word = tokens[index].word
        depth -= word in OPENING
        if depth == 0 and word in words:
            return index
        if depth < 0:
            break
        depth += word in CLOSING
    return -1


def phrase(tokens: Tokens, index: int) -> str:
    """Return the word at ``index``, with the BY of GROUP BY and its like."""
    words = [each.word for each in tokens[index : index + 2]]
    return " ".join(words) if words[1:] == ["BY"] else words[0]


# Checks on tokens alone: clauses that sqlglot drops, and hints that it does not interpret.

# Tokens after which a clause has ended: an operand cannot start with them.
ENDS_CLAUSE: Final = word_set(
    "; ) ] } FROM WHERE HAVING QUALIFY LIMIT JOIN UNION EXCEPT INTERSECT ON AS , THEN SELECT"
)

_NEEDS_MORE: Final = word_map("""
ON = a condition
USING = (
WHERE = a condition
HAVING = a condition
QUALIFY = a condition
BY = a column
IN = (
""")
_AFTER_COMMA: Final = ENDS_CLAUSE - {
    "FROM", ")", "]", "}", "SELECT",
    "THEN", "LIMIT", "AS",
}  # fmt: skip
# Older sqlglot reads ``a NOT`` as ``NOT a``.
_AFTER_NOT: Final = ENDS_CLAUSE | word_set("AND OR = <> < > <= >= END ELSE WHEN")
# Tokens that an item must follow, not a comma.
_BEFORE_ITEM: Final = word_set("SELECT DISTINCT , ( [ { FROM BY")


def ends_clause(tokens: Tokens, index: int, words: Collection[str] = ENDS_CLAUSE) -> bool:
    """True if no operand can start at ``index``: a clause begins or ends there."""
    word = tokens[index].word if index < len(tokens) else ";"
    if word in ("GROUP", "ORDER"):
        return index + 1 < len(tokens) and tokens[index + 1].word == "BY"
    return word in words


def check_tokens(tokens: Tokens) -> None:
    """Refuse incomplete clauses that sqlglot drops: an empty ON, USING, PARTITION BY, EXCLUDE.

    ``tokens`` are those of one statement. Raises SqlSyntaxError.
    """
    for index, token in enumerate(tokens):
        kind = token.word
        following = tokens[index + 1] if index + 1 < len(tokens) else None
        wanted = _NEEDS_MORE.get(kind)
        if wanted and ends_clause(tokens, index + 1):
            raise _nothing_follows(tokens, index, wanted)
        if kind == "," and following is not None and following.word == kind:
            raise syntax_error('unexpected ","', following, ("an expression",))
        if kind == "," and index and tokens[index - 1].word in _BEFORE_ITEM:
            raise syntax_error('unexpected ","', token, ("an expression",))
        if kind == "," and ends_clause(tokens, index + 1, _AFTER_COMMA):
            raise _nothing_follows(tokens, index, "another item")
        if kind == "NOT" and ends_clause(tokens, index + 1, _AFTER_NOT):
            raise _nothing_follows(tokens, index, "a condition")
        if kind == "USING" and [each.word for each in tokens[index + 1 : index + 3]] == ["(", ")"]:
            raise syntax_error("USING () names no column", token.start, ("a column",))
        if (
            kind == "*"
            and following is not None
            and following.word in ("EXCLUDE", "REPLACE", "RENAME")
            and ends_clause(tokens, index + 2)
        ):
            raise _nothing_follows(tokens, index + 1, "(")


_COMMANDS_IN_FROM: Final = ("SHOW", "DESCRIBE", "DESC", "SUMMARIZE", "EXPLAIN")


def check_commands_in_from(tokens: Tokens) -> None:
    """Refuse ``FROM (SHOW TABLES)``, which sqlglot parses as a table with an alias.

    Also refuse ``FROM FROM t``, which it parses as a query. Raises UnsupportedSqlError,
    SqlSyntaxError.
    """
    for before, token in itertools.pairwise(tokens):
        if token.word == "FROM" == before.word:
            raise syntax_error(f'unexpected "{token.text}"', token, ("a table",))
    for index in range(2, len(tokens) - 1):
        token = tokens[index]
        if (
            tokens[index - 1].word == "("
            and tokens[index - 2].word in ("FROM", "JOIN", ",")
            and token.word in _COMMANDS_IN_FROM
            and tokens[index + 1].word not in (")", ".")
        ):
            word = token.word
            hint = f"run {word} as a statement of its own"
            raise unsupported(f"{word} as a table", token, hint)


def _nothing_follows(tokens: Tokens, index: int, wanted: str) -> Exception:
    token = tokens[index]
    offset = tokens[index + 1].start if index + 1 < len(tokens) else token.stop
    shown = phrase(tokens, index - (token.word == "BY"))
    return syntax_error(f"nothing follows {shown}", offset, (wanted,))


# Words that are not a name, and after which no table ends.
_NO_NAME: Final = ENDS_CLAUSE | word_set(
    "BY GROUP ORDER DISTINCT ALL CASE WHEN ELSE AND OR NOT USING WITH IN LIKE BETWEEN IS"
)


def is_name(token: Token) -> bool:
    """True if a token can be the last part of a table's name."""
    if token.kind == WORD:
        return token.word not in _NO_NAME
    return token.kind == NAME or (token.kind == TEXT and token.text.replace("_", "a").isalnum())
