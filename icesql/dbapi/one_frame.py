"""Errors of SQL as a person reads them: the statement, a mark, and one frame of icesql's."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import Final, ParamSpec, TypeVar

from icesql.errors import Error, InternalError, mark_in

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
