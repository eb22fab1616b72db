"""The statements of one text: all parsed before one of them runs."""

from __future__ import annotations

import functools
import os
import threading
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeVar

from icesql.context import QueryContext
from icesql.errors import Error, InternalError, ProgrammingError, mark_in
from icesql.session.foreign import own_error

if TYPE_CHECKING:
    from icesql.context import Progress
    from icesql.session.outcome import Outcome, Parameters
    from icesql.session.session import Session

# Errors of SQL as a person reads them: the statement, a mark, and one frame of icesql's.

P = ParamSpec("P")
T = TypeVar("T")
_ALL: Final = "ICESQL_TRACEBACK"


def one_frame(method: Callable[P, T]) -> Callable[P, T]:
    """A method whose errors of icesql show this frame alone, and none of what they came from.

    With ``ICESQL_TRACEBACK=1`` all frames are shown; those of a bug always are.
    """

    @functools.wraps(method)
    def called(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return method(*args, **kwargs)
        except Error as error:
            if isinstance(error, InternalError) or os.environ.get(_ALL, "0") not in ("", "0"):
                raise
            raise error.with_traceback(None) from None

    return called


def mark(error: BaseException, sql: str) -> None:
    """Note below an error the line of the statement that it is about, with a mark at its place.

    ``sql`` is the statement without secrets.
    """
    if isinstance(error, Error) and not getattr(error, "__notes__", None):
        shown = mark_in(error, sql)
        if shown:
            error.add_note(shown)


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
