"""Errors in the processes that plan for Spark: the last line of their text is icesql's own."""

from __future__ import annotations

from icesql.errors import Error


class ReadError(Exception):
    """An error that Spark shows with a readable last line, after the name of this class.

    Spark puts the text of Python's traceback into its error, and its SQLSTATE right after it, on a
    new line, since each line of a traceback ends with a line end. Notes that are not a list are
    printed unchanged, without a line end, so that icesql's error and the SQLSTATE share a line.
    """

    def __init__(self, error: Error) -> None:
        super().__init__()
        self.error = error
        vars(self)["__notes__"] = self

    def __repr__(self) -> str:
        kind = type(self.error)
        return f"{kind.__module__}.{kind.__qualname__}: {self.error}"
