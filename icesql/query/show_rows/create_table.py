"""SHOW CREATE TABLE and SHOW TBLPROPERTIES: a table as Spark's DDL and properties.

Source: Spark's ``ShowCreateTableExec``; Iceberg's ``SparkTable``, ``TypeToSparkType``.
"""

from __future__ import annotations

import re
from typing import Final

from icesql.catalog.table import Table
from icesql.iceberg import types as t
from icesql.iceberg.metadata.sort_order import SortField
from icesql.iceberg.metadata.table_metadata import TableMetadata
from icesql.iceberg.partitioning import PartitionField
from icesql.iceberg.schema import Schema
from icesql.quoting import spark_name, spark_string
from icesql.sql.keywords import NO_COLUMN
from icesql.storage.credentials import masked, redact_urls

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
