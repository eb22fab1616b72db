"""Rules for the schema and the partition specs of a table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from icesql.errors import ProgrammingError, TypeMismatchError
from icesql.iceberg import types as t
from icesql.iceberg.partitioning import PartitionField, PartitionSpec
from icesql.iceberg.schema import RESERVED_NAMES, Schema

_OF_V3: Final = (
    t.TimestampNanoType, t.TimestamptzNanoType, t.VariantType, t.UnknownType, t.GeometryType,
    t.GeographyType,
)  # fmt: skip
# Columns of these types have no default but NULL.
_WITHOUT_DEFAULT: Final = (t.UnknownType, t.VariantType, t.GeometryType, t.GeographyType)


def least_format(schema: Schema) -> int:
    """The lowest format version that has the types and the defaults of a schema."""
    return 3 if any(_needs_v3(each) for each in t.walk(schema.fields)) else 1


def check_schema(schema: Schema, format_version: int) -> None:
    """Raise ProgrammingError or TypeMismatchError for a schema that no table can have.

    Names are unique in their struct, up to case, and with the names around them by dots, by which
    Java finds fields; they are not those of metadata columns. Types and defaults are of the format
    version; identifier fields are required primitives that are not
    floating, outside of lists and maps.
    """
    _check_names(schema.fields, "")
    _check_dotted_names(schema)
    for each in t.walk(schema.fields):
        if format_version < 3 and _needs_v3(each):
            what = f"type {each.type}" if isinstance(each.type, _OF_V3) else "a default"
            raise TypeMismatchError(
                f'column "{schema.name_by_id[each.field_id]}": {what} needs format version 3, '
                f"the table has {format_version}; set the property format-version to 3"
            )
        if isinstance(each.type, _WITHOUT_DEFAULT) and _has_default(each):
            raise TypeMismatchError(f'column "{each.name}": type {each.type} has no default')
        if isinstance(each.type, t.UnknownType) and each.required:
            raise TypeMismatchError(f'column "{each.name}" of type unknown cannot be NOT NULL')
        if isinstance(each.type, t.DecimalType) and not (
            0 < each.type.precision <= 38 and 0 <= each.type.scale <= each.type.precision
        ):
            raise TypeMismatchError(f'column "{each.name}": there is no type {each.type}')
    for field_id in schema.identifier_field_ids:
        _check_identifier(schema, field_id)


def _check_names(fields: Iterable[t.NestedField], prefix: str) -> None:
    seen: dict[str, str] = {}
    for each in fields:
        if not each.name or "\0" in each.name:
            raise ProgrammingError("a column needs a name, without the character NUL")
        if not prefix and each.name.lower() in RESERVED_NAMES:
            raise ProgrammingError(f'"{each.name}" is the name of a metadata column')
        known = seen.get(each.name.lower())
        if known is not None:
            other = "twice" if known == each.name else f"beside {prefix}{known}"
            raise ProgrammingError(f'column "{prefix}{each.name}" is there {other}')
        seen[each.name.lower()] = each.name
        inner = each.type
        if isinstance(inner, t.StructType):
            _check_names(inner.fields, f"{prefix}{each.name}.")
        else:
            for child in t.children(inner):
                if isinstance(child.type, t.StructType):
                    _check_names(child.type.fields, f"{prefix}{each.name}.{child.name}.")


def _check_dotted_names(schema: Schema) -> None:
    seen: set[str] = set()
    for name in schema.name_by_id.values():
        if name.lower() in seen:
            raise ProgrammingError(
                f'two columns are called "{name}", one of them a field of a struct or list; '
                "give one another name"
            )
        seen.add(name.lower())


def _needs_v3(field: t.NestedField) -> bool:
    return isinstance(field.type, _OF_V3) or _has_default(field)


def _has_default(field: t.NestedField) -> bool:
    return _is_set(field.initial_default) or _is_set(field.write_default)


def _is_set(default: Any) -> bool:
    return default is not t.MISSING and default is not None


def _check_identifier(schema: Schema, field_id: int) -> None:
    field = schema.field_by_id.get(field_id)
    if field is None:
        raise ProgrammingError(f"identifier field {field_id} is not a column")
    name = schema.name_by_id[field_id]
    problem = None
    if not isinstance(field.type, t.PrimitiveType):
        problem = f"it is a {field.type}"
    elif t.is_floating(field.type):
        problem = "floating-point numbers do not identify a row"
    elif schema.inside_repeated(field_id):
        problem = "it is inside a list or map"
    elif not schema.always_present(field_id):
        problem = "it, or a struct around it, can be NULL"
    if problem is not None:
        raise ProgrammingError(f'"{name}" cannot be an identifier field: {problem}')


# ------------------------------------------------------------------ names of partition fields
# No Java engine loads a table with a field that has the name of a column. Source:
# Java ``PartitionSpec.Builder``, which checks all specs against the current schema when it
# loads a table; other libraries check all schemas.


def shared_names(
    schemas: Iterable[Schema], specs: Iterable[PartitionSpec]
) -> dict[tuple[str, int], PartitionField]:
    """The partition fields that have the name of a field of some schema, by that field's id, too.

    An identity field of that very column may have its name, also once version 1 made it void.
    """
    fields = [each for spec in specs for each in spec.fields]
    return {
        (each.name, found): each
        for schema in schemas
        for names in (_names(schema),)
        for each in fields
        if (found := names.get(each.name)) is not None
        if found not in each.source_ids or each.transform.lower() not in ("identity", "void")
    }


def check_partition_names(
    schemas: Iterable[Schema], specs: Iterable[PartitionSpec], known: Iterable[tuple[str, int]] = ()
) -> None:
    """Raise ProgrammingError for a shared name that is not ``known``: the table had it before."""
    allowed = {*known}
    for key, field in shared_names(schemas, specs).items():
        if key not in allowed:
            raise ProgrammingError(
                f'partition field "{field.name}" ({field.transform}) has the name of a column, and '
                "Java's engines load no such table; give the field (AS name) or the column another"
            )


def _names(schema: Schema) -> Mapping[str, int]:
    """Ids by full names, and by those that leave out an element or a value that is a struct."""
    names: dict[str, int] = {}

    def visit(parent: t.IcebergType, full: str, short: str) -> None:
        for each in t.children(parent):
            names[full + each.name] = each.field_id
            names.setdefault(short + each.name, each.field_id)
            inside = isinstance(parent, t.ListType | t.MapType) and each.name != "key"
            is_left_out = inside and isinstance(each.type, t.StructType)
            visit(
                each.type, f"{full}{each.name}.", short if is_left_out else f"{short}{each.name}."
            )

    visit(schema.struct, "", "")
    return names
