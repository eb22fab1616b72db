"""A user's regular expression, parsed and never run: matching may take for ever."""

from __future__ import annotations

from msgspec import Struct


class UserPattern(Struct, frozen=True):
    """``shortest`` is how many characters it matches at least, ``groups`` how many it captures."""

    shortest: int
    groups: int


def read_pattern(text: str) -> UserPattern | None:
    """The regular expression, None if Python reads it as none."""
    import re
    from re import _parser

    try:
        tree = _parser.parse(text)
        return UserPattern(tree.getwidth()[0], tree.state.groups - 1)
    except (re.error, RecursionError, OverflowError):
        return None
