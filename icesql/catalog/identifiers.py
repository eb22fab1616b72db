"""Match table names case-insensitively, and suggest the nearest for one that is missing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from icesql.errors import TableNotFoundError, similar_names


def matching(
    wanted: Sequence[str], candidates: Iterable[tuple[str, ...]]
) -> tuple[str, ...] | None:
    """The candidate equal to ``wanted``, else the only case-insensitive match, else None."""
    name = tuple(wanted)
    folded = [part.casefold() for part in name]
    found = [one for one in candidates if [part.casefold() for part in one] == folded]
    if name in found:
        return name
    return found[0] if len(found) == 1 else None


def not_found(
    wanted: Sequence[str], candidates: Iterable[tuple[str, ...]], where: str, hint: str = ""
) -> TableNotFoundError:
    """The error for a name that ``where`` (such as "catalog prod") does not have.

    Without ``hint`` and without near names, the hint lists what exists.
    """
    tables = list(candidates)
    names = [".".join(one) for one in tables]
    text = ".".join(wanted)
    # A forgotten or wrong namespace is the commonest slip: the same last name comes first.
    same = [one for one in names if one.rpartition(".")[2].lower() == wanted[-1].lower()]
    similar = list(dict.fromkeys([*same, *similar_names(text, names)]))[:3]
    if not hint and not similar:
        space = tuple(wanted[:-1])
        there = any(one[: len(space)] == space for one in tables)
        lacks = "" if there or not names else f'has no namespace "{".".join(space)}", it '
        hint = f"{where} {lacks}has {_count(names)}"
    return TableNotFoundError(text, similar=similar, hint=hint)


def _count(names: list[str]) -> str:
    if not names:
        return "no tables"
    shown = ", ".join(sorted(names)[:5])
    return f"{shown}{', …' if len(names) > 5 else ''}"
