"""The columns of a data file as a tree with field ids, whatever format it has.

Ids come from the file; a file without any is read by the table's name mapping; without one, names
and positions must agree. Source: Iceberg spec, "Column Projection".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TypeAlias

import pyarrow as pa
from msgspec.structs import replace

from icesql.errors import CorruptFileError, UnsupportedTableError
from icesql.frozen import Frozen
from icesql.iceberg.metadata.name_mapping import NameMapping
from icesql.iceberg.schema import Schema
from icesql.iceberg.types import NestedField, children
from icesql.scan.tasks import ScanContext

# The id of a name on one level, None for none, and how the names of the next level are found.
_Find: TypeAlias = "Callable[[str], tuple[int | None, _Find]]"


class FileField(Frozen):
    """One field of a file; ``children`` are struct fields, a list's element, or key and value.

    ``index`` is its place among its siblings, ``type`` the Arrow type that the format reader
    yields. ``field_id`` is None for a field that no table column can be.
    """

    index: int
    name: str
    type: pa.DataType
    field_id: int | None = None
    children: tuple[FileField, ...] = ()


def arrow_fields(fields: Iterable[pa.Field], id_key: bytes) -> tuple[FileField, ...]:
    """The tree below Arrow fields whose metadata hold ids under ``id_key``.

    Raises ValueError for an id that is not a number.
    """
    return tuple(_arrow_field(index, each, id_key) for index, each in enumerate(fields))


def _arrow_field(index: int, column: pa.Field, id_key: bytes) -> FileField:
    text = (column.metadata or {}).get(id_key)
    return FileField(
        index,
        column.name,
        column.type,
        None if text is None else int(text),
        arrow_fields(arrow_children(column.type), id_key),
    )


def arrow_children(type: pa.DataType) -> tuple[pa.Field, ...]:
    """The child fields of an Arrow type: struct fields, a list's element, or key and value."""
    if isinstance(type, pa.BaseExtensionType):
        return arrow_children(type.storage_type)
    if pa.types.is_struct(type):
        return tuple(type.field(index) for index in range(type.num_fields))
    if pa.types.is_map(type):
        return (type.key_field, type.item_field)
    if is_list(type):
        return (type.value_field,)
    return ()


def is_list(type: pa.DataType) -> bool:
    """Whether an Arrow type is any of its lists."""
    return bool(
        pa.types.is_list(type)
        or pa.types.is_large_list(type)
        or pa.types.is_fixed_size_list(type)
        or pa.types.is_list_view(type)
        or pa.types.is_large_list_view(type)
    )


def walk(fields: Iterable[FileField]) -> Iterator[FileField]:
    """Every field, parents before children."""
    for each in fields:
        yield each
        yield from walk(each.children)


def _has_field_ids(fields: Iterable[FileField]) -> bool:
    """Whether any field at any depth has an id; then ids alone decide."""
    return any(each.field_id is not None for each in walk(fields))


def table_fields(
    fields: tuple[FileField, ...], path: str, context: ScanContext
) -> tuple[tuple[FileField, ...], bool]:
    """The fields with the ids that they have for this table, and whether missing ones are null.

    Missing fields are null in a file read by the name mapping, required or not (see
    ``column_reader``). Raises UnsupportedTableError if there are neither ids nor a mapping and
    names and positions disagree, CorruptFileError if two siblings have the same id.
    """
    missing_is_null = False
    if not _has_field_ids(fields):
        if context.name_mapping is not None:
            find: _Find = partial(_mapped, context.name_mapping, ())
            fields, missing_is_null = _identified(fields, find), True
        else:
            _check_same_story(fields, path, context.schema, context.file_schema)
            fields = _identified(fields, partial(_named, context.schema.fields))
    _check_distinct(fields, path)
    return fields, missing_is_null


def _mapped(mapping: NameMapping, place: tuple[str, ...], name: str) -> tuple[int | None, _Find]:
    """The id that a name mapping gives to a field, and how its children are found."""
    inner = (*place, name)
    return mapping.find(inner), partial(_mapped, mapping, inner)


def _named(columns: Sequence[NestedField], name: str) -> tuple[int | None, _Find]:
    """The same by the names of the table's columns."""
    column = _column_named(name, {each.name: each for each in columns})
    inner = () if column is None else children(column.type)
    return None if column is None else column.field_id, partial(_named, inner)


def _identified(
    fields: Sequence[FileField], find: _Find, names: Iterable[str] | None = None
) -> tuple[FileField, ...]:
    """The fields with the ids that ``find`` gives for their names, or for ``names``."""
    found = []
    for each, name in zip(fields, names or [each.name for each in fields], strict=True):
        field_id, inner = find(name)
        below = _identified(each.children, inner, _level_names(each))
        found.append(replace(each, field_id=field_id, children=below))
    return tuple(found)


def _level_names(each: FileField) -> tuple[str, ...] | None:
    """The names of the children in a mapping; None for those of a struct: their own."""
    if pa.types.is_map(each.type):
        return ("key", "value")
    return ("element",) if is_list(each.type) else None


def _column_named(name: str, columns: Mapping[str, NestedField]) -> NestedField | None:
    """An exact match, else the only case-insensitive one, since Hive lower-cases names."""
    if name in columns:
        return columns[name]
    matches = [column for key, column in columns.items() if key.lower() == name.lower()]
    return matches[0] if len(matches) == 1 else None


def _check_same_story(
    fields: tuple[FileField, ...], path: str, schema: Schema, file_schema: Schema
) -> None:
    """Check that names and positions agree: Java numbers such columns 1, 2, …; others use names."""
    by_name = {column.name: column for column in schema.fields}
    by_id = {column.field_id: column for column in file_schema.fields}
    for position, each in enumerate(fields, start=1):
        named = _column_named(each.name, by_name)
        placed = by_id.get(position)
        if named is None and placed is None:
            continue
        if named is None or placed is None or named.field_id != placed.field_id:
            name_reading = "no column" if named is None else f'"{named.name}"'
            place_reading = "no column" if placed is None else f'"{placed.name}"'
            raise UnsupportedTableError(
                "a data file without field ids whose column names and positions disagree: "
                f'column {position} "{each.name}" is {name_reading} by name and '
                f"{place_reading} by position",
                path=path,
                hint="set the table property schema.name-mapping.default",
            )


def _check_distinct(fields: tuple[FileField, ...], path: str) -> None:
    seen: dict[int, str] = {}
    for each in walk(fields):
        if each.field_id is None:
            continue
        if each.field_id in seen:
            raise CorruptFileError(
                path,
                f'field id {each.field_id} is used twice, by "{seen[each.field_id]}" '
                f'and "{each.name}"',
            )
        seen[each.field_id] = each.name
