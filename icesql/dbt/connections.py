"""dbt's connections: one icesql connection for each thread; each statement is its own commit."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from dbt.adapters.contracts.connection import AdapterResponse, Connection, ConnectionState
from dbt.adapters.events.logging import AdapterLogger
from dbt.adapters.sql import SQLConnectionManager
from dbt_common.exceptions import DbtDatabaseError, DbtRuntimeError

import icesql
from icesql.dbt.statements import begins_transaction
from icesql.modify.services import PENDING
from icesql.quoting import literal

if TYPE_CHECKING:
    from icesql.dbt.credentials import IcesqlCredentials

_LOG: Final = AdapterLogger("icesql")


class IcesqlCursor:
    """A cursor that runs texts of several statements, from macros and hooks, and keeps the last.

    If a statement fails, an open transaction is rolled back. A conflict with another writer changes
    nothing, so a text that is one commit is run again.
    """

    def __init__(self, connection: icesql.Connection, retries: int) -> None:
        self._connection, self._retries = connection, retries
        self._last: Any = connection.cursor()
        # Those of the last statement that changed rows: a script may end with COMMIT.
        self.message, self.rowcount = "", -1

    def execute(self, sql: str, bindings: Any = None) -> IcesqlCursor:
        """Run all statements of a text; ``bindings`` are the parameters of a single one."""
        attempt = 0
        while True:
            first = True
            try:
                for cursor in self._connection.execute_script(sql, bindings):
                    self._last.close()
                    self._last, first = cursor, False
                    if cursor.message:
                        self.message, self.rowcount = cursor.message, cursor.rowcount
                if self._connection._session.state.transaction is None:
                    self.message = self.message.replace(PENDING, "committed")
                return self
            except BaseException as error:
                if not self._connection.closed:
                    self._connection.rollback()
                attempt += 1
                is_whole = first or begins_transaction(sql)
                if not isinstance(error, icesql.CommitConflictError) or not is_whole:
                    raise
                if attempt > self._retries:
                    raise
                _LOG.debug(f"another writer was first, so it runs again: {error}")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._last, name)


class Handle:
    """The handle of a connection that dbt holds."""

    def __init__(self, connection: icesql.Connection, retries: int) -> None:
        self.connection, self._retries = connection, retries

    def cursor(self) -> IcesqlCursor:
        """A cursor for one text."""
        return IcesqlCursor(self.connection, self._retries)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.connection, name)


class IcesqlConnectionManager(SQLConnectionManager):
    """Opens, cancels and closes connections; dbt's transactions have no effect.

    CREATE TABLE and DROP TABLE cannot be part of a transaction, and each statement is one commit,
    so the BEGIN and COMMIT of dbt around a model do nothing. A script may contain BEGIN and COMMIT.
    """

    TYPE = "icesql"

    @classmethod
    def open(cls, connection: Connection) -> Connection:
        """Open one. Raises FailedToConnectError."""
        if connection.state == ConnectionState.OPEN:
            return connection
        credentials: IcesqlCredentials = connection.credentials

        def connect() -> Handle:
            opened = icesql.connect(**credentials.arguments())
            if credentials.branch:
                opened.execute(f"SET wap.branch = {literal(credentials.branch)}").close()
            return Handle(opened, credentials.retries)

        return cls.retry_connection(
            connection, connect=connect, logger=_LOG, retryable_exceptions=[], retry_limit=0
        )

    def cancel(self, connection: Connection) -> None:
        """Cancel the statement of another thread."""
        connection.handle.cancel()

    @contextmanager
    def exception_handler(self, sql: str) -> Generator[None, None, None]:
        """Translate errors to dbt's. Raises DbtDatabaseError, DbtRuntimeError."""
        try:
            yield
        except icesql.Error as error:
            _LOG.debug(f"icesql: {type(error).__name__}: {error}")
            raise DbtDatabaseError(str(error).strip()) from error
        except DbtRuntimeError:
            raise
        except Exception as error:
            raise DbtRuntimeError(str(error)) from error

    @classmethod
    def get_response(cls, cursor: Any) -> AdapterResponse:
        """The text for a model in dbt's log: files, rows, bytes and the snapshot."""
        count = cursor.rowcount
        return AdapterResponse(
            _message=cursor.message or "OK",
            rows_affected=None if count < 0 else count,
            query_id=cursor.query_id,
        )

    @classmethod
    def data_type_code_to_name(cls, type_code: Any) -> str:
        """A result type in the spelling of CAST."""
        return str(type_code)

    def add_begin_query(self) -> Any:
        """Does nothing: see the class."""

    def add_commit_query(self) -> Any:
        """Commit a transaction that a hook has begun."""
        self.get_thread_connection().handle.commit()
