"""The schema that a manifest was written by.

Iceberg's Java library (seen in 1.12) writes and reads partition values of type fixed with a
length, as Avro bytes, although the schema in the file says fixed: ``ValueWriters.fixedBuffers``.
Such a file does not match its own Avro schema, and may still parse by it, with wrong entries. So
both readings are tried, and one has to fit all entries and counts: see ``as_written``.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

from msgspec.structs import replace

from icesql.errors import CorruptFileError
from icesql.iceberg.avro.container import AvroFile
from icesql.iceberg.manifest.compiled_walk import read_manifest
from icesql.iceberg.manifest.partition_values import PartitionForm
from icesql.iceberg.metadata.json_fields import Malformed, load_json
from icesql.iceberg.types import FixedType, IcebergType, UUIDType

# By status (existing, added, deleted): the files and rows that a manifest list counts, if it does.
Counts = Sequence[tuple[int | None, int | None]]
Facts = tuple[list[str], list[tuple[Any, ...]], list[tuple[int, int, int]]]


def as_written(file: AvroFile, form: PartitionForm, counts: Counts) -> AvroFile:
    """The file with the schema that its bytes were written by: with or without lengths.

    By it every entry is valid and the ``counts`` of the manifest list match. Raises
    CorruptFileError if neither schema fits, or both do and give different entries.
    """
    other = _with_lengths(file)
    if other is None:
        return file
    plain = _fitting(file, form, counts)
    lengthy = _fitting(other, form, counts)
    if plain is None and lengthy is None:
        raise CorruptFileError(
            file.path,
            "its entries are none that the manifest list counts, whether its partition values of "
            "type fixed have lengths, as Java writes them, or none",
        )
    if plain is not None and lengthy is not None and plain != lengthy:
        raise CorruptFileError(
            file.path,
            "its entries are ambiguous: its partition values of type fixed may have lengths, as "
            "Java writes them, or none",
        )
    return file if lengthy is None else other


def _fitting(file: AvroFile, form: PartitionForm, counts: Counts) -> Facts | None:
    """Decode the entries by this schema; None if they do not fit it, or not the listed counts."""
    try:
        found = read_manifest(file, form)
    except CorruptFileError:
        return None
    rows = [*zip(found.status, found.record_count, found.file_size_in_bytes, strict=True)]
    if any(status not in (0, 1, 2) or count < 0 or size <= 0 for status, count, size in rows):
        return None
    if "" in found.path or not {0, 1, 2}.issuperset(found.content):
        return None
    for values in found.partition:
        for value, type in zip(values, form.types, strict=True):
            if isinstance(value, bytes) and len(value) != _length(type, value):
                return None
    for status, (files, records) in enumerate(counts):
        own = [count for each, count, _ in rows if each == status]
        if files not in (None, len(own)) or records not in (None, sum(own)):
            return None
    return found.path, found.partition, rows


def _length(type: IcebergType, value: bytes) -> int:
    """How long a value of the type is."""
    match type:
        case FixedType(length):
            return length
        case UUIDType():
            return 16
        case _:
            return len(value)


def _with_lengths(file: AvroFile) -> AvroFile | None:
    """The same file with its plain fixed types declared as bytes; None if it has none.

    Decimals and uuids stay: their fixed form is as the schema says.
    """
    names: set[str] = set()
    if b'"fixed"' not in file.schema:
        return None
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
