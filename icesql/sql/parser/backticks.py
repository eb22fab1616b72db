"""Names in backticks, as BigQuery and Spark write them, where the dialect has double quotes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from icesql.sql.lexer import Token

# What is the same name in double quotes, and no comment where quotes are not seen.
_NAME: Final = re.compile(r"(?!.*--)[\w .$@:\-]+")


def double_quoted(sql: str, tokens: Sequence[Token]) -> str:
    """``sql`` with double quotes for backticks; each place stays what it is."""
    # A sign where quotes are double ones alone; a name in the default dialect.
    ticks = [each.start for each in tokens if each.word == "`"]
    names = [each for each in tokens if each.given is None and sql[each.start] == "`"]
    letters = list(sql)
    end = -1
    for start, after in [*pairwise(ticks), *((each.start, each.stop - 1) for each in names)]:
        if start > end and _NAME.fullmatch(sql, start + 1, after):
            letters[start] = letters[after] = '"'
            end = after
    return "".join(letters)
