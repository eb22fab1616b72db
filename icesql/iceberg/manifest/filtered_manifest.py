"""A data manifest decoded for one filter: the bounds it asks for, the rest when a file is left."""

from __future__ import annotations

from collections.abc import Sequence

from icesql.iceberg.avro.container import AvroFile
from icesql.iceberg.manifest.compiled_walk import read_partitions
from icesql.iceberg.manifest.entries import ManifestEntries
from icesql.iceberg.manifest.entry_shape import Wanted
from icesql.iceberg.manifest.manifest import (
    ManifestContent,
    ManifestFile,
    check_count,
    check_entries,
    first_row_ids,
    inherit,
    read_manifest_file,
)
from icesql.iceberg.manifest.narrow_entries import NarrowEntries, narrow_columns
from icesql.iceberg.manifest.reader import read_columns
from icesql.iceberg.types import IcebergType


def decode_for_filter(
    data: bytes | AvroFile,
    manifest: ManifestFile,
    wanted: frozenset[Wanted],
    *,
    path: str,
    partition_types: Sequence[IcebergType],
    partition_fields: Sequence[tuple[int, str]] | None = None,
) -> ManifestEntries | NarrowEntries:
    """As ``decode_manifest``, but of a data manifest only what a filter asks for where that pays.

    ``wanted`` names the bounds: (map, field id). ``data`` may be a file that was unpacked before.
    Raises as ``decode_manifest`` does; of what nobody asks for errors come when it is asked for.
    """
    file = data if isinstance(data, AvroFile) else read_manifest_file(data, path)
    size = None if isinstance(data, AvroFile) else len(data)
    spec = None if partition_fields is None else tuple(partition_fields)
    # One of another length may be another manifest: who wrote it says all of it.
    is_listed = size is None or manifest.manifest_length in (None, size)
    if manifest.content is ManifestContent.DATA and is_listed:
        columns = narrow_columns(file, wanted)
        if columns is not None:
            check_count(manifest, len(columns["entry"]), path)
            return NarrowEntries(
                file,
                columns,
                lambda part: inherit(read_columns(part, partition_types, spec), manifest, path),
                lambda file, encoded: read_partitions(file, encoded, partition_types, spec),
                lambda entries: first_row_ids(entries, entries.given_first_row_ids(), manifest),
            )
    found = read_columns(file, partition_types, spec)
    check_entries(found, manifest, size, path)
    return inherit(found, manifest, path)
