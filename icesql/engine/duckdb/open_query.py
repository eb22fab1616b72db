"""The resources of DuckDB that a query holds while it runs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from icesql.engine.forked import keep_in_forks

if TYPE_CHECKING:
    import pyarrow as pa

    from icesql.engine.duckdb.arrow_stream import ArrowStream
    from icesql.engine.duckdb.instance import Instance
    from icesql.engine.duckdb.relations.kept_relations import KeptLease
    from icesql.engine.duckdb.store_files import QueryFiles
    from icesql.engine.protocol import Sink


class OpenQuery:
    """A DuckDB cursor, the streams that it scans and the reader of its rows.

    It does not refer to the result: the thread that releases it must not keep the result alive.
    """

    def __init__(self) -> None:
        self.cursor: Any = None
        self.streams: list[ArrowStream] = []
        self.reader: Iterator[pa.RecordBatch] = iter(())
        self.files: QueryFiles | None = None
        self.kept: KeptLease | None = None
        self.sink: Sink | None = None
        self._instance: Instance | None = None
        keep_in_forks(self)

    def begin(self, instance: Instance, cursor: Any) -> None:
        """Hold a cursor of ``instance``."""
        self.cursor, self._instance = cursor, instance

    def begin_files(self) -> QueryFiles:
        """The files of object stores that the query reads."""
        assert self._instance is not None
        self.files = self._instance.begin_files()
        return self.files

    def begin_kept(self) -> KeptLease:
        """The tables in memory that the query reads."""
        assert self._instance is not None
        self.kept = self._instance.begin_kept()
        return self.kept

    def interrupt(self) -> None:
        """Stop what the cursor runs, from any thread; harmless when it runs nothing."""
        import duckdb

        for stream in list(self.streams):
            stream.stop()
        files = self.files
        if files is not None:
            files.stop()
        cursor = self.cursor
        if cursor is not None:
            try:
                cursor.interrupt()
            except duckdb.Error:
                return  # it was closed in this moment

    def release(self) -> None:
        """Give everything back. For the thread in which the cursor is used."""
        self.interrupt()
        cursor, instance, reader = self.cursor, self._instance, self.reader
        files, self.files = self.files, None
        kept, self.kept = self.kept, None
        self.cursor, self._instance, self.reader, self.streams = None, None, iter(()), []
        if cursor is not None and instance is not None:
            # DuckDB must have ended before the reader goes: it waits for what the reader reads.
            instance.release(cursor)
        if kept is not None:
            kept.close()
        if files is not None:
            files.close()
        del reader
