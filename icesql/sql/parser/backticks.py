"""Names in backticks, as BigQuery and Spark write them, where the dialect has double quotes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from sqlglot.tokens import Token, TokenType

# What is the same name in double quotes, and no comment where quotes are not seen.
_NAME: Final = re.compile(r"(?!.*--)[\w .$@:\-]+")


def double_quoted(sql: str, tokens: Sequence[Token]) -> str:
    """``sql`` with double quotes for backticks; each place stays what it is."""
    if "`" not in sql:
        return sql
    ticks = [
        each.start for each in tokens if each.token_type == TokenType.UNKNOWN and each.text == "`"
    ]
    letters = list(sql)
    end = -1
    for start, after in pairwise(ticks):
        if start <= end or not _NAME.fullmatch(sql, start + 1, after):
            continue
        letters[start] = letters[after] = '"'
        end = after
    return "".join(letters)
