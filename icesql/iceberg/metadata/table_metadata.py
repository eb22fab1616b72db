"""Table metadata: the bytes of a metadata.json become one frozen value, sort orders with it.

Reads format versions 1 to 3 and forgives what does not decide rows. Source: Iceberg spec,
"Table Metadata" and "Appendix C".
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any, Final

from msgspec import field
from msgspec.structs import replace

from icesql.errors import CorruptFileError, UnsupportedTableError
from icesql.frozen import Frozen
from icesql.iceberg.avro.container import inflated
from icesql.iceberg.metadata.json_fields import (
    Malformed,
    as_int,
    as_list,
    as_object,
    as_text,
    as_time,
    load_json,
    objects,
    optional_id,
    optional_int,
    optional_text,
    required,
    required_id,
    required_int,
    required_text,
    sane,
    text_map,
)
from icesql.iceberg.metadata.name_mapping import PROPERTY, NameMapping, parse_name_mapping
from icesql.iceberg.metadata.schema_json import parse_schema
from icesql.iceberg.metadata.snapshot import (
    LazySnapshots,
    Snapshot,
    SnapshotLogEntry,
    SnapshotRef,
    parse_ref,
    parse_snapshot_log,
)
from icesql.iceberg.partitioning import (
    FIRST_FIELD_ID,
    PartitionSpec,
    parse_spec,
    parse_spec_fields,
    partition_types,
)
from icesql.iceberg.schema import Schema
from icesql.iceberg.types import NestedField, StructType

# ------------------------------------------------------------------ sort orders
# Sort orders of a table; informational, since no reader may rely on rows being sorted.


class SortField(Frozen):
    """One key; ``direction`` is "asc" or "desc", ``null_order`` "nulls-first" or "nulls-last"."""

    source_ids: tuple[int, ...]
    transform: str
    direction: str
    null_order: str


class SortOrder(Frozen):
    """The keys of one order, most significant first; order 0 is unsorted."""

    order_id: int = 0
    fields: tuple[SortField, ...] = ()


UNSORTED = SortOrder()


def parse_sort_orders(json: Any) -> dict[int, SortOrder]:
    """The orders by id; {0: unsorted} when absent, and those that make no sense are left out."""
    # No result depends on a sort order, so the table stays readable with an invalid one.
    found = sane(json, "sort order", _parse_order)
    return {0: UNSORTED} | {each.order_id: each for each in found}


def _parse_order(fields: Mapping[str, Any]) -> SortOrder:
    order_id = required_int(fields, "order-id", "sort order", 32)
    keys = as_list(fields.get("fields", []), "sort order fields")
    return SortOrder(order_id, tuple(_parse_field(as_object(each, "sort field")) for each in keys))


def _parse_field(fields: Mapping[str, Any]) -> SortField:
    listed = fields.get("source-ids")
    if listed is not None:
        source_ids = tuple(
            as_int(each, "sort field source-ids", 32) for each in as_list(listed, "source-ids")
        )
    else:
        source_ids = (required_int(fields, "source-id", "sort field", 32),)
    return SortField(
        source_ids,
        str(fields.get("transform", "identity")),
        str(fields.get("direction", "asc")).lower(),
        str(fields.get("null-order", "nulls-first")).lower(),
    )


# ------------------------------------------------------------------ table metadata


NEWEST_FORMAT: Final = 3
MAIN: Final = "main"
# Bytes of JSON; a small gzip must not fill the memory.
_LARGEST: Final = 256 << 20


class MetadataLogEntry(Frozen):
    """An earlier metadata file and when it was last the current one."""

    timestamp_ms: int
    metadata_file: str


class StatisticsFile(Frozen):
    """A file with statistics of one snapshot, of columns (Puffin) or partitions; informational."""

    snapshot_id: int
    statistics_path: str
    file_size_in_bytes: int | None = None
    file_footer_size_in_bytes: int | None = None


class TableMetadata(Frozen, dict=True, weakref=True):
    """A table at one commit, from all its schemas, specs and snapshots to its properties.

    Mappings are by id; ``snapshots`` are in file order, parsed on first access. ``location`` has no
    slash at its end. ``current_snapshot_id`` is None for a table without rows yet.
    """

    format_version: int
    table_uuid: str | None
    location: str
    last_updated_ms: int
    last_sequence_number: int
    schemas: Mapping[int, Schema]
    current_schema_id: int
    specs: Mapping[int, PartitionSpec]
    default_spec_id: int
    sort_orders: Mapping[int, SortOrder] = field(default_factory=dict)
    default_sort_order_id: int = 0
    properties: Mapping[str, str] = field(default_factory=dict)
    current_snapshot_id: int | None = None
    snapshots: Mapping[int, Snapshot] = field(default_factory=dict)
    snapshot_log: tuple[SnapshotLogEntry, ...] = ()
    metadata_log: tuple[MetadataLogEntry, ...] = ()
    refs: Mapping[str, SnapshotRef] = field(default_factory=dict)
    statistics: tuple[StatisticsFile, ...] = ()
    partition_statistics: tuple[StatisticsFile, ...] = ()
    next_row_id: int | None = None
    encryption_keys: tuple[Mapping[str, Any], ...] = ()
    # The highest ids that any schema or spec ever assigned, as recorded in the file.
    stated_last_column_id: int | None = None
    stated_last_partition_id: int | None = None

    @cached_property
    def last_column_id(self) -> int:
        """The highest id that a column ever had; new columns get higher ones."""
        used = (max(each.field_by_id, default=0) for each in self.schemas.values())
        return max(self.stated_last_column_id or 0, *used)

    @cached_property
    def last_partition_id(self) -> int:
        """The highest id that a partition field ever had, 999 without any."""
        used = (each.field_id for spec in self.specs.values() for each in spec.fields)
        return max(self.stated_last_partition_id or 0, FIRST_FIELD_ID - 1, *used)

    def without_history(self) -> TableMetadata:
        """The metadata that workers need to read and write files: no snapshot, no ref."""
        return replace(
            self,
            snapshots={},
            snapshot_log=(),
            metadata_log=(),
            refs={},
            statistics=(),
            partition_statistics=(),
        )

    @property
    def schema(self) -> Schema:
        """The current schema."""
        return self.schemas[self.current_schema_id]

    @property
    def spec(self) -> PartitionSpec:
        """The spec that writers use now."""
        return self.specs[self.default_spec_id]

    @property
    def current_snapshot(self) -> Snapshot | None:
        """The head of ``main``, None for a table without snapshots."""
        if self.current_snapshot_id is None:
            return None
        return self.snapshots[self.current_snapshot_id]

    def snapshot(self, snapshot_id: int) -> Snapshot | None:
        """The snapshot of this id, None when the table does not (or no longer) have it."""
        return self.snapshots.get(snapshot_id)

    def ancestry(self, snapshot: Snapshot | None) -> Iterator[Snapshot]:
        """The snapshot and its ancestors, newest first, as far as the table still has them."""
        seen: set[int] = set()
        while snapshot is not None and snapshot.snapshot_id not in seen:
            yield snapshot
            seen.add(snapshot.snapshot_id)
            parent = snapshot.parent_snapshot_id
            snapshot = None if parent is None else self.snapshot(parent)

    def snapshot_as_of(self, timestamp_ms: int) -> Snapshot | None:
        """The snapshot of ``main`` at an instant: the latest entry of the snapshot log up to it.

        An entry at exactly ``timestamp_ms`` counts, and of several the last one written. None
        before the first entry, or when the snapshot has expired.
        """
        found: SnapshotLogEntry | None = None
        for entry in self.snapshot_log:
            if entry.timestamp_ms <= timestamp_ms and (
                found is None or entry.timestamp_ms >= found.timestamp_ms
            ):
                found = entry
        return None if found is None else self.snapshots.get(found.snapshot_id)

    def schema_of(self, snapshot: Snapshot) -> Schema:
        """The schema a snapshot was written with, the current one when it does not say."""
        if snapshot.schema_id is None:
            return self.schema
        return self.schemas.get(snapshot.schema_id, self.schema)

    @cached_property
    def name_mapping(self) -> NameMapping | None:
        """The mapping for files without field ids. Raises CorruptFileError if it is malformed."""
        text = self.properties.get(PROPERTY)
        return None if text is None else parse_name_mapping(text)

    @property
    def statistics_files(self) -> tuple[StatisticsFile, ...]:
        """Those of snapshots and of their partitions."""
        return self.statistics + self.partition_statistics

    @cached_property
    def file_schema(self) -> Schema:
        """The current schema and every column that a schema of this table ever had.

        Equality deletes and old specs can name columns, and children of structs, that were
        dropped since. Of several definitions of one id the current one wins, else that of the
        highest schema id.
        """
        columns = self.schema.fields
        for schema_id in sorted(self.schemas, reverse=True):
            columns = _with_dropped(columns, self.schemas[schema_id].fields)
        return Schema(columns, self.current_schema_id)


def _with_dropped(
    newer: tuple[NestedField, ...], older: tuple[NestedField, ...]
) -> tuple[NestedField, ...]:
    """``newer`` and after it the fields that only ``older`` has, inside structs too."""
    fields = {each.field_id: each for each in newer}
    for each in older:
        known = fields.setdefault(each.field_id, each)
        match known.type, each.type:
            case StructType(mine), StructType(theirs) if mine != theirs:
                merged = StructType(_with_dropped(mine, theirs))
                fields[each.field_id] = replace(known, type=merged)
    return tuple(fields.values())


def parse_metadata(data: bytes, path: str) -> TableMetadata:
    """The metadata that ``data`` holds, unzipped if the name or the first bytes say gzip.

    Raises CorruptFileError naming ``path`` (and the byte, if known) for anything that is not
    table metadata, UnsupportedTableError for versions and types that icesql does not read.
    """
    return parse_document(metadata_document(data, path), path)


def parse_document(document: Mapping[str, Any], path: str) -> TableMetadata:
    """As ``parse_metadata`` of the JSON that a file holds."""
    try:
        return _parse(document, path)
    except Malformed as error:
        raise CorruptFileError(path, str(error)) from error
    except UnsupportedTableError as error:
        raise UnsupportedTableError(error.feature, path=path) from error


def metadata_document(data: bytes, path: str) -> dict[str, Any]:
    """The JSON of a metadata file as it is, unzipped if need be. Raises CorruptFileError."""
    try:
        return as_object(load_json(_plain(data, path)), "metadata")
    except Malformed as error:
        offset = getattr(error, "offset", None)
        raise CorruptFileError(path, str(error), offset=offset) from error


def _plain(data: bytes, path: str) -> bytes:
    if not data.startswith(b"\x1f\x8b"):
        # A ".gz" name over plain JSON reads fine, whoever unzipped it on the way.
        return data
    inflate = zlib.decompressobj(wbits=31)
    try:
        plain = inflated(inflate, data, _LARGEST)
    except zlib.error as error:
        raise CorruptFileError(path, f"not gzip: {error}") from error
    if plain is None:
        raise CorruptFileError(path, f"more than {_LARGEST:,} bytes of metadata unpacked")
    if not inflate.eof:
        raise CorruptFileError(path, "gzip data ends early", offset=len(data))
    return plain


def _parse(node: Mapping[str, Any], path: str) -> TableMetadata:
    version = required_int(node, "format-version", "metadata")
    if version > NEWEST_FORMAT:
        raise UnsupportedTableError(
            f"Iceberg format version {version} (up to {NEWEST_FORMAT} is read)"
        )
    if version < 1:
        raise Malformed(f"metadata format-version is {version}")
    schemas, current_schema_id = _schemas(node)
    specs, default_spec_id = _specs(node)
    snapshots = LazySnapshots(as_list(node.get("snapshots") or [], "snapshots"), path)
    current, refs = _current(node, snapshots)
    return TableMetadata(
        format_version=version,
        table_uuid=optional_text(node, "table-uuid", "metadata"),
        location=_location(required_text(node, "location", "metadata")),
        last_updated_ms=as_time(node.get("last-updated-ms") or 0, "metadata last-updated-ms"),
        last_sequence_number=optional_int(node, "last-sequence-number", "metadata") or 0,
        schemas=schemas,
        current_schema_id=current_schema_id,
        specs=specs,
        default_spec_id=default_spec_id,
        sort_orders=parse_sort_orders(node.get("sort-orders")),
        default_sort_order_id=optional_int(node, "default-sort-order-id", "metadata", 32) or 0,
        properties=text_map(node, "properties", "metadata"),
        current_snapshot_id=current,
        snapshots=snapshots,
        snapshot_log=parse_snapshot_log(node.get("snapshot-log")),
        metadata_log=tuple(sane(node.get("metadata-log"), "metadata-log", _metadata_log)),
        refs=refs,
        statistics=tuple(sane(node.get("statistics"), "statistics", _statistics)),
        partition_statistics=tuple(
            sane(node.get("partition-statistics"), "partition-statistics", _statistics)
        ),
        next_row_id=optional_int(node, "next-row-id", "metadata"),
        encryption_keys=tuple(objects(node, "encryption-keys", "metadata")),
        stated_last_column_id=_for_writers(node, "last-column-id"),
        stated_last_partition_id=_for_writers(node, "last-partition-id"),
    )


def _for_writers(node: Mapping[str, Any], key: str) -> int | None:
    try:
        return optional_int(node, key, "metadata", 32)
    except Malformed:
        return None  # no answer depends on it; a change of the metadata is refused


def _location(text: str) -> str:
    # "/" and "s3://" alone keep their slashes; there is nothing else to them.
    stripped = text.rstrip("/")
    return stripped if stripped and not stripped.endswith(":") else text


def _schemas(node: Mapping[str, Any]) -> tuple[dict[int, Schema], int]:
    listed = [parse_schema(each) for each in objects(node, "schemas", "metadata")]
    schemas = {each.schema_id: each for each in listed}
    current = optional_int(node, "current-schema-id", "metadata", 32)
    if schemas and current is not None:
        if current not in schemas:
            raise Malformed(f"current-schema-id {current} is not among the schemas")
        return schemas, current
    if len(schemas) == 1 and node.get("schema") is None:
        return schemas, next(iter(schemas))
    # v1 keeps the current schema under "schema", beside or instead of the list.
    alone = parse_schema(required(node, "schema", "metadata"))
    return {**schemas, alone.schema_id: alone}, alone.schema_id


def _specs(node: Mapping[str, Any]) -> tuple[dict[int, PartitionSpec], int]:
    specs = {
        each.spec_id: each for each in map(parse_spec, objects(node, "partition-specs", "metadata"))
    }
    default = optional_int(node, "default-spec-id", "metadata", 32)
    if specs and default is not None:
        if default not in specs:
            raise Malformed(f"default-spec-id {default} is not among the partition-specs")
        return specs, default
    if specs and node.get("partition-spec") is None:
        return specs, max(specs)  # only writers need to know which one is the default
    fields = parse_spec_fields(required(node, "partition-spec", "metadata"))
    return {**specs, 0: PartitionSpec(0, fields)}, 0


def _current(
    node: Mapping[str, Any], snapshots: LazySnapshots
) -> tuple[int | None, dict[str, SnapshotRef]]:
    current = optional_id(node, "current-snapshot-id", "metadata")
    listed = node.get("refs")
    refs = {
        name: parse_ref(name, each)
        for name, each in ({} if listed is None else as_object(listed, "refs")).items()
    }
    if current is None:
        # Reading such a table as empty would lose its rows if the field is what was damaged.
        # Writers that leave out what is null, as PyIceberg does, write refs without main.
        said = listed is not None or "current-snapshot-id" in node
        if MAIN in refs or (node.get("snapshot-log") and not said):
            raise Malformed("current-snapshot-id is not set, yet main has snapshots")
        return None, refs
    if current not in snapshots:
        raise Malformed(f"current-snapshot-id {current} is not among the snapshots")
    if refs.setdefault(MAIN, SnapshotRef(current)).snapshot_id != current:
        raise Malformed(f"current-snapshot-id {current} is not where main points")
    return current, refs


def _metadata_log(fields: Mapping[str, Any]) -> MetadataLogEntry:
    where = "metadata-log"
    return MetadataLogEntry(
        as_time(required(fields, "timestamp-ms", where), f"{where} timestamp-ms"),
        required_text(fields, "metadata-file", where),
    )


def _statistics(fields: Mapping[str, Any]) -> StatisticsFile:
    return StatisticsFile(
        required_id(fields, "statistics"),
        as_text(fields.get("statistics-path"), "statistics-path"),
        optional_int(fields, "file-size-in-bytes", "statistics"),
        optional_int(fields, "file-footer-size-in-bytes", "statistics"),
    )


# ------------------------------------------------------------------ partition values of all specs


def united_partition_type(metadata: TableMetadata) -> StructType:
    """The partition fields of all specs by their ids, without those whose column was dropped.

    A field has the name that the newest spec gives it and the type of a spec that does not void
    it. Source: Java ``Partitioning.partitionType``.
    """
    fields: dict[int, NestedField] = {}
    voided: set[int] = set()
    for spec in sorted(metadata.specs.values(), key=lambda each: each.spec_id, reverse=True):
        types = partition_types(spec, metadata.schema)
        for part, part_type in zip(spec.fields, types, strict=True):
            if metadata.schema.field_by_id.get(part.source_id) is None:
                continue
            known = fields.get(part.field_id)
            if known is not None and part.field_id not in voided:
                continue
            name = part.name if known is None else known.name
            fields[part.field_id] = NestedField(part.field_id, name, part_type)
            if part.transform.lower() == "void":
                voided.add(part.field_id)
            else:
                voided.discard(part.field_id)
    return StructType(tuple(fields[field_id] for field_id in sorted(fields)))
