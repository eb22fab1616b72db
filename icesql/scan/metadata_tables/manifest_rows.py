"""Rows of the tables that are read from manifests: manifests, files, entries and partitions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import astuple

from icesql.context import QueryContext
from icesql.iceberg import types as t
from icesql.iceberg.bounds import decode_bound
from icesql.iceberg.expressions.predicate import ALWAYS_TRUE
from icesql.iceberg.manifest.data_file import FileContent
from icesql.iceberg.manifest.entries import ManifestEntries
from icesql.iceberg.manifest.manifest import FieldSummary, ManifestContent, ManifestFile
from icesql.iceberg.manifest.partition_values import UNSTORED
from icesql.iceberg.metadata.table_metadata import TableMetadata, united_partition_type
from icesql.iceberg.schema import Schema
from icesql.iceberg.transforms import parse_transform
from icesql.scan.manifest_reader import ManifestReader
from icesql.scan.metadata_tables.schemas import metrics_reader
from icesql.scan.plan import TableScan
from icesql.scan.spec_scan import SpecScan, SpecScans
from icesql.storage.credentials import redact_urls

# ------------------------------------------------------------------ the walk


_KINDS: Final = {
    "data_files": frozenset({ManifestContent.DATA}),
    "delete_files": frozenset({ManifestContent.DELETES}),
    "position_deletes": frozenset({ManifestContent.DELETES}),
}
_BOTH: Final = frozenset(ManifestContent)

Row = tuple[Any, ...]


class ManifestWalk(ManifestReader):
    """Reads the manifests of one snapshot, or of all, once each.

    A filter on fields of ``partition`` skips manifests by their summaries; rows are filtered by the
    caller.
    """

    def __init__(self, scan: TableScan, name: str, query: QueryContext) -> None:
        metadata = scan.table.metadata
        self.specs = SpecScans(ALWAYS_TRUE, metadata.schema, metadata)
        super().__init__(scan.table, query, self.specs.form_of)
        self._scan, self._kinds = scan, _KINDS.get(name.removeprefix("all_"), _BOTH)

    def manifests(self) -> list[ManifestFile]:
        """The manifests of the scan's snapshot that may have rows."""
        snapshot = self._scan.snapshot
        return self._wanted(() if snapshot is None else self.manifests_of(snapshot))

    def all_manifests(self) -> list[ManifestFile]:
        """The manifests of every snapshot that may have rows, each once."""
        found: dict[str, ManifestFile] = {}
        for snapshot in self._scan.table.metadata.snapshots.values():
            self._query.check()
            for each in self.manifests_of(snapshot):
                found.setdefault(each.manifest_path, each)
        return self._wanted(found.values())

    def partition_of(self, entries: ManifestEntries, index: int) -> dict[int, Any]:
        """The partition values of an entry by partition field id, without those not stored."""
        fields = self._scan.table.metadata.specs[entries.spec_id].fields
        return {
            each.field_id: value
            for each, value in zip(fields, entries.partition[index], strict=False)
            if value is not UNSTORED
        }

    def _wanted(self, manifests: Any) -> list[ManifestFile]:
        kept = [each for each in manifests if each.content in self._kinds]
        if not self._query.settings.prune or self._scan.row_filter is ALWAYS_TRUE:
            return kept
        from icesql.scan.pruning.partition_evaluator import manifest_may_match

        return [
            each
            for each in kept
            if manifest_may_match(each, self._scan.row_filter, self.specs.of(each).types_by_id)
        ]


# ------------------------------------------------------------------ manifests


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


# ------------------------------------------------------------------ files


# The file is what ``ManifestEntries.data_file`` gives, where a column needs it.
Column = Callable[[ManifestEntries, int, Any], Any]

_OF_ENTRIES: Final = frozenset(
    {
        "status", "snapshot_id", "sequence_number", "file_sequence_number", "file_format",
        "file_size_in_bytes",
    }
)  # fmt: skip
_STATUS: Final = ("EXISTING", "ADDED", "DELETED")
_CONTENT: Final = ("EXISTING", "POSITION_DELETES", "EQUALITY_DELETES")


