"""Match table names case-insensitively, and suggest the nearest for one that is missing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from icesql.errors import CatalogError, TableNotFoundError, similar_names
from icesql.quoting import quoted

if TYPE_CHECKING:
    from icesql.catalog.table import Identifier

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


class ByNamespace:
    """A catalog that lists its contents namespace by namespace.

    ``namespaces_in`` returns the children of a namespace, and the top level for (); ``tables_in``
    and ``views_in`` what is directly in one; ``empty_hint`` why there may be no namespaces.
    """

    name: str
    namespaces_in: Callable[[Identifier], list[Identifier]]
    tables_in: Callable[[Identifier], list[Identifier]]
    views_in: Callable[[Identifier], list[Identifier]]
    empty_hint: Callable[[], str]

    def namespaces(self) -> list[Identifier]:
        """As ``Catalog.namespaces``. Raises CatalogError if they are nested without end."""
        found: set[Identifier] = set()
        waiting: list[Identifier] = [()]
        while waiting:
            for namespace in self.namespaces_in(waiting.pop()):
                if not namespace or namespace in found:
                    continue
                if len(namespace) > _DEEPEST or len(found) >= MOST_NAMES:
                    raise CatalogError(f"catalog {self.name}: its list of namespaces does not end")
                found.add(namespace)
                waiting.append(namespace)
        return sorted(found)

    def tables(self, namespace: Sequence[str] | None = None) -> list[Identifier]:
        """As ``Catalog.tables``."""
        return [table for each in self._spaces(namespace) for table in self.tables_in(each)]

    def views(self, namespace: Sequence[str] | None = None) -> list[Identifier]:
        """As ``HasViews.views``."""
        return [view for each in self._spaces(namespace) for view in self.views_in(each)]

    def _spaces(self, namespace: Sequence[str] | None) -> list[Identifier]:
        if namespace is None:
            return self.namespaces()
        return [tuple(namespace)] if namespace else []

    def other_spelling(self, wanted: Identifier, error: CatalogError) -> Identifier:
        """The only table whose name differs from a missing one in case alone.

        Raises TableNotFoundError because of ``error``.
        """
        near, hint = self._near_tables(wanted)
        found = matching(wanted, near)
        if found is None or found == wanted:
            raise not_found(wanted, near, f"catalog {self.name}", hint) from error
        return found

    def _near_tables(self, wanted: Identifier) -> tuple[list[Identifier], str]:
        """Tables with names near a missing one, and a hint about its namespace.

        Both are empty if the catalog cannot list its tables and namespaces.
        """
        above = wanted[:-1]
        near: list[Identifier] = []
        with suppress(CatalogError):
            near = self.tables(above or None)
        if near:
            return near, ""
        try:
            known = self.namespaces()
        except CatalogError:
            return [], ""
        if not known:
            return [], self.empty_hint()
        if above in known:
            return [], f'the namespace "{".".join(above)}" has no tables'
        names = {".".join(each): each for each in known}
        similar = similar_names(".".join(above), names) if above else ()
        with suppress(CatalogError):
            near = [table for name in similar[:1] for table in self.tables(names[name])]
        hint = f'catalog {self.name} has no namespace "{".".join(above)}"'
        listed = ", ".join(similar or sorted(names)[:5])
        return near, f"{hint}; {'near it is' if similar else 'it has'}: {listed}"
