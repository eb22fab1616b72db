"""Files whose rows can be counted from metadata: ``count(*)``, ``count(column)``.

A file of which the WHERE leaves no row out counts with all its rows, less those that a deletion
vector takes, whose number is known.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from icesql.scan.pruning.extremes import Candidate, null_count


class Counted(Struct, frozen=True):
    """An output that counts rows: those in which a column is not NULL, or all of them for None."""

    field_id: int | None = None


def count_of(file: Candidate, wanted: Sequence[Counted | None]) -> tuple[int, ...] | None:
    """What a file of which the WHERE leaves no row out adds to each output; None if unknown.

    An output that counts nothing, which is None, gets 0.
    """
    if file.deleted is None or not 0 <= file.deleted <= file.rows:
        return None
    left = file.rows - file.deleted
    counts = []
    for each in wanted:
        if each is None or each.field_id is None:
            counts.append(0 if each is None else left)
            continue
        nulls = null_count(file, each.field_id)
        # Which rows are deleted is not known here.
        if nulls is None or (nulls and file.deleted):
            return None
        counts.append(left - nulls)
    return tuple(counts)
