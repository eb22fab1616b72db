"""Position delete files: the columns, order and bounds that the specification asks for."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from icesql.iceberg import types as t
from icesql.iceberg.manifest.data_file import DataFile, FileContent
from icesql.iceberg.metadata.table_metadata import TableMetadata
from icesql.iceberg.partitioning import PartitionField, PartitionSpec
from icesql.iceberg.schema import Schema
from icesql.storage.open import Storage
from icesql.write.deletes import write_position_deletes


def test_a_delete_file(tmp_path) -> None:
    specs = {
        0: PartitionSpec(),
        3: PartitionSpec(3, (PartitionField((1,), 1000, "identity", "p"),)),
    }
    table = TableMetadata(
        2, "u", str(tmp_path / "t"), 0, 0, {0: Schema((t.NestedField(1, "p", t.STRING),))}, 0, specs, 0,
    )  # fmt: skip
    path = "s3://bucket/t/data/p=a/" + "x" * 40 + ".parquet"
    data = DataFile(FileContent.DATA, path, "PARQUET", 3, ("a b",), 10, 100)
    found = write_position_deletes(
        table, Storage(), [(data, np.array([7, 1, 7, 3]))], "name-00001-deletes"
    )
    assert (found.content, found.spec_id, found.partition) == (1, 3, ("a b",))
    assert (found.record_count, found.referenced_data_file) == (3, path)
    assert found.path.startswith(f"{table.location}/data/p=a+b/")
    assert found.path.endswith("-00001-deletes.parquet")
    assert found.file_size_in_bytes == Path(found.path).stat().st_size
    assert found.lower_bounds == {2147483546: path.encode(), 2147483545: (1).to_bytes(8, "little")}
    assert found.upper_bounds == {2147483546: path.encode(), 2147483545: (7).to_bytes(8, "little")}
    assert found.value_counts is None
    file = pq.ParquetFile(found.path)
    assert file.read().to_pylist() == [{"file_path": path, "pos": each} for each in (1, 3, 7)]
    assert file.metadata.metadata[b"delete-type"] == b"position"
    assert "required binary field_id=2147483546 file_path (String);" in str(file.schema)
    assert "required int64 field_id=2147483545 pos;" in str(file.schema)
    for bad in ([], [-1]):
        with pytest.raises(ValueError):
            write_position_deletes(table, Storage(), [(data, np.array(bad, np.int64))], "name")
