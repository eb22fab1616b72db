"""Small scans that are read repeatedly, kept as tables in the engine's memory.

A point lookup spends most of its time on opening a Parquet file and decoding its pages.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable, Sequence
from typing import Any, Final

from icesql.engine.duckdb.errors import is_fatal
from icesql.engine.duckdb.relations.relation import Relation
from icesql.iceberg import types as t
from icesql.quoting import quoted
from icesql.scan.tasks import FileScanTask, ScanContext

# How often a scan is read from its files before it is kept in memory.
USES_BEFORE: Final = 12
_MOST_NOTED: Final = 256
_MOST_FILES: Final = 16
_MOST_FILE_BYTES: Final = 8 << 20
# In memory: of one table, and of all tables, which is also limited to a part of the memory limit.
_MOST_BYTES_EACH: Final = 48 << 20
_MOST_BYTES: Final = 128 << 20
_PART: Final = 16
# The maximum size of a value, without the bytes of a string.
_VALUE_BYTES: Final = 16
_PLAIN: Final = (
    t.BooleanType, t.IntegerType, t.LongType, t.FloatType, t.DoubleType, t.DecimalType, t.DateType,
    t.TimeType, t.TimestampType, t.TimestamptzType, t.UUIDType, t.StringType, t.BinaryType,
)  # fmt: skip
_LENGTHS: Final[dict[type[t.IcebergType], str]] = {
    t.StringType: "strlen",
    t.BinaryType: "octet_length",
}


class _Table:
    """A table and the number of open queries that read it; ``name`` is None until it exists."""

    def __init__(self) -> None:
        self.name: str | None = None
        self.size = self.uses = self.leases = 0


class KeptRelations:
    """The tables of one DuckDB instance. Thread-safe.

    The key of a table is the SQL of its scan with the path, size and modification time of its
    files, so a replaced file is read again. The least recently used table is dropped first, but
    never while a query reads it.
    """

    def __init__(self, memory_limit: int) -> None:
        self.most_bytes = min(_MOST_BYTES, memory_limit // _PART)
        self.bytes_used = 0
        self._tables: OrderedDict[Hashable, _Table] = OrderedDict()
        self._lock = threading.Lock()
        self._made = 0

    def use(self, key: Hashable) -> tuple[_Table, bool]:
        """Count a use of a scan and return its table, which is leased if it exists.

        The second value is True if the caller has to create it, and then call ``made`` or
        ``not_made``.
        """
        with self._lock:
            table = self._tables.get(key)
            if table is None:
                table = self._tables[key] = _Table()
            self._tables.move_to_end(key)
            table.uses += 1
            if table.name is not None:
                table.leases += 1
                return table, False
            if len(self._tables) > _MOST_NOTED:
                self._forget_one()
            # One use makes it due: later ones find it being created, or that it cannot be.
            return table, table.uses == USES_BEFORE + 1

    def room(self, table: _Table, size: int) -> tuple[str | None, list[str]]:
        """Reserve ``size`` bytes: the table's name, None without room; the tables to drop first."""
        names: list[str] = []
        with self._lock:
            for key, each in list(self._tables.items()):
                if self.bytes_used + size <= self.most_bytes:
                    break
                if each.name is not None and not each.leases:
                    names.append(each.name)
                    self.bytes_used -= each.size
                    del self._tables[key]
            if self.bytes_used + size > self.most_bytes:
                return None, names
            self.bytes_used += size
            table.size = size
            self._made += 1
            return f"__kept_{self._made}", names

    def made(self, table: _Table, name: str) -> None:
        """Record that the table exists, and lease it."""
        with self._lock:
            table.name = name
            table.leases += 1

    def not_made(self, table: _Table, *, again: bool) -> None:
        """Record that the table does not exist; ``again``: it may be created later."""
        with self._lock:
            self.bytes_used -= table.size
            table.size = 0
            if again:
                table.uses = 0

    def give_back(self, table: _Table) -> None:
        """End a query's lease on a table."""
        with self._lock:
            table.leases -= 1

    def _forget_one(self) -> None:
        for key, table in self._tables.items():
            if table.name is None and not table.size:
                del self._tables[key]
                return


