"""Decode a data manifest for one filter: its bounds first, the rest only for files that remain."""

from __future__ import annotations

from collections.abc import Callable

from icesql.iceberg.avro.container import AvroFile
from icesql.iceberg.manifest.compiled_walk import read_manifest
from icesql.iceberg.manifest.entries import ManifestEntries
from icesql.iceberg.manifest.entry_shape import Wanted
from icesql.iceberg.manifest.manifest import (
    ManifestContent,
    ManifestFile,
    check_entries,
    inherit,
    open_manifest,
)
from icesql.iceberg.manifest.narrow_entries import NarrowEntries, narrow_columns
from icesql.iceberg.manifest.partition_values import PartitionForm
from icesql.iceberg.manifest.stored_columns import unpacked


def decode_for_filter(
    data: bytes | AvroFile,
    manifest: ManifestFile,
    wanted: frozenset[Wanted],
    *,
    path: str,
    form: PartitionForm,
) -> ManifestEntries | NarrowEntries:
    """Decode a manifest, of a data manifest only the bounds that a filter needs where that pays.

    ``wanted`` names the bounds: (map, field id). ``data`` may be a file that was unpacked before.
    Raises as ``decode_manifest`` does; errors in other values are raised when those are decoded.
    """
    if isinstance(data, AvroFile):
        file, size = data, None
    else:
        file, size = open_manifest(data, manifest, path, form), len(data)
    # A file of another length may be another manifest; only all entries show who wrote it.
    is_listed = size is None or manifest.manifest_length in (None, size)
    if manifest.content is ManifestContent.DATA and is_listed:
        columns = narrow_columns(file, wanted)
        if columns is not None:
            lengths = [*map(len, columns.pop("entry"))]
            held = len(file.data)
            return NarrowEntries(lambda: file, lengths, columns, held, manifest, path, form)
    found = read_manifest(file, form)
    check_entries(found, manifest, size, path)
    return inherit(found, manifest, path)


def from_stored(
    stored: bytes,
    read: Callable[[], bytes],
    manifest: ManifestFile,
    *,
    path: str,
    form: PartitionForm,
) -> NarrowEntries | None:
    """As ``decode_for_filter`` gave them when they were stored; ``read`` reads the manifest.

    None for bytes that are no stored columns. Raises CorruptFileError where the list says that
    there are more.
    """
    found = unpacked(stored)
    if found is None:
        return None

    def file() -> AvroFile:
        return open_manifest(read(), manifest, path, form)

    return NarrowEntries(file, *found, len(stored), manifest, path, form)
