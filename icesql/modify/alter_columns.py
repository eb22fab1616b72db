"""ALTER TABLE of columns: one commit per statement, recomputed from the newest schema."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, suppress
from typing import Any, Literal, cast

from msgspec.structs import replace

from icesql.catalog.table import Table
from icesql.commit.file_changes import change_table
from icesql.context import QueryContext
from icesql.errors import ColumnNotFoundError, CorruptFileError, ProgrammingError
from icesql.iceberg import types as t
from icesql.iceberg.evolution import schema_changes as evolve
from icesql.iceberg.evolution.schema_changes import schema_updates
from icesql.iceberg.metadata.changes import updates as u
from icesql.iceberg.metadata.changes.updates import Update
from icesql.iceberg.metadata.name_mapping import PROPERTY, MappedField, parse_name_mapping
from icesql.iceberg.metadata.table_metadata import MAIN, TableMetadata
from icesql.iceberg.schema import Schema
from icesql.modify.create import default_value, fields_of
from icesql.modify.services import Modified, StatementServices
from icesql.modify.targets import find_target
from icesql.scan.planner import plan_snapshot
from icesql.sql.writes.statements import AlterColumns, ColumnChange

# ------------------------------------------------------------------ names in files without ids
# Files without field ids are read by the table's name mapping: a name belongs to one column. If
# another column takes the name, the values that files have under it would become values of that
# column: old values would reappear, or have the wrong type.


def check_mapped_names(
    table: Table, base: TableMetadata, updates: Sequence[u.Update], query: QueryContext
) -> None:
    """Refuse updates of ``base`` that give a column the name of another column in live files.

    Raises ProgrammingError, and what planning and opening files raise. Opens files only if a name
    moves; then those of all branches.
    """
    known = text = base.properties.get(PROPERTY)
    for each in updates:
        text = each.properties.get(PROPERTY, text) if isinstance(each, u.SetProperties) else text
    if text is None or known is None or text == known:
        return
    moved: set[tuple[int | None, str]] = set()
    with suppress(CorruptFileError):  # no file can be read by such a mapping
        moved = {*_moved(parse_name_mapping(known).fields, parse_name_mapping(text).fields)}
    if not moved:
        return
    from icesql.read.formats.file_fields import walk
    from icesql.read.formats.open import open_reader

    now = replace(table, metadata=base, planning=None)
    seen: set[str] = set()
    for branch, ref in sorted(base.refs.items()):
        snapshot = base.snapshots.get(ref.snapshot_id) if ref.kind == "branch" else None
        planned = plan_snapshot(now, snapshot, query)
        for file in (task.data_file for task in planned.files):
            query.check()
            if file.path in seen:
                continue
            seen.add(file.path)
            with closing(open_reader(file, planned.context)) as opened:
                # Missing columns of files that are read by the mapping are NULL.
                fields = [*walk(opened.fields)] if opened.missing_is_null else []
            for name in (each.name for each in fields if (each.field_id, each.name) in moved):
                where = "" if branch == MAIN else f", branch => '{branch}'"
                raise ProgrammingError(
                    f'a column of {table.name} cannot get the name "{name}": files without field '
                    f"ids, such as {file.path}, have values of another column under this name, "
                    "which would become its values. Rewrite these files first: CALL system."
                    f"rewrite_data_files('{table.name}', options => map('rewrite-all', 'true')"
                    f"{where})"
                )


def _moved(
    before: Iterable[MappedField], after: Iterable[MappedField]
) -> Iterator[tuple[int | None, str]]:
    """Names that the new mapping gives to other fields, with their current field ids."""
    new = {name: each for each in after for name in each.names}
    for each in before:
        for name in each.names:
            other = new.get(name)
            if other is not None and other.field_id != each.field_id:
                yield each.field_id, name
            elif other is not None:
                yield from _moved(each.fields, other.fields)


# ------------------------------------------------------------------ ALTER TABLE


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
