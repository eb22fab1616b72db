"""Functions and casts whose spelling in Spark the kinds of their operands decide.

``grammar/on_spark.txt`` has them.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

from icesql.engine.spark.sql.kinds import refuse
from icesql.sql.grammar import columns


@functools.cache
def rows(section: str) -> dict[str, list[list[str]]]:
    """The columns of each row of a section behind its names, by name."""
    found: dict[str, list[list[str]]] = {}
    for names, *row in columns("on_spark.txt", section):
        for name in names.split("|"):
            found.setdefault(name, []).append(row)
    return found


def row_of(name: str, kinds: Sequence[str]) -> tuple[str, str] | None:
    """The text and the type of the first row for operands of these kinds; None without a row.

    Raises UnsupportedSqlError if the row refuses them.
    """
    for wanted, text, *last in rows("functions").get(name, ()):
        known = wanted.split(",")
        pairs = zip(known, kinds, strict=False)
        if len(known) > len(kinds) or not all(
            each == "*" or found in each.split("|") for each, found in pairs
        ):
            continue
        if not text.startswith("!"):
            return text, "".join(last)
        for place, found in enumerate(kinds, 1):
            text = text.replace(f"${place}", found)
        raise refuse(text[1:], *last)
    return None
