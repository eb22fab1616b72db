"""The data and delete files that manifests list as live."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from icesql.iceberg.manifest.data_file import FileContent
from icesql.iceberg.manifest.entries import DELETED
from icesql.iceberg.manifest.manifest import ManifestFile
from icesql.iceberg.metadata.table_metadata import TableMetadata
from icesql.scan.manifest_reader import ManifestReader
from icesql.scan.spec_scan import typed_specs


class LiveFile(Struct, frozen=True):
    """The content of a live file, and its size."""

    content: FileContent
    bytes: int


def live_paths(
    reader: ManifestReader, metadata: TableMetadata, manifests: Sequence[ManifestFile]
) -> dict[str, LiveFile]:
    """The paths of live files as the manifests spell them, with what they say of each file.

    Raises what reading a manifest does.
    """
    specs = typed_specs(metadata)
    found: dict[str, LiveFile] = {}
    for _, entries in reader.entries_of(manifests, lambda each: specs[each.partition_spec_id]):
        for index, status in enumerate(entries.status):
            if status != DELETED:
                found[entries.path[index]] = LiveFile(
                    FileContent(entries.content[index]), entries.file_size_in_bytes[index]
                )
    return found
