"""The dialects in which sqlglot reads statements, and their tokens.

``icesql`` is DuckDB's spelling. sqlglot's parsers run unmodified, so that they may be compiled.
Where sqlglot and icesql read the same text differently, the tokens are changed before parsing: see
``sql.other_spellings`` and ``sql.parser.travel``.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Final, cast

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.errors import ParseError, TokenError
from sqlglot.tokens import Token, TokenType

from icesql.sql.acceptance import WHOLE
from icesql.sql.grammar import SPARK
from icesql.sql.keywords import word_set
from icesql.sql.lexer import CLOSING, NAME, NUMBER, OPENING, OTHER, TEXT, WORD, kind_of, pieces
from icesql.sql.lexer import Dialect as OwnDialect
from icesql.sql.lexer import Token as OwnToken
from icesql.sql.lexer import Tokens as OwnTokens
from icesql.sql.parser.sqlglot_releases import as_newest, respelt
from icesql.sql.positions import syntax_error, unsupported

_TEXTS: Final = (TokenType.STRING, TokenType.RAW_STRING)
_SPAN: Final = re.compile(r"(?<![0-9.])-?[0-9]++(?:\.[0-9]++)?+\s*+[a-zA-Z]++")
_KINDS: Final = {
    TEXT: TokenType.STRING, NAME: TokenType.IDENTIFIER, NUMBER: TokenType.NUMBER,
}  # fmt: skip
_OWN_KINDS: Final = {
    **{kind: OTHER for kind in TokenType if kind.name.endswith("_STRING")},
    **{kind: own for own, kind in _KINDS.items()},
}


def _subclass(base: type[Dialect], name: str) -> type[Dialect]:
    """Return ``base`` with a tokenizer that does not turn commands into single tokens."""
    additions: dict[str, Any] = {
        "KEYWORDS": {
            word: kind
            for word, kind in base.tokenizer_class.KEYWORDS.items()
            # "?::" would be one operator, and a parameter could not be followed by a cast. The
            # words of a time-travel clause are one token in some releases and several in others.
            if word != "?::" and not kind.name.endswith("_SNAPSHOT")
        },
        # A command token would swallow the rest of the text up to ";", even inside quotes.
        "COMMANDS": set(),
    }
    if issubclass(base, DuckDB):
        additions["HEX_STRINGS"] = [("x'", "'"), ("X'", "'")]
    tokenizer = type("Tokenizer", (base.tokenizer_class,), additions)
    # sqlglot's trees count subscripts from 0: it shifts those that it can type as integers, so
    # that a parameter, or a map once its type is known, would select another element. Here
    # subscripts stay as written, and ``parse`` records the base on each of them.
    counting = {"INDEX_OFFSET": 0, "icesql_subscript_base": base.INDEX_OFFSET}
    # Hive would group set operations from the left; in icesql "hive" is an alias of Spark.
    grouping = {"INTERSECT_BINDS_TIGHTER_THAN_UNION_AND_EXCEPT": True}
    made: Any = type(name, (base,), {"Tokenizer": tokenizer, **counting, **grouping})
    # Releases before 30 give the new dialect a parser class of its own, without the attributes
    # that only dialects of certain names get.
    own, parser = made.parser_class, base.parser_class
    if own is not parser:
        for attribute in [each for each in vars(own) if each.isupper() and hasattr(parser, each)]:
            setattr(own, attribute, getattr(parser, attribute))
    return cast("type[Dialect]", made)


@functools.cache
def reader_of(dialect: OwnDialect) -> Any:
    """Return sqlglot's dialect for reading statements of ``dialect``."""
    base = type(Dialect.get_or_raise(dialect.name))
    return _subclass(base, f"Icesql_{dialect.name}")()


def parse_text(sql: str, dialect: OwnDialect, hidden: str | None = None) -> list[exp.Expr | None]:
    """Parse a text into sqlglot's trees; see ``parse_tokens``."""
    return _parsed(list(reader_of(dialect).tokenize(sql)), sql, reader_of(dialect), hidden)


