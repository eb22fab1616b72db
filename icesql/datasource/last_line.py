"""Errors in the processes that plan for Spark: their last line is icesql's own."""

from __future__ import annotations

from icesql.errors import Error


class ReadError(Exception):
    """An error as Spark's text shows it: behind the name of this class, one line to read.

    Spark puts the text of Python's traceback into its error, and its SQLSTATE right behind, on a
    line of its own as each line of a traceback ends. Notes that are no list are printed as they
    are, without such an end.
    """

    def __init__(self, error: Error) -> None:
        super().__init__()
        self.error = error
        vars(self)["__notes__"] = self

    def __repr__(self) -> str:
        kind = type(self.error)
        return f"{kind.__module__}.{kind.__qualname__}: {self.error}"
