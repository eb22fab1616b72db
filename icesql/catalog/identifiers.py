"""Match table names case-insensitively, and suggest the nearest for one that is missing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from icesql.errors import CatalogError, TableNotFoundError, similar_names
from icesql.quoting import quoted

if TYPE_CHECKING:
    from icesql.catalog.table import Catalog, Identifier

# A limit that stops at lists without an end; longer lists are of no use to a reader.
MOST_NAMES: Final = 1_000_000
_DEEPEST: Final = 100


def listed_name(parts: Sequence[str]) -> str:
    """The name as lists show it: its parts as they are, or in quotes if they are ambiguous.

    A part is ambiguous if it contains a dot or starts with a quote.

    >>> print(listed_name(("sales", "big orders")), listed_name(("sales", "v1.orders")))
    sales.big orders "sales"."v1.orders"
    """
    if not any("." in part or part.lstrip().startswith(('"', "`")) for part in parts):
        return ".".join(parts)
    return ".".join(map(quoted, parts))


def all_namespaces(
    directly_in: Callable[[Identifier], Iterable[Identifier]], where: str
) -> list[Identifier]:
    """Every namespace at every depth, sorted.

    ``directly_in`` returns the children of a namespace, and the top level for (). Raises
    CatalogError if the namespaces are nested without end; ``where`` names the catalog in it.
    """
    found: set[Identifier] = set()
    waiting: list[Identifier] = [()]
    while waiting:
        above = waiting.pop()
        for namespace in directly_in(above):
            if not namespace or namespace in found:
                continue
            if len(namespace) > _DEEPEST or len(found) >= MOST_NAMES:
                raise CatalogError(f"{where}: its list of namespaces does not end")
            found.add(namespace)
            waiting.append(namespace)
    return sorted(found)


def matching(wanted: Sequence[str], candidates: Iterable[Identifier]) -> Identifier | None:
    """The candidate equal to ``wanted``, else the only case-insensitive match, else None."""
    name = tuple(wanted)
    folded = [part.casefold() for part in name]
    found = [one for one in candidates if [part.casefold() for part in one] == folded]
    if name in found:
        return name
    return found[0] if len(found) == 1 else None


def not_found(
    wanted: Sequence[str], candidates: Iterable[Identifier], where: str, hint: str = ""
) -> TableNotFoundError:
    """The error for a name that ``where`` (such as "catalog prod") does not have.

    Without ``hint`` and without near names, the hint lists what exists.
    """
    tables = list(candidates)
    names = [listed_name(one) for one in tables]
    text = ".".join(wanted)
    # A missing or wrong namespace is the commonest mistake: tables with the same last name come
    # first, as do names with a dot that lack their quotes.
    same = [
        name
        for name, one in zip(names, tables, strict=True)
        if one[-1].lower() == wanted[-1].lower() or ".".join(one).lower() == text.lower()
    ]
    similar = list(dict.fromkeys([*same, *similar_names(text, names)]))[:3]
    if not hint and not similar:
        space = tuple(wanted[:-1])
        there = any(one[: len(space)] == space for one in tables)
        lacks = "" if there or not names else f'has no namespace "{".".join(space)}", it '
        shown = ", ".join(sorted(names)[:5]) or "no tables"
        hint = f"{where} {lacks}has {shown}{', …' if len(names) > 5 else ''}"
    return TableNotFoundError(text, similar=similar, hint=hint)


def other_spelling(
    catalog: Catalog, wanted: Identifier, empty_hint: Callable[[], str], error: CatalogError
) -> Identifier:
    """The only table whose name differs from a missing one in case alone.

    Raises TableNotFoundError because of ``error``. ``empty_hint`` returns why the catalog may have
    no namespaces.
    """
    near, hint = _near_tables(catalog, wanted, empty_hint)
    found = matching(wanted, near)
    if found is None or found == wanted:
        raise not_found(wanted, near, f"catalog {catalog.name}", hint) from error
    return found


def _near_tables(
    catalog: Catalog, wanted: Identifier, empty_hint: Callable[[], str]
) -> tuple[list[Identifier], str]:
    """Tables with names near a missing one, and a hint about its namespace.

    Both are empty if the catalog cannot list its tables and namespaces.
    """
    above = wanted[:-1]
    near: list[Identifier] = []
    with suppress(CatalogError):
        near = catalog.tables(above or None)
    if near:
        return near, ""
    try:
        known = catalog.namespaces()
    except CatalogError:
        return [], ""
    if not known:
        return [], empty_hint()
    if above in known:
        return [], f'the namespace "{".".join(above)}" has no tables'
    names = {".".join(each): each for each in known}
    similar = similar_names(".".join(above), names) if above else ()
    with suppress(CatalogError):
        near = [table for name in similar[:1] for table in catalog.tables(names[name])]
    hint = f'catalog {catalog.name} has no namespace "{".".join(above)}"'
    listed = ", ".join(similar or sorted(names)[:5])
    return near, f"{hint}; {'near it is' if similar else 'it has'}: {listed}"
