"""One connection's session: its state, its engines, and the execution of its statements."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from icesql.access import Access
from icesql.catalog.search_path import forget
from icesql.config import Settings
from icesql.context import QueryContext
from icesql.engine.engines import Engines
from icesql.errors import InterfaceError, OperationalError, ScanLimitError
from icesql.session.outcome import Outcome, Parameters, State
from icesql.session.pipeline import Pipeline, Readable
from icesql.session.prepared import QueryText
from icesql.sql.parser.row_count import RowCount
from icesql.stack import with_deep_stack
from icesql.storage.cache import Blocks, BoundedCache
from icesql.storage.credentials import clean, spell_out

if TYPE_CHECKING:
    from icesql.catalog.table import Catalog
    from icesql.sql.statement import Statement

_CACHE_BYTES = 128 << 20


# The longest text in bytes, unless the setting max_statement_size has a value.
_LONGEST_TEXT: Final = 16 << 20
_SERVICE_TEXT: Final = 1 << 20


class Session:
    """Settings, names and engines of one connection."""

    def __init__(
        self,
        open_catalog: Callable[[BoundedCache], Catalog | None],
        settings: Settings,
        *,
        access: Access | None = None,
        dialect: str | None = None,
        spark: Any = None,
        properties: Mapping[str, Any] | None = None,
    ) -> None:
        # The properties of the connection, including secrets.
        self.properties: Mapping[str, Any] = dict(properties or {})
        self.dialect = dialect
        self._blocks = Blocks(settings)
        cache = BoundedCache(_CACHE_BYTES, self._blocks)
        self.state = State(open_catalog, cache, access or Access(), settings, self.properties)
        self.engines = Engines(spark)
        self.pipeline = Pipeline(self.state, self.engines, dialect)
        # Whether ``close`` was called.
        self.closed, self._process = False, os.getpid()

    def read(self, sql: str, parameters: Parameters = None) -> list[Readable]:
        """The statements of a text, in order. Raises the errors of ``parse``."""
        with self._reading_text(sql):
            return self.pipeline.read(sql, parameters)

    def parse(self, sql: str, parameters: Parameters = None) -> list[Statement]:
        """Parse a text to inspect its statements, without prepared ones."""
        with self._reading_text(sql):
            return self.pipeline.parse(sql, parameters)

    def execute(self, statement: Readable, query: QueryContext) -> Outcome:
        """Run one statement, even if the caller's stack is nearly full."""
        self._blocks.settings = query.settings
        try:
            return with_deep_stack(lambda: self._execute(statement, query))
        except RecursionError as error:
            raise OperationalError(
                "the statement is nested too deeply for the stack of this program; name its inner "
                "parts in a WITH clause, or call from less deep in recursion"
            ) from error

    def _execute(self, statement: Readable, query: QueryContext) -> Outcome:
        transaction = self.state.transaction
        if transaction is not None and transaction.is_failed:
            from icesql.sql.statement import TransactionControl

            if not isinstance(statement, TransactionControl):
                raise OperationalError(
                    "a statement of this transaction failed; ROLLBACK ends it and discards its "
                    "changes"
                )
        with self._reading(query):
            if not query.settings.caches:
                self.forget()
            if isinstance(statement, RowCount | QueryText):
                return self.pipeline.execute(statement, query)
            return self.run_by_kind(statement, query)

    def _reading(self, query: QueryContext) -> AbstractContextManager[None]:
        """A context in which the parser of the local engine reads texts."""
        query.evaluate = self.engines.evaluate
        query.serialize = partial(self.engines.serialize, settings=self.state.settings)
        return query.reading()

    def _reading_text(self, sql: str) -> AbstractContextManager[None]:
        """``_reading`` for a text. Raises ScanLimitError for a long one, before any work."""
        usual = _SERVICE_TEXT if self.state.access.service else _LONGEST_TEXT
        limit = self.state.settings.max_statement_size or usual
        size = len(sql) if sql.isascii() else len(sql.encode("utf-8", "surrogatepass"))
        if size > limit:
            raise ScanLimitError(
                f"a statement of {size:,} bytes, where max_statement_size is {limit:,}; put rows "
                "into a file or a parameter"
            )
        return self._reading(QueryContext.begin(self.state.settings))

    def run_by_kind(self, statement: Readable, query: QueryContext) -> Outcome:
        """Run one statement with its handler in ``session.statements.HANDLERS``."""
        from icesql.session.statements import check_leaves_nothing, handler_of

        if self.state.access.service:
            check_leaves_nothing(statement)
        return handler_of(statement)(self, statement, query)

    def fail_transaction(self) -> None:
        """Mark an open transaction as failed: it then accepts only its end."""
        if self.state.transaction is not None:
            self.state.transaction.is_failed = True

    def forget(self) -> None:
        """Drop everything kept from earlier statements; see ``Settings.caches``."""
        self.pipeline.drop_prepared()
        forget(self.state.names)
        self.engines.forget()
        self._blocks.forget()

    def check_open(self) -> None:
        """Raises InterfaceError if the session is closed, and in a forked process."""
        if self.closed:
            raise InterfaceError("the connection is closed")
        if not self.is_here:
            raise InterfaceError(
                f"the connection belongs to process {self._process}, of which this one is a fork; "
                "connect again here"
            )

    @property
    def is_here(self) -> bool:
        """True in the process that opened the session: engines do not survive a fork."""
        return os.getpid() == self._process

    def close(self) -> None:
        """End open results, engines and catalogs, without waiting. Harmless when repeated."""
        closed, self.closed = self.closed, True
        if closed or not self.is_here:
            return
        self.engines.close()
        self.state.close()

    @contextmanager
    def without_secrets(self) -> Iterator[None]:
        """A context that applies ``clean`` to its errors."""
        try:
            yield
        except Exception as error:
            self.clean(error)
            raise

    def clean(self, error: Exception) -> None:
        """Remove every secret of this connection's catalogs and stores from an error, in place.

        Control characters in its message are escaped.
        """
        clean(error, self._secrets())
        spell_out(error)

    def _secrets(self) -> dict[str, Any]:
        sources = [self.properties, *self.state.names.storage_properties]
        return {str(number): each for number, each in enumerate(sources)}
