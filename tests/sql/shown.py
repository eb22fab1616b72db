"""A statement as text, to be compared with a cell of a table."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from icesql.sql.statement import Query

# Derived from other fields, or compared by other tests.
_OF_QUERIES = {"tree", "text", "start", "spark", "user_text", "given", "translated", "sources"}


def shown(value: Any) -> str:
    """``Name(field=value, …)`` with the fields that differ from their defaults.

    The only offsets in it are those of table names.
    """
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(shown, value))}]"
    if not isinstance(value, Struct):
        return repr(value)
    names, defaults = value.__struct_fields__, value.__struct_defaults__
    left_out = {"expression", "end"} | (_OF_QUERIES if isinstance(value, Query) else set())
    if "parts" not in names:
        left_out.add("offset")
    usual = dict(zip(reversed(names), reversed(defaults), strict=False))
    given = [
        f"{name}={shown(found)}"
        for name in names
        if name not in left_out and (found := getattr(value, name)) != usual.get(name, usual)
    ]
    return f"{type(value).__name__}({', '.join(given)})"
