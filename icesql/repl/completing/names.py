"""Names for completion, fetched in the background once and cached until a statement runs."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec import Struct

from icesql.errors import Error

if TYPE_CHECKING:
    from icesql.repl.completing.source import ConnectionSource

T = TypeVar("T")


class Known(Struct, frozen=True):
    """A name or value, and the description beside it."""

    text: str
    about: str = ""


class _Lookup:
    """A request to a source, which runs in its own thread."""

    def __init__(self, look_up: Callable[[], list[Any]]) -> None:
        self.found: list[Any] = []
        self.done = threading.Event()
        threading.Thread(
            target=self._run, args=(look_up,), name="icesql-names", daemon=True
        ).start()

    def _run(self, look_up: Callable[[], list[Any]]) -> None:
        with suppress(Error):
            self.found = look_up()
        self.done.set()


class Names:
    """Names fetched once and kept until ``forget``; a catalog that fails offers none.

    A catalog that does not respond within ``patience`` seconds offers none for now: a later
    response is used the next time. No second request is sent while one is pending.
    """

    def __init__(self, source: ConnectionSource, patience: float = 1.0) -> None:
        self._source, self._patience = source, patience
        self._lookups: dict[tuple[str, ...], _Lookup] = {}
        # How often ``patience`` ran out before a response.
        self.given_up = 0

    def tables(self, catalog: str | None = None) -> list[str]:
        """Names of all tables, of the connection's own catalog or another one."""
        source = self._source
        if catalog is None:
            return self._known(("tables", ""), source.tables)
        return self._known(("tables", catalog), lambda: source.tables(catalog))

    def catalogs(self) -> list[str]:
        """Names of all catalogs."""
        return self._known(("catalogs",), self._source.catalogs)

    def columns(self, table: str) -> list[str]:
        """Names of the columns of ``table``, or none when it cannot be opened."""
        return self._known(("columns", table), lambda: self._source.columns(table))

    def versions(self, table: str) -> list[Known]:
        """See ``Source.versions``."""
        return self._known(("versions", table), lambda: self._source.versions(table))

    def times(self, table: str) -> list[Known]:
        """See ``Source.times``."""
        return self._known(("times", table), lambda: self._source.times(table))

    def values(self, table: str, column: str) -> list[Known]:
        """See ``Source.values``."""
        return self._known(("values", table, column), lambda: self._source.values(table, column))

    def functions(self) -> list[Known]:
        """See ``Source.functions``."""
        return self._known(("functions",), self._source.functions)

    def settings(self) -> list[Known]:
        """See ``Source.settings``."""
        return self._known(("settings",), self._source.settings)

    def procedures(self) -> list[Known]:
        """See ``Source.procedures``."""
        return self._known(("procedures",), self._source.procedures)

    def namespaces(self) -> list[str]:
        """See ``Source.namespaces``."""
        return self._known(("namespaces",), self._source.namespaces)

    def paths(self, beginning: str) -> list[str]:
        """See ``Source.paths``; files come and go, so they are looked for each time."""
        return self._source.paths(beginning)

    def _known(self, key: tuple[str, ...], look_up: Callable[[], list[T]]) -> list[T]:
        lookup = self._lookups.get(key)
        if lookup is None:
            lookup = self._lookups[key] = _Lookup(look_up)
        if not lookup.done.wait(self._patience):
            self.given_up += 1
        return lookup.found

    def forget(self) -> None:
        """Fetch the names again next time, since a statement may have changed them.

        A pending request is kept.
        """
        self._lookups = {
            key: lookup
            for key, lookup in self._lookups.items()
            if not lookup.done.is_set() or key[0] == "functions"
        }
