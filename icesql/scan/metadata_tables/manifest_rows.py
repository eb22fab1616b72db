"""Rows of ``manifests`` and ``all_manifests``.

Counts of the other kind of content are 0. Source: Java ``ManifestsTable``, ``AllManifestsTable``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from icesql.context import QueryContext
from icesql.iceberg import types as t
from icesql.iceberg.bounds import decode_bound
from icesql.iceberg.manifest.manifest import FieldSummary, ManifestContent, ManifestFile
from icesql.iceberg.schema import Schema
from icesql.iceberg.transforms import parse_transform
from icesql.scan.metadata_tables.manifest_walk import ManifestWalk, Row
from icesql.scan.spec_scan import SpecScan
from icesql.scan.table_scan import TableScan
from icesql.storage.credentials import redact_urls


def manifests(found: Sequence[ManifestFile], walk: ManifestWalk, schema: Schema) -> Iterator[Row]:
    """One row for each manifest."""
    ids = _summary_ids(schema)
    for each in found:
        yield _row(each, walk, ids)


def all_manifests(
    scan: TableScan, walk: ManifestWalk, schema: Schema, query: QueryContext
) -> Iterator[Row]:
    """One row for each snapshot and manifest of it."""
    ids = _summary_ids(schema)
    for snapshot in scan.table.metadata.snapshots.values():
        query.check()
        for each in walk.manifests_of(snapshot):
            yield (*_row(each, walk, ids), snapshot.snapshot_id, each.key_metadata)


def _summary_ids(schema: Schema) -> list[int]:
    listed = schema.find_field("partition_summaries").type
    assert isinstance(listed, t.ListType)
    return [each.field_id for each in t.children(listed.element)]


def _row(manifest: ManifestFile, walk: ManifestWalk, ids: Sequence[int]) -> Row:
    counts = (
        manifest.added_files_count,
        manifest.existing_files_count,
        manifest.deleted_files_count,
    )
    is_data = manifest.content is ManifestContent.DATA
    spec = walk.specs.of(manifest)
    return (
        int(manifest.content),
        redact_urls(manifest.manifest_path),
        manifest.manifest_length,
        manifest.partition_spec_id,
        manifest.added_snapshot_id,
        *(counts if is_data else (0, 0, 0)),
        *((0, 0, 0) if is_data else counts),
        None
        if manifest.partitions is None
        else [
            dict(zip(ids, _summary(each, spec, index), strict=True))
            for index, each in enumerate(manifest.partitions[: len(spec.spec.fields)])
        ],
    )


def _summary(summary: FieldSummary, spec: SpecScan, index: int) -> Row:
    field, value_type = spec.spec.fields[index], spec.types[index]
    source = spec.partition_schema.field_by_id.get(field.source_id)
    transform = parse_transform(field.transform)

    def human(bound: bytes | None) -> str:
        value = None if bound is None else decode_bound(value_type, bound)
        return transform.human(value, t.UNKNOWN if source is None else source.type)

    return (
        summary.contains_null,
        summary.contains_nan,
        human(summary.lower_bound),
        human(summary.upper_bound),
    )
