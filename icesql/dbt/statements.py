"""Statements for dbt, and dbt's catalog from metadata; imports dbt only for its data types."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from icesql import TableNotFoundError
from icesql.iceberg.metadata.json_fields import whole_number
from icesql.quoting import literal, quoted

if TYPE_CHECKING:
    import agate
    from dbt_common.contracts.metadata import CatalogTable

    import icesql


# Rows of a CSV file as a query: strings in Arrow, which the engine casts to the columns' types.

_NAME: Final = "__dbt_seed"


def select_of(connection: icesql.Connection, table: agate.Table, types: Sequence[str]) -> str:
    """A SELECT of all rows, to be run on this connection before ``forget``.

    If a value does not fit its type, that statement fails and changes nothing.
    """
    import pyarrow as pa

    columns = [
        pa.array([_text(value) for value in column.values()], pa.string())
        for column in table.columns
    ]
    # Columns are named by position, since names in a file may differ only in case.
    places = [f"c{index}" for index in range(len(columns))]
    connection.register(_NAME, pa.table(columns, names=places))
    casts = (
        f"CAST({place} AS {type}) AS {quoted(name)}"
        for place, type, name in zip(places, types, table.column_names, strict=True)
    )
    return f"SELECT {', '.join(casts)} FROM {_NAME}"


def forget(connection: icesql.Connection) -> None:
    """Release the rows of ``select_of``."""
    connection.unregister(_NAME)


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


# Changes of the comments of a table and its columns, in one commit.


def changes_sql(
    rows: Rows, relation: Any, description: str | None, columns: dict[str, Any] | None
) -> str:
    """A script that sets the comments that differ from the given ones; "" if none does.

    ``columns`` are dbt's, each with a name and a description. They are ignored for a view, whose
    CREATE VIEW sets the comments of its columns.
    """
    name = relation.render()
    statements = []
    if description and description != comment_of(rows, relation):
        statements.append(
            f"ALTER VIEW {name} SET TBLPROPERTIES ('comment' = {literal(description)})"
            if relation.is_view
            else f"COMMENT ON TABLE {name} IS {literal(description)}"
        )
    if columns and not relation.is_view:
        there = {each.lower(): (each, comment) for each, _, comment in columns_of(rows, relation)}
        for key, column in columns.items():
            description = column.get("description")
            found = there.get(column.get("name", key).lower())
            if not description or found is None or found[1] == description:
                continue
            statements.append(
                f"COMMENT ON COLUMN {name}.{quoted(found[0])} IS {literal(description)}"
            )
    if len(statements) < 2:
        return "".join(statements)
    return ";\n".join(["BEGIN", *statements, "COMMIT"])


Rows = Callable[[str], list[Any]]

_COLUMNS: Final = (
    "table_database", "table_schema", "table_name", "table_type", "table_comment", "table_owner",
    "column_name", "column_index", "column_type", "column_comment",
)  # fmt: skip
_PARTS: Final = ("label", "value", "description", "include")
# Of a snapshot's summary: key, label, description.
_STATS: Final = (
    ("num_rows", "total-records", "Rows", "Rows of the current snapshot, deletes not taken off"),
    ("bytes", "total-files-size", "Size", "Bytes of its files"),
    ("num_files", "total-data-files", "Data files", "Files with rows"),
    ("num_delete_files", "total-delete-files", "Delete files", "Files with deletes"),
)  # fmt: skip


def tables_and_views(rows: Rows, place: Any) -> list[tuple[str, str]]:
    """Names and kinds of the tables and views in a namespace, from the catalog's lists."""
    if place.other_catalog is None:
        where = f"table_schema = {literal(place.schema)}"
        sql = f"SELECT table_name, table_type FROM information_schema.tables WHERE {where}"
        return [(name, "view" if kind == "VIEW" else "table") for name, kind in rows(sql)]
    # information_schema covers only the connection's own catalog.
    found = []
    for words, kind in (("TABLES", "table"), ("VIEWS", "view")):
        for row in rows(f"SHOW {words} FROM {place.render()}"):
            _, _, name = row[0].rpartition(f"{place.schema}.")
            found.append((name, kind))
    return found


def is_missing(error: Exception) -> bool:
    """True for icesql's TableNotFoundError, and for dbt's error caused by it."""
    return isinstance(error.__cause__ or error, TableNotFoundError)


def comment_of(rows: Rows, relation: Any) -> str | None:
    """The comment of a table or view."""
    properties = rows(f"SHOW TBLPROPERTIES {relation.render()}")
    return {row[0]: row[1] for row in properties}.get("comment")


