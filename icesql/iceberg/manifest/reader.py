"""Read the columns of a manifest: with the compiled walk, else record by record.

Iceberg's Java library (seen in 1.12) writes and reads partition values of type fixed with a
length, as Avro bytes, although the schema in the file says fixed: ``ValueWriters.fixedBuffers``.
Such a file does not match its own Avro schema; it is re-read with ``fixed`` declared as ``bytes``.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

from msgspec.structs import replace

from icesql.errors import CorruptFileError
from icesql.iceberg.avro.container import AvroFile
from icesql.iceberg.avro.schema import OddSchema
from icesql.iceberg.manifest.columns import ManifestColumns
from icesql.iceberg.manifest.compiled_walk import read_manifest
from icesql.iceberg.manifest.partition_values import PartitionFields
from icesql.iceberg.manifest.record_reader import read_records
from icesql.iceberg.metadata.json_fields import Malformed, load_json
from icesql.iceberg.types import IcebergType


def read_columns(
    file: AvroFile, partition_types: Sequence[IcebergType], spec: PartitionFields
) -> ManifestColumns:
    """The columns of a manifest. Raises CorruptFileError."""
    try:
        return _read(file, partition_types, spec)
    except Malformed as error:
        raise CorruptFileError(file.path, f"not a manifest: {error}") from error
    except CorruptFileError:
        other = _with_lengths(file)
        if other is None:
            raise
        return _read(other, partition_types, spec)


def _read(file: AvroFile, types: Sequence[IcebergType], spec: PartitionFields) -> ManifestColumns:
    try:
        return read_manifest(file, types, spec)
    except OddSchema:
        return read_records(file, types, spec)


def _with_lengths(file: AvroFile) -> AvroFile | None:
    """The same file with its plain fixed types declared as bytes; None if it has none.

    Decimals and uuids stay: their fixed form is as the schema says.
    """
    names: set[str] = set()
    try:
        schema = _as_bytes(load_json(file.schema), names)
    except Malformed:
        return None
    if not names:
        return None
    return replace(file, metadata={**file.metadata, "avro.schema": json.dumps(schema).encode()})


_TYPES: Final = frozenset({"type", "fields", "items", "values"})


def _as_bytes(node: Any, names: set[str]) -> Any:
    match node:
        case {"type": "fixed", "name": str(name)} if "logicalType" not in node:
            names.add(name)
            return "bytes"
        case dict():
            return {
                key: _as_bytes(each, names) if key in _TYPES else each for key, each in node.items()
            }
        case list():
            return [_as_bytes(each, names) for each in node]
        case str() if node in names:
            return "bytes"
        case _:
            return node
