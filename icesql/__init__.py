"""icesql runs SQL SELECT with time travel on Iceberg tables, from Python or a shell.

>>> import icesql
>>> con = icesql.connect(warehouse="warehouse")
>>> con.execute("SELECT count(*) FROM sales.orders FOR VERSION AS OF 'v1'").fetchall()
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from icesql.dbapi.connection import Connection, connect
from icesql.dbapi.cursor import Cursor
from icesql.dbapi.types import (
    BINARY,
    DATETIME,
    NUMBER,
    ROWID,
    STRING,
    Binary,
    Date,
    DateFromTicks,
    Time,
    TimeFromTicks,
    Timestamp,
    TimestampFromTicks,
)
from icesql.errors import (
    AccessDeniedError,
    AmbiguousColumnError,
    AmbiguousTableError,
    CatalogError,
    ColumnNotFoundError,
    CommitConflictError,
    CorruptFileError,
    DatabaseError,
    DataError,
    Error,
    IntegrityError,
    InterfaceError,
    InternalError,
    MissingExtraError,
    NotSupportedError,
    OperationalError,
    ProgrammingError,
    QueryCancelledError,
    ScanLimitError,
    SnapshotNotFoundError,
    SqlSyntaxError,
    StorageError,
    TableNotFoundError,
    TypeMismatchError,
    UnsupportedSqlError,
    UnsupportedTableError,
    Warning,
)
from icesql.interval import Interval

if TYPE_CHECKING:
    import pyarrow as pa

    from icesql.context import QueryContext
    from icesql.scan.tasks.task import CombinedScanTask

apilevel: Final = "2.0"
threadsafety: Final = 2
paramstyle: Final = "qmark"


def read_task(
    task: CombinedScanTask, query: QueryContext | None = None
) -> Iterator[pa.RecordBatch]:
    """Live rows of a combined scan task as Arrow batches, on any machine that has the files.

    At most 65,536 rows a batch, columns in projection order, the rows of each file in file order.
    """
    from icesql.read.task import read_task as read

    return read(task, query)


def register_spark(session: Any, **connect: Any) -> None:
    """Let ``session.read.format("icesql")`` and ``readStream`` read Iceberg tables, without a jar.

    ``connect`` says where names are looked up: ``catalog``, ``uri``, ``warehouse``, ``properties``,
    as in ``connect()``; it stays out of plans and logs. ``session`` is a SparkSession. Raises
    ProgrammingError for another name.
    """
    from icesql.datasource.source import register

    register(session, **connect)


__all__ = [
    "connect", "Connection", "Cursor", "read_task", "register_spark",
    "apilevel", "threadsafety", "paramstyle",
    "STRING", "BINARY", "NUMBER", "DATETIME", "ROWID",
    "Date", "Time", "Timestamp", "DateFromTicks", "TimeFromTicks", "TimestampFromTicks", "Binary",
    "Interval",
    "Warning", "Error", "InterfaceError", "DatabaseError", "ProgrammingError", "SqlSyntaxError",
    "TableNotFoundError", "ColumnNotFoundError", "AmbiguousColumnError", "SnapshotNotFoundError",
    "AmbiguousTableError", "AccessDeniedError",
    "NotSupportedError", "UnsupportedSqlError", "UnsupportedTableError",
    "DataError", "TypeMismatchError", "CorruptFileError",
    "OperationalError", "CatalogError", "StorageError", "ScanLimitError", "QueryCancelledError",
    "CommitConflictError", "MissingExtraError", "IntegrityError", "InternalError",
]  # fmt: skip
