"""The texts of a session: which came before, and what is kept of those that came twice."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from icesql.query.kept.plans import KeptPlans

if TYPE_CHECKING:
    from icesql.context import QueryContext
    from icesql.query.bound import BoundQuery
    from icesql.query.kept.bound_queries import KeptQueries, KeptQuery
    from icesql.sql.statement import Query

_MOST_SEEN: Final = 256


class Asked(Struct, frozen=True):
    """A query by its text: as it was parsed, or what is kept of it."""

    sql: str
    parameters: Any
    statement: Query | None = None
    kept: KeptQuery | None = None


class Texts:
    """What is known of the texts of one session. Safe for threads.

    A text is looked into when it comes for the second time: most come once.
    """

    def __init__(self) -> None:
        self._seen: OrderedDict[int, None] = OrderedDict()
        self._queries: KeptQueries | None = None
        self.plans = KeptPlans()
        self._lock = threading.Lock()

    def find(self, sql: str, parameters: object) -> KeptQuery | None:
        """What is kept of a text with values of these kinds."""
        return None if self._queries is None else self._queries.find(sql, parameters)

    def keep(self, asked: Asked, statement: Query, bound: BoundQuery, query: QueryContext) -> None:
        """Note a text, and what it was bound to if it came before."""
        key = hash(asked.sql)
        with self._lock:
            if key not in self._seen:
                self._seen[key] = None
                if len(self._seen) > _MOST_SEEN:
                    self._seen.popitem(last=False)
                return
            if self._queries is None:
                from icesql.query.kept.bound_queries import KeptQueries

                self._queries = KeptQueries()
        self._queries.keep(asked.sql, asked.parameters, statement, bound, query)
