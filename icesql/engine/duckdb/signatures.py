"""The signatures of DuckDB's functions, from its own catalog."""

from __future__ import annotations

from collections.abc import Sequence

from icesql.frozen import Frozen

_QUESTION = """
    SELECT lower(function_name), parameters, parameter_types, varargs, return_type, description
    FROM duckdb_functions()
    WHERE function_type IN ('scalar', 'aggregate', 'macro')
"""


class Signature(Frozen):
    """``arguments`` as ``(string VARCHAR, regex VARCHAR[, options VARCHAR]) → BOOLEAN``."""

    arguments: str
    description: str = ""


class _Form(Frozen):
    """An overload of a function; arguments of a macro have no types."""

    names: tuple[str, ...]
    types: tuple[str | None, ...]
    more: bool
    gives: str | None


def signatures() -> dict[str, Signature]:
    """The signatures of all functions for expressions, by name in lower case.

    They come from a separate instance without access to files, which takes 50 ms once.
    """
    import duckdb

    forms: dict[str, list[_Form]] = {}
    descriptions: dict[str, str] = {}
    config: dict[str, str | bool | int | float | list[str]] = {
        "threads": "1",
        "enable_external_access": "false",
    }
    with duckdb.connect(":memory:", config=config) as connection:
        for name, names, types, varargs, gives, description in connection.execute(
            _QUESTION
        ).fetchall():
            form = _Form(tuple(names or ()), tuple(types or ()), varargs is not None, gives)
            forms.setdefault(name, []).append(form)
            descriptions.setdefault(name, description or "")
    return {
        name: Signature(_arguments(found), _sentence(descriptions[name]))
        for name, found in forms.items()
    }


def _arguments(forms: Sequence[_Form]) -> str:
    """The longest overload, with arguments that a shorter one omits in brackets."""
    longest = max(forms, key=lambda each: len(each.names))
    least = min(len(each.names) for each in forms if longest.names[: len(each.names)] == each.names)
    text = ""
    for index, name in enumerate(longest.names):
        kinds = {each.types[index] for each in forms if index < len(each.types)}
        kind = kinds.pop() if len(kinds) == 1 else None
        # Without a common type, the name of the argument has to do.
        known = name if not kind or kind == "ANY" else f"{name} {kind}"
        comma = ", " if index else ""
        text += f"[{comma}{known}" if index >= least else f"{comma}{known}"
    text += "]" * (len(longest.names) - least)
    if any(each.more for each in forms):
        text += ", …" if text else "…"
    gives = {each.gives for each in forms}
    type_name = gives.pop() if len(gives) == 1 else None
    return f"({text})" + (f" → {type_name}" if type_name and type_name != "ANY" else "")


def _sentence(text: str) -> str:
    """The first sentence on one line."""
    return " ".join(text.split()).replace("`", "").partition(". ")[0].rstrip(". ")
