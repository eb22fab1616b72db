"""Rows about one table: its columns, snapshots, branches, tags, partitions and properties."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from icesql.iceberg import types as t
from icesql.iceberg.metadata.partition_type import united_partition_type
from icesql.iceberg.metadata.property_numbers import whole_number
from icesql.iceberg.metadata.table_metadata import TableMetadata
from icesql.iceberg.transforms import parse_transform
from icesql.query.show_rows.create_table import (
    create_table,
    spark_type,
    spec_text,
    table_properties,
    transform_text,
)
from icesql.query.show_rows.request import Answer, Rows, ShowRequest
from icesql.scan.metadata_tables.history_rows import history_rows, ref_rows
from icesql.scan.metadata_tables.rows import metadata_rows
from icesql.scan.metadata_tables.schemas import metadata_schema
from icesql.scan.table_scan import TableScan
from icesql.sql.positions import unsupported
from icesql.storage.credentials import redact_urls

if TYPE_CHECKING:
    from icesql.catalog.table import Table
    from icesql.context import QueryContext
    from icesql.iceberg.metadata.snapshot import Snapshot
    from icesql.iceberg.types import NestedField


def _with_transforms(request: ShowRequest) -> Iterator[tuple[NestedField, str | None]]:
    """The columns, each with its partition transforms or None."""
    schema, spec = request.described()
    found: dict[int, list[str]] = {}
    for each in spec.fields if spec is not None else ():
        for source in each.source_ids:
            found.setdefault(source, []).append(each.transform)
    for column in schema.fields:
        transforms = found.get(column.field_id)
        yield column, None if transforms is None else ", ".join(transforms)


def describe(request: ShowRequest) -> Rows:
    """DESCRIBE."""
    return [
        (each.name, str(each.type), not each.required, each.field_id, transforms, each.doc)
        for each, transforms in _with_transforms(request)
    ]


def columns(request: ShowRequest) -> Rows:
    """SHOW COLUMNS."""
    return [
        (
            each.name,
            str(each.type),
            "" if transforms is None else f"partition key ({transforms})",
            each.doc or "",
        )
        for each, transforms in _with_transforms(request)
        if request.keeps(each.name)
    ]


def snapshots(request: ShowRequest) -> Rows:
    """SHOW SNAPSHOTS EXTENDED, oldest first; the refs are the branches and tags at a snapshot."""
    metadata = request.table().metadata
    at: dict[int, list[str]] = {}
    for name, ref in metadata.refs.items():
        at.setdefault(ref.snapshot_id, []).append(name)
    return [
        (
            request.instant(each.timestamp_ms),
            each.snapshot_id,
            each.parent_snapshot_id,
            each.operation,
            ", ".join(at.get(each.snapshot_id, ())) or None,
            whole_number(each.summary.get("total-records")),
            redact_urls(json.dumps(dict(each.summary))),
        )
        for each in sorted(metadata.snapshots.values(), key=lambda each: each.timestamp_ms)
    ]


def short_snapshots(request: ShowRequest) -> Rows:
    """SHOW SNAPSHOTS: columns that fit 80 cells, with times in the form that AS OF reads."""
    return [(row[0].replace(tzinfo=None), row[1], *row[3:6]) for row in snapshots(request)]


def refs(request: ShowRequest) -> Rows:
    """SHOW REFS."""
    return [(row[0], row[1].lower(), row[2]) for row in ref_rows(request.table())]


def branches(request: ShowRequest) -> Rows:
    """SHOW BRANCHES."""
    return [(row[0], *row[2:]) for row in ref_rows(request.table()) if row[1] == "BRANCH"]


def tags(request: ShowRequest) -> Rows:
    """SHOW TAGS."""
    return [(row[0], *row[2:4]) for row in ref_rows(request.table()) if row[1] == "TAG"]


def history(request: ShowRequest) -> Rows:
    """SHOW HISTORY, with the columns of Iceberg's history table."""
    found = history_rows(request.table())
    return [(request.instant(row[0] // 1000), *row[1:]) for row in found]


def partitions(request: ShowRequest) -> Rows:
    """SHOW PARTITIONS: Spark's column, and the totals of each partition."""
    table = request.table(timeless=False)
    metadata = table.metadata
    if not united_partition_type(metadata).fields:
        hint = "the table has no partitions; its partitions table has the totals"
        raise unsupported(f"SHOW PARTITIONS of {table.name}", request.reference.offset, hint)
    snapshot = request.selected(table).snapshot
    return [
        (partition_text(values, spec_id, metadata), spec_id, *row[:3])
        for values, spec_id, *row in partition_rows(table, snapshot, request.query)
    ]


def partition_rows(table: Table, snapshot: Snapshot | None, query: QueryContext) -> Iterable[Any]:
    """The rows of the metadata table ``partitions`` at a snapshot."""
    schema = metadata_schema("partitions", table.metadata)
    scan = TableScan(table, snapshot, schema, schema, metadata_table="partitions")
    return metadata_rows(scan, query).rows


def partition_text(values: Mapping[int, Any], spec_id: int, metadata: TableMetadata) -> str:
    """The text ``region=eu/ordered_on_day=2026-01-02``, without escapes."""
    parts = []
    for field in metadata.specs[spec_id].fields:
        source = metadata.file_schema.field_by_id.get(field.source_id)
        kind = t.UNKNOWN if source is None else source.type
        shown = parse_transform(field.transform).human(values.get(field.field_id), kind)
        parts.append(f"{field.name}={shown}")
    return "/".join(parts)


def properties(request: ShowRequest) -> Rows:
    """SHOW TBLPROPERTIES, all or one."""
    table, key = request.table(), request.statement.like
    found = table_properties(table)
    if key is None:
        return list(found.items())
    missing = f"Table {table.name} does not have property: {key}"  # the same words as Spark
    return [(key, found.get(key, missing))]


def extended(request: ShowRequest) -> Rows:
    """DESCRIBE EXTENDED, with Spark's headings."""
    table = request.table(timeless=False)
    metadata, schema = table.metadata, request.selected(table).schema
    rows: Rows = [(each.name, spark_type(each.type).lower(), each.doc) for each in schema.fields]
    if metadata.spec.fields:
        rows += [("", "", ""), ("# Partitioning", "", "")]
        rows += [
            (f"Part {number}", transform_text(each, metadata), "")
            for number, each in enumerate(metadata.spec.fields)
        ]
    properties = ", ".join(f"{key}={value}" for key, value in table_properties(table).items())
    about = {
        "": "",
        "# Detailed Table Information": "",
        "Name": table.name,
        "Type": "MANAGED",
        "Location": redact_urls(metadata.location),
        "Provider": "iceberg",
        "Metadata Location": redact_urls(table.metadata_location),
        "UUID": metadata.table_uuid,
        "Table Properties": f"[{properties}]",
    }
    return rows + [(name, value, "") for name, value in about.items()]


def detail(request: ShowRequest) -> Rows:
    """DESCRIBE DETAIL: those columns of Delta's statement that apply to an Iceberg table."""
    table = request.table()
    metadata, snapshot = table.metadata, table.metadata.current_snapshot
    summary: Mapping[str, str] = {} if snapshot is None else snapshot.summary
    totals = (f"total-{each}" for each in ("data-files", "files-size", "records"))
    return [
        (
            "iceberg",
            metadata.table_uuid,
            table.name,
            redact_urls(metadata.location),
            request.instant(metadata.last_updated_ms),
            spec_text(metadata),
            *(whole_number(summary.get(each)) for each in totals),
            metadata.format_version,
            len(metadata.snapshots),
        )
    ]


def _diff_summary(request: ShowRequest) -> Rows:
    from icesql.query.travel.diff_summary import diff_summary

    return diff_summary(request)


_CREATED: Final = (
    "createtab_stmt varchar",
    lambda request: [(create_table(request.table()),)],
)
_NAMED: Final = "name varchar, snapshot_id bigint, max_reference_age_in_ms bigint"
# By the subject of a statement: its columns and its rows.
OF_TABLE: Final[dict[str, Answer]] = {
    "SNAPSHOTS": (
        "committed_at timestamp, snapshot_id bigint, operation varchar, refs varchar, "
        "records bigint",
        short_snapshots,
    ),
    "SNAPSHOTS EXTENDED": (
        "committed_at timestamptz, snapshot_id bigint, parent_id bigint, operation varchar, "
        "refs varchar, records bigint, summary varchar",
        snapshots,
    ),
    "REFS": ("name varchar, type varchar, snapshot_id bigint", refs),
    "BRANCHES": (
        f"{_NAMED}, min_snapshots_to_keep integer, max_snapshot_age_in_ms bigint",
        branches,
    ),
    "TAGS": (_NAMED, tags),
    "HISTORY": (
        "made_current_at timestamptz, snapshot_id bigint, parent_id bigint, "
        "is_current_ancestor boolean",
        history,
    ),
    "PARTITIONS": (
        "partition varchar, spec_id integer, record_count bigint, file_count bigint, "
        "total_data_file_size_in_bytes bigint",
        partitions,
    ),
    "CREATE TABLE": _CREATED,
    "CREATE VIEW": _CREATED,
    "TBLPROPERTIES": ("key varchar, value varchar", properties),
    # The same columns as in Trino.
    "COLUMNS": ("column varchar, type varchar, extra varchar, comment varchar", columns),
    "DESCRIBE": (
        "column varchar, type varchar, nullable boolean, field_id integer, partition varchar, "
        "comment varchar",
        describe,
    ),
    # The same columns as in Spark.
    "EXTENDED": ("col_name varchar, data_type varchar, comment varchar", extended),
    "DETAIL": (
        "format varchar, id varchar, name varchar, location varchar, last_modified timestamptz, "
        "partition_columns varchar, num_files bigint, size_in_bytes bigint, num_records bigint, "
        "format_version integer, snapshots bigint",
        detail,
    ),
    # Records may include rows deleted by delete files, so both counts are shown.
    "DIFF SUMMARY": (
        "part varchar, name varchar, before varchar, after varchar, files_before bigint, "
        "files_after bigint, records_before bigint, records_after bigint, deletes_before bigint, "
        "deletes_after bigint",
        _diff_summary,
    ),
}
