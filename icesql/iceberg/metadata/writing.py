"""Write table metadata: its parts as JSON, and the name of the file that is next."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from icesql.errors import ProgrammingError
from icesql.iceberg import types as t
from icesql.iceberg.metadata.snapshot import Snapshot, SnapshotRef
from icesql.iceberg.metadata.table_metadata import SortField, SortOrder
from icesql.iceberg.partitioning import PartitionField, PartitionSpec
from icesql.iceberg.schema import Schema
from icesql.iceberg.single_value import single_value_json

# A null after each character that may precede a value in JSON without white space.
_NULLS: Final = (b":null", b",null", b"[null")


def metadata_bytes(document: Mapping[str, Any], *, gzipped: bool = False) -> bytes:
    """A metadata file of this JSON: UTF-8, no white space, integers of any size exact.

    Raises ValueError for a NaN or an infinity, which JSON has no number for.
    """
    data = _json(document)
    return gzip.compress(data) if gzipped else data


def _json(document: Mapping[str, Any]) -> bytes:
    try:
        # Fourteen times as fast as json, which counts where each commit writes all snapshots.
        data = msgspec.json.encode(document)
        # msgspec writes NaN as null. "null-order", a key of each sort order, does not match.
        if not any(each in data for each in _NULLS):
            return data
    except (TypeError, UnicodeEncodeError, OverflowError):
        pass  # values that only json writes, or refuses
    try:
        text = json.dumps(document, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
        return text.encode()
    except UnicodeEncodeError:  # half of a surrogate pair, which only an escape can hold
        return json.dumps(document, separators=(",", ":"), allow_nan=False).encode()


def schema_json(schema: Schema) -> dict[str, Any]:
    """A schema with its id; ``identifier-field-ids`` only where there are any."""
    node: dict[str, Any] = {"type": "struct", "schema-id": schema.schema_id}
    if schema.identifier_field_ids:
        node["identifier-field-ids"] = sorted(schema.identifier_field_ids)
    return node | {"fields": [_field(each) for each in schema.fields]}


def type_json(type: t.IcebergType) -> Any:
    """A type, with the documentation and the defaults of the fields in it."""
    match type:
        case t.StructType(fields):
            return {"type": "struct", "fields": [_field(each) for each in fields]}
        case t.ListType():
            return {
                "type": "list",
                "element-id": type.element_id,
                "element": type_json(type.element),
                "element-required": type.element_required,
            }
        case t.MapType():
            return {
                "type": "map",
                "key-id": type.key_id,
                "key": type_json(type.key),
                "value-id": type.value_id,
                "value": type_json(type.value),
                "value-required": type.value_required,
            }
        case _:
            return str(type)


def _field(field: t.NestedField) -> dict[str, Any]:
    defaults = (
        None if each is t.MISSING else single_value_json(field.type, each)
        for each in (field.initial_default, field.write_default)
    )
    return _set(
        {
            "id": field.field_id,
            "name": field.name,
            "required": field.required,
            "type": type_json(field.type),
            "doc": field.doc,
            **dict(zip(("initial-default", "write-default"), defaults, strict=True)),
        }
    )


def spec_json(spec: PartitionSpec) -> dict[str, Any]:
    """A partition spec with its id."""
    return {"spec-id": spec.spec_id, "fields": spec_fields_json(spec.fields)}


def spec_fields_json(fields: Sequence[PartitionField]) -> list[dict[str, Any]]:
    """The fields of a spec alone, as v1 metadata and the headers of manifests have them."""
    return [
        {
            "name": each.name,
            "transform": each.transform,
            **_sources(each.source_ids),
            "field-id": each.field_id,
        }
        for each in fields
    ]


def sort_order_json(order: SortOrder) -> dict[str, Any]:
    """A sort order with its id."""
    return {"order-id": order.order_id, "fields": [_sort_field(each) for each in order.fields]}


def _sort_field(field: SortField) -> dict[str, Any]:
    return {
        "transform": field.transform,
        **_sources(field.source_ids),
        "direction": field.direction,
        "null-order": field.null_order,
    }


def _sources(source_ids: Sequence[int]) -> dict[str, Any]:
    # Transforms of one argument keep the old key, which every reader knows.
    return {"source-id": source_ids[0]} if len(source_ids) == 1 else {"source-ids": [*source_ids]}


def snapshot_json(snapshot: Snapshot) -> dict[str, Any]:
    """A snapshot; only what is set, and the operation as the first key of its summary."""
    operation = snapshot.operation
    return _set(
        {
            "sequence-number": snapshot.sequence_number or None,
            "snapshot-id": snapshot.snapshot_id,
            "parent-snapshot-id": snapshot.parent_snapshot_id,
            "timestamp-ms": snapshot.timestamp_ms,
            "summary": None if operation is None else {"operation": operation, **snapshot.summary},
            "manifest-list": snapshot.manifest_list,
            "schema-id": snapshot.schema_id,
            "first-row-id": snapshot.first_row_id,
            "added-rows": snapshot.added_rows,
            "key-id": snapshot.key_id,
        }
    )


def ref_json(ref: SnapshotRef) -> dict[str, Any]:
    """A branch or tag with those of its ages and counts that are set."""
    return _set(
        {
            "snapshot-id": ref.snapshot_id,
            "type": ref.kind,
            "max-ref-age-ms": ref.max_ref_age_ms,
            "min-snapshots-to-keep": ref.min_snapshots_to_keep,
            "max-snapshot-age-ms": ref.max_snapshot_age_ms,
        }
    )


def _set(node: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in node.items() if value is not None}


# ------------------------------------------------------------------ the next metadata file
# Source: Java ``BaseMetastoreTableOperations``, ``TableMetadataParser``.


_NUMBERED: Final = re.compile(r"(\d+)-", re.ASCII)
_CODEC: Final = "write.metadata.compression-codec"
_FOLDER: Final = "write.metadata.path"


def metadata_folder(location: str, properties: Mapping[str, str]) -> str:
    """The folder of metadata files, manifests and manifest lists, without a slash at its end."""
    return (properties.get(_FOLDER) or f"{location.rstrip('/')}/metadata").rstrip("/")


def is_gzipped(properties: Mapping[str, str]) -> bool:
    """Whether metadata files are to be compressed. Raises ProgrammingError for another codec."""
    codec = (properties.get(_CODEC) or "none").lower()
    if codec not in ("none", "gzip"):
        raise ProgrammingError(f"{_CODEC} is {codec!r}; it can be none or gzip")
    return codec == "gzip"


def wants_gzip(properties: Mapping[str, str]) -> bool:
    """The same, with an unknown codec as no compression.

    The statement that corrects such a property must be able to write a metadata file.
    """
    return (properties.get(_CODEC) or "none").lower() == "gzip"


def next_metadata_name(base: str | None, unique: str, *, gzipped: bool) -> str:
    """The name of the file after ``base``, a path; None begins with 00000.

    >>> next_metadata_name("s3://b/t/metadata/00041-x.gz.metadata.json", "u-1", gzipped=False)
    '00042-u-1.metadata.json'
    >>> next_metadata_name("/t/metadata/v7.metadata.json", "u-1", gzipped=True)
    '00000-u-1.gz.metadata.json'
    """
    found = _NUMBERED.match((base or "").rpartition("/")[2])
    version = int(found[1]) + 1 if found else 0
    return f"{version:05}-{unique}{'.gz' if gzipped else ''}.metadata.json"
