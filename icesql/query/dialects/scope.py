"""The names in scope of one SELECT of another dialect, with their types."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct, field
from sqlglot import exp

from icesql.query.dialects import types as t
from icesql.query.dialects.types import SqlType

Columns = tuple[tuple[str, SqlType], ...]


class Item(Struct):
    """One item of FROM: its name and columns in order; None if they are not known here.

    ``hidden`` are columns that ``*`` leaves out, ``merged`` those that USING or NATURAL merges with
    the items before it.
    """

    name: str
    columns: Columns | None
    hidden: Mapping[str, SqlType] = field(default_factory=dict)
    merged: frozenset[str] = frozenset()
    filter_only: bool = False

    def find(self, name: str) -> SqlType | None:
        """The type of a column, None if no column has this name."""
        if self.columns is None:
            return t.UNKNOWN
        return find(self.columns, name) or self.hidden.get(name.lower())


class Scope(Struct):
    """One SELECT: its FROM items, the aliases of its select list, and the SELECT around it."""

    parent: Scope | None = None
    items: list[Item] = field(default_factory=list)
    aliases: dict[str, SqlType] = field(default_factory=dict)
    variables: dict[str, SqlType] = field(default_factory=dict)
    aliases_first: bool = False

    def type_of(self, parts: Sequence[str]) -> SqlType:
        """The type of a column written as ``parts``; "unknown" if it is not found or not known."""
        found = self._own(parts)
        if found is None:
            return t.UNKNOWN if self.parent is None else self.parent.type_of(parts)
        return found

    def _own(self, parts: Sequence[str]) -> SqlType | None:
        first = parts[0].lower()
        if self.aliases_first and len(parts) == 1 and first in self.aliases:
            return self.aliases[first]
        if len(parts) > 1:
            for item in self.items:
                if item.name == first and (found := item.find(parts[1])) is not None:
                    return below(found, parts[2:])
            if any(item.columns is None for item in self.items) and self._is_outer(first):
                return None
        if (found := self._column(first)) is not None:
            return below(found, parts[1:])
        if first in self.aliases:
            return below(self.aliases[first], parts[1:])
        return None

    def _column(self, name: str) -> SqlType | None:
        """The type of a column; "unknown" if an item with unknown columns may have it."""
        unknown = None
        for item in self.items:
            found = item.find(name)
            if item.columns is None:
                unknown = found
            elif found is not None and (unknown is None or name not in item.merged):
                return found
        return unknown

    def _is_outer(self, table: str) -> bool:
        """True if a SELECT around this one has an item of this name."""
        outer = self.parent
        return outer is not None and (
            any(item.name == table for item in outer.items) or outer._is_outer(table)
        )

    def star(self, table: str = "") -> Columns | None:
        """The columns of ``*`` or ``table.*``, None if those of an item are not known."""
        found: list[tuple[str, SqlType]] = []
        for item in self.items:
            if item.filter_only or (table and item.name != table.lower()):
                continue
            if item.columns is None:
                return None
            found += [each for each in item.columns if table or each[0].lower() not in item.merged]
        return tuple(found)


def find(columns: Columns, name: str) -> SqlType | None:
    """The type of the column with this name, case-insensitively; None without one."""
    lowered = name.lower()
    return next((each for known, each in columns if known.lower() == lowered), None)


def below(found: SqlType, path: Sequence[str]) -> SqlType:
    """The type of a nested field of a struct, "unknown" if there is none."""
    for name in path:
        if found.kind != "struct":
            return t.UNKNOWN
        parts = tuple(zip(found.names, found.parts, strict=True))
        inner = find(parts, name)
        if inner is None:
            return t.UNKNOWN
        found = inner
    return found


def table_name(node: exp.Expr) -> str:
    """The name that qualifies the columns of an item."""
    return node.alias_or_name.lower()


def names_of(nodes: Iterable[exp.Expr]) -> Iterator[str]:
    """The names of identifiers in lower case."""
    return (each.name.lower() for each in nodes)
