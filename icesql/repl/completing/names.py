"""Names for completion, fetched in the background once and cached until a statement runs."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from icesql.frozen import Frozen

if TYPE_CHECKING:
    from icesql.repl.completing.source import ConnectionSource


class Known(Frozen):
    """A name or value, and the description beside it."""

    text: str
    about: str = ""


class Lookup:
    """A request for names or completions, in a daemon thread; one that fails has none."""

    def __init__(self, look_up: Callable[[], list[Any]]) -> None:
        self.found: list[Any] = []
        self.done = threading.Event()
        threading.Thread(
            target=self._run, args=(look_up,), name="icesql-names", daemon=True
        ).start()

    def _run(self, look_up: Callable[[], list[Any]]) -> None:
        with suppress(Exception):  # a prompt without suggestions is better than none
            self.found = look_up()
        self.done.set()


class Names:
    """Names fetched once and kept until ``forget``; a catalog that fails offers none.

    A catalog that does not respond within ``patience`` seconds offers none for now: a later
    response is used the next time. No second request is sent while one is pending.
    """

    def __init__(self, source: ConnectionSource, patience: float = 1.0) -> None:
        self.source, self._patience = source, patience
        self._lookups: dict[tuple[str, ...], Lookup] = {}
        # How often ``patience`` ran out before a response.
        self.given_up = 0

    def known(self, kind: str, *given: str) -> list[Any]:
        """The names that the source's method ``kind`` returns, such as ``columns`` of a table."""
        key = (kind, *given)
        lookup = self._lookups.get(key)
        if lookup is None:
            lookup = self._lookups[key] = Lookup(partial(getattr(self.source, kind), *given))
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
