"""icesql queries, writes and maintains Iceberg tables in SQL, with time travel.

>>> import icesql
>>> con = icesql.connect(warehouse="warehouse")
>>> con.execute("SELECT count(*) FROM sales.orders FOR VERSION AS OF 'v1'").fetchall()
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import pyarrow as pa

    from icesql import config as config
    from icesql import context as context
    from icesql import dbapi as dbapi
    from icesql import engine as engine
    from icesql import errors as errors
    from icesql import interval as interval
    from icesql import session as session
    from icesql.context import QueryContext
    from icesql.dbapi.connection import Connection, connect
    from icesql.dbapi.cursor import Cursor
    from icesql.dbapi.frames import sql
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
        CommitStateUnknownError,
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
    from icesql.scan.tasks import CombinedScanTask
    from icesql.session.outcome import Parameters

__version__ = "0.1.0"

apilevel: Final = "2.0"
threadsafety: Final = 2
paramstyle: Final = "qmark"

_DBAPI_TYPES: Final = (
    "STRING", "BINARY", "NUMBER", "DATETIME", "ROWID",
    "Date", "Time", "Timestamp", "DateFromTicks", "TimeFromTicks", "TimestampFromTicks", "Binary",
)  # fmt: skip
_HOMES: Final = {
    "connect": "dbapi.connection",
    "Connection": "dbapi.connection",
    "Cursor": "dbapi.cursor",
    "Interval": "interval",
    **dict.fromkeys(_DBAPI_TYPES, "dbapi.types"),
}
# `import icesql` is enough for these, too.
_MODULES: Final = ("config", "context", "dbapi", "engine", "errors", "interval", "session")


# Type checkers know the names from the imports above, and refuse any other.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        """Import a public name on first use: `icesql --help` needs none of them."""
        if name in __all__:
            module = import_module(f"{__name__}.{_HOMES.get(name, 'errors')}")
            value = globals()[name] = getattr(module, name)
            return value
        if name in _MODULES:
            return import_module(f"{__name__}.{name}")
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})


def read_task(
    task: CombinedScanTask, query: QueryContext | None = None
) -> Iterator[pa.RecordBatch]:
    """Live rows of a combined scan task as Arrow batches, on any machine that has the files.

    At most 65,536 rows a batch, columns in projection order, the rows of each file in file order.
    """
    from icesql.read.task import read_task as read

    return read(task, query)


def register_spark(session: Any, **connect: Any) -> None:
    """Let ``format("icesql")`` of a session read and write Iceberg tables, without a jar.

    ``connect`` says where names are looked up: ``catalog``, ``uri``, ``warehouse``, ``properties``,
    as in ``connect()``; it stays out of plans and logs. ``session`` is a SparkSession. Raises
    ProgrammingError for another name.
    """
    from icesql.datasource.source import register

    register(session, **connect)


class _Called(ModuleType):
    """The package that reads SQL has the name that Spark's users call: icesql.sql(session, …)."""

    def __call__(
        self, session: Any, query: str, parameters: Parameters = None, **options: Any
    ) -> Any:
        from icesql.dbapi.frames import sql

        return sql(session, query, parameters, **options)


import_module(f"{__name__}.sql").__class__ = _Called

__all__ = [
    "connect", "Connection", "Cursor", "read_task", "register_spark", "sql",
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
    "CommitConflictError", "CommitStateUnknownError", "MissingExtraError", "IntegrityError",
    "InternalError",
]  # fmt: skip
