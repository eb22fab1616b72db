"""Which of the engine's functions a query may call, by the name that the engine resolves.

``acceptance`` checks each function in the user's tree, and the engine checks every call in the
text that it is about to run, whatever the call's origin.
"""

from __future__ import annotations

import functools
from typing import Final

from icesql.sql.grammar import words_by_head
from icesql.sql.keywords import word_set

# Schemas and databases of the engine's functions: after any other name, a function is a method.
SCHEMAS: Final = word_set("main system temp memory pg_catalog information_schema")

_ALLOWED: Final = frozenset({"safe", "volatile"})
_REASONS: Final = {
    "leaks": "it shows what is inside the engine, not what is in a table",
    "system": "a query reads its tables and nothing else of the machine",
    "internal": "it is for the engine's own plans",
    "files": "this connection reads tables only; its owner allows files with connect(files=…)",
}
_UNKNOWN: Final = "DuckDB has no such function, or icesql does not classify it yet"


@functools.cache
def _table() -> tuple[dict[tuple[str, str], str], frozenset[str]]:
    found: dict[tuple[str, str], str] = {}
    planned: set[str] = set()
    for head, name in words_by_head("engine_functions.txt"):
        kind, name_class, *marks = head.split()
        found[kind, name] = name_class
        if marks:
            planned.add(name)
    return found, frozenset(planned)


def classes() -> dict[tuple[str, str], str]:
    """Return the checked-in table: (kind, name in lower case) → class; its head explains them."""
    return _table()[0]


def planned_functions() -> frozenset[str]:
    """Return the functions that the engine may evaluate while a query is planned."""
    return _table()[1]


def refusal(name: str, *, table: bool = False) -> str | None:
    """Return why a query may not call a function; None if it may.

    ``name`` is the bare name, without quotes and schema; ``table`` is True for a call in FROM.
    """
    known = _class_of(name, table=table)
    return None if known in _ALLOWED else _REASONS.get(known or "", _UNKNOWN)


def is_known(name: str) -> bool:
    """True if the table has a function or a word of that name."""
    return _class_of(name, table=False) is not None


def is_file_function(name: str) -> bool:
    """True if a table function reads the files named by its arguments, and nothing else."""
    return classes().get(("table", name.lower())) == "files"


def known_names() -> list[str]:
    """Return the names of all functions that an expression may call."""
    return [
        name for (kind, name), found in classes().items() if kind == "value" and found in _ALLOWED
    ]


def _class_of(name: str, *, table: bool) -> str | None:
    kinds = ("table",) if table else ("value", "word", "table")
    lowered = name.lower()
    return next((classes()[kind, lowered] for kind in kinds if (kind, lowered) in classes()), None)