class FileRows:
    """The columns of ``projection``, in order, for entries of the manifests of a walk.

    ``data_schema`` is the schema whose columns ``readable_metrics`` shows.
    """

    def __init__(self, projection: Schema, data_schema: Schema, walk: ManifestWalk) -> None:
        self._walk, self._data_schema = walk, data_schema
        self._needs_file = False
        self._columns = [self._column(each) for each in projection.fields]

    def live(self, manifests: Sequence[ManifestFile]) -> Iterator[Row]:
        """The files that are part of a table."""
        for entries, index in self._walk.live(manifests):
            yield self._row(entries, index)

    def all(self, manifests: Sequence[ManifestFile]) -> Iterator[Row]:
        """Every entry, those of deleted files too."""
        for _, entries in self._walk.entries_of(manifests):
            yield from (self._row(entries, i) for i in range(entries.count))

    def _row(self, entries: ManifestEntries, index: int) -> Row:
        file = entries.data_file(index) if self._needs_file else None
        return tuple(column(entries, index, file) for column in self._columns)

    def _column(self, field: t.NestedField) -> Column:
        match field.name, field.type:
            case "data_file", t.StructType(fields):
                children = [(each.field_id, self._column(each)) for each in fields]
                return lambda entries, index, file: {
                    field_id: column(entries, index, file) for field_id, column in children
                }
            case "readable_metrics", t.StructType() as struct:
                self._needs_file = True
                read = metrics_reader(self._data_schema, struct)
                return lambda entries, index, file: read(file)
            case "partition", _:
                return lambda entries, index, file: self._walk.partition_of(entries, index)
            case "content", _:
                return lambda entries, index, file: int(entries.content[index])
            case "file_path", _:
                return lambda entries, index, file: redact_urls(entries.path[index])
            case "record_count", _:
                return lambda entries, index, file: max(entries.record_count[index], 0)
            case "spec_id", _:
                return lambda entries, index, file: entries.spec_id
            case name, _ if name in _OF_ENTRIES:
                return lambda entries, index, file: getattr(entries, name)[index]
            case name, _:
                self._needs_file = True
                return lambda entries, index, file: getattr(file, name)


def engine_metadata(manifests: Sequence[ManifestFile], walk: ManifestWalk) -> Iterator[Row]:
    """As DuckDB's ``iceberg_metadata`` has them: every entry beside its manifest."""
    for manifest, entries in walk.entries_of(manifests):
        kind = "DATA" if manifest.content is ManifestContent.DATA else "DELETE"
        for index in range(entries.count):
            yield (
                redact_urls(manifest.manifest_path),
                manifest.sequence_number,
                kind,
                _STATUS[entries.status[index]],
                _CONTENT[entries.content[index]],
                redact_urls(entries.path[index]),
                entries.file_format[index],
                max(entries.record_count[index], 0),
            )


# ------------------------------------------------------------------ partitions
# Source: Java ``PartitionsTable``; deletion vectors count as position deletes.


class PartitionTotals(Struct):
    """The totals of a partition; ``updated_ms`` is since 1970, ``values`` are by field id."""

    values: dict[int, Any]
    spec_id: int
    rows: int = 0
    files: int = 0
    size: int = 0
    position_deletes: int = 0
    position_delete_files: int = 0
    equality_deletes: int = 0
    equality_delete_files: int = 0
    vectors: int = 0
    updated_ms: int | None = None
    updated_by: int | None = None

    def add(self, content: int, rows: int, size: int, *, is_vector: bool = False) -> None:
        """Count a live file."""
        rows = max(rows, 0)
        match content:
            case FileContent.DATA:
                self.rows += rows
                self.files += 1
                self.size += size
            case FileContent.POSITION_DELETES:
                self.position_deletes += rows
                self.position_delete_files += not is_vector
                self.vectors += is_vector
            case _:
                self.equality_deletes += rows
                self.equality_delete_files += 1

    def touch(self, snapshot_id: int | None, spec_id: int, metadata: TableMetadata) -> None:
        """Record the last snapshot that changed the partition, if the table still has it."""
        snapshot = None if snapshot_id is None else metadata.snapshot(snapshot_id)
        if snapshot is not None and (
            self.updated_ms is None or snapshot.timestamp_ms > self.updated_ms
        ):
            self.spec_id = spec_id
            self.updated_ms, self.updated_by = snapshot.timestamp_ms, snapshot.snapshot_id


def partitions(
    manifests: Sequence[ManifestFile], walk: ManifestWalk, metadata: TableMetadata
) -> Iterator[Row]:
    """One row for each partition of each spec, in the order in which manifests name them.

    As in Java, specs with the same number of fields share a row for equal values, all NULL for one;
    ``spec_id`` is then that of the latest update. ``last_updated_*`` are NULL where the snapshot
    has expired.
    """
    fields = [each.field_id for each in united_partition_type(metadata).fields]
    found: dict[tuple[Any, ...], PartitionTotals] = {}
    for entries, index in walk.live(manifests):
        values = walk.partition_of(entries, index)
        width = len(metadata.specs[entries.spec_id].fields)
        key = (width, *(_key(values.get(each)) for each in fields))
        if key not in found:
            found[key] = PartitionTotals(values, entries.spec_id)
        size = entries.file_size_in_bytes[index]
        found[key].add(entries.content[index], entries.record_count[index], size)
        found[key].touch(entries.snapshot_id[index], entries.spec_id, metadata)
    for each in found.values():
        spec = (each.values, each.spec_id) if fields else ()
        updated = None if each.updated_ms is None else each.updated_ms * 1000
        totals = astuple(each)[2:-3]
        yield (*spec, *totals, updated, each.updated_by)


def _key(value: Any) -> Any:
    # NaN differs from itself, and 0.0 equals -0.0, where Iceberg has one and two partitions.
    return repr(value) if isinstance(value, float) else value
