"""KeptFooters: the Parquet footers that a DuckDB instance keeps between queries, and their size."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from icesql.engine.duckdb.relations.footer import time_of_change

if TYPE_CHECKING:
    from icesql.engine.duckdb.relations.footer import FileFacts

# What DuckDB makes of a byte of a footer. Its own estimate counts the chunks of one row group.
_BYTES_OF_BYTE: Final = 9
# Of the memory limit.
_PART: Final = 16
# What an instance that keeps footers is started with, and a cursor may leave; all else is locked.
# Ranges of a file that is in the system's memory are read as they are needed: to collect them
# first costs up to a quarter more. From a disk it saves as much.
SETTINGS: Final = {"parquet_metadata_cache": True, "disable_parquet_prefetching": True}
_READ_FOOTERS: Final = "SET SESSION parquet_metadata_cache = false"
_PREFETCH: Final = "SET SESSION disable_parquet_prefetching = false"
# Of the memory limit: files of so many bytes may still be in the system's memory.
_PART_READ: Final = 2


class KeptFooters:
    """The files, by location, whose footers are kept, and when each was changed.

    DuckDB knows a file by its time of change in whole seconds, which another file in its place may
    have, too. Safe for threads.
    """

    def __init__(self, memory_limit: int) -> None:
        self._most = memory_limit // _PART // _BYTES_OF_BYTE
        self._most_read = memory_limit // _PART_READ
        self._files: dict[str, int | None] = {}
        self._bytes = 0
        self._lock = threading.Lock()

    def admit(self, cursor: Any, facts: Mapping[str, FileFacts], *, are_fresh: bool) -> bool:
        """Let the query of ``cursor`` keep footers, or not where they are too many or changed.

        ``facts`` of all its files are by location; ``are_fresh``: the files were looked at just
        now. False if another instance is to be begun for the next query.
        """
        changed = {
            location: each.changed if are_fresh else time_of_change(location)
            for location, each in facts.items()
        }
        with self._lock:
            new = changed.keys() - self._files.keys()
            size = sum(facts[each].size for each in new)
            has_room = self._bytes + size <= self._most
            is_known = all(self._files.get(each, at) == at for each, at in changed.items())
            if has_room and is_known:
                self._files |= changed
                self._bytes += size
        if new or not has_room or sum(each.length for each in facts.values()) > self._most_read:
            cursor.execute(_PREFETCH)
        if has_room and is_known:
            return True
        cursor.execute(_READ_FOOTERS)
        return is_known and sum(each.size for each in facts.values()) > self._most
