"""Decide whether DuckDB's own Parquet reader reads a file's columns exactly as the table defines.

DuckDB matches top-level columns by field id, but returns wrong values without an error for files
without ids, renamed nested children, a differing UTC flag and more; each rule below excludes one
of these cases. ``read/`` reads every file that the rules exclude. Further rules decide when DuckDB
may match the columns by name instead.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from icesql.config import Settings
from icesql.engine.duckdb.relations.footer import Element, Footer
from icesql.engine.duckdb.relations.relation import OF_FILE, has_default
from icesql.engine.duckdb_types import has_alike
from icesql.frozen import Frozen
from icesql.iceberg import types as t
from icesql.iceberg.schema import LINEAGE_IDS, METADATA_IDS, POS
from icesql.iceberg.types import NestedField, is_floating
from icesql.scan.tasks import FileScanTask, ScanContext, distinct_deletes

# ``read/`` handles defaults of other types, such as NaN and strings, which a cast might change.
_DEFAULTS_AS_TEXT = t.BooleanType | t.IntegerType | t.LongType | t.DecimalType | t.DateType


def type_problem(column: t.NestedField) -> str | None:
    """Why DuckDB cannot read any column of this type exactly; None if the footer decides."""
    if not _native_type(column.type):
        return f"column {column.name} is {column.type}"
    is_nested = not isinstance(column.type, t.PrimitiveType)
    if is_nested and has_alike((column,)):
        return f"column {column.name} has fields that differ only in case"
    if has_default(column) and not isinstance(column.type, _DEFAULTS_AS_TEXT):
        return f"column {column.name} has a default of type {column.type}"
    return _nested_default(column) if is_nested else None


def _nested_default(column: t.NestedField) -> str | None:
    for child in t.children(column.type):
        if has_default(child):
            return f"child {child.name} of {column.name} has a default"
        if problem := _nested_default(child):
            return problem
    return None


def _native_type(node: t.IcebergType) -> bool:
    if isinstance(node, t.PrimitiveType):
        return type(node) in _STORED_AS
    names = [child.name.lower() for child in t.children(node)]
    return len(set(names)) == len(names) and all(_native_type(c.type) for c in t.children(node))


def footer_problem(
    footer: Footer, needed: Iterable[t.NestedField], identity_sources: frozenset[int]
) -> str | None:
    """Why DuckDB misreads some of the columns ``needed`` in this file; None if it reads them right.

    ``identity_sources`` are columns whose value comes from the partition if the file lacks them.
    """
    by_id = footer.by_id
    if by_id is None:
        return "not every column of the file has a field id of its own"
    for column in needed:
        element = by_id.get(column.field_id)
        if element is None:
            if column.field_id in identity_sources:
                return f"column {column.name} comes from the partition, not from the file"
            if t.children(column.type):
                # DuckDB fails an assertion if a query reads one child of the absent column.
                return f"nested column {column.name} is not in the file"
            if column.required and column.initial_default is t.MISSING:
                return f"required column {column.name} is not in the file"
            continue
        if not _matches(column, element):
            return (
                f"column {column.name} is stored as {_stored(element)}, the table has {column.type}"
            )
    return None


def _stored(element: Element) -> str:
    inner = ", ".join(f"{child.name} {_stored(child)}" for child in element.children)
    text = f"{element.physical or 'group'} {element.logical or element.converted or ''}".strip()
    return f"{text}<{inner}>" if inner else text


def _matches(column: t.NestedField, element: Element) -> bool:
    if element.repetition == "REPEATED":
        return False
    match column.type:
        case t.StructType(fields):
            return (
                element.physical is None
                and element.logical is None
                and element.converted is None
                and len(fields) == len(element.children)
                and all(map(_same_child, fields, element.children))
            )
        case t.ListType():
            repeated = _repeated(element, "LIST", 1)
            return (
                repeated is not None
                and repeated.physical is None
                and repeated.name not in ("array", f"{element.name}_tuple")
                and repeated.children[0].field_id == column.type.element_id
                and _matches(column.type.element_field, repeated.children[0])
            )
        case t.MapType():
            repeated = _repeated(element, "MAP", 2)
            if repeated is None:
                return False
            key, value = repeated.children
            return (
                key.field_id == column.type.key_id
                and value.field_id == column.type.value_id
                and _matches(column.type.key_field, key)
                and _matches(column.type.value_field, value)
            )
        case leaf:
            return _matches_leaf(leaf, element)


def _same_child(column: t.NestedField, element: Element) -> bool:
    return (
        column.field_id == element.field_id
        and column.name == element.name
        and _matches(column, element)
    )


def _repeated(element: Element, kind: str, parts: int) -> Element | None:
    """The only child of a list or map, if it is repeated and has this number of children."""
    is_group = element.converted == kind or element.logical == f"{kind.title()}Type()"
    if element.physical is not None or not is_group or len(element.children) != 1:
        return None
    (child,) = element.children
    return child if child.repetition == "REPEATED" and len(child.children) == parts else None


_SIGNED: Final = "(None|INT_(8|16|32|64)) (None|.*isSigned=1.*)"
_DATE: Final = r"INT32 (DATE .*|\w+ DateType\(\))"
_OF_MICROS: Final = "(MILLIS|MICROS)=(?!<null>).*"
_LOCAL: Final = r"\w+ (?!.*isAdjustedToUTC=1)"
# The physical, converted and logical type of columns that DuckDB reads exactly, by their type. The
# unit and zone of times are those of the logical type: the converted one does not define the zone.
# DuckDB reads nanoseconds with a zone as TIMESTAMP_NS, and fails to cast: nothing matches.
_STORED_AS: Final[dict[type[t.IcebergType], str]] = {
    t.BooleanType: "BOOLEAN None None",
    t.IntegerType: f"INT32 {_SIGNED}",
    t.LongType: f"INT(32|64) {_SIGNED}",
    t.FloatType: r"FLOAT \w+ None",
    t.DoubleType: r"(FLOAT|DOUBLE) \w+ None",
    t.DecimalType: "(INT32|INT64|FIXED_LEN_BYTE_ARRAY) DECIMAL .*",
    t.DateType: _DATE,
    t.TimeType: rf"\w+ {_LOCAL}TimeType.*{_OF_MICROS}",
    t.TimestampType: rf"{_DATE}|INT64 {_LOCAL}TimestampType.*{_OF_MICROS}",
    t.TimestamptzType: rf"INT64 \w+ (?=.*isAdjustedToUTC=1)TimestampType.*{_OF_MICROS}",
    t.TimestampNanoType: rf"\w+ {_LOCAL}TimestampType.*NANOS=(?!<null>).*",
    t.TimestamptzNanoType: "(?!)",
    t.StringType: r"BYTE_ARRAY (UTF8 .*|\w+ StringType\(\))",
    t.BinaryType: "BYTE_ARRAY None None",
    t.FixedType: "FIXED_LEN_BYTE_ARRAY None None",
    t.UUIDType: r"FIXED_LEN_BYTE_ARRAY None (None|UUIDType\(\))",
}


def _matches_leaf(node: t.IcebergType, element: Element) -> bool:
    if not re.fullmatch(_STORED_AS[type(node)], element.form):
        return False
    match node:
        case t.DecimalType(precision, scale):
            digits = element.precision
            return element.scale == scale and digits is not None and digits <= precision
        case t.FixedType(length):
            return element.length == length
        case t.UUIDType():
            return element.length == 16
        case _:
            return True


# Sort the files of a scan into groups by their reader, from metadata alone.
#
# duckdb             DuckDB's Parquet reader, if the footer check passes
# duckdb + deletes   the same, anti-joined with the delete relations
# arrow              ``read/``

DUCKDB: Final = "duckdb"
DUCKDB_WITH_DELETES: Final = "duckdb + deletes"
ARROW: Final = "arrow"

_PENDING: Final = "pending footer check"

# Metadata columns that DuckDB can provide: constants of the file, the position in it, and the two
# that files may store.
_DUCKDB_METADATA: Final = frozenset({POS.field_id, *OF_FILE})
_STORED: Final = LINEAGE_IDS


class FileGroup(Frozen):
    """Files with the same reader; ``reason`` explains why it is ``read/``."""

    name: str
    tasks: tuple[FileScanTask, ...]
    reason: str = ""

    @property
    def label(self) -> str:
        """The reader as EXPLAIN prints it, before any footer is read."""
        return f"{self.name}: {self.reason}" if self.reason else f"{self.name}, {_PENDING}"


def group_files(
    files: Sequence[FileScanTask],
    context: ScanContext,
    settings: Settings,
    *,
    stores: bool = False,
) -> tuple[FileGroup, ...]:
    """The groups of a scan's files; every file is in exactly one. Opens no file.

    With ``stores`` DuckDB reads object stores, too.
    """
    grouped: dict[tuple[str, str], list[FileScanTask]] = {}
    for_all = _problem_of_scan(context, settings)
    of_keys = {} if for_all else _problems_of_keys(files, context)
    for task in files:
        if for_all is not None:
            key = ARROW, for_all
        elif problem := _problem_of_file(context, task, of_keys, stores=stores):
            key = ARROW, problem
        else:
            key = (DUCKDB_WITH_DELETES if task.deletes else DUCKDB), ""
        grouped.setdefault(key, []).append(task)
    return tuple(FileGroup(name, tuple(tasks), reason) for (name, reason), tasks in grouped.items())


def columns_to_read(
    context: ScanContext, tasks: Sequence[FileScanTask] = ()
) -> tuple[NestedField, ...]:
    """The columns of files that a reader needs: projected ones and keys of equality deletes."""
    projected = [
        column
        for column in context.projection.fields
        if column.field_id not in METADATA_IDS or column.field_id in _STORED
    ]
    known = {column.field_id for column in projected}
    fields = context.file_schema.field_by_id
    for delete in distinct_deletes(tasks):
        for field_id in delete.equality_ids or ():
            if field_id not in known:
                known.add(field_id)
                projected.append(fields[field_id])
    return tuple(projected)


def _problem_of_scan(context: ScanContext, settings: Settings) -> str | None:
    if settings.local_reader == "arrow":
        return "local_reader = arrow"
    for column in context.projection.fields:
        if column.field_id in METADATA_IDS:
            if column.field_id not in _DUCKDB_METADATA:
                return f"column {column.name} is computed row by row"
        elif problem := type_problem(column):
            return problem
    return None


def _problem_of_file(
    context: ScanContext,
    task: FileScanTask,
    of_keys: Mapping[tuple[int, ...], str],
    *,
    stores: bool,
) -> str | None:
    data_file = task.data_file
    if data_file.file_format != "PARQUET":
        return f"{data_file.file_format} data"
    if data_file.key_metadata is not None:
        return "the file is encrypted"
    if not stores and context.storage.local_path(data_file.path) is None:
        return "the file is in an object store"
    if not of_keys:
        return None
    ids = (tuple(delete.equality_ids or ()) for delete in task.deletes)
    return next((of_keys[each] for each in ids if each in of_keys), None)


def _problems_of_keys(
    files: Sequence[FileScanTask], context: ScanContext
) -> dict[tuple[int, ...], str]:
    """Why DuckDB cannot apply some equality deletes, by their equality ids."""
    sets = {tuple(delete.equality_ids or ()) for delete in distinct_deletes(files)}
    problems = ((ids, _problem_of_keys(context, ids)) for ids in sets)
    return {ids: problem for ids, problem in problems if problem}


def _problem_of_keys(context: ScanContext, field_ids: Sequence[int]) -> str | None:
    columns = {column.field_id: column for column in context.schema.fields}
    known = context.file_schema.field_by_id
    for field_id in field_ids:
        if field_id not in columns:
            return f"equality deletes by column {field_id}, which is not a top-level column"
        if known[field_id].type != columns[field_id].type:
            return f"equality deletes by column {columns[field_id].name}, whose type has changed"
        if is_floating(columns[field_id].type):
            return "equality deletes by floats, where -0.0 is not 0.0"
        if problem := type_problem(columns[field_id]):
            return problem
    return None


# ------------------------------------------------------------------ columns by name
# DuckDB assumes one row for a ``read_parquet`` with a schema of field ids, and so joins in the
# wrong order. Files with the same footer whose columns have exactly the table's types are read by
# the names in the footer, and DuckDB then knows how many rows there are.


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
