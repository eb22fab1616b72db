"""Count the live rows of many data files, in parts that fit the memory limit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

from icesql.catalog.table import Table
from icesql.context import QueryContext
from icesql.errors import Error, QueryCancelledError
from icesql.iceberg.manifest.data_file import DataFile
from icesql.iceberg.metadata_columns import POS
from icesql.iceberg.schema import Schema
from icesql.maintain.deletes.task import divide
from icesql.maintain.live_rows import is_read, live_rows
from icesql.scan.plan import scan_context
from icesql.scan.table_scan import TableScan
from icesql.scan.tasks.task import FileScanTask

# Limit for data files whose keys are read; beyond it counts are unknown.
_MOST_BYTES: Final = 8 << 30
_ROWS_OF_MEMORY: Final = 32

Deletes: TypeAlias = tuple[DataFile, ...]


class LiveRows:
    """Reads files of ``table``; counts are None if a file cannot be read, or there are too many."""

    def __init__(self, table: Table, query: QueryContext) -> None:
        self._query = query
        schema = table.metadata.schema
        self._context = scan_context(TableScan(table, None, schema, Schema((POS,))))
        self._left = _MOST_BYTES

    def count(self, files: Sequence[tuple[DataFile, Deletes]]) -> int | None:
        """The number of live rows in all of the files."""
        tasks = [FileScanTask(each, 0, each.file_size_in_bytes, gone) for each, gone in files]
        most = max(self._query.settings.memory_limit // _ROWS_OF_MEMORY, 1 << 16)
        total = 0
        try:
            for numbers in divide(tasks, 1, most):
                part = [tasks[each] for each in numbers]
                self._left -= sum(each.length for each in part if is_read(each))
                if self._left < 0:
                    return None
                total += live_rows(part, self._context, self._query)
        except QueryCancelledError:
            raise
        except Error:
            return None
        return total

    def back(self, files: Sequence[tuple[DataFile, Deletes, Deletes]]) -> int | None:
        """How many more rows are live with the second deletes of each file than with the first."""
        lived = self.count([(file, were) for file, were, _ in files])
        live = None if lived is None else self.count([(file, are) for file, _, are in files])
        return None if live is None or lived is None else live - lived
