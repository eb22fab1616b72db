"""Variables of the shell and of ``-v NAME=VALUE``: values of parameters, never text of SQL."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

from icesql.errors import ProgrammingError

_WORDS = {"true": True, "false": False, "null": None}


def variable_name(text: str) -> str:
    """The name, if ``$NAME`` can be written in SQL. Raises ProgrammingError."""
    if not re.fullmatch(r"[A-Za-z_]\w*", text, re.ASCII):
        raise ProgrammingError(f"{text!r} is no name of a variable; use letters, digits and _")
    return text


def variable_value(text: str) -> Any:
    """A number, true, false or null as such, everything else as a text; quotes make any a text."""
    if len(text) > 1 and text[0] == text[-1] == "'":
        return text[1:-1].replace("''", "'")
    if re.fullmatch(r"[+-]?\d+", text, re.ASCII):
        return int(text)
    if re.fullmatch(r"[+-]?(\d+\.\d*|\.\d+)", text, re.ASCII):
        return Decimal(text)
    return _WORDS.get(text.lower(), text)


def variable(text: str) -> tuple[str, Any]:
    """``NAME=VALUE`` in parts. Raises ProgrammingError."""
    name, equals, value = text.partition("=")
    if not equals:
        raise ProgrammingError(f"{text!r} is not NAME=VALUE")
    return variable_name(name.strip()), variable_value(value)