def parse_tokens(
    tokens: OwnTokens, sql: str, dialect: OwnDialect, hidden: str | None = None
) -> list[exp.Expr | None]:
    """Parse tokens into sqlglot's trees. Raises ParseError, with "icesql_offset" in its details.

    ``hidden``: calls stay names with arguments, as ``hide_calls`` of this dialect leaves them.
    """
    reader = reader_of(dialect)
    trees = _parsed(_given(tokens, sql, reader), sql, reader, hidden)
    _check_closed(tokens)
    return trees


def _check_closed(tokens: OwnTokens) -> None:
    """Raise SqlSyntaxError for an unclosed bracket: sqlglot accepts CAST without it."""
    opened = []
    for token in tokens:
        if token.word in OPENING:
            opened.append(token)
        elif token.word in CLOSING and opened:
            opened.pop()
    if opened:
        raise syntax_error("a bracket is not closed", opened[-1].start, (")",))


def _parsed(tokens: list[Token], sql: str, reader: Any, hidden: str | None) -> list[Any]:
    tokens = _with_hidden(tokens, reader, hidden)
    parser: Any = reader.parser()
    tokens, mend = as_newest(tokens, reader)
    try:
        return [mend(tree) for tree in parser.parse(tokens, sql)]
    except ParseError as error:
        if error.errors:
            at_end = not parser._curr
            last = tokens[-1]
            details = error.errors[0]
            place = details["line"], details["col"]
            token = next((each for each in tokens if (each.line, each.col) == place), None)
            if at_end and (token is None or token is last):
                details["icesql_offset"], details["icesql_token"] = last.end + 1, None
            elif token is not None:
                details["icesql_offset"], details["icesql_token"] = token.start, token
        raise
    except IndexError as error:  # sqlglot's SHOW reads past the last token
        end = tokens[-1].end + 1
        missing = {"description": "something is missing", "line": tokens[-1].line,
                 "col": tokens[-1].col, "icesql_offset": end, "icesql_token": None}  # fmt: skip
        raise ParseError("something is missing", [missing]) from error


def _with_hidden(tokens: list[Token], reader: Any, hidden: str | None) -> list[Token]:
    if hidden is None:
        return tokens

    return hide_calls(tokens, reader, hidden)


def parse_operand(
    tokens: OwnTokens, sql: str, dialect: OwnDialect, hidden: str | None = None
) -> tuple[exp.Expr | None, int]:
    """Return the operand at the start of ``tokens``, and its number of tokens.

    An operand is an expression that can be a side of a comparison. Raises ParseError as
    ``parse_tokens`` does.
    """
    found: list[tuple[exp.Expr | None, int]] = []
    reader = reader_of(dialect)
    given = _with_hidden(_given(tokens, sql, reader), reader, hidden)
    given, mend = as_newest(given, reader)
    given = _whole_spans(given) if dialect.is_own else given

    def operand(parser: Any) -> Any:
        value = parser._parse_bitwise()
        index = parser._index
        stop = given[index].start if index < len(given) else None
        count = next((n for n, each in enumerate(tokens) if each.start == stop), len(tokens))
        found.append((mend(value), count))
        parser._advance(len(given) - index)
        return value

    parser: Any = reader.parser()
    parser._parse(operand, given, sql)
    value, count = found[0]
    _check_closed(tokens[:count])
    return value, count


def _whole_spans(tokens: list[Token]) -> list[Token]:
    """Add "0 days" to each interval literal of which sqlglot would keep only one part.

    sqlglot keeps the only part with a unit and drops the rest of the text, such as the hours of
    INTERVAL '1 day 02:00:00'.
    """
    found = list(tokens)
    for index, (before, token) in enumerate(pairwise(tokens), start=1):
        is_span = before.token_type == TokenType.INTERVAL and token.token_type == TokenType.STRING
        if (
            is_span
            and len(parts := _SPAN.findall(token.text)) == 1
            and parts != [token.text.strip()]
        ):
            found[index] = respelt(token, token.token_type, f"0 days {token.text}")
    return found


