"""One value as text for people, and how wide text is on a terminal. Imports nothing slow."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from msgspec import Struct

from icesql.engine.values import json_of as json_of
from icesql.engine.values import text_of as whole_text
from icesql.errors import display_width as display_width
from icesql.errors import printable as printable


class Style(Struct, frozen=True):
    """The layout of rows; ``width`` is the terminal's in cells, None = never cut."""

    width: int | None = None
    colour: bool = False


def text_of(value: Any) -> str:
    """One value as text for people; a time without digits and minutes that are zero."""
    if type(value) is not datetime:
        return whole_text(value)
    exact = "auto" if value.microsecond % 1000 or not value.microsecond else "milliseconds"
    text = value.isoformat(" ", exact)
    return text.removesuffix(":00") if value.tzinfo is not None else text


def shortened(text: str, width: int) -> str:
    """The text in at most ``width`` cells, with … at its end where it is cut."""
    if display_width(text) <= width:
        return text
    kept, used = [], 1
    for character in text:
        used += display_width(character)
        if used > width:
            break
        kept.append(character)
    return "".join(kept) + "…"
