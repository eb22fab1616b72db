"""Parquet footers as DuckDB reports them: the facts that decide whether a file is plain."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from icesql.engine.parquet_rows import row_count

_QUERY: Final = (
    "SELECT file_name, name, type, type_length, repetition_type, num_children, converted_type,"
    " logical_type, field_id, scale, precision FROM parquet_schema(?)"
)


@dataclass(frozen=True, slots=True)
class Element:
    """One node of a Parquet schema; ``physical`` is None for groups, texts are DuckDB's."""

    name: str
    physical: str | None
    length: int | None
    repetition: str | None
    converted: str | None
    logical: str | None
    field_id: int | None
    scale: int | None
    precision: int | None
    children: tuple[Element, ...] = field(default=())


@dataclass(frozen=True)
class Footer:
    """The top-level columns of a file. Equal schemas share one Footer."""

    columns: tuple[Element, ...]

    @property
    def by_id(self) -> dict[int, Element] | None:
        """Top-level columns by field id; None unless every element has an id of its own."""
        if "_by_id" not in self.__dict__:
            self.__dict__["_by_id"] = _by_unique_id(self.columns)
        found: dict[int, Element] | None = self.__dict__["_by_id"]
        return found


def _by_unique_id(columns: tuple[Element, ...]) -> dict[int, Element] | None:
    seen: set[int] = set()

    def unique(element: Element, *, needs_id: bool = True) -> bool:
        if element.field_id is None:
            if needs_id:
                return False
        elif element.field_id in seen:
            return False
        else:
            seen.add(element.field_id)
        # The repeated group inside a list or map carries no id of its own.
        repeated = element.converted in ("LIST", "MAP", "MAP_KEY_VALUE") or (
            element.logical in ("ListType()", "MapType()")
        )
        return all(unique(child, needs_id=not repeated) for child in element.children)

    if not all(unique(column) for column in columns):
        return None
    return {column.field_id: column for column in columns if column.field_id is not None}


class FooterCache:
    """Footers by location and length; files never change, so nothing is ever stale.

    Shared by the results of one connection, safe for threads. Holds one object per distinct
    schema, so 10,000 files of one table cost 10,000 references.
    """

    def __init__(self) -> None:
        self._footers: dict[tuple[str, int], Footer] = {}
        self._interned: dict[tuple[Any, ...], Footer] = {}
        self._row_counts: dict[tuple[str, int], int] = {}
        self._lock = threading.Lock()

    def get(self, location: str, length: int) -> Footer | None:
        """The footer when it is known."""
        return self._footers.get((location, length))

    def load(self, cursor: Any, files: Sequence[tuple[str, int]], escaped: Iterable[str]) -> None:
        """Read the footers of ``files`` (location, length) in one query on a DuckDB cursor.

        ``escaped`` are the same locations with glob characters escaped. DuckDB's errors pass
        through: a file whose footer cannot be read.
        """
        rows_by_file: dict[str, list[tuple[Any, ...]]] = {}
        for name, *rest in cursor.execute(_QUERY, [list(escaped)]).fetchall():
            rows_by_file.setdefault(name, []).append(tuple(rest))
        with self._lock:
            for location, length in files:
                rows = rows_by_file.get(location)
                if rows is None:
                    continue
                signature = tuple(rows)
                footer = self._interned.get(signature)
                if footer is None:
                    footer = self._interned[signature] = Footer(_tree(rows))
                self._footers[location, length] = footer

    def row_count(self, location: str, length: int) -> int | None:
        """How many rows a local file has by its footer, None where that is not known."""
        key = location, length
        found = self._row_counts.get(key)
        if found is None:
            try:
                found = row_count(location)
            except OSError:
                return None
            if found is not None:
                self._row_counts[key] = found
        return found


def _tree(rows: list[tuple[Any, ...]]) -> tuple[Element, ...]:
    """The children of the root, from rows in depth-first order."""
    position = 0

    def build() -> Element:
        nonlocal position
        name, physical, length, repetition, count, converted, logical, field_id, scale, digits = (
            rows[position]
        )
        position += 1
        inner = tuple(build() for _ in range(count or 0))
        return Element(
            name,
            physical,
            None if length is None else int(length),
            repetition,
            converted,
            logical,
            field_id,
            scale,
            digits,
            inner,
        )

    return build().children if rows else ()