class KeptLease:
    """The kept tables that one query reads. Used only in the query's thread."""

    def __init__(self, kept: KeptRelations) -> None:
        self._kept = kept
        self._used: list[_Table] = []

    def relation(
        self, cursor: Any, found: Relation, tasks: Sequence[FileScanTask], context: ScanContext
    ) -> Relation:
        """The same rows from memory if they are kept; else ``found``.

        Raises the engine's errors if the query was cancelled or the instance broke.
        """
        if found.registered or not _is_small(tasks, context):
            return found
        key = _key(found, tasks, context)
        if key is None:
            return found
        table, is_due = self._kept.use(key)
        if is_due:
            self._make(cursor, table, found, tasks, context)
        if table.name is None:
            return found
        self._used.append(table)
        return Relation(f"SELECT * FROM {table.name}")

    def _make(
        self,
        cursor: Any,
        table: _Table,
        found: Relation,
        tasks: Sequence[FileScanTask],
        context: ScanContext,
    ) -> None:
        import duckdb

        again, is_made = False, False
        try:
            size = _size(cursor, found, tasks, context)
            again = size <= min(_MOST_BYTES_EACH, self._kept.most_bytes)
            name, unused = self._kept.room(table, size) if again else (None, [])
            for each in unused:
                cursor.execute(f"DROP TABLE {each}")
            if name is not None:
                cursor.execute(f"CREATE TABLE {name} AS {found.sql}", dict(found.parameters))
                self._kept.made(table, name)
                is_made = True
        except (duckdb.Error, UnicodeDecodeError) as error:
            again = isinstance(error, duckdb.InterruptException)
            if again or is_fatal(error):
                raise
            # Reading the files will raise the error again.
        finally:
            if not is_made:
                self._kept.not_made(table, again=again)

    def close(self) -> None:
        """End all leases. May be called again."""
        while self._used:
            self._kept.give_back(self._used.pop())


def _key(found: Relation, tasks: Sequence[FileScanTask], context: ScanContext) -> Hashable | None:
    """The key of a scan; None if a file is not on this machine."""
    versions = [context.storage.version_of(task.data_file.path) for task in tasks]
    if None in versions:
        return None
    constants = [(name, str(value)) for name, value in found.parameters.items()]
    return (found.sql, *versions, *constants)


def _is_small(tasks: Sequence[FileScanTask], context: ScanContext) -> bool:
    """True if, according to metadata, the files are small and have only plain columns."""
    columns = context.projection.fields
    if not columns or not 0 < len(tasks) <= _MOST_FILES:
        return False
    rows = 0
    for task in tasks:
        file = task.data_file
        if file.record_count < 0 or not 0 <= file.file_size_in_bytes <= _MOST_FILE_BYTES:
            return False
        rows += file.record_count
    return rows * len(columns) * _VALUE_BYTES <= _MOST_BYTES_EACH and all(
        isinstance(column.type, _PLAIN) for column in columns
    )


def _size(cursor: Any, found: Relation, tasks: Sequence[FileScanTask], context: ScanContext) -> int:
    """An estimate of the rows' bytes: a small file may contain one long string a million times."""
    columns = context.projection.fields
    rows = sum(task.data_file.record_count for task in tasks)
    texts = [
        f"coalesce(sum({_LENGTHS[type(column.type)]}({quoted(column.name)})), 0)"
        for column in columns
        if type(column.type) in _LENGTHS
    ]
    count = f"count(*) * {len(columns) * _VALUE_BYTES}"
    sql = f"SELECT {' + '.join([count, *texts])} FROM ({found.sql})"
    ((size,),) = cursor.execute(sql, dict(found.parameters)).fetchall()
    # Wrong counts in metadata are reported when the files are read.
    return max(int(size), rows * len(columns) * _VALUE_BYTES)
