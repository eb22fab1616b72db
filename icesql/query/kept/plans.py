"""Plans of queries that are asked again and again, while their tables stay the same."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

if TYPE_CHECKING:
    from icesql.catalog.table import Table
    from icesql.query.kept.bound_queries import KeptQuery
    from icesql.scan.plan import ScanPlan
    from icesql.scan.table_scan import TableScan

# In ``BoundQuery.found_before``: what an engine notes of the kept plans, for as long as they are.
PLANNED: Final = "of kept plans"
# Of one query, and of all; a file takes about 2.5 kB.
_MOST_FILES_EACH: Final = 2_000
_MOST_FILES: Final = 8_000


class KeptPlans:
    """The latest plans of one session, of queries without parameters. Safe for threads.

    A plan is that of the very tables that it was made of: whoever asks gives the same objects.
    """

    def __init__(self) -> None:
        self._kept: OrderedDict[int, tuple[KeptQuery, tuple[Table, ...], list[ScanPlan]]] = (
            OrderedDict()
        )
        self._files = 0
        self._lock = threading.Lock()

    def with_known_tables(
        self, query: KeptQuery, scans: tuple[TableScan, ...]
    ) -> tuple[TableScan, ...]:
        """The scans over the tables of the kept plans, where these are what was found now."""
        with self._lock:
            known = self._kept.get(id(query))
        if known is None or not all(
            same_table(table, scan.table) for table, scan in zip(known[1], scans, strict=True)
        ):
            return scans
        pairs = zip(scans, known[1], strict=True)
        return tuple(replace(scan, table=table) for scan, table in pairs)

    def find(self, query: KeptQuery, scans: Sequence[TableScan]) -> list[ScanPlan] | None:
        """The plans of these scans of the query, if they are kept."""
        with self._lock:
            found = self._kept.get(id(query))
            if found is None or not _same(found[1], scans):
                return None
            self._kept.move_to_end(id(query))
            return list(found[2])

    def keep(self, query: KeptQuery, scans: Sequence[TableScan], plans: Sequence[ScanPlan]) -> None:
        """Remember the plans, unless they are of very many files or of metadata."""
        count = _count(plans)
        before = query.bound.found_before
        plain = all(each.metadata is None and each.planned_by is None for each in plans)
        if query.kinds or before is None or not plain or count > _MOST_FILES_EACH:
            return
        with self._lock:
            self._drop(id(query))
            # Held, so that no other query has its id.
            self._kept[id(query)] = query, tuple(each.table for each in scans), list(plans)
            before[PLANNED] = dict[Any, Any]()
            self._files += count
            while self._files > _MOST_FILES:
                self._drop(next(iter(self._kept)))

    def _drop(self, key: int) -> None:
        found = self._kept.pop(key, None)
        if found is not None:
            self._files -= _count(found[2])
            (found[0].bound.found_before or {}).pop(PLANNED, None)


def _same(tables: Sequence[Table], scans: Sequence[TableScan]) -> bool:
    return len(tables) == len(scans) and all(
        table is scan.table for table, scan in zip(tables, scans, strict=True)
    )


def _count(plans: Sequence[ScanPlan]) -> int:
    return 1 + sum(len(each.files) for each in plans)


def same_table(known: Table, found: Table) -> bool:
    """Whether two loads of a local table gave the same metadata and the same way to its files."""
    return (
        known.metadata is found.metadata
        and known.metadata_location == found.metadata_location
        and known.identifier == found.identifier
        and known.storage.properties == found.storage.properties
        and found.storage.reroot is not None
        # A link in the place of a folder may lead elsewhere by now.
        and found.storage.confine is None
        and found.planning is None
        and found.reports is None
    )
