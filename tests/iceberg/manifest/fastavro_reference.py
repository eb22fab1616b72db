"""Manifests decoded by fastavro, container and values: the reference for icesql's readers."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from typing import Any

import fastavro

from icesql.iceberg.avro.schema import parse_avro_schema
from icesql.iceberg.manifest.columns import ManifestColumns
from icesql.iceberg.manifest.partition_values import PartitionFields
from icesql.iceberg.manifest.record_reader import record_columns
from icesql.iceberg.types import IcebergType


def read_with_fastavro(
    data: bytes, types: Sequence[IcebergType], spec: PartitionFields = None
) -> ManifestColumns:
    reader = fastavro.reader(io.BytesIO(data))
    written = json.loads(reader.metadata["avro.schema"])
    plain = fastavro.parse_schema(_without_logical_types(written), _force=True)
    rows: list[Any] = []
    for block in fastavro.block_reader(io.BytesIO(data)):
        stream = block.bytes_
        rows += (fastavro.schemaless_reader(stream, plain, None) for _ in range(block.num_records))
    return record_columns(rows, parse_avro_schema(json.dumps(written).encode()), types, spec)


def _without_logical_types(schema: Any) -> Any:
    if isinstance(schema, dict):
        return {
            key: _without_logical_types(value)
            for key, value in schema.items()
            if key != "logicalType"
        }
    return [_without_logical_types(each) for each in schema] if isinstance(schema, list) else schema
