"""Names, texts and types as SQL writes them; knows nothing of dbt."""

from __future__ import annotations

import re
from typing import Final

# What Iceberg widens in place; decimals of the same scale, too.
_WIDER: Final = {("integer", "bigint"), ("int", "bigint"), ("float", "double")}

# Comments, which dbt puts in front of each statement, and BEGIN. Each comment is read in one way
# alone: two could be read as one as well, and many in more ways than can be tried.
_BEGINS: Final = re.compile(r"(?:\s|(?>/\*.*?\*/)|--[^\n]*\n)*+begin\b", re.IGNORECASE | re.DOTALL)


def begins_transaction(script: str) -> bool:
    """Whether the first word of a script is BEGIN."""
    return _BEGINS.match(script) is not None


def quoted(name: str) -> str:
    """A name in double quotes."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """A text in single quotes."""
    return "'" + text.replace("'", "''") + "'"


def is_wider(before: str, after: str) -> bool:
    """Whether Iceberg changes a type to another without a new file."""
    old, new = before.lower().replace(" ", ""), after.lower().replace(" ", "")
    if (old, new) in _WIDER:
        return True
    if not (old.startswith("decimal(") and new.startswith("decimal(")):
        return False
    (old_precision, old_scale), (new_precision, new_scale) = _decimal(old), _decimal(new)
    return old_scale == new_scale and new_precision > old_precision


def _decimal(text: str) -> tuple[int, int]:
    precision, _, scale = text[8:].rstrip(")").partition(",")
    return int(precision), int(scale or 0)
