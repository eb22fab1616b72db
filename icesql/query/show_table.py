"""Rows of SHOW and DESCRIBE about one table: columns, snapshots, branches, DDL."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from icesql.catalog.table import Table
from icesql.iceberg import types as t
from icesql.iceberg.metadata.json_fields import whole_number
from icesql.iceberg.metadata.table_metadata import SortField, TableMetadata, united_partition_type
from icesql.iceberg.partitioning import PartitionField
from icesql.iceberg.schema import Schema
from icesql.iceberg.transforms import parse_transform
from icesql.query.show_request import Answer, Rows, ShowRequest
from icesql.quoting import spark_name, spark_string
from icesql.scan.metadata_tables.rows import history_rows, metadata_rows, ref_rows
from icesql.scan.metadata_tables.schemas import metadata_schema
from icesql.scan.plan import TableScan
from icesql.sql.keywords import NO_COLUMN
from icesql.sql.positions import unsupported
from icesql.storage.credentials import masked, redact_urls

if TYPE_CHECKING:
    from icesql.catalog.table import Table
    from icesql.context import QueryContext
    from icesql.iceberg.metadata.snapshot import Snapshot
    from icesql.iceberg.types import NestedField


# ------------------------------------------------------------------ DDL and properties
# Source: Spark's ``ShowCreateTableExec``; Iceberg's ``SparkTable``, ``TypeToSparkType``.


_TYPES: Final[dict[type[t.IcebergType], str]] = {
    t.BooleanType: "BOOLEAN",
    t.IntegerType: "INT",
    t.LongType: "BIGINT",
    t.FloatType: "FLOAT",
    t.DoubleType: "DOUBLE",
    t.DateType: "DATE",
    t.TimestampType: "TIMESTAMP_NTZ",
    t.TimestamptzType: "TIMESTAMP",
    t.StringType: "STRING",
    t.UUIDType: "STRING",
    t.FixedType: "BINARY",
    t.BinaryType: "BINARY",
    t.VariantType: "VARIANT",
    t.UnknownType: "VOID",
}
_PLURAL: Final = ("year", "month", "day", "hour")


def create_table(table: Table) -> str:
    """The CREATE TABLE statement of a table, with secrets masked.

    Types that Spark does not have appear under their Iceberg names.
    """
    metadata = table.metadata
    schema = metadata.schema
    name = ".".join(quoted(part) for part in table.identifier)
    columns = ",\n".join(f"  {_column(each)}" for each in schema.fields)
    lines = [f"CREATE TABLE {name} (\n{columns})", "USING iceberg"]
    if metadata.spec.fields:
        lines.append(f"PARTITIONED BY ({spec_text(metadata)})")
    properties = table_properties(table)
    comment = properties.pop("comment", None)
    if comment is not None:
        lines.append(f"COMMENT {spark_string(comment)}")
    lines.append(f"LOCATION {spark_string(redact_urls(metadata.location))}")
    listed = ",\n".join(
        f"  {spark_string(key)} = {spark_string(properties[key])}" for key in properties
    )
    lines.append(f"TBLPROPERTIES (\n{listed})")
    return "\n".join(lines)


def table_properties(table: Table) -> dict[str, str]:
    """The properties of a table by name, with those that Spark derives from its metadata."""
    metadata = table.metadata
    current = metadata.current_snapshot_id
    file_format = metadata.properties.get("write.format.default", "parquet")
    found = {
        **masked(metadata.properties),
        "current-snapshot-id": "none" if current is None else str(current),
        "format": f"iceberg/{file_format}",
        "format-version": str(metadata.format_version),
    }
    order = metadata.sort_orders.get(metadata.default_sort_order_id)
    if order is not None and order.fields:
        found["sort-order"] = ", ".join(
            f"{transform_text(each, metadata)} "
            f"{each.direction.upper()} {each.null_order.upper().replace('-', ' ')}"
            for each in order.fields
        )
    return {key: found[key] for key in sorted(found)}


def spec_text(metadata: TableMetadata) -> str:
    """The fields of the partition spec as in PARTITIONED BY."""
    return ", ".join(transform_text(each, metadata) for each in metadata.spec.fields)


def transform_text(field: PartitionField | SortField, metadata: TableMetadata) -> str:
    """A partition field as in PARTITIONED BY: ``bucket(16, id)``, ``days(ts)``."""
    transform = field.transform
    names = ", ".join(_path(metadata.file_schema, each) for each in field.source_ids)
    found = re.fullmatch(r"(\w+)\[(\d+)\]", transform)
    if found is not None:
        return f"{found[1]}({found[2]}, {names})"
    if transform == "identity":
        return names
    word = f"{transform}s" if transform in _PLURAL else transform
    return f"{word if word.isidentifier() else quoted(word)}({names})"


def _path(schema: Schema, field_id: int) -> str:
    """The dotted name of a column, or of a child of structs."""
    stack: list[tuple[t.NestedField, str]] = [(each, quoted(each.name)) for each in schema.fields]
    while stack:
        field, name = stack.pop()
        if field.field_id == field_id:
            return name
        if isinstance(field.type, t.StructType):
            stack.extend((each, f"{name}.{quoted(each.name)}") for each in field.type.fields)
    return f"unknown_{field_id}"


def _column(field: t.NestedField, between: str = " ") -> str:
    text = f"{quoted(field.name)}{between}{spark_type(field.type)}"
    if field.required:
        text += " NOT NULL"
    return text if field.doc is None else f"{text} COMMENT {spark_string(field.doc)}"


def spark_type(node: t.IcebergType) -> str:
    """A type in Spark's DDL; Iceberg's name in capitals if Spark has no such type."""
    match node:
        case t.DecimalType(precision, scale):
            return f"DECIMAL({precision},{scale})"
        case t.StructType(fields):
            return f"STRUCT<{', '.join(_column(each, ': ') for each in fields)}>"
        case t.ListType():
            return f"ARRAY<{spark_type(node.element)}>"
        case t.MapType():
            return f"MAP<{spark_type(node.key)}, {spark_type(node.value)}>"
        case _:
            return _TYPES.get(type(node)) or str(node).upper()


def quoted(name: str) -> str:
    """A name as Spark writes it, in backticks unless it is plain and not reserved in icesql."""
    plain = re.fullmatch(r"[a-zA-Z0-9_]+", name) and not name.isdigit()
    if plain and name.lower() not in NO_COLUMN:
        return name
    return spark_name(name)


# ------------------------------------------------------------------ rows about a table


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
    table, selected = request.at_snapshot()
    metadata = table.metadata
    if not united_partition_type(metadata).fields:
        hint = "the table has no partitions; its partitions table has the totals"
        raise unsupported(f"SHOW PARTITIONS of {table.name}", request.reference.offset, hint)
    return [
        (partition_text(values, spec_id, metadata), spec_id, *row[:3])
        for values, spec_id, *row in partition_rows(table, selected.snapshot, request.query)
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
    table, selected = request.at_snapshot()
    metadata, schema = table.metadata, selected.schema
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
    from icesql.query.changes import diff_summary

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
