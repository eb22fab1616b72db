"""Files whose rows can be counted from metadata: ``count(*)``, ``count(column)``.

A file whose rows all satisfy the WHERE counts with all its rows, minus those that a deletion vector
removes, whose number is known.
"""

from __future__ import annotations

from collections.abc import Sequence

from icesql.frozen import Frozen
from icesql.scan.pruning.extremes import Candidate, null_count


class Counted(Frozen):
    """An output that counts rows: those in which a column is not NULL, or all of them for None."""

    field_id: int | None = None


def count_of(file: Candidate, wanted: Sequence[Counted | None]) -> tuple[int, ...] | None:
    """The part of each output that a file adds if every row matches; None if unknown.

    An output without a count, which is None, gets 0.
    """
    left = live_rows(file.rows, file.deleted)
    if left is None:
        return None
    counts = []
    for each in wanted:
        if each is None or each.field_id is None:
            counts.append(0 if each is None else left)
            continue
        nulls = null_count(file, each.field_id)
        # It is not known here which rows are deleted.
        if nulls is None or (nulls and file.deleted):
            return None
        counts.append(left - nulls)
    return tuple(counts)


def live_rows(rows: int, deleted: int | None) -> int | None:
    """The rows of a file that are not deleted; None if either number is unknown."""
    return None if deleted is None or not 0 <= deleted <= rows else rows - deleted
