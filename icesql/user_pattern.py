"""A user's regular expression, parsed and never run: matching may take forever."""

from __future__ import annotations

from icesql.frozen import Frozen


class UserPattern(Frozen):
    """``shortest`` is the least number of characters of a match, ``groups`` that of groups."""

    shortest: int
    groups: int


def read_pattern(text: str) -> UserPattern | None:
    """The regular expression, None if it is not one for Python."""
    import re
    from re import _parser

    try:
        tree = _parser.parse(text)
        return UserPattern(tree.getwidth()[0], tree.state.groups - 1)
    except (re.error, RecursionError, OverflowError):
        return None
