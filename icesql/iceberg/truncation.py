"""Cut bounds of text and binary columns so that they stay bounds.

Source: Iceberg spec, "Manifests"; Java ``UnicodeUtil`` and ``BinaryUtil``.
"""

from __future__ import annotations

from typing import Any, Final

from icesql.iceberg import types as t

_LAST: Final = 0x10FFFF
_BEFORE_SURROGATES, _AFTER_SURROGATES = 0xD7FF, 0xE000


def truncated_lower(type: t.IcebergType, value: Any, width: int) -> Any:
    """A lower bound of at most ``width`` code points or bytes; other types stay whole.

    >>> truncated_lower(t.STRING, "abcdefghijklmnopqrstuvwxyz", 16)
    'abcdefghijklmnop'
    """
    return value[:width] if isinstance(type, t.StringType | t.BinaryType) else value


def truncated_upper(type: t.IcebergType, value: Any, width: int) -> Any | None:
    """An upper bound of at most ``width`` code points or bytes; other types stay whole.

    What is cut is made greater than the value, for a prefix alone is less than it. None where
    nothing of that length is greater: then there is no upper bound.

    >>> truncated_upper(t.STRING, "abcdefghijklmnopqrstuvwxyz", 16)
    'abcdefghijklmnoq'
    >>> truncated_upper(t.BINARY, b"\\xff\\xff\\x01", 2) is None
    True
    """
    match type:
        case t.StringType():
            return value if len(value) <= width else _next_text(value[:width])
        case t.BinaryType():
            return value if len(value) <= width else _next_bytes(value[:width])
        case _:
            return value


def _next_text(prefix: str) -> str | None:
    for end in range(len(prefix), 0, -1):
        point = ord(prefix[end - 1])
        if point < _LAST:
            following = _AFTER_SURROGATES if point == _BEFORE_SURROGATES else point + 1
            return prefix[: end - 1] + chr(following)
    return None


def _next_bytes(prefix: bytes) -> bytes | None:
    kept = prefix.rstrip(b"\xff")
    return kept[:-1] + bytes((kept[-1] + 1,)) if kept else None
