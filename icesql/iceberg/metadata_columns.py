"""Columns that every table has beside its own, by their reserved field ids.

Source: Iceberg spec, "Reserved Field IDs". ``_snapshot_id`` is icesql's own: the snapshot that
added the file; its id lies in the reserved range and is not used by the spec.
"""

from __future__ import annotations

from typing import Final

from icesql.iceberg.types import BOOLEAN, INTEGER, LONG, STRING, NestedField, StructType

FILE: Final = NestedField(2147483646, "_file", STRING, required=True)
POS: Final = NestedField(2147483645, "_pos", LONG, required=True)
DELETED: Final = NestedField(2147483644, "_deleted", BOOLEAN, required=True)
SPEC_ID: Final = NestedField(2147483643, "_spec_id", INTEGER, required=True)
PARTITION_ID: Final = 2147483642
ROW_ID: Final = NestedField(2147483540, "_row_id", LONG)
LAST_UPDATED_SEQUENCE_NUMBER: Final = NestedField(2147483539, "_last_updated_sequence_number", LONG)
SNAPSHOT_ID: Final = NestedField(2147483500, "_snapshot_id", LONG)

DELETE_FILE_PATH: Final = NestedField(2147483546, "file_path", STRING, required=True)
DELETE_POS: Final = NestedField(2147483545, "pos", LONG, required=True)

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
METADATA_IDS: Final = frozenset({*(c.field_id for c in CONSTANT_OR_POSITIONAL), PARTITION_ID})


def partition_column(partition_type: StructType) -> NestedField:
    """The ``_partition`` column; its struct unites the partition fields of all specs."""
    return NestedField(PARTITION_ID, "_partition", partition_type)
