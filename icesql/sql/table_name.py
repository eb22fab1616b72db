"""The parts of a table's name that is given alone, outside a statement."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final

from icesql.quoting import quoted
from icesql.sql.keywords import KEYWORDS

# The parts of a dotted name.
Parts = tuple[str, ...]
_PART: Final = r"""(?:"(?:[^"]++|"")*+"|`(?:[^`]++|``)*+`|[^."`\s]++)"""
_NAME: Final = re.compile(rf"\s*+{_PART}\s*+(?:\.\s*+{_PART}\s*+)*+")
_EACH: Final = re.compile(_PART)
_PLAIN: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def name_parts(name: str) -> Parts:
    """Split ``a.b``, ``"a"."b c"`` or ``a.`b c``` into parts; split any other text at its dots.

    >>> name_parts('sales."big orders"'), name_parts("sales.2024-orders")
    (('sales', 'big orders'), ('sales', '2024-orders'))
    """
    if ('"' in name or "`" in name) and _NAME.fullmatch(name):
        return tuple(_unquoted(part) for part in _EACH.findall(name))
    return tuple(name.split("."))


def name_text(parts: Sequence[str], quote: Callable[[str], str] = quoted) -> str:
    """Join the parts to a name in SQL, with quotes where they are needed.

    >>> name_text(("sales", "big orders")), name_text(("sales", "orders"))
    ('sales."big orders"', 'sales.orders')
    """
    return ".".join(each if is_plain_name(each) else quote(each) for each in parts)


def is_plain_name(name: str) -> bool:
    """True if the name needs no quotes: only letters, digits and _, and not a keyword of SQL."""
    return bool(_PLAIN.fullmatch(name)) and name.lower() not in KEYWORDS


def _unquoted(part: str) -> str:
    quote = part[0]
    return part[1:-1].replace(quote * 2, quote) if quote in '"`' else part
