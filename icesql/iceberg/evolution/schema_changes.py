"""Change the columns of a schema at any depth, by the rules that keep old files readable.

Every function takes a schema and returns a new one; remaining columns keep their ids. A column is
named by its path: ``("s", "x")`` in a struct, ``("l", "element", "x")`` and ``("m", "value", "x")``
inside lists and maps, whose keys never change.
At the end, the change becomes updates of the table. Source: Iceberg spec, "Schema Evolution"; Java
``SchemaUpdate``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import count
from typing import Any, Final, Literal

from msgspec.structs import replace

from icesql.errors import ColumnNotFoundError, ProgrammingError, TypeMismatchError, similar_names
from icesql.frozen import Frozen
from icesql.iceberg import types as t
from icesql.iceberg.evolution.rules import check_schema
from icesql.iceberg.metadata.changes import updates as u
from icesql.iceberg.metadata.name_mapping import PROPERTY
from icesql.iceberg.metadata.table_metadata import TableMetadata
from icesql.iceberg.schema import Schema, fields_named

# ------------------------------------------------------------------ fresh ids
# Source: Java ``TypeUtil.assignFreshIds``.


def with_fresh_ids(schema: Schema, first: int = 1) -> Schema:
    """The schema of id 0 with ids from ``first`` on, in place of those that it has.

    All fields of a level are numbered in their order before the children of the first of them.
    """
    numbers = count(first)
    given: dict[int, int] = {}

    def next_id(old: int) -> int:
        # A field without an assigned id may have any number, so an old id may occur twice.
        given[old] = new = next(numbers)
        return new

    fields = fresh_fields(schema.fields, next_id)
    return Schema(fields, 0, tuple(given[each] for each in schema.identifier_field_ids))


def fresh_fields(
    fields: Sequence[t.NestedField], next_id: Callable[[int], int]
) -> tuple[t.NestedField, ...]:
    """Fields with new ids at every depth; ``next_id`` maps each old id to a new one."""
    ids = [next_id(each.field_id) for each in fields]
    return tuple(
        replace(each, field_id=number, type=fresh_type(each.type, next_id))
        for each, number in zip(fields, ids, strict=True)
    )


def fresh_type(type: t.IcebergType, next_id: Callable[[int], int]) -> t.IcebergType:
    """A type with new ids for all fields in it."""
    return t.with_children(type, fresh_fields(t.children(type), next_id))


# ------------------------------------------------------------------ schema changes


Path = Sequence[str]
Fields = tuple[t.NestedField, ...]
_NO_DEFAULT: Final = (t.MISSING, None)


class Position(Frozen):
    """The position of a column among its siblings; ``sibling`` names one of them."""

    place: Literal["first", "after", "before"]
    sibling: str = ""


class NewColumn(Frozen):
    """A column to add. Ids inside ``type`` only distinguish its fields.

    ``default`` (format version 3) is in the internal form of ``iceberg.types``: existing rows have
    it, and so do rows added without the column.
    """

    path: tuple[str, ...]
    type: t.IcebergType
    required: bool = False
    doc: str | None = None
    default: Any = t.MISSING
    position: Position | None = None


def add_column(schema: Schema, last_id: int, column: NewColumn) -> tuple[Schema, int]:
    """The schema with another column, and the highest id that was given away then.

    Raises ProgrammingError for a name that is taken, and for a required column without a default:
    existing rows have no value for it.
    """
    name = ".".join(column.path)
    if column.required and column.default in _NO_DEFAULT:
        raise ProgrammingError(
            f'cannot add "{name}" as NOT NULL without a DEFAULT: rows that are there have no value'
        )
    ids = last_id + 1

    def next_id(_: int) -> int:
        nonlocal ids
        ids += 1
        return ids

    made = t.NestedField(
        last_id + 1, column.path[-1], fresh_type(column.type, next_id), column.required, column.doc,
        column.default, column.default,
    )  # fmt: skip

    def add(fields: Fields) -> Fields:
        if any(each.name.lower() == made.name.lower() for each in fields):
            raise ProgrammingError(f'there is a column "{name}" already')
        return _placed((*fields, made), made.name, column.position)

    return _in_parent(schema, column.path, add), ids


def drop_column(schema: Schema, path: Path) -> Schema:
    """The schema without a column. Raises ProgrammingError for the last one of its struct."""

    def drop(fields: Fields) -> Fields:
        gone = _one(fields, path)
        if len(fields) == 1:
            raise ProgrammingError(f'cannot drop "{".".join(path)}": nothing would be left')
        return tuple(each for each in fields if each is not gone)

    dropped = _field(schema, path)
    held = {dropped.field_id, *(each.field_id for each in t.walk(t.children(dropped.type)))}
    for each in schema.identifier_field_ids:
        if each in held:
            raise ProgrammingError(
                f'cannot drop "{".".join(path)}": "{schema.name_by_id[each]}" is an identifier '
                "field; drop it from those first"
            )
    return _in_parent(schema, path, drop)


def rename_column(schema: Schema, path: Path, new: str) -> Schema:
    """The schema with another name for a column. Raises ProgrammingError for one that is taken."""

    def rename(fields: Fields) -> Fields:
        own = _one(fields, path)
        if any(each.name.lower() == new.lower() and each is not own for each in fields):
            raise ProgrammingError(f'there is a column "{new}" already')
        return tuple(replace(each, name=new) if each is own else each for each in fields)

    return _in_parent(schema, path, rename)


def move_column(schema: Schema, path: Path, position: Position) -> Schema:
    """The schema with a column at another place of its struct."""
    return _in_parent(
        schema, path, lambda fields: _placed(fields, _one(fields, path).name, position)
    )


def widen_column(schema: Schema, path: Path, type: t.IcebergType) -> Schema:
    """The schema with a wider type for a column, in which all its values fit.

    Int becomes long, float double, a decimal one of more digits. Raises TypeMismatchError.
    """
    own = _field(schema, path)
    if not is_widening(own.type, type):
        raise TypeMismatchError(
            f'column "{".".join(path)}" of type {own.type} cannot become {type}; types only widen: '
            "int to long, float to double, decimal to more digits of the same scale"
        )
    return _with_field(schema, path, replace(own, type=type))


def is_widening(old: t.IcebergType, new: t.IcebergType) -> bool:
    """Whether a column of one type may become one of another, or is it."""
    match old, new:
        case t.IntegerType(), t.LongType():
            return True
        case t.FloatType(), t.DoubleType():
            return True
        case t.DecimalType(precision, scale), t.DecimalType():
            return new.scale == scale and new.precision >= precision
        case _:
            return old == new


def set_doc(schema: Schema, path: Path, doc: str | None) -> Schema:
    """The schema with another comment on a column."""
    return _with_field(schema, path, replace(_field(schema, path), doc=doc or None))


def set_required(schema: Schema, path: Path, required: bool) -> Schema:
    """The schema with a column that may be NULL, or is NOT NULL as it was before.

    Raises ProgrammingError for making a column NOT NULL: files may hold NULLs of it.
    """
    own = _field(schema, path)
    if required and not own.required:
        raise ProgrammingError(
            f'cannot make "{".".join(path)}" NOT NULL: rows that are there may be NULL'
        )
    if not required and own.field_id in schema.identifier_field_ids:
        raise ProgrammingError(f'"{".".join(path)}" is an identifier field and stays NOT NULL')
    return _with_field(schema, path, replace(own, required=required))


def set_default(schema: Schema, path: Path, default: Any) -> Schema:
    """The schema with another value for rows that are added without a column; None drops it.

    Rows older than the column keep their value.
    """
    own = _field(schema, path)
    written = t.MISSING if default in _NO_DEFAULT else default
    return _with_field(schema, path, replace(own, write_default=written))


def set_identifier_fields(schema: Schema, paths: Iterable[Path]) -> Schema:
    """The schema with these columns as its identifier fields; ``check_schema`` validates them."""
    ids = [_field(schema, path).field_id for path in paths]
    return replace(schema, identifier_field_ids=tuple(dict.fromkeys(ids)))


# ------------------------------------------------------------------ finding


def _field(schema: Schema, path: Path) -> t.NestedField:
    found: list[t.NestedField] = []

    def look(fields: Fields) -> Fields:
        found.append(_one(fields, path))
        return fields

    _in_parent(schema, path, look)
    return found[0]


def _with_field(schema: Schema, path: Path, new: t.NestedField) -> Schema:
    return _in_parent(
        schema,
        path,
        lambda fields: tuple(new if each.field_id == new.field_id else each for each in fields),
    )


def _one(fields: Fields, path: Path) -> t.NestedField:
    """The field of the last name of a path; exact spelling first."""
    name = path[-1]
    found = fields_named(name, fields)
    if len(found) == 1:
        return found[0]
    near = similar_names(name, [each.name for each in fields])
    raise ColumnNotFoundError(".".join(path), similar=near)


def _in_parent(schema: Schema, path: Path, change: Callable[[Fields], Fields]) -> Schema:
    """The schema after ``change`` of the sibling fields that hold the last name of a path."""
    return replace(schema, fields=_changed(schema.fields, path, path, change))


def _changed(fields: Fields, left: Path, path: Path, change: Callable[[Fields], Fields]) -> Fields:
    if len(left) == 1:
        return change(fields)
    own = _one(fields, path[: len(path) - len(left) + 1])
    made = replace(own, type=_changed_type(own.type, left[1:], path, change))
    return tuple(made if each is own else each for each in fields)


def _changed_type(
    type: t.IcebergType, left: Path, path: Path, change: Callable[[Fields], Fields]
) -> t.IcebergType:
    if isinstance(type, t.MapType) and left[0] == "key":
        raise ProgrammingError(f'"{".".join(path)}": the keys of a map never change')
    kept: Fields = ()
    fields = t.children(type)
    if not isinstance(type, t.StructType):
        # The names of elements and values are words, with one spelling.
        kept, fields = fields[:-1], fields[-1:]
        if left[0] not in {each.name for each in fields}:
            raise ColumnNotFoundError(".".join(path))
    return t.with_children(type, (*kept, *_changed(fields, left, path, change)))


def _placed(fields: Fields, name: str, position: Position | None) -> Fields:
    if position is None:
        return fields
    own = next(each for each in fields if each.name == name)
    others = [each for each in fields if each is not own]
    if position.place == "first":
        return (own, *others)
    sibling = _one(tuple(others), [position.sibling])
    at = others.index(sibling) + (position.place == "after")
    return (*others[:at], own, *others[at:])


# ------------------------------------------------------------------ changes as updates
# Source: Java ``SchemaUpdate.applyChanges`` and ``MetricsUtil``, ``MappingUtil.update``.


_OF_COLUMNS: Final = (
    "write.metadata.metrics.column.",
    "write.parquet.bloom-filter-enabled.column.",
    "write.parquet.stats-enabled.column.",
)


def schema_updates(base: TableMetadata, schema: Schema) -> tuple[u.Update, ...]:
    """The updates that make ``schema`` the current one; none where it is.

    Raises ProgrammingError and TypeMismatchError for one that the table cannot have, also where a
    column is dropped that the current partitioning or sort order needs.
    """
    old = base.schema
    if (schema.fields, set(schema.identifier_field_ids)) == (
        old.fields,
        set(old.identifier_field_ids),
    ):
        return ()
    check_schema(schema, base.format_version)
    _check_sources(base, schema)
    added = replace(schema, schema_id=1 + max(base.schemas))
    found: list[u.Update] = [u.AddSchema(added), u.SetCurrentSchema()]
    new, gone = _properties(base.properties, old, schema)
    mapping = base.properties.get(PROPERTY)
    if mapping is not None:
        new[PROPERTY] = _mapping(mapping, schema)
    if gone:
        found.append(u.RemoveProperties(gone))
    if new:
        found.append(u.SetProperties(new))
    return tuple(found)


def _check_sources(base: TableMetadata, schema: Schema) -> None:
    left = schema.field_by_id
    for field in base.spec.fields:
        for source in field.source_ids:
            if source not in left and field.transform.lower() != "void":
                raise ProgrammingError(
                    f'cannot drop "{base.schema.name_by_id.get(source, source)}": the table is '
                    f'partitioned by it ("{field.name}"); ALTER TABLE … DROP PARTITION FIELD '
                    f"{field.name} comes first"
                )
    order = base.sort_orders.get(base.default_sort_order_id)
    for key in () if order is None else order.fields:
        for source in key.source_ids:
            if source not in left:
                raise ProgrammingError(
                    f'cannot drop "{base.schema.name_by_id.get(source, source)}": the table is '
                    "ordered by it; ALTER TABLE … WRITE UNORDERED, or by others, comes first"
                )


def _properties(
    properties: Mapping[str, str], old: Schema, new: Schema
) -> tuple[dict[str, str], tuple[str, ...]]:
    """Those of columns under their new names, and those to remove."""
    ids = {name: field_id for field_id, name in old.name_by_id.items()}
    added, gone = {}, []
    for key, value in properties.items():
        start = next((each for each in _OF_COLUMNS if key.startswith(each)), None)
        field_id = None if start is None else ids.get(key.removeprefix(start))
        if field_id is None:
            continue
        name = new.name_by_id.get(field_id)
        if f"{start}{name}" == key:
            continue
        gone.append(key)
        if name is not None:
            added[f"{start}{name}"] = value
    return added, tuple(gone)


def _mapping(text: str, schema: Schema) -> str:
    """The mapping with the names that columns have now; they keep those that they had."""
    try:
        known = json.loads(text)
    except ValueError:
        return text
    return json.dumps(mapped_names(known if isinstance(known, list) else [], schema.fields))


def mapped_names(known: Sequence[Any], fields: Sequence[t.NestedField]) -> list[Any]:
    """The name mapping of fields in JSON, with the names that they have in the ``known`` one."""
    by_id = {each.get("field-id"): each for each in known if isinstance(each, dict)}
    taken = {each.name for each in fields}
    found = []
    for field in fields:
        old = by_id.pop(field.field_id, {})
        # A name that another column has now belongs to that column alone.
        kept = [each for each in old.get("names", []) if each not in taken or each == field.name]
        names = dict.fromkeys([*kept, field.name])
        node: dict[str, Any] = {"field-id": field.field_id, "names": [*names]}
        below = mapped_names(old.get("fields", []), t.children(field.type))
        found.append(node | ({"fields": below} if below else {}))
    for gone in by_id.values():
        left = [each for each in gone.get("names", []) if each not in taken]
        if left:
            found.append({**gone, "names": left})
    return found
