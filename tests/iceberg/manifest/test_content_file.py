"""Files as JSON, in the spellings of Java before and since 1.11."""

from __future__ import annotations

import json
import math
from typing import Any

import msgspec
import pytest

from icesql.iceberg import types as t
from icesql.iceberg.manifest.data_file import DataFile, FileContent
from icesql.iceberg.metadata.json_fields import Malformed
from icesql.iceberg.partitioning import PartitionField, PartitionSpec
from icesql.iceberg.rest_json import ContentFile, data_file
from tests.tables import read_table

SPEC = PartitionSpec(
    3,
    (PartitionField((1,), 1000, "identity", "d"), PartitionField((2,), 1001, "identity", "day")),
)
TYPES = (t.DOUBLE, t.DateType())
SENT = {
    "spec-id": 3, "content": "data", "file-path": "s3://b/f", "file-format": "parquet",
    "partition": [0.5, "1970-01-03"], "file-size-in-bytes": 10, "record-count": 4,
}  # fmt: skip


def read(**changed: Any) -> DataFile:
    sent = msgspec.json.decode(msgspec.json.encode({**SENT, **changed}), type=ContentFile)
    return data_file(sent, SPEC, TYPES)


def test_a_file() -> None:
    counts = {"keys": [1, 2], "values": [10, 20]}
    file = read(**{"nan-value-counts": counts, "split-offsets": [4], "lower-bounds": counts})
    assert (file.content, file.path, file.file_format) == (FileContent.DATA, "s3://b/f", "PARQUET")
    assert file.partition == (0.5, 2)
    assert file.nan_value_counts == {1: 10, 2: 20}
    assert (file.split_offsets, file.lower_bounds) == ((4,), None)


@pytest.mark.parametrize("content", ["equality-deletes", "EQUALITY_DELETES"])
def test_contents_of_old_and_new_servers(content: str) -> None:
    file = read(content=content, **{"equality-ids": [2]})
    assert (file.content, file.equality_ids) == (FileContent.EQUALITY_DELETES, (2,))


def test_a_partition_by_field_ids_leaves_out_nulls() -> None:
    assert read(partition={"1001": "1970-01-03"}).partition == (None, 2)


@pytest.mark.parametrize("value", ["NaN", "Infinity", "-Infinity"])
def test_numbers_that_json_does_not_have_come_as_text(value: str) -> None:
    """As Iceberg's own server sends the partitions of such values."""
    found = read(partition=[value, None]).partition[0]
    assert found == float(value) or (math.isnan(found) and value == "NaN")


@pytest.mark.parametrize(("changed", "told"), read_table(__file__, "wrong_files.tsv"))
def test_what_is_no_file_is_told(changed: str, told: str) -> None:
    with pytest.raises(Malformed, match=told):
        read(**json.loads(changed))
