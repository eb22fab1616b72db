r"""String literals with backslashes in Spark and Snowflake; older sqlglot keeps ``\d``, ``\101``.

Spark       '\u0041' and '\101' are A, '\d' is d, '\%' and '\_' stay for LIKE
Snowflake   '\x41' is A too, '\d' is d, '\_' is _, '' is one quote
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from sqlglot.dialects.dialect import Dialect
from sqlglot.tokens import Token, TokenType

from icesql.sql.parser.releases.newest import respelt

_PAIR: Final = r"\\u(?P<high>[dD][89abAB][0-9a-fA-F]{2})\\u(?P<low>[dD][c-fC-F][0-9a-fA-F]{2})"
_HEX: Final = "[0-9a-fA-F]"
_SPARK: Final = re.compile(
    rf"{_PAIR}|\\(?:u(?P<four>{_HEX}{{4}})|U(?P<hex>(?:000{_HEX}|0010){_HEX}{{4}})"
    r"|(?P<octal>[01][0-7]{2})|(?P<other>.))",
    re.DOTALL,
)
_HIVE: Final = re.compile(_SPARK.pattern.replace("U(?P<hex>", "(?!)(?P<hex>"), re.DOTALL)
_SNOWFLAKE: Final = re.compile(
    rf"{_PAIR}|\\(?:u(?P<four>{_HEX}{{4}})|x(?P<hex>{_HEX}{{2}})"
    r"|(?P<octal>[0-3][0-7]{0,2}|[4-7][0-7]?)|(?P<other>.))|''",
    re.DOTALL,
)
_CONTROLS: Final = {"b": "\b", "n": "\n", "r": "\r", "t": "\t"}
_SPARK_ONES: Final = {**_CONTROLS, "0": "\0", "Z": "\x1a", "%": "\\%", "_": "\\_"}
_SNOWFLAKE_ONES: Final = {**_CONTROLS, "f": "\f"}


def with_escapes(tokens: Sequence[Token], sql: str, dialect: Dialect) -> list[Token]:
    """Return the tokens with the escapes in string literals decoded."""
    made = []
    for token in tokens:
        raw = sql[token.start : token.end + 1]
        if token.token_type == TokenType.STRING and "\\" in raw and raw[0] in ("'", '"'):
            token = respelt(token, token.token_type, unescaped(raw[1:-1], dialect))
        made.append(token)
    return made


def unescaped(body: str, dialect: Dialect) -> str:
    """Decode the text between the quotes of a literal in a dialect with backslash escapes."""
    kinds = {each.__name__ for each in type(dialect).__mro__}
    if "Snowflake" in kinds:
        pattern, ones, lone = _SNOWFLAKE, _SNOWFLAKE_ONES, None
    else:
        pattern, ones, lone = _SPARK if "Spark" in kinds else _HIVE, _SPARK_ONES, "?"

    def character(found: re.Match[str]) -> str:
        if found["high"]:
            high, low = int(found["high"], 16), int(found["low"], 16)
            return chr(0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00))
        if found["octal"]:
            return chr(int(found["octal"], 8))
        digits = found["four"] or found["hex"]
        if digits:
            code = int(digits, 16)
            # A lone surrogate is not a character.
            half = 0xD800 <= code < 0xE000
            return (found[0][1:] if lone is None else lone) if half else chr(code)
        if not found["other"]:
            return "'"
        return ones.get(found["other"], found["other"])

    return pattern.sub(character, body)
