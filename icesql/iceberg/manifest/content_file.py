"""Data and delete files as JSON, the form in which a catalog that plans a scan names them.

Source: Iceberg's OpenAPI specification, "ScanTasks", "ContentFile"; Java ``ContentFileParser``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec
from msgspec import field
from msgspec.structs import asdict

from icesql.frozen import Frozen
from icesql.iceberg.manifest.data_file import DataFile, FileContent
from icesql.iceberg.metadata.json_fields import Malformed
from icesql.iceberg.metadata.property_numbers import of_file
from icesql.iceberg.partitioning import PartitionSpec
from icesql.iceberg.single_value import parse_single_value
from icesql.iceberg.types import IcebergType, is_floating

_NO_NUMBERS: Final = ("NaN", "Infinity", "-Infinity")


class CountMap(Frozen):
    """Numbers by field id."""

    keys: list[int]
    values: list[int]


class ContentFile(Frozen, rename="kebab"):
    """A file as it was sent. Bounds and most counts are left aside: only planning needs them."""

    spec_id: int
    content: str
    path: str = field(name="file-path")
    file_format: str
    file_size_in_bytes: int
    record_count: int
    partition: list[Any] | dict[str, Any] | None = None
    column_sizes: CountMap | None = None
    nan_value_counts: CountMap | None = None
    key_metadata: str | None = None
    split_offsets: tuple[int, ...] | None = None
    equality_ids: tuple[int, ...] | None = None
    sort_order_id: int | None = None
    first_row_id: int | None = None
    referenced_data_file: str | None = None
    content_offset: int | None = None
    content_size_in_bytes: int | None = None


class FileTask(Frozen, rename="kebab"):
    """One data file, the indexes of its delete files, and the residual filter."""

    data_file: ContentFile
    delete_file_references: list[int] | None = None
    residual_filter: msgspec.Raw = msgspec.Raw(b"")


class ScanTasks(Frozen, rename="kebab"):
    """One response with tasks; each of ``plan_tasks`` is a token for further tasks to fetch."""

    file_scan_tasks: list[FileTask] | None = None
    delete_files: list[ContentFile] | None = None
    plan_tasks: list[str] | None = None


def data_file(sent: ContentFile, spec: PartitionSpec, types: Sequence[IcebergType]) -> DataFile:
    """The file of a manifest entry, without sequence numbers, which are not sent.

    ``types`` are those of the fields of ``spec``. Raises Malformed.
    """
    # Java wrote FileContent's own names before 1.11.
    content = FileContent.__members__.get(sent.content.upper().replace("-", "_"))
    if content is None:
        raise Malformed(f"{sent.content[:60]!r} is no content of a file")
    if sent.file_size_in_bytes < 0:
        raise Malformed(f"a file of {sent.file_size_in_bytes} bytes")
    read = {
        "content": content,
        "file_format": sent.file_format.upper(),
        "partition": _partition(sent.partition, spec, types),
        "record_count": of_file([sent.record_count])[0],
        "column_sizes": _counts(sent.column_sizes),
        "nan_value_counts": _counts(sent.nan_value_counts),
        "key_metadata": None if sent.key_metadata is None else sent.key_metadata.encode(),
    }
    return DataFile(**(asdict(sent) | read))


def _partition(
    sent: list[Any] | dict[str, Any] | None, spec: PartitionSpec, types: Sequence[IcebergType]
) -> tuple[Any, ...]:
    """The values by the fields of the spec; an object has them by field id, without the NULLs."""
    if isinstance(sent, dict):
        known = {str(each.field_id) for each in spec.fields}
        if not known.issuperset(sent):
            raise Malformed(f"a partition of other fields than those of spec {spec.spec_id}")
        values = [sent.get(str(each.field_id)) for each in spec.fields]
    else:
        values = sent or []
    if len(values) != len(types):
        raise Malformed(
            f"a partition of {len(values)} values, where spec {spec.spec_id} has {len(types)}"
        )
    return tuple(_value(type, value) for type, value in zip(types, values, strict=True))


def _value(type: IcebergType, sent: Any) -> Any:
    if sent in _NO_NUMBERS and is_floating(type):
        return float(sent)  # as Java writes them, though it does not read them
    return parse_single_value(type, sent)


def _counts(sent: CountMap | None) -> dict[int, int] | None:
    if sent is None:
        return None
    if len(sent.keys) != len(sent.values):
        raise Malformed("counts with another number of columns than of values")
    return dict(zip(sent.keys, sent.values, strict=True))
