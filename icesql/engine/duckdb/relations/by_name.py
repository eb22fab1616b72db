"""Decide when DuckDB may match the columns of a file by name instead of by field id.

DuckDB assumes one row for a ``read_parquet`` with a schema of field ids, and so joins in the wrong
order. Files with the same footer whose columns have exactly the table's types are read by the names
in the footer, and DuckDB then knows how many rows there are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from icesql.engine.duckdb.relations.footer import Element, Footer
from icesql.iceberg import types as t
from icesql.scan.tasks.task import FileScanTask

# Each footer needs its own read_parquet.
_MOST_FOOTERS: Final = 4
_VIRTUAL: Final = frozenset(
    {"filename", "file_index", "file_row_number", "file_size", "file_last_modified"}
)


def by_footer(
    tasks: Sequence[FileScanTask],
    footers: Sequence[Footer | None],
    columns: Sequence[t.NestedField],
) -> list[tuple[list[FileScanTask], Mapping[int, str]]] | None:
    """The tasks by footer, each with the stored names by field id; None if ids must be used.

    ``footers`` are those of the tasks, in order; they passed the footer check for ``columns``. A
    column that a footer lacks has no stored name.
    """
    grouped: dict[int, tuple[Footer, list[FileScanTask]]] = {}
    for task, footer in zip(tasks, footers, strict=True):
        if footer is None:
            return None
        grouped.setdefault(id(footer), (footer, []))[1].append(task)
        if len(grouped) > _MOST_FOOTERS:
            return None
    found: list[tuple[list[FileScanTask], Mapping[int, str]]] = []
    for footer, members in grouped.values():
        names = _stored_names(footer, columns)
        if names is None:
            return None
        found.append((members, names))
    return found


def _stored_names(footer: Footer, columns: Sequence[t.NestedField]) -> Mapping[int, str] | None:
    by_id = footer.by_id
    if by_id is None:
        return None
    # DuckDB matches names without regard to case, and has virtual columns of its own.
    lower = [element.name.lower() for element in footer.columns]
    if len(set(lower)) < len(lower) or _VIRTUAL.intersection(lower):
        return None
    names: dict[int, str] = {}
    for column in columns:
        element = by_id.get(column.field_id)
        if element is None:
            continue
        if not _same_type(column.type, element):
            return None
        names[column.field_id] = element.name
    return names


def _same_type(node: t.IcebergType, element: Element) -> bool:
    """True if DuckDB reads a stored column, which passed the footer check, as exactly this type."""
    match node:
        case t.StructType(fields):
            return all(
                _same_type(field.type, child)
                for field, child in zip(fields, element.children, strict=True)
            )
        case t.ListType():
            return _same_type(node.element, element.children[0].children[0])
        case t.MapType():
            key, value = element.children[0].children
            return _same_type(node.key, key) and _same_type(node.value, value)
        case t.IntegerType():
            return element.converted in (None, "INT_32")
        case t.LongType():
            return element.physical == "INT64"
        case t.DoubleType():
            return element.physical == "DOUBLE"
        case t.DecimalType(precision, _):
            return element.precision == precision
        case t.TimestampType() | t.TimestamptzType() | t.TimeType():
            return element.physical == "INT64" and "MICROS=Micro" in (element.logical or "")
        case t.TimestampNanoType():
            return "NANOS=Nano" in (element.logical or "")
        case t.UUIDType():
            return element.logical == "UUIDType()"
        case _:
            return True