def columns_of(rows: Rows, relation: Any) -> list[tuple[str, str, str | None]]:
    """Name, Iceberg type and comment of each column."""
    return [(row[0], row[1], row[5]) for row in rows(f"DESCRIBE {relation.render()}")]


def last_modified(rows: Rows, relation: Any) -> tuple[datetime | None, datetime]:
    """The time of the current snapshot, or None; and the current time."""
    current = _current(rows, relation)
    return (None if current is None else current[0]), datetime.now(UTC)


def agate_table(rows: Rows, relations: Sequence[Any]) -> agate.Table:
    """A table for dbt's catalog, with a row for each column of each relation."""
    from dbt_common.clients.agate_helper import table_from_data_flat

    stats = [f"stats:{name}:{part}" for name, *_ in _STATS for part in _PARTS]
    data = [row for relation in relations for row in _rows_of(rows, relation)]
    return table_from_data_flat(data, [*_COLUMNS, *stats])


def of_relation(rows: Rows, relation: Any) -> CatalogTable | None:
    """One relation, with its columns and stats; None if it does not exist."""
    from dbt_common.contracts.metadata import (
        CatalogTable,
        ColumnMetadata,
        StatsItem,
        TableMetadata,
    )

    found = _rows_of(rows, relation)
    if not found:
        return None
    first = found[0]
    metadata = TableMetadata(**_prefixed("table_", first))
    columns = {row["column_name"]: ColumnMetadata(**_prefixed("column_", row)) for row in found}
    stats = {
        name: StatsItem(
            id=name,
            label=label,
            value=first[f"stats:{name}:value"],
            include=True,
            description=description,
        )
        for name, _, label, description in _STATS
        if first[f"stats:{name}:include"]
    }
    return CatalogTable(metadata=metadata, columns=columns, stats=stats)


def _prefixed(prefix: str, row: dict[str, Any]) -> dict[str, Any]:
    return {
        name.removeprefix(prefix): value for name, value in row.items() if name.startswith(prefix)
    }


def _rows_of(rows: Rows, relation: Any) -> list[dict[str, Any]]:
    try:
        columns = columns_of(rows, relation)
    except Exception as error:
        if is_missing(error):
            return []
        raise
    comment = comment_of(rows, relation)
    current = _current(rows, relation)
    summary = {} if current is None else current[1]
    stats = {}
    for name, key, label, description in _STATS:
        value = whole_number(summary.get(key))
        parts = (label, value, description, value is not None)
        for part, each in zip(_PARTS, parts, strict=True):
            stats[f"stats:{name}:{part}"] = each
    kind = "VIEW" if relation.is_view else "BASE TABLE"
    of_table = (
        relation.database, relation.schema, relation.identifier, kind, comment, None,
    )  # fmt: skip
    return [
        dict(zip(_COLUMNS, (*of_table, name, index, type, of_column), strict=True)) | stats
        for index, (name, type, of_column) in enumerate(columns, start=1)
    ]


def _current(rows: Rows, relation: Any) -> tuple[datetime, dict[str, str]] | None:
    """The time and the summary of the current snapshot; None for a view and an empty table."""
    if relation.is_view:
        return None
    for at, *_, refs, _, summary in rows(f"SHOW SNAPSHOTS EXTENDED FROM {relation.render()}"):
        if "main" in (refs or "").split(", "):
            return at, json.loads(summary)
    return None


# ------------------------------------------------------------------ types and transactions


# Types that Iceberg can widen in place, in addition to decimals of the same scale.
_WIDER: Final = {("integer", "bigint"), ("int", "bigint"), ("float", "double")}

# Comments, which dbt puts before each statement, and BEGIN. The comments match in only one way,
# without backtracking: otherwise two could match as one, and the combinations grow exponentially.
_BEGINS: Final = re.compile(r"(?:\s|(?>/\*.*?\*/)|--[^\n]*\n)*+begin\b", re.IGNORECASE | re.DOTALL)


def begins_transaction(script: str) -> bool:
    """True if the first word of a script is BEGIN."""
    return _BEGINS.match(script) is not None


def is_wider(before: str, after: str) -> bool:
    """True if Iceberg can change a type to another without new files."""
    old, new = before.lower().replace(" ", ""), after.lower().replace(" ", "")
    if (old, new) in _WIDER:
        return True
    if not (old.startswith("decimal(") and new.startswith("decimal(")):
        return False
    (old_precision, old_scale), (new_precision, new_scale) = _decimal(old), _decimal(new)
    return old_scale == new_scale and new_precision > old_precision


def _decimal(text: str) -> tuple[int, int]:
    precision, _, scale = text[8:].rstrip(")").partition(",")
    return int(precision), int(scale or 0)
