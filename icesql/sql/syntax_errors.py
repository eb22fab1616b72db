"""What to say of a word that does not fit: what it is, what may have been meant, what fits."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from typing import Any, Final

from sqlglot import exp
from sqlglot.errors import ParseError
from sqlglot.tokens import Token, TokenType

from icesql.errors import SqlSyntaxError, UnsupportedSqlError, similar_names
from icesql.sql.acceptance import COMMAND_WORDS, QUERY_WORDS, REFUSED_STATEMENTS, TABLE_WORDS
from icesql.sql.parser.travel.clauses import MISPLACED, is_mark
from icesql.sql.positions import offset_of, syntax_error, unsupported

_QUOTED: Final = (TokenType.STRING, TokenType.IDENTIFIER)
_BEGINNINGS: Final = ("SELECT", "WITH", "EXPLAIN", "SHOW", "SET")
_TRAVEL: Final = ("FOR VERSION AS OF", "FOR TIMESTAMP AS OF")
# Shorter words are near to too many keywords; words of three letters only with a letter amiss.
_SHORTEST_MISSPELT: Final = 3
_MOST_EXPECTED: Final = 8
# What people type to a shell.
_SHELL_WORDS: Final = {
    "EXIT": "in the shell, \\q or Ctrl-D leaves",
    "QUIT": "in the shell, \\q or Ctrl-D leaves",
    "HELP": "in the shell, \\? lists its commands",
    ".": "in the shell, \\? lists its commands and \\d the tables",
    "\\": "commands with a backslash are of the shell, which opens without -c, -f and a pipe; "
    "in SQL there are SHOW TABLES and DESCRIBE t",
}
_JOIN_WORDS: Final = ("INNER", "OUTER", "LEFT", "RIGHT", "FULL", "SEMI", "ANTI")
_COMMANDS_IN_FROM: Final = ("SHOW", "DESCRIBE", "DESC", "SUMMARIZE", "EXPLAIN")


def no_statement(tokens: Sequence[Token]) -> SqlSyntaxError | UnsupportedSqlError:
    """The error for tokens of which the first begins no statement."""
    first, word = tokens[0], tokens[0].text.upper()
    if word in _SHELL_WORDS:
        return syntax_error(f'"{first.text}" is no SQL statement; {_SHELL_WORDS[word]}', first)
    words = [*QUERY_WORDS[:-1], *TABLE_WORDS, *COMMAND_WORDS, *REFUSED_STATEMENTS]
    near = similar_names(word, words)
    hint = f"; did you mean {near[0]}?" if near and near[0] != word else ""
    problem = f'unexpected "{first.text}" at the start of a statement{hint}'
    return syntax_error(problem, first, () if hint else _BEGINNINGS)


def check_commands_in_from(tokens: Sequence[Token]) -> None:
    """Refuse ``FROM (SHOW TABLES)``, of which sqlglot makes a table with an alias.

    So is ``FROM FROM t``, of which it makes a query. Raises UnsupportedSqlError, SqlSyntaxError.
    """
    for before, token in itertools.pairwise(tokens):
        if token.token_type is TokenType.FROM is before.token_type:
            raise syntax_error(f'unexpected "{token.text}"', token, ("a table",))
    for index in range(2, len(tokens) - 1):
        token = tokens[index]
        if (
            tokens[index - 1].token_type == TokenType.L_PAREN
            and tokens[index - 2].text.upper() in ("FROM", "JOIN", ",")
            and token.token_type not in _QUOTED
            and token.text.upper() in _COMMANDS_IN_FROM
            and tokens[index + 1].token_type not in (TokenType.R_PAREN, TokenType.DOT)
        ):
            word = token.text.upper()
            hint = f"run {word} as a statement of its own"
            raise unsupported(f"{word} as a table", token, hint)


def check_joins(tree: exp.Expr, tokens: Sequence[Token]) -> None:
    """Refuse a JOIN without a condition, which sqlglot takes for a comma. Raises SqlSyntaxError."""
    for join in tree.find_all(exp.Join):
        if any(join.args.get(part) for part in ("on", "using", "method")) or join.kind == "CROSS":
            continue
        place = offset_of(join.this)
        before = [index for index, token in enumerate(tokens) if token.start == place]
        first = before[0] - 1 if before else 0
        if first < 0 or tokens[first].token_type != TokenType.JOIN:
            continue
        while first and tokens[first - 1].text.upper() in _JOIN_WORDS:
            first -= 1
        expected = ("ON", "USING", "CROSS JOIN")
        raise syntax_error("a JOIN without a condition", tokens[first], expected)


def parse_error(
    error: ParseError, tokens: Sequence[Token], sql: str
) -> SqlSyntaxError | UnsupportedSqlError:
    """sqlglot's error as icesql's, at the token that did not fit."""
    details: dict[str, Any] = dict(error.errors[0]) if error.errors else {}
    offset, token = details.get("icesql_offset"), details.get("icesql_token")
    if offset is None:
        offset = tokens[-1].end + 1
    if token is not None:
        if is_mark(token):
            return unsupported(MISPLACED, offset)
        token = next((each for each in tokens if each.start == offset), token)
    description = str(details.get("description") or "")
    found = (
        _misspelt_keyword(tokens, offset, sql)
        or _travel(token, tokens)
        or _arguments(description, offset, tokens)
    )
    if found is not None:
        return found
    problem = f'unexpected "{token.text}"' if token else "unexpected end of the statement"
    from icesql.sql.grammar import expected_after

    word = token.text.upper() if token else ""
    expected = tuple(each for each in expected_after(sql[tokens[0].start : offset]) if each != word)
    near = similar_names(token.text, expected, 1) if token else ()
    if near and near[0].isupper():
        problem += f"; did you mean {near[0]}?"
        expected = ()
    if not expected and not near and description.startswith("Expecting "):
        expected = (description.removeprefix("Expecting "),)
    return syntax_error(problem, offset, expected[:_MOST_EXPECTED])


def _travel(token: Token | None, tokens: Sequence[Token]) -> SqlSyntaxError | None:
    """The error for FOR and AS OF that begin no clause of time travel."""
    if token is None or token.token_type in _QUOTED:
        return None
    index = next((number for number, each in enumerate(tokens) if each is token), None)
    if index is None:
        return None
    words = [each.text.upper() for each in tokens[index : index + 4]]
    if words[0] == "FOR":
        shown = " ".join(each.text for each in tokens[index : index + 2])
        return syntax_error(f'"{shown}" begins no clause of time travel', token, _TRAVEL)
    if words[:2] == ["AS", "OF"] and index:
        before = tokens[index - 1]
        shown = f"{before.text} {token.text} {tokens[index + 1].text}"
        return syntax_error(f'"{shown}" is no clause of time travel', before, _TRAVEL)
    return None


def _arguments(description: str, offset: int, tokens: Sequence[Token]) -> SqlSyntaxError | None:
    """The error for a call with too few or too many arguments, at its name."""
    too_many = description.startswith("The number of provided arguments")
    if not too_many and not _misses_argument(description):
        return None
    depth, name = 0, None
    before = [token for token in tokens if token.start <= offset]
    for index in range(len(before) - 1, 0, -1):
        kind = before[index].token_type
        depth += (kind == TokenType.R_PAREN) - (kind == TokenType.L_PAREN)
        if depth <= 0 and kind == TokenType.L_PAREN:
            name = before[index - 1]
            break
    if name is None or not name.text[:1].isalpha():
        return None
    amount = "too many" if too_many else "too few"
    return syntax_error(f"{amount} arguments of {name.text}()", name)


def _misses_argument(description: str) -> bool:
    """Whether sqlglot misses a part of a function, and not of an operator."""
    found = re.search(r"missing for <class '[\w.]*\.(\w+)'>", description)
    name = found[1] if found else ""
    return any(
        each.__name__ == name and not issubclass(each, exp.Binary) for each in exp.ALL_FUNCTIONS
    )


def _misspelt_keyword(tokens: Sequence[Token], offset: int, sql: str) -> SqlSyntaxError | None:
    """The error for a word before ``offset`` that passed as an alias, nearly a keyword."""
    before = [token for token in tokens if token.end < offset]
    if len(before) < 2 or before[-1].token_type is not TokenType.VAR:
        return None
    word = before[-1]
    if len(word.text) < _SHORTEST_MISSPELT:
        return None
    from icesql.sql.grammar import completions

    keywords, name_may_stand = completions(sql[tokens[0].start : word.start])
    near = similar_names(word.text, keywords, 1)
    if not near or word.text.upper() in keywords:
        return None
    if len(word.text) == _SHORTEST_MISSPELT and abs(len(near[0]) - len(word.text)) > 1:
        return None
    if not name_may_stand:
        return syntax_error(f'unexpected "{word.text}"; did you mean {near[0]}?', word)
    return syntax_error(f'"{word.text}" is taken for a name; did you mean {near[0]}?', word)