def _given(tokens: OwnTokens, sql: str, reader: Any) -> list[Token]:
    """Convert icesql's tokens to sqlglot's: those that it came from, or new ones."""
    made: list[Token] = []
    keywords, signs = reader.tokenizer_class.KEYWORDS, reader.tokenizer_class.SINGLE_TOKENS
    index = 0
    while index < len(tokens):
        token, given = tokens[index], tokens[index].given
        if given is not None:
            count = len(given.text.split()) if token.kind == WORD else 1
            if all(each.given is given for each in tokens[index : index + count]):
                made.append(given)
                index += count
                continue
        text, kind, count = token.text, _KINDS.get(token.kind), 1
        if token.kind == OTHER:
            (whole,) = reader.tokenize(sql[token.start : token.stop])
            text, kind = whole.text, whole.token_type
        elif kind is None:
            for count in (3, 2, 1):
                words = " ".join(each.word for each in tokens[index : index + count])
                kind = keywords.get(words) or signs.get(words)
                if kind is not None:
                    break
            text = words if count > 1 else text
        end = max(tokens[index : index + count][-1].stop - 1, token.start)
        made.append(Token(kind or TokenType.VAR, text, 0, token.start, token.start, end))
        index += count
    return made


def subscript_base(dialect: OwnDialect) -> int:
    """Return the first list subscript of a dialect: 1 in DuckDB, 0 in Spark."""
    return int(reader_of(dialect).icesql_subscript_base)


def split(sql: str, own: OwnDialect) -> list[OwnToken]:
    """Split SQL text in another dialect than the default one into tokens.

    Raises SqlSyntaxError for text that the tokenizer does not accept.
    """
    dialect = reader_of(own)
    try:
        tokens = list(dialect.tokenize(sql))
    except TokenError as error:
        for _ in pieces(sql, dialect=own.name):
            pass  # the lexer raises the error of an open quote or comment, at its place
        raise syntax_error("cannot tokenize the statement", None) from error
    if "--" in sql or "/*" in sql:
        _check_clauses(tokens, dialect)
    if "\\" in sql and "\\" in dialect.tokenizer_class.STRING_ESCAPES:
        from icesql.sql.parser.sqlglot_releases import with_escapes

        tokens = with_escapes(tokens, sql, dialect)
    if "\\" in dialect.tokenizer_class.STRING_ESCAPES and "'" not in (
        dialect.tokenizer_class.STRING_ESCAPES
    ):
        tokens = _with_joined_texts(tokens, sql)
    if "bd" in sql.lower() and not _keeps_scales():
        _check_decimals(tokens)
    found: list[OwnToken] = []
    for token in tokens:
        kind, text = _OWN_KINDS.get(token.token_type), token.text
        if kind is not None:
            word = text.upper() if kind == NUMBER else ""
            found.append(OwnToken(kind, text, token.start, token.end + 1, word, token))
        elif " " not in text:
            stop = token.end + 1
            found.append(OwnToken(kind_of(text), text, token.start, stop, text.upper(), token))
        else:
            for part in re.finditer(r"\S+", sql[token.start : token.end + 1]):
                start, stop = (token.start + each for each in part.span())
                found.append(OwnToken(WORD, part[0], start, stop, part[0].upper(), token))
    return found


