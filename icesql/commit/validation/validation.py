"""The state that a change relied on when it was planned.

Source: Java ``BaseOverwriteFiles``, ``BaseRowDelta``, ``BaseReplacePartitions``; Spark's
``SparkWrite`` and ``SparkPositionDeltaWrite``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from msgspec import Struct

from icesql.iceberg.expressions.predicate import ALWAYS_TRUE, Predicate
from icesql.iceberg.manifest.data_file import DataFile

Isolation = Literal["serializable", "snapshot"]
# A spec and a partition tuple of it.
Partition = tuple[int, tuple[Any, ...]]


def unchanged(start_id: int | None, read: Predicate) -> Validation:
    """Check that no row for which ``read`` may be true was changed."""
    return Validation(start_id, read, no_added_data=True, no_deleted_data=True, no_new_deletes=True)


class Validation(Struct, frozen=True):
    """Changes that a branch must not have had since snapshot ``start_id`` was scanned.

    ``start_id`` None says that the branch was empty then. ``row_filter`` is what was pushed into
    the scan (fields of the current schema by id); it is implied by what the statement matched, so
    that files which cannot match are not among those that may. ``partitions`` takes its place where
    whole partitions are replaced.

    - ``no_added_data``: no rows came that the statement would have seen (serializable).
    - ``no_deleted_data``: no data file went that may match.
    - ``no_new_deletes``: no delete file came that may match.
    - ``undeleted``: files that go, of which no row was deleted, whether it may match or not: what
      is written in their place holds the rows as they were. ``only_updates``: all of their rows
      go, so that deletes do not count which came without new rows. ``same_age``: the new files,
      where these are as old as the start; an equality delete that they get, too, does not count.
    - ``existing``: paths of data files that must still be there; ``skip_deletes``: those that a
      whole-file delete took may be gone.
    - ``vectors_of``: data files that get a deletion vector, and may have got no other.
    - ``own``: snapshots that the same statement made since, and what each followed.
    """

    start_id: int | None
    row_filter: Predicate = ALWAYS_TRUE
    partitions: frozenset[Partition] | None = None
    no_added_data: bool = False
    no_deleted_data: bool = False
    no_new_deletes: bool = False
    undeleted: tuple[DataFile, ...] = ()
    only_updates: bool = False
    same_age: tuple[DataFile, ...] | None = None
    existing: frozenset[str] = frozenset()
    skip_deletes: bool = False
    vectors_of: frozenset[str] = frozenset()
    own: Mapping[int, int | None] = {}
