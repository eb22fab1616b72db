"""Rows about one table: its columns, branches, tags, partitions, history and properties."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from icesql.config import time_zone
from icesql.context import QueryContext
from icesql.errors import found_at
from icesql.iceberg import types as t
from icesql.iceberg.metadata.partition_type import united_partition_type
from icesql.iceberg.metadata.property_numbers import whole_number
from icesql.iceberg.metadata.table_metadata import TableMetadata
from icesql.iceberg.partitioning import PartitionSpec
from icesql.iceberg.transforms import parse_transform
from icesql.query.like import is_like
from icesql.query.metadata_scan import Found, load
from icesql.query.show_rows.create_table import (
    create_table,
    spark_type,
    table_properties,
    transform_text,
)
from icesql.query.show_rows.rows import Columns, Rows
from icesql.query.snapshot_selection import by_schema, select_snapshot
from icesql.scan.metadata_tables import history_rows
from icesql.scan.metadata_tables.rows import metadata_rows
from icesql.scan.metadata_tables.schemas import metadata_schema
from icesql.scan.table_scan import TableScan
from icesql.sql.positions import unsupported
from icesql.storage.credentials import redact_urls

if TYPE_CHECKING:
    from icesql.catalog.search_path import SearchPath
    from icesql.catalog.table import Table
    from icesql.iceberg.schema import Schema
    from icesql.sql.statement import ShowOfTable, TableReference

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
# What is the same at every snapshot.
_TIMELESS: Final = ("BRANCHES", "TAGS", "HISTORY", "CREATE TABLE", "TBLPROPERTIES", "DETAIL")


def of_table(
    statement: ShowOfTable, names: SearchPath, query: QueryContext
) -> tuple[Columns, Rows]:
    """The columns and rows of a statement about one table.

    Raises what ``names.load`` raises, SnapshotNotFoundError, UnsupportedSqlError for time travel
    where it makes no difference, and what reading manifests raises.
    """
    reference, what = statement.reference, statement.what
    if what == "COLUMNS":
        return _COLUMNS, _columns(described(reference, names, query), statement.like)
    found = found_table(reference, names, query, f"SHOW {what}", timeless=what in _TIMELESS)
    match what:
        case "BRANCHES":
            return _BRANCHES, _refs(found, "branch")
        case "TAGS":
            return _TAGS, _refs(found, "tag")
        case "HISTORY":
            return _HISTORY, _history(found, query)
        case "PARTITIONS":
            return _PARTITIONS, _partitions(found, reference, query)
        case "CREATE TABLE":
            return (("createtab_stmt", "varchar"),), [(create_table(found),)]
        case "TBLPROPERTIES":
            return _PROPERTIES, _properties(found, statement.like)
        case "DETAIL":
            return _DETAIL, [_detail(found, query)]
        case _:
            return _EXTENDED, _extended(found, reference, query)


def found_table(
    reference: TableReference,
    names: SearchPath,
    query: QueryContext,
    what: str,
    *,
    timeless: bool = True,
) -> Table:
    """The table of a reference that may be no metadata table; ``timeless``: nor travel."""
    with found_at(reference.offset):
        found = load(reference, names, query)
    if found.metadata_table is not None:
        raise unsupported(f"{what} of a metadata table", reference.offset, "name the table itself")
    if timeless and (reference.travel is not None or found.travel is not None):
        raise unsupported(
            f"time travel in {what}", reference.offset, "it is the same at every snapshot"
        )
    return found.table


def described(
    reference: TableReference, names: SearchPath, query: QueryContext
) -> tuple[Schema, PartitionSpec | None]:
    """The schema of a table or metadata table at its snapshot; the spec that writers use now."""
    with found_at(reference.offset):
        found: Found = load(reference, names, query)
        metadata = found.table.metadata
        if found.metadata_table is not None:
            return metadata_schema(found.metadata_table, metadata), None
        selected = select_snapshot(found.table, reference.travel or found.travel, query)
        selected = by_schema(found.table, selected, reference.schema)
    return selected.schema, metadata.spec


def transforms_by_column(spec: PartitionSpec | None) -> Mapping[int, str]:
    """The transforms of each column that partitions, by its id."""
    found: dict[int, list[str]] = {}
    for each in spec.fields if spec is not None else ():
        for source in each.source_ids:
            found.setdefault(source, []).append(each.transform)
    return {source: ", ".join(names) for source, names in found.items()}


# Trino's columns.
_COLUMNS: Columns = (
    ("column", "varchar"), ("type", "varchar"), ("extra", "varchar"), ("comment", "varchar"),
)  # fmt: skip


def _columns(found: tuple[Schema, PartitionSpec | None], like: str | None) -> Rows:
    schema, spec = found
    partitions = transforms_by_column(spec)
    rows: Rows = []
    for column in schema.fields:
        if like is not None and not is_like(column.name.lower(), like.lower()):
            continue
        transforms = partitions.get(column.field_id)
        extra = "" if transforms is None else f"partition key ({transforms})"
        rows.append((column.name, str(column.type), extra, column.doc or ""))
    return rows


_BRANCHES: Columns = (
    ("name", "varchar"),
    ("snapshot_id", "bigint"),
    ("max_reference_age_in_ms", "bigint"),
    ("min_snapshots_to_keep", "integer"),
    ("max_snapshot_age_in_ms", "bigint"),
)
_TAGS: Columns = _BRANCHES[:3]


def _refs(table: Table, kind: str) -> Rows:
    rows: Rows = []
    for name, ref in table.metadata.refs.items():
        if ref.kind == kind:
            row = (name, ref.snapshot_id, ref.max_ref_age_ms)
            kept = (ref.min_snapshots_to_keep, ref.max_snapshot_age_ms)
            rows.append(row if kind == "tag" else (*row, *kept))
    return rows


# The columns of Iceberg's history table.
_HISTORY: Columns = (
    ("made_current_at", "timestamptz"),
    ("snapshot_id", "bigint"),
    ("parent_id", "bigint"),
    ("is_current_ancestor", "boolean"),
)


def _history(table: Table, query: QueryContext) -> Rows:
    return [(_instant(row[0], query), *row[1:]) for row in history_rows.history(table)]


def _instant(micros: int, query: QueryContext) -> datetime:
    zone = time_zone(query.settings.timezone)
    return (_EPOCH + timedelta(microseconds=micros)).astimezone(zone)


# Spark's column, and what the partition holds.
_PARTITIONS: Columns = (
    ("partition", "varchar"),
    ("spec_id", "integer"),
    ("record_count", "bigint"),
    ("file_count", "bigint"),
    ("total_data_file_size_in_bytes", "bigint"),
)


def _partitions(table: Table, reference: TableReference, query: QueryContext) -> Rows:
    metadata = table.metadata
    if not united_partition_type(metadata).fields:
        raise unsupported(
            f"SHOW PARTITIONS of {table.name}",
            reference.offset,
            "the table has no partitions; its partitions table has the totals",
        )
    with found_at(reference.offset):
        selected = select_snapshot(table, reference.travel, query)
    schema = metadata_schema("partitions", metadata)
    scan = TableScan(table, selected.snapshot, schema, schema, metadata_table="partitions")
    return [
        (partition_text(values, spec_id, metadata), spec_id, *row[:3])
        for values, spec_id, *row in metadata_rows(scan, query).rows
    ]


def partition_text(values: Mapping[int, Any], spec_id: int, metadata: TableMetadata) -> str:
    """``region=eu/ordered_on_day=2026-01-02``, names and values as they are."""
    parts = []
    for field in metadata.specs[spec_id].fields:
        source = metadata.file_schema.field_by_id.get(field.source_id)
        kind = t.UNKNOWN if source is None else source.type
        shown = parse_transform(field.transform).human(values.get(field.field_id), kind)
        parts.append(f"{field.name}={shown}")
    return "/".join(parts)


_PROPERTIES: Columns = (("key", "varchar"), ("value", "varchar"))


def _properties(table: Table, key: str | None) -> Rows:
    found = table_properties(table)
    if key is None:
        return list(found.items())
    missing = f"Table {table.name} does not have property: {key}"  # Spark's words
    return [(key, found.get(key, missing))]


# Spark's columns and headings.
_EXTENDED: Columns = (("col_name", "varchar"), ("data_type", "varchar"), ("comment", "varchar"))


def _extended(table: Table, reference: TableReference, query: QueryContext) -> Rows:
    metadata = table.metadata
    with found_at(reference.offset):
        selected = select_snapshot(table, reference.travel, query)
        schema = by_schema(table, selected, reference.schema).schema
    rows: Rows = [(each.name, spark_type(each.type).lower(), each.doc) for each in schema.fields]
    if metadata.spec.fields:
        rows += [("", "", ""), ("# Partitioning", "", "")]
        rows += [
            (f"Part {number}", transform_text(each, metadata), "")
            for number, each in enumerate(metadata.spec.fields)
        ]
    properties = ", ".join(f"{key}={value}" for key, value in table_properties(table).items())
    rows += [
        ("", "", ""),
        ("# Detailed Table Information", "", ""),
        ("Name", table.name, ""),
        ("Type", "MANAGED", ""),
        ("Location", redact_urls(metadata.location), ""),
        ("Provider", "iceberg", ""),
        ("Metadata Location", redact_urls(table.metadata_location), ""),
        ("UUID", metadata.table_uuid, ""),
        ("Table Properties", f"[{properties}]", ""),
    ]
    return rows


# The columns of Delta's DESCRIBE DETAIL that an Iceberg table has.
_DETAIL: Columns = (
    ("format", "varchar"),
    ("id", "varchar"),
    ("name", "varchar"),
    ("location", "varchar"),
    ("last_modified", "timestamptz"),
    ("partition_columns", "varchar"),
    ("num_files", "bigint"),
    ("size_in_bytes", "bigint"),
    ("num_records", "bigint"),
    ("format_version", "integer"),
    ("snapshots", "bigint"),
)


def _detail(table: Table, query: QueryContext) -> tuple[Any, ...]:
    metadata = table.metadata
    snapshot = metadata.current_snapshot
    summary = {} if snapshot is None else snapshot.summary
    return (
        "iceberg",
        metadata.table_uuid,
        table.name,
        redact_urls(metadata.location),
        _instant(metadata.last_updated_ms * 1000, query),
        ", ".join(transform_text(each, metadata) for each in metadata.spec.fields),
        *(_number(summary, f"total-{each}") for each in ("data-files", "files-size", "records")),
        metadata.format_version,
        len(metadata.snapshots),
    )


def _number(summary: Mapping[str, str], name: str) -> int | None:
    return whole_number(summary.get(name))
