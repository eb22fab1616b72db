"""Parquet footers as DuckDB reports them: the facts that decide whether DuckDB reads a file."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence
from functools import cached_property
from io import BytesIO
from typing import Any, Final

from icesql.engine.duckdb.relations.opened_files import OpenedFiles
from icesql.engine.duckdb.relations.relation import escape_glob
from icesql.frozen import Frozen
from icesql.read.formats.parquet_footer import RowCounts, SchemaLayout, read_row_counts
from icesql.read.formats.thrift import BadThrift

_SMALL: Final = 1 << 20
_QUERY: Final = (
    "SELECT name, type, CAST(type_length AS INTEGER), repetition_type, converted_type,"
    " logical_type, field_id, scale, precision, num_children FROM parquet_schema(?)"
)


class Element(Frozen):
    """One node of a Parquet schema; ``physical`` is None for groups, strings are DuckDB's."""

    children: tuple[Element, ...]
    name: str
    physical: str | None
    length: int | None
    repetition: str | None
    converted: str | None
    logical: str | None
    field_id: int | None
    scale: int | None
    precision: int | None

    @property
    def form(self) -> str:
        """Its physical, converted and logical type."""
        return f"{self.physical} {self.converted} {self.logical}"

    def leaves(self) -> Iterator[Element]:
        """The columns that store values, in order."""
        if self.physical is not None:
            yield self
        for each in self.children:
            yield from each.leaves()


class Footer(Frozen, dict=True):
    """The top-level columns of a file. Equal schemas share one Footer."""

    columns: tuple[Element, ...]

    @cached_property
    def by_id(self) -> dict[int, Element] | None:
        """Top-level columns by field id; None unless every element has a unique id."""
        seen: set[int] = set()

        def unique(element: Element, *, needs_id: bool = True) -> bool:
            if element.field_id in seen or (element.field_id is None and needs_id):
                return False
            if element.field_id is not None:
                seen.add(element.field_id)
            # The repeated group inside a list or map has no id.
            repeated = element.converted in ("LIST", "MAP", "MAP_KEY_VALUE") or (
                element.logical in ("ListType()", "MapType()")
            )
            return all(unique(child, needs_id=not repeated) for child in element.children)

        if not all(map(unique, self.columns)):
            return None
        return {each.field_id: each for each in self.columns if each.field_id is not None}


class FileFacts(Frozen):
    """Facts about a file: its schema, the footer's size, the number of rows, the file's length.

    ``problem`` describes an error in the footer, or in the pages of the ``checked`` columns.
    ``counts`` are kept only if the file's length is not the recorded one. ``changed`` is the
    modification time in ns, None for a file that is not on this machine.
    """

    footer: Footer
    size: int
    rows: int
    length: int
    problem: str | None
    checked: frozenset[int]
    counts: RowCounts | None
    changed: int | None


class FooterCache:
    """Footers by location and recorded length, of local files as long as they do not change.

    Iceberg's files never change, but a restored or recreated table may have other files under the
    same names. Shared by the results of one connection; thread-safe. Holds one Footer per distinct
    schema, so 10,000 files of one table cost 10,000 small records.
    """

    def __init__(self) -> None:
        self._facts: dict[tuple[str, int], FileFacts] = {}
        self._footers: dict[bytes, Footer] = {}
        self._interned: dict[tuple[Any, ...], Footer] = {}
        self._layouts: dict[bytes, SchemaLayout] = {}

    def facts(self, location: str, length: int) -> FileFacts | None:
        """The cached facts about a file, or None."""
        return self._facts.get((location, length))

    def load(
        self,
        cursor: Any,
        files: Sequence[tuple[str, int]],
        columns: Collection[int],
        opened: OpenedFiles,
    ) -> None:
        """Read the footers of ``files`` (location, recorded length) that are not cached.

        It also counts the pages of ``columns`` (field ids). A file that cannot be read, or has no
        unencrypted footer, gets no facts. DuckDB's ``cursor`` reads one footer of each schema; its
        errors and those of an object store pass through. ``opened`` opens the files; pages are not
        counted where that needs requests.
        """
        wanted = frozenset(columns)
        for key in files:
            known = self._facts.get(key)
            if known is not None and known.changed != time_of_change(key[0]):
                known = None
            if known is not None and not opened.is_here(key[0]):
                continue  # its pages would not be counted
            checked = frozenset[int]() if known is None else known.checked
            if known is None or not (known.problem or wanted <= checked):
                facts = self._look_at(cursor, key, opened, wanted - checked, wanted | checked)
                if facts is None:
                    self._facts.pop(key, None)
                else:
                    self._facts[key] = facts

    def _look_at(
        self,
        cursor: Any,
        key: tuple[str, int],
        opened: OpenedFiles,
        columns: frozenset[int],
        checked: frozenset[int],
    ) -> FileFacts | None:
        location, length = key
        changed = time_of_change(location)
        try:
            with opened.open(location) as found:
                file = found
                if 0 <= length <= _SMALL and opened.is_here(location):
                    # One read is cheaper than one for each page, and a buffer of the file's length
                    # costs half of one of the maximum length.
                    data = found.read(length + 1)
                    file = BytesIO(data) if len(data) <= length else found
                counts = read_row_counts(file, self._layouts)
                problem = counts.problem
                if problem is None and opened.is_here(location):
                    problem = counts.page_problem(file, columns)
        except (OSError, BadThrift):
            return None
        # The stream is closed here: closing it later would end the requests for the columns.
        if not opened.is_here(location):
            opened.note_footer(location, length, counts)
        footer = self._footers.get(counts.schema)
        if footer is None:
            rows = tuple(cursor.execute(_QUERY, [[escape_glob(opened.path(location))]]).fetchall())
            # Schemas that look the same to DuckDB share one Footer.
            footer = self._interned.setdefault(rows, Footer(_tree(rows)))
            self._footers[counts.schema] = footer
        kept = None if counts.length == length else counts
        return FileFacts(
            footer, counts.footer, counts.rows, counts.length, problem, checked, kept, changed
        )


def time_of_change(location: str) -> int | None:
    """The modification time of a file in ns; None for a file that is not on this machine."""
    try:
        return os.stat(location).st_mtime_ns
    except (OSError, ValueError):
        return None


def _tree(rows: Sequence[tuple[Any, ...]]) -> tuple[Element, ...]:
    """The children of the root, from rows in depth-first order."""
    position = 0

    def build() -> Element:
        nonlocal position
        *facts, count = rows[position]
        position += 1
        return Element(tuple(build() for _ in range(count or 0)), *facts)

    return build().children if rows else ()
