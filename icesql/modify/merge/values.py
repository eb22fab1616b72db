"""The value that each column of the table gets from a clause of MERGE; resolves column names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from icesql.errors import (
    ColumnNotFoundError,
    IntegrityError,
    ProgrammingError,
    TypeMismatchError,
    similar_names,
)
from icesql.frozen import Frozen
from icesql.iceberg import types as t
from icesql.iceberg.schema import Schema, fields_named
from icesql.modify.rows.assignments import Places, put
from icesql.modify.targets import column_named, without_qualifier
from icesql.sql.lexer import Span
from icesql.sql.writes.merge_statement import Merge, MergeClause, MergeValue


class OfSource(Frozen):
    """A column of the source, by name."""

    name: str


class OfTable(Frozen):
    """The current value of a column of the table."""

    name: str


class Computed(Frozen):
    """An expression of the statement, by its span in the text."""

    span: Span


class Default(Frozen):
    """The default of a column, for one without a value in the clause."""


class Changed(Frozen):
    """A struct of the table with some fields changed, see ``with_fields``."""

    base: OfTable
    fields: Places


Value = OfSource | OfTable | Computed | Default | Changed
DEFAULT: Final = Default()


def clause_values(
    clause: MergeClause,
    statement: Merge,
    schema: Schema,
    source: Sequence[str],
    read: Schema,
) -> tuple[Value, ...]:
    """The value of each column of the table in the new rows of the clause.

    ``source`` has the names of the source's columns. ``read`` is the schema in which the table is
    read: existing rows have no value for columns that the statement adds. Raises
    ColumnNotFoundError, ProgrammingError, TypeMismatchError and IntegrityError for what does not
    fit the table.
    """
    given = _starred(clause, statement, schema, source)
    if clause.action == "insert":
        values = _inserted(clause, schema, given, statement)
        for field, value in zip(schema.fields, values, strict=True):
            _check_required(field, value)
        return values
    return _updated(clause, schema, given, statement, read)


def _check_required(field: t.NestedField, value: Value) -> None:
    if value is DEFAULT and field.required and field.written_default is None:
        raise IntegrityError(
            f'column "{field.name}" is required and the statement gives it no value'
        )


def _starred(
    clause: MergeClause, statement: Merge, schema: Schema, source: Sequence[str]
) -> dict[int, Value]:
    """The values that ``*`` and similar words assign to columns, by field id."""
    known = {name.lower(): name for name in source}
    fields = schema.fields
    # With schema evolution, columns that the source lacks keep their values, as BY NAME does.
    match "name" if statement.evolves and clause.star == "all" else clause.star:
        case "all":
            missing = [each.name for each in fields if each.name.lower() not in known]
            if missing:
                raise ColumnNotFoundError(
                    missing[0],
                    similar=similar_names(missing[0], source),
                    offset=clause.offset,
                    table=statement.source_name.strip('"`'),
                )
            return {each.field_id: OfSource(known[each.name.lower()]) for each in fields}
        case "name":
            found: dict[int, Value] = {}
            for name in source:
                found[column_named(name, schema, clause.offset).field_id] = OfSource(name)
            return found
        case "position":
            if len(source) != len(fields):
                raise ProgrammingError(
                    f"the source has {len(source)} columns and the table {len(fields)}; "
                    "BY POSITION takes as many"
                )
            return {
                field.field_id: OfSource(name) for field, name in zip(fields, source, strict=True)
            }
        case _:  # none, or INSERT DEFAULT VALUES
            return {}


def _inserted(
    clause: MergeClause, schema: Schema, given: dict[int, Value], statement: Merge
) -> tuple[Value, ...]:
    values = clause.values
    if values and not values[0].path:
        if len(values) != len(schema.fields):
            raise ProgrammingError(
                f"INSERT gives {len(values)} value{'s' * (len(values) != 1)}, "
                f"and {statement.table.text} has {len(schema.fields)} columns; name those it gives"
            )
        return tuple(_value(each) for each in values)
    for each in values:
        path = unqualified(each.path, schema, statement)
        field = column_named(path[0], schema, each.offset)
        if len(path) > 1:
            raise ProgrammingError(
                f"INSERT gives values to whole columns; {'.'.join(path)} is a field of one"
            )
        if field.field_id in given:
            raise ProgrammingError(f'column "{field.name}" is given twice')
        given[field.field_id] = _value(each)
    return tuple(given.get(field.field_id, DEFAULT) for field in schema.fields)


def _updated(
    clause: MergeClause, schema: Schema, given: dict[int, Value], statement: Merge, read: Schema
) -> tuple[Value, ...]:
    places: dict[int, Any] = {}
    for each in clause.values:
        path = unqualified(each.path, schema, statement)
        field = column_named(path[0], schema, each.offset)
        ids = field.field_id, *_path_in(field, path[1:], each.offset)
        if not put(places, ids, None if each.value is None else Computed(each.value)):
            raise ProgrammingError(f'column "{".".join(path)}" is set twice')
    found: list[Value] = []
    for field in schema.fields:
        own, number = OfTable(field.name), field.field_id
        if number not in places:
            found.append(given.get(number, own if number in read.field_by_id else DEFAULT))
        elif isinstance(places[number], dict):
            found.append(Changed(own, places[number]))
        else:
            found.append(places[number] or DEFAULT)
        _check_required(field, found[-1])
    return tuple(found)


def _value(given: MergeValue) -> Value:
    return DEFAULT if given.value is None else Computed(given.value)


def unqualified(path: tuple[str, ...], schema: Schema, statement: Merge) -> tuple[str, ...]:
    """The path without a leading name of the table."""
    alias, whole = statement.target_name.strip('"`'), statement.table.parts
    found = without_qualifier(path, ((alias,), whole, whole[-2:]), schema)
    if found is not None:
        return found
    # A path that starts with no column of the table names a column to be added.
    is_new = statement.evolves and len(path) > 1 and path[0].lower() == alias.lower()
    return path[1:] if is_new and schema.find_column(path[0]) is None else path


def _path_in(field: t.NestedField, path: tuple[str, ...], offset: int | None) -> tuple[int, ...]:
    """The ids of the fields along a path."""
    found: list[int] = []
    for name in path:
        if not isinstance(field.type, t.StructType):
            raise TypeMismatchError(f'"{field.name}" ({field.type}) has no field "{name}" to set')
        fields = field.type.fields
        inner = fields_named(name, fields)
        if len(inner) != 1:
            names = [each.name for each in fields]
            raise ColumnNotFoundError(name, similar=similar_names(name, names), offset=offset)
        field = inner[0]
        found.append(field.field_id)
    return tuple(found)
