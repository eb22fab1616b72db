"""The statements of one text: all parsed before one of them runs."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from icesql.context import QueryContext
from icesql.dbapi.one_frame import mark
from icesql.errors import ProgrammingError
from icesql.session.foreign import own_error

if TYPE_CHECKING:
    from icesql.context import Progress
    from icesql.session.outcome import Outcome, Parameters
    from icesql.session.session import Session


def check_text(sql: object) -> None:
    """Raise ProgrammingError for a statement that is no text."""
    if not isinstance(sql, str):
        raise ProgrammingError(f"a statement is a text of SQL, not {type(sql).__name__}")


class Script:
    """The statements of one text, run one after the other; a later one sees an earlier SET.

    All are parsed before the first one runs: a text that is refused has done nothing. Raises what
    parsing raises; ``run`` raises InterfaceError when the session is closed.
    """

    def __init__(
        self,
        session: Session,
        sql: str,
        parameters: Parameters,
        tables: Mapping[str, Any] | None = None,
    ) -> None:
        check_text(sql)
        self._tables: Mapping[str, Any] = {}
        if tables:
            from icesql.dbapi.registered import tables_of

            self._tables = tables_of(session, tables)
        self._session, self._sql, self._position = session, sql, 0
        self._begun: float | None = time.monotonic()
        try:
            self._statements = session.read(sql, parameters)
        except Exception as error:  # each goes on, whatever it is, once it is clean
            mark(error, sql)
            session.clean(error)
            own = own_error(error)
            if own is None:
                raise
            session.clean(own)
            raise own from error

    @property
    def sql(self) -> str:
        """The whole text."""
        return self._sql

    def __len__(self) -> int:
        return len(self._statements)

    def run(
        self,
        cancel: threading.Event | None = None,
        progress: Callable[[Progress], None] | None = None,
    ) -> Outcome:
        """The outcome of the next statement. Raises IndexError after the last.

        Whoever calls it places its errors in the text, and cleans them of secrets.
        """
        session = self._session
        session.check_open()
        statement = self._statements[self._position]
        self._position += 1
        # The time in which the text was read is the first one's.
        begun, self._begun = self._begun, None
        query = QueryContext.begin(session.state.settings, cancel, progress, self._tables, begun)
        return session.execute(statement, query)
