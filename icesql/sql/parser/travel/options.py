"""Options of a table: Spark's ``t WITH ('branch' = 'audit')``, Flink's ``t /*+ OPTIONS(…) */``.

Flink's hint is rewritten to Spark's clause before; see ``show_statements.advice``.
"""

from __future__ import annotations

import re
from typing import Final

from icesql.sql.cursor import TokenCursor
from icesql.sql.keywords import word_map
from icesql.sql.lexer import NUMBER, TEXT, Token, Tokens
from icesql.sql.positions import syntax_error, unsupported
from icesql.sql.trees import exp

# The kind of clause for each option.
_KINDS: Final = word_map("""
snapshot-id = VERSION
as-of-timestamp = MILLISECONDS
branch = BRANCH
tag = TAG
versionasof = VERSION
timestampasof = TIMESTAMP
""")
_RANGES: Final = re.compile(r"(?:start|end)-(?:snapshot-id|snapshot-timestamp|timestamp|tag)")
_RANGE_HINT: Final = "use CHANGES FROM VERSION a TO VERSION b for what commits added"
_LONGEST: Final = 18
_VALUES: Final = (TEXT, NUMBER)


def read_options(words: TokenCursor) -> tuple[str, exp.Expr, int] | None:
    """Read the one option that chooses a snapshot in ``'key' = 'value')``, after the bracket.

    Return its kind, its value and the index of its value; None if there are no options. Raises
    UnsupportedSqlError for other options, SqlSyntaxError.
    """
    tokens = words.tokens
    if _equals(tokens, words.index) is None:
        return None

    def option() -> tuple[str, exp.Expr, int]:
        start, equals = words.index, _equals(tokens, words.index)
        if equals is None or words.kind(equals + 1) not in _VALUES:
            at = tokens[min(start, len(tokens) - 1)]
            raise syntax_error("an option is 'name' = 'value'", at)
        words.index = equals + 2
        name = "".join(each.text for each in tokens[start:equals])
        return *_option(name, tokens[start], tokens[equals + 1]), equals + 1

    (_, found), *more = words.listed(lambda: (words.here, option()))
    if more:
        raise unsupported("two versions of one table", more[0][0], "give one of them")
    if not words.skip(")"):
        at = words.token or tokens[-1]
        raise syntax_error("unterminated options of a table", at, (",", ")"))
    return found


def _equals(tokens: Tokens, start: int) -> int | None:
    """Return the index of the ``=`` after an option's name: a text, or words with dashes."""
    for index in range(start, min(start + 6, len(tokens))):
        token = tokens[index]
        if token.word == "=":
            return index if index > start else None
        plain = token.text in ("-", ".") or token.text.replace("_", "a").isalnum()
        if token.word and not plain:
            return None
    return None


def _option(name: str, token: Token, value: Token) -> tuple[str, exp.Expr]:
    key = name.lower()
    kind = _KINDS.get(key)
    if kind is None:
        known = "snapshot-id, as-of-timestamp (milliseconds), branch and tag choose a snapshot"
        hint = _RANGE_HINT if _RANGES.fullmatch(key) or key == "streaming" else known
        raise unsupported(f"the option {name} of a table", token, hint)
    is_number = kind == "MILLISECONDS" or (kind == "VERSION" and value.text.isdigit())
    if kind == "MILLISECONDS" and not (value.text.isdigit() and len(value.text) <= _LONGEST):
        raise syntax_error(f"{name} counts milliseconds since 1970", value, ("a number",))
    literal = exp.Literal.number if is_number else exp.Literal.string
    return kind, literal(value.text)
