"""The request of a SHOW or DESCRIBE: the statement, its pattern, and the state that it reads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from msgspec import Struct

from icesql.context import QueryContext
from icesql.errors import found_at
from icesql.query.snapshot_selection import by_schema, select_snapshot, session_time
from icesql.sql.positions import unsupported

if TYPE_CHECKING:
    from datetime import datetime

    from icesql.catalog.search_path import SearchPath
    from icesql.catalog.table import Table
    from icesql.iceberg.partitioning import PartitionSpec
    from icesql.iceberg.schema import Schema
    from icesql.query.metadata_scan import Found
    from icesql.query.session_state import SessionState
    from icesql.query.snapshot_selection import SelectedSnapshot
    from icesql.sql.statement import Shown, TableReference


# ------------------------------------------------------------------ patterns of names


def is_like(text: str, pattern: str) -> bool:
    """Whether ``text LIKE pattern``. The time is at most the product of their lengths.

    >>> is_like("orders", "ord%"), is_like("orders", "[o]rders"), is_like("a", "_%_")
    (True, False, False)
    """
    at = place = 0
    # The position of the last %, and the end of the text it has matched so far.
    any_text, taken = -1, 0
    while at < len(text):
        if place < len(pattern) and pattern[place] == "%":
            any_text, taken = place, at
            place += 1
        elif place < len(pattern) and pattern[place] in ("_", text[at]):
            at += 1
            place += 1
        elif any_text >= 0:
            taken += 1
            at, place = taken, any_text + 1
        else:
            return False
    return all(each == "%" for each in pattern[place:])


# ------------------------------------------------------------------ the request


# Names and kinds: varchar, bigint, integer, boolean, timestamp, timestamptz or varchar[].
Columns: TypeAlias = Sequence[tuple[str, str]]
Rows: TypeAlias = list[tuple[Any, ...]]


def columns(text: str) -> Columns:
    """The names and kinds of ``name varchar, value varchar``."""
    return [(name, kind) for name, _, kind in (each.partition(" ") for each in text.split(", "))]


class ShowRequest(Struct):
    """A statement with its session; functions that make rows add to ``notes``."""

    statement: Shown
    session: SessionState
    query: QueryContext
    notes: tuple[str, ...] = ()

    @property
    def names(self) -> SearchPath:
        """The search path that resolves names."""
        return self.session.names

    @property
    def reference(self) -> TableReference:
        """The table that the statement names."""
        assert self.statement.reference is not None
        return self.statement.reference

    def keeps(self, name: str) -> bool:
        """Whether a name matches the pattern, case-insensitively; True without a pattern."""
        like = self.statement.like
        return like is None or is_like(name.lower(), like.lower())

    def table(self) -> Table:
        """The table of the reference; refuses metadata tables and time travel.

        Raises the errors of ``names.load``, and UnsupportedSqlError.
        """
        found = self._table()
        if self.reference.travel is not None or found.travel is not None:
            hint = "it is the same at every snapshot"
            what = f"time travel in {self.statement.label}"
            raise unsupported(what, self.reference.offset, hint)
        return found.table

    def at_snapshot(self) -> tuple[Table, SelectedSnapshot]:
        """The table, and the snapshot and columns that the reference or its name selects.

        Raises the errors of ``table``, and SnapshotNotFoundError.
        """
        found = self._table()
        return found.table, self._selected(found)

    def described(self) -> tuple[Schema, PartitionSpec | None]:
        """The schema of a table or metadata table at its snapshot; the current partition spec."""
        from icesql.scan.metadata_tables.schemas import metadata_schema

        found = self._found()
        metadata = found.table.metadata
        if found.metadata_table is not None:
            return metadata_schema(found.metadata_table, metadata), None
        return self._selected(found).schema, metadata.spec

    def _table(self) -> Found:
        found = self._found()
        if found.metadata_table is not None:
            what = f"{self.statement.label} of a metadata table"
            raise unsupported(what, self.reference.offset, "name the table itself")
        return found

    def _found(self) -> Found:
        from icesql.query.metadata_scan import load

        with found_at(self.reference.offset):
            return load(self.reference, self.names, self.query)

    def _selected(self, found: Found) -> SelectedSnapshot:
        reference = self.reference
        with found_at(reference.offset):
            travel = reference.travel or found.travel
            selected = select_snapshot(found.table, travel, self.query)
            return by_schema(found.table, selected, reference.schema)

    def instant(self, milliseconds: int) -> datetime:
        """A time since 1970 in the zone of the session."""
        return session_time(milliseconds, self.query)


# The names and kinds of columns with commas between, and the function that makes the rows.
Answer: TypeAlias = tuple[str, Callable[[ShowRequest], Iterable[tuple[Any, ...]]]]
