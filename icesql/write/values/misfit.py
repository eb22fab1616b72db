"""A value that a column cannot hold."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc


class Misfit(Exception):
    """A value of a column that cannot be stored: where, in rows of the array, and why.

    The row is negative where the type of all of them is to blame.
    """

    def __init__(self, row: int, reason: str, *, null: bool = False) -> None:
        super().__init__(reason)
        self.row, self.reason, self.null = row, reason, null


def of_row(misfit: Misfit, lengths: pa.Array) -> Misfit:
    """The misfit of an element as that of the row whose list or map has it."""
    if misfit.row < 0:
        return misfit
    ends = pc.cumulative_sum(lengths.cast(pa.int64()))
    row = pc.index(pc.greater(ends, misfit.row), True).as_py()
    return Misfit(row, misfit.reason, null=misfit.null)
