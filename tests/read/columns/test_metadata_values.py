"""Metadata columns and row lineage."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from icesql.iceberg.metadata_columns import (
    FILE,
    LAST_UPDATED_SEQUENCE_NUMBER,
    POS,
    ROW_ID,
    SNAPSHOT_ID,
    SPEC_ID,
    partition_column,
)
from icesql.iceberg.partitioning import PartitionField, PartitionSpec
from icesql.iceberg.types import STRING, StructType
from tests.read.read_tables import (
    arrow_field,
    column,
    context,
    data_file,
    position_deletes,
    rows,
    whole,
    write_parquet,
)

A = arrow_field("a", pa.int64(), 1)
LINEAGE = [ROW_ID, LAST_UPDATED_SEQUENCE_NUMBER]


def test_file_spec_and_snapshot_are_those_of_the_manifest_entry(tmp_path: Path) -> None:
    path = write_parquet(tmp_path, [A], [[1]])
    file = data_file(path, snapshot_id=77)
    scan = context([column(1, "a")], projection=[FILE, POS, SPEC_ID, SNAPSHOT_ID])
    assert rows(scan, whole(file)) == [
        {"_file": path, "_pos": 0, "_spec_id": 0, "_snapshot_id": 77}
    ]


def test_row_ids_count_from_the_first_and_skip_deleted_rows(tmp_path: Path) -> None:
    path = write_parquet(tmp_path, [A], [[1, 2, 3]])
    file = data_file(path, first_row_id=100, sequence_number=9)
    deletes = position_deletes(tmp_path, [(path, 1)])
    scan = context([column(1, "a")], projection=LINEAGE)
    assert [tuple(row.values()) for row in rows(scan, whole(file, [deletes]))] == [
        (100, 9),
        (102, 9),
    ]


def test_stored_lineage_wins_row_by_row(tmp_path: Path) -> None:
    fields = [
        A,
        arrow_field("_row_id", pa.int64(), ROW_ID.field_id),
        arrow_field("_seq", pa.int64(), LAST_UPDATED_SEQUENCE_NUMBER.field_id),
    ]
    path = write_parquet(tmp_path, fields, [[1, 2], [5, None], [None, 3]])
    scan = context([column(1, "a")], projection=LINEAGE)
    with_ids = data_file(path, first_row_id=100, sequence_number=9)
    without = data_file(path, sequence_number=9)
    assert [tuple(row.values()) for row in rows(scan, whole(with_ids))] == [(5, 9), (101, 3)]
    assert [tuple(row.values()) for row in rows(scan, whole(without))] == [(None, None)] * 2


def test_partition_unites_the_fields_of_all_specs(tmp_path: Path) -> None:
    specs = {
        0: PartitionSpec(0, (PartitionField((1,), 1000, "identity", "a"),)),
        1: PartitionSpec(1, (PartitionField((1,), 1001, "truncate[1]", "b"),)),
    }
    union = StructType((column(1000, "a"), column(1001, "b", STRING)))
    path = write_parquet(tmp_path, [A], [[1]])
    scan = context([column(1, "a")], projection=[partition_column(union)], specs=specs)
    old = whole(data_file(path, partition=(1,)))
    new = whole(data_file(path, spec_id=1, partition=("x",)))
    assert [row["_partition"] for row in rows(scan, old, new)] == [
        {"a": 1, "b": None},
        {"a": None, "b": "x"},
    ]


def test_partition_of_an_unpartitioned_table_is_null(tmp_path: Path) -> None:
    path = write_parquet(tmp_path, [A], [[1]])
    scan = context([column(1, "a")], projection=[partition_column(StructType())])
    assert rows(scan, whole(data_file(path))) == [{"_partition": None}]