def _with_joined_texts(tokens: list[Token], sql: str) -> list[Token]:
    """Join adjacent string literals as Spark does: a doubled quote inside a literal is one quote.

    sqlglot reads ``'it''s'`` as two adjacent literals, and accepts no literal beside ``r'…'``.
    """
    made: list[Token] = []
    for token in tokens:
        kind, text = token.token_type, token.text
        before = made[-1] if made else None
        if kind not in _TEXTS or before is None or before.token_type not in _TEXTS:
            made.append(token)
            continue
        quote = sql[token.start]
        doubled = (
            before.end + 1 == token.start
            and kind == TokenType.STRING
            and sql[before.end] == quote
            and before.token_type == TokenType.STRING
        )
        text = before.text + (quote if doubled else "") + text
        joined = Token(TokenType.STRING, text, before.line, before.col, before.start, token.end)
        joined.comments.extend([*before.comments, *token.comments])
        made[-1] = joined
    return made


@functools.cache
def _keeps_scales() -> bool:
    """True if Spark's literal 1.5BD keeps its digits: older releases of sqlglot make it 2."""
    from sqlglot.dialects import Spark

    literal = Spark().parse("SELECT 1.5BD")[0]
    found = literal.find(exp.DataType) if literal is not None else None
    return found is not None and bool(found.expressions)


def _check_decimals(tokens: list[Token]) -> None:
    """Raise SqlSyntaxError for a literal such as 1.5BD."""
    for number, kind in zip(tokens, tokens[2:], strict=False):
        is_kind = kind.token_type == TokenType.DECIMAL and kind.text.upper() == "BD"
        if is_kind and number.start == kind.start:
            hint = f"write CAST('{number.text}' AS DECIMAL(p, s)), or install a newer sqlglot"
            raise syntax_error(f"{number.text}{kind.text} is not understood; {hint}", number.start)


def _check_clauses(tokens: list[Token], dialect: Dialect) -> None:
    """Raise SqlSyntaxError for a comment between the words of ORDER BY and the like.

    sqlglot recognizes such keywords only if nothing but blanks separates their words.
    """
    keywords = dialect.tokenizer_class.KEYWORDS
    for first, second in pairwise(tokens):
        if first.comments and first.token_type == TokenType.VAR:
            words = f"{first.text} {second.text}".upper()
            if words in keywords and second.token_type != TokenType.IDENTIFIER:
                raise syntax_error(f"there is a comment inside of {words}", first.start)


# ------------------------------------------------------------------ calls as they are written
# The function table of the dialect interprets them. While it parses, sqlglot turns each function
# that it knows into a class of its own, and drops arguments and modifiers for which the class has
# no field. A call under an unknown name becomes an ``Anonymous`` with all of its arguments.


_HIDDEN: Final = "icesql_call_of_"
# Calls with special syntax between the parentheses, and keywords that are not functions.
_SYNTAX: Final = word_set(
    "AND CASE CAST CUBE EXTRACT IN NOT OR POSITION ROLLUP TRIM TRY_CAST VALUES"
)
_SPARK_SYNTAX: Final = word_set("OVERLAY SUBSTR SUBSTRING TRY")
# Types and operators in Trino and Snowflake, not functions.
_OTHER_SYNTAX: Final = word_set("ARRAY ILIKE LIKE TABLE TIME TIMESTAMP UNNEST")
# No call follows these: an operator or an alias follows an operand, a name, type or list AS and ::.
_NO_CALL_AFTER: Final = frozenset(
    {
        TokenType.VAR,
        TokenType.IDENTIFIER,
        TokenType.NUMBER,
        TokenType.STRING,
        TokenType.R_PAREN,
        TokenType.R_BRACKET,
        TokenType.ALIAS,
        TokenType.DCOLON,
        TokenType.DOT,
    }
)
_NESTED: Final = word_set("ARRAY MAP STRUCT")
# Aggregates in Spark; LIKE ANY ('a', 'b') has a list, not a call.
_QUANTIFIERS: Final = word_set("ALL ANY SOME")
_MATCHES: Final = frozenset({TokenType.LIKE, TokenType.ILIKE})
_QUERIES: Final = frozenset({TokenType.SELECT, TokenType.WITH, TokenType.VALUES, TokenType.L_PAREN})
# Words that may also precede a query in parentheses.
_BEFORE_QUERIES: Final = frozenset({*_QUANTIFIERS, "ARRAY", "EXISTS"})


