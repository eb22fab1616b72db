"""Types and transactions in SQL; independent of dbt."""

from __future__ import annotations

import re
from typing import Final

# Types that Iceberg can widen in place, in addition to decimals of the same scale.
_WIDER: Final = {("integer", "bigint"), ("int", "bigint"), ("float", "double")}

# Comments, which dbt puts before each statement, and BEGIN. The comments match in only one way,
# without backtracking: otherwise two could match as one, and the combinations grow exponentially.
_BEGINS: Final = re.compile(r"(?:\s|(?>/\*.*?\*/)|--[^\n]*\n)*+begin\b", re.IGNORECASE | re.DOTALL)


def begins_transaction(script: str) -> bool:
    """True if the first word of a script is BEGIN."""
    return _BEGINS.match(script) is not None


def is_wider(before: str, after: str) -> bool:
    """True if Iceberg can change a type to another without new files."""
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
