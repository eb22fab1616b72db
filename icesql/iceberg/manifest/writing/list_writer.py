"""Write a manifest list: numbers that manifests of this commit get, and row ids.

Source: Iceberg spec, "Manifest Lists" and "Row Lineage"; Java ``ManifestListWriter``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec.structs import asdict, replace

from icesql.errors import InternalError
from icesql.frozen import Frozen
from icesql.iceberg.manifest.manifest import ManifestContent, ManifestFile
from icesql.iceberg.manifest.writing.avro_schemas import list_schema
from icesql.iceberg.manifest.writing.container import avro_bytes
from icesql.iceberg.manifest.writing.manifest_writer import UNASSIGNED


class ListHeader(Frozen):
    """The snapshot that a list is of; ``first_row_id`` is the table's next one, in v3 only."""

    format_version: int
    snapshot_id: int
    parent_snapshot_id: int | None
    sequence_number: int
    first_row_id: int | None = None


def write_manifest_list(
    manifests: Sequence[ManifestFile], header: ListHeader
) -> tuple[bytes, tuple[ManifestFile, ...], int]:
    """The bytes of the list, its manifests as listed, and the number of row ids it assigns.

    Manifests of this snapshot get its sequence number; in v3 data manifests without a first row
    id get one, also those older than row ids. Except in v1, the counts of all manifests are known.
    """
    listed, following = [], header.first_row_id or 0
    for each in manifests:
        made = _numbered(each, header)
        is_data = made.content is ManifestContent.DATA
        if header.format_version >= 3 and is_data and made.first_row_id is None:
            made = replace(made, first_row_id=following)
            following += (made.existing_rows_count or 0) + (made.added_rows_count or 0)
        listed.append(made)
    parent = header.parent_snapshot_id
    about = {
        "snapshot-id": str(header.snapshot_id),
        "parent-snapshot-id": "null" if parent is None else str(parent),
        "format-version": str(header.format_version),
    }
    if header.format_version > 1:
        about["sequence-number"] = str(header.sequence_number)
    if header.format_version > 2:
        about["first-row-id"] = str(header.first_row_id or 0)
    data = avro_bytes(list_schema(header.format_version), map(_row, listed), about)
    return data, tuple(listed), following - (header.first_row_id or 0)


def _numbered(manifest: ManifestFile, header: ListHeader) -> ManifestFile:
    own = header.sequence_number if header.format_version > 1 else 0
    if UNASSIGNED not in (manifest.sequence_number, manifest.min_sequence_number):
        return manifest
    if manifest.added_snapshot_id != header.snapshot_id:
        raise InternalError(f"manifest {manifest.manifest_path} has no sequence number")
    lowest = manifest.min_sequence_number
    return replace(
        manifest,
        sequence_number=own,
        min_sequence_number=own if lowest == UNASSIGNED else lowest,
    )


def _row(manifest: ManifestFile) -> dict[str, Any]:
    summaries = manifest.partitions
    return asdict(manifest) | {
        "added_snapshot_id": manifest.added_snapshot_id or 0,
        "partitions": None if summaries is None else [asdict(each) for each in summaries],
    }
