"""A value that a column cannot hold."""

from __future__ import annotations


class Misfit(Exception):
    """A value of a column that cannot be stored: where, in rows of the array, and why.

    The row is negative where the type of all of them is to blame.
    """

    def __init__(self, row: int, reason: str, *, null: bool = False) -> None:
        super().__init__(reason)
        self.row, self.reason, self.null = row, reason, null
