"""A session with given tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from icesql.access import Access
from icesql.catalog.search_path import PlaceOfView, SearchPath
from icesql.catalog.table import Table
from icesql.config import Settings
from icesql.errors import TableNotFoundError
from icesql.session.outcome import State
from icesql.storage.cache import BoundedCache


class Tables(SearchPath):
    """Opens the tables of a mapping, by their names with dots."""

    def __init__(self, tables: Mapping[str, Table]) -> None:
        super().__init__(lambda _: None, BoundedCache(1), Access())
        self.tables = tables

    def open_table(
        self, parts: Sequence[str], path: str | None = None, place: PlaceOfView | None = None
    ) -> Table:
        name = ".".join(parts)
        if name not in self.tables:
            raise TableNotFoundError(name)
        return self.tables[name]

    def is_near(self, parts: Sequence[str], path: str | None = None) -> bool:
        return True


def session_of(tables: Mapping[str, Table]) -> State:
    """A new session with these tables, without executed statements."""
    state = State(lambda _: None, BoundedCache(1), Access(), Settings())
    state.names = Tables(tables)
    return state
