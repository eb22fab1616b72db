"""The state that a change relied on when it was planned.

Source: Java ``BaseOverwriteFiles``, ``BaseRowDelta``, ``BaseReplacePartitions``; Spark's
``SparkWrite`` and ``SparkPositionDeltaWrite``.
"""

from __future__ import annotations

from typing import Literal

from icesql.frozen import Frozen
from icesql.iceberg.expressions.predicate import ALWAYS_TRUE, Predicate
from icesql.iceberg.manifest.data_file import DataFile

Isolation = Literal["serializable", "snapshot"]


def unchanged(start_id: int | None, read: Predicate) -> Validation:
    """Check that no row for which ``read`` may be true was changed."""
    return Validation(start_id, read, no_added_data=True, no_deleted_data=True, no_new_deletes=True)


class Validation(Frozen):
    """Changes that a branch must not have had since snapshot ``start_id`` was scanned.

    ``start_id`` None means that the branch was empty then. ``row_filter`` is the filter that was
    pushed into the scan (fields of the current schema by id). All rows that the statement matched
    satisfy it, so that files which cannot match it are irrelevant.

    - ``no_added_data``: no rows were added that the statement would have read (serializable).
    - ``no_deleted_data``: no data file was removed that may match.
    - ``no_new_deletes``: no delete file was added that may match.
    - ``undeleted``: files to remove, of which no row must have been deleted, whether it may match
      or not: the files that replace them contain the old rows. ``only_updates``: all of their rows
      are removed, so that deletes by commits without new rows do not count. ``same_age``: the new
      files, if they have the sequence number of the start; an equality delete that applies to them,
      too, does not count.
    - ``existing``: paths of data files that must still exist; with ``only_updates``, except those
      that a whole-file delete removed.
    - ``vectors_of``: data files that get a deletion vector, and must not have got another one.
    """

    start_id: int | None
    row_filter: Predicate = ALWAYS_TRUE
    no_added_data: bool = False
    no_deleted_data: bool = False
    no_new_deletes: bool = False
    undeleted: tuple[DataFile, ...] = ()
    only_updates: bool = False
    same_age: tuple[DataFile, ...] | None = None
    existing: frozenset[str] = frozenset()
    vectors_of: frozenset[str] = frozenset()
