"""Identity partition values of a file, by the id of the column that they come from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from icesql.errors import CorruptFileError
from icesql.iceberg.manifest.data_file import DataFile
from icesql.iceberg.manifest.partition_values import UNSTORED
from icesql.scan.tasks.task import ScanContext


def partition_constants(file: DataFile, context: ScanContext, location: str) -> Mapping[int, Any]:
    """Source field id → value (internal form) for the identity fields of the file's spec.

    A value that the manifest does not have is left out: the file itself may have the column.
    Raises CorruptFileError for a spec that the table does not have.
    """
    spec = context.specs.get(file.spec_id)
    if spec is None:
        raise CorruptFileError(location, f"unknown partition spec {file.spec_id}")
    return {
        each.source_id: value
        for each, value in zip(spec.fields, file.partition, strict=False)
        if each.transform.lower() == "identity" and value is not UNSTORED
    }