_VALUE_ENDS: Final = (
    TokenType.VAR, TokenType.IDENTIFIER, TokenType.R_PAREN, TokenType.R_BRACKET,
)  # fmt: skip


def hide_calls(tokens: Sequence[Token], reader: Dialect, dialect: str = "") -> list[Token]:
    """Return the tokens with the names of calls hidden from sqlglot; ``show_calls`` undoes it.

    ``dialect`` is one of ``TRANSLATED``, or "" for a template in DuckDB's spelling. Raises
    UnsupportedSqlError for a name in the text that ``show_calls`` would mistake for a hidden one.
    """
    for token in tokens:
        if token.text.startswith(_HIDDEN):
            raise unsupported(f'the name "{token.text}"', token.start, "it is reserved")
    if dialect == SPARK:
        _check_paths(tokens)
    parser: Any = reader.parser_class
    hidden = {*parser.FUNCTIONS, *parser.FUNCTION_PARSERS} - _SYNTAX
    hidden = (hidden | _QUANTIFIERS) - _SPARK_SYNTAX if dialect == SPARK else hidden - _OTHER_SYNTAX
    made = list(tokens)
    for at in range(len(tokens) - 1):
        token = tokens[at]
        if tokens[at + 1].token_type == TokenType.L_PAREN and token.text.upper() in hidden:
            quoted = token.token_type == TokenType.IDENTIFIER and dialect != SPARK
            if not quoted and _is_call(tokens, at):
                made[at] = respelt(token, TokenType.VAR, _HIDDEN + token.text)
    return made


def _check_paths(tokens: Sequence[Token]) -> None:
    """Refuse ``v:a``, which sqlglot parses as a column and a parameter; allow ``struct<a:int>``."""
    nested = 0
    for at, token in enumerate(tokens[:-1]):
        if token.token_type == TokenType.LT and tokens[at - 1].text.upper() in _NESTED:
            nested += 1
        elif nested:
            nested -= token.text.count(">")
        elif token.token_type == TokenType.COLON and at:
            before, after = tokens[at - 1], tokens[at + 1]
            if before.token_type in _VALUE_ENDS and before.end + 1 == token.start:
                path = f"a path into a variant ({before.text}:{after.text})"
                raise unsupported(f"{path} in Spark's dialect", before.start, WHOLE)


def _is_call(tokens: Sequence[Token], at: int) -> bool:
    """True if the function name at ``at``, before a parenthesis, is a call."""
    word, kind = tokens[at].text.upper(), tokens[at].token_type
    if kind in (TokenType.STRING, TokenType.NUMBER):
        return False
    if word in _BEFORE_QUERIES and at + 2 < len(tokens) and tokens[at + 2].token_type in _QUERIES:
        return False
    before = tokens[at - 1].token_type if at else None
    if before == TokenType.LT:
        return at < 2 or tokens[at - 2].text.upper() not in _NESTED  # array<char(10)>
    if before in _MATCHES:
        return word not in _QUANTIFIERS
    if before == TokenType.STAR:
        return word != "REPLACE"  # * REPLACE (1 AS a)
    if before == TokenType.NOT and kind in _MATCHES:
        return not (at > 1 and tokens[at - 2].token_type in _NO_CALL_AFTER)
    return before not in _NO_CALL_AFTER


def show_calls(tree: exp.Expr) -> None:
    """Restore the names of calls in ``tree`` that ``hide_calls`` replaced."""
    for node in tree.walk():
        if isinstance(node, exp.Anonymous | exp.AnonymousAggFunc | exp.Identifier | exp.Var):
            name = node.this
            if isinstance(name, str) and name.startswith(_HIDDEN):
                node.set("this", name.removeprefix(_HIDDEN))
