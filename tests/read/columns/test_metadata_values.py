"""Metadata columns and row lineage."""

from __future__ import annotations

from icesql.iceberg.partitioning import PartitionField, PartitionSpec
from icesql.iceberg.schema import (
    FILE,
    LAST_UPDATED_SEQUENCE_NUMBER,
    POS,
    ROW_ID,
    SNAPSHOT_ID,
    SPEC_ID,
    partition_column,
)
from icesql.iceberg.types import StructType
from tests.columns import type_of
from tests.read.read_tables import (
    context,
    data_file,
    position_deletes,
    rows,
    whole,
    write_parquet,
)

A = "1 a long"
LINEAGE = [ROW_ID, LAST_UPDATED_SEQUENCE_NUMBER]


def test_file_spec_and_snapshot_are_those_of_the_manifest_entry(tmp_path) -> None:
    path = write_parquet(tmp_path, A, [[1]])
    file = data_file(path, snapshot_id=77)
    scan = context(A, projection=[FILE, POS, SPEC_ID, SNAPSHOT_ID])
    assert rows(scan, file) == [{"_file": path, "_pos": 0, "_spec_id": 0, "_snapshot_id": 77}]


def test_row_ids_count_from_the_first_and_skip_deleted_rows(tmp_path) -> None:
    path = write_parquet(tmp_path, A, [[1, 2, 3]])
    file = data_file(path, first_row_id=100, sequence_number=9)
    deletes = position_deletes(tmp_path, [(path, 1)])
    scan = context(A, projection=LINEAGE)
    assert [tuple(row.values()) for row in rows(scan, whole(file, [deletes]))] == [
        (100, 9),
        (102, 9),
    ]


def test_stored_lineage_wins_row_by_row(tmp_path) -> None:
    ids = (each.field_id for each in LINEAGE)
    fields = "1 a long, {} _row_id long, {} _seq long".format(*ids)
    path = write_parquet(tmp_path, fields, [[1, 2], [5, None], [None, 3]])
    scan = context(A, projection=LINEAGE)
    with_ids = data_file(path, first_row_id=100, sequence_number=9)
    without = data_file(path, sequence_number=9)
    assert [tuple(row.values()) for row in rows(scan, with_ids)] == [(5, 9), (101, 3)]
    assert [tuple(row.values()) for row in rows(scan, without)] == [(None, None)] * 2


def test_partition_unites_the_fields_of_all_specs(tmp_path) -> None:
    specs = {
        0: PartitionSpec(0, (PartitionField((1,), 1000, "identity", "a"),)),
        1: PartitionSpec(1, (PartitionField((1,), 1001, "truncate[1]", "b"),)),
    }
    union = type_of("struct<1000 a long, 1001 b string>")
    path = write_parquet(tmp_path, A, [[1]])
    scan = context(A, projection=[partition_column(union)], specs=specs)
    old = whole(data_file(path, partition=(1,)))
    new = whole(data_file(path, spec_id=1, partition=("x",)))
    assert [row["_partition"] for row in rows(scan, old, new)] == [
        {"a": 1, "b": None},
        {"a": None, "b": "x"},
    ]


def test_partition_of_an_unpartitioned_table_is_null(tmp_path) -> None:
    path = write_parquet(tmp_path, A, [[1]])
    scan = context(A, projection=[partition_column(StructType())])
    assert rows(scan, path) == [{"_partition": None}]
