"""Metadata columns, which every table has beside its own, by their reserved field ids.

Source: Iceberg spec, "Reserved Field IDs". ``_snapshot_id`` is icesql's own: the snapshot that
added the file; its id lies in the reserved range and is not used by the spec.
"""

from __future__ import annotations

from typing import Final

from icesql.iceberg import types as t

FILE: Final = t.NestedField(2147483646, "_file", t.STRING, required=True)
POS: Final = t.NestedField(2147483645, "_pos", t.LONG, required=True)
DELETED: Final = t.NestedField(2147483644, "_deleted", t.BOOLEAN, required=True)
SPEC_ID: Final = t.NestedField(2147483643, "_spec_id", t.INTEGER, required=True)
PARTITION_ID: Final = 2147483642
ROW_ID: Final = t.NestedField(2147483540, "_row_id", t.LONG)
LAST_UPDATED_SEQUENCE_NUMBER: Final = t.NestedField(
    2147483539, "_last_updated_sequence_number", t.LONG
)
SNAPSHOT_ID: Final = t.NestedField(2147483500, "_snapshot_id", t.LONG)
# Files may store them; otherwise they are derived from the file.
LINEAGE: Final = (ROW_ID, LAST_UPDATED_SEQUENCE_NUMBER)
LINEAGE_IDS: Final = frozenset(each.field_id for each in LINEAGE)  # a query may rename them

# The kind of change, in the rows of a change. The spec reserves the first two ids, under other
# names for the second; the time is icesql's own.
CHANGE_COLUMNS: Final = (
    t.NestedField(2147483543, "_change_type", t.STRING, required=True),
    t.NestedField(2147483541, "_commit_version", t.LONG, required=True),
    t.NestedField(2147483499, "_commit_timestamp", t.TIMESTAMPTZ, required=True),
)

# Who made the commit, in the rows of BLAME; all are icesql's own.
BLAME_COLUMNS: Final = (
    t.NestedField(2147483498, "_operation", t.STRING),
    t.NestedField(2147483497, "_engine", t.STRING),
    t.NestedField(2147483496, "_job", t.STRING),
)

DELETE_FILE_PATH: Final = t.NestedField(2147483546, "file_path", t.STRING, required=True)
DELETE_POS: Final = t.NestedField(2147483545, "pos", t.LONG, required=True)

CONSTANT_OR_POSITIONAL: Final = (
    FILE,
    POS,
    DELETED,
    SPEC_ID,
    ROW_ID,
    LAST_UPDATED_SEQUENCE_NUMBER,
    SNAPSHOT_ID,
)
METADATA_COLUMNS: Final = {column.name: column for column in CONSTANT_OR_POSITIONAL}
RESERVED_NAMES: Final = frozenset(
    {*METADATA_COLUMNS, *(each.name for each in CHANGE_COLUMNS), "_partition", "_change_ordinal",
     "_commit_snapshot_id"}
)  # fmt: skip
METADATA_IDS: Final = frozenset({*(c.field_id for c in CONSTANT_OR_POSITIONAL), PARTITION_ID})


def partition_column(partition_type: t.StructType) -> t.NestedField:
    """The ``_partition`` column; its struct unites the partition fields of all specs."""
    return t.NestedField(PARTITION_ID, "_partition", partition_type)
