"""ALTER TABLE of columns: one commit per statement, recomputed from the newest schema."""

from __future__ import annotations

from typing import Any, Literal, cast

from icesql.commit.change import change_table
from icesql.errors import ColumnNotFoundError
from icesql.iceberg import types as t
from icesql.iceberg.evolution import schema_changes as evolve
from icesql.iceberg.metadata.changes.columns import schema_updates
from icesql.iceberg.metadata.changes.updates import Update
from icesql.iceberg.metadata.table_metadata import TableMetadata
from icesql.iceberg.schema import Schema
from icesql.modify.create import default_value, fields_of
from icesql.modify.mapped_names import check_mapped_names
from icesql.modify.modified import Modified
from icesql.modify.services import StatementServices
from icesql.modify.targets import find_target
from icesql.sql.writes.statements import AlterColumns, ColumnChange


def alter_columns(statement: AlterColumns, services: StatementServices) -> Modified:
    """Change the columns of a table.

    Raises ProgrammingError, ColumnNotFoundError and TypeMismatchError for invalid changes: dropping
    a column that partitions need, a type that does not widen, a name that files without field ids
    have for another column.
    """
    catalog, table, _ = find_target(statement.table, services)

    def changes(metadata: TableMetadata) -> tuple[Update, ...]:
        schema, last_id = metadata.schema, metadata.last_column_id
        for each in statement.changes:
            schema, last_id = _changed(schema, last_id, each, services)
        updates = schema_updates(metadata, schema)
        check_mapped_names(table, metadata, updates, services.query)
        return updates

    change_table(catalog, table, changes, query=services.query)
    return Modified()


def _changed(
    schema: Schema, last_id: int, change: ColumnChange, services: StatementServices
) -> tuple[Schema, int]:
    path = change.path
    if change.lenient and _is_there(schema, path) == (change.kind == "add"):
        return schema, last_id
    match change.kind:
        case "add":
            return _added(schema, last_id, change, services)
        case "drop":
            return evolve.drop_column(schema, path), last_id
        case "rename":
            return evolve.rename_column(schema, path, change.text), last_id
        case "type":
            return evolve.widen_column(schema, path, _field(change, services).type), last_id
        case "optional" | "required":
            return evolve.set_required(schema, path, change.kind == "required"), last_id
        case "comment":
            return evolve.set_doc(schema, path, change.text), last_id
        case "move":
            return evolve.move_column(schema, path, _position(change)), last_id
        case _:
            value = None
            if change.column is not None:
                own = schema.find_field(".".join(path), case_sensitive=False)
                value = default_value(change.column, own.type, services)
            return evolve.set_default(schema, path, value), last_id


def _is_there(schema: Schema, path: tuple[str, ...]) -> bool:
    try:
        schema.find_field(".".join(path), case_sensitive=False)
    except ColumnNotFoundError:
        return False
    return True


def _field(change: ColumnChange, services: StatementServices) -> t.NestedField:
    assert change.column is not None
    (field,) = fields_of((change.column,), services)
    return field


def _position(change: ColumnChange) -> evolve.Position:
    place = cast("Literal['first', 'after', 'before']", change.place)
    return evolve.Position(place, change.sibling)


def _added(
    schema: Schema, last_id: int, change: ColumnChange, services: StatementServices
) -> tuple[Schema, int]:
    field = _field(change, services)
    more: dict[str, Any] = {}
    if field.write_default is not t.MISSING:
        more["default"] = field.write_default
    if change.place:
        more["position"] = _position(change)
    column = evolve.NewColumn(change.path, field.type, field.required, field.doc, **more)
    return evolve.add_column(schema, last_id, column)
