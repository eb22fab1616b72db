"""Decide when DuckDB may match the columns of a file by name instead of by field id.

DuckDB assumes one row for a ``read_parquet`` with a schema of field ids, and so joins in the wrong
order. Files with the same footer whose columns have exactly the table's types are read by the names
in the footer, and DuckDB then knows how many rows there are.
"""

from __future__ import annotations

import re
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

# The forms of leaves that pass the footer check and are read as exactly the table's type, where
# not all forms are.
_SAME: Final[dict[type[t.IcebergType], str]] = {
    t.IntegerType: r"\w+ (None|INT_32) .*",
    t.LongType: "INT64 .*",
    t.DoubleType: "DOUBLE .*",
    **dict.fromkeys((t.TimestampType, t.TimestamptzType, t.TimeType), "INT64 .*MICROS=Micro.*"),
    t.TimestampNanoType: ".*NANOS=Nano.*",
    t.UUIDType: r".* UUIDType\(\)",
}


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
        if not _same_type(column, element):
            return None
        names[column.field_id] = element.name
    return names


def _same_type(column: t.NestedField, element: Element) -> bool:
    """True if DuckDB reads a stored column, which passed the footer check, as exactly its type."""
    types = (each.type for each in t.walk((column,)) if isinstance(each.type, t.PrimitiveType))
    return all(
        re.fullmatch(_SAME.get(type(kind), ".*"), leaf.form)
        and (not isinstance(kind, t.DecimalType) or leaf.precision == kind.precision)
        for kind, leaf in zip(types, element.leaves(), strict=True)
    )
