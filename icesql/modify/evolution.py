"""Add a query's columns to a table: WITH SCHEMA EVOLUTION.

Columns and struct fields, also in lists and maps, that the table lacks are appended to their
struct as optional; a type becomes wider where the query's type is wider. Nothing is dropped,
renamed, narrowed or made optional.
Source: Java ``UnionByNameVisitor``; Spark ``ResolveSchemaEvolution``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from icesql.commit.file_changes import SchemaChange, planned_change
from icesql.context import QueryContext
from icesql.engine.duckdb_types import duckdb_type
from icesql.engine.result_schema import ResultColumn, ResultType
from icesql.errors import ProgrammingError, UnsupportedSqlError
from icesql.frozen import Frozen
from icesql.iceberg import types as t
from icesql.iceberg.evolution.schema_changes import (
    NewColumn,
    add_column,
    is_widening,
    schema_updates,
    widen_column,
)
from icesql.iceberg.metadata.changes.updates import Update
from icesql.iceberg.metadata.table_metadata import MAIN, TableMetadata
from icesql.iceberg.schema import Schema, fields_named
from icesql.modify.alter_columns import check_mapped_names
from icesql.modify.column_types import result_fields
from icesql.query.views.expansion import quoted_name
from icesql.write.assignment import is_by_place

if TYPE_CHECKING:
    from icesql.catalog.table import Table
    from icesql.commit.branches import Branch

Path = tuple[str, ...]
_MOST_NAMED: Final = 10


class ColumnGrowth(Frozen):
    """A column that is added with a type or, if ``widens``, gets this wider type."""

    path: Path
    type: t.IcebergType
    widens: bool = False

    def sql(self, table: str) -> str:
        """The equivalent ALTER TABLE statement."""
        name = ".".join(quoted_name(each, "") for each in self.path)
        action, of_type = ("ALTER", " TYPE") if self.widens else ("ADD", "")
        return f"ALTER TABLE {table} {action} COLUMN {name}{of_type} {duckdb_type(self.type)}"

    @property
    def message(self) -> str:
        """The column and its type, for a note."""
        return f"{'.'.join(self.path)} {duckdb_type(self.type)}"


class Evolution(Frozen):
    """The evolution of a table by ``given``, the query's columns under their names in the table.

    ``widens``: existing columns get wider types, too. False for types that a reader inferred from
    text.
    """

    given: Sequence[ResultColumn]
    widens: bool = True

    def growth(self, schema: Schema) -> tuple[ColumnGrowth, ...]:
        """The changes, in the order in which columns get their ids, which is that of Java.

        Raises ProgrammingError for two new columns of one name, UnsupportedSqlError for a type
        that tables cannot have.
        """
        given = [(each.name, each.type) for each in self.given]
        growth = _of_struct((), schema.fields, given)
        return tuple(each for each in growth if self.widens or not each.widens)

    def updates(self, metadata: TableMetadata) -> tuple[Update, ...]:
        """The metadata updates of this evolution. Raises what ALTER TABLE raises."""
        schema, last_id = metadata.schema, metadata.last_column_id
        for each in self.growth(schema):
            if each.widens:
                schema = widen_column(schema, each.path, each.type)
            else:
                schema, last_id = add_column(schema, last_id, NewColumn(each.path, each.type))
        return schema_updates(metadata, schema)

    def planned(self, table: Table, query: QueryContext) -> tuple[Table, SchemaChange | None]:
        """See ``commit.file_changes``."""

        def make(metadata: TableMetadata) -> tuple[Update, ...]:
            updates = self.updates(metadata)
            check_mapped_names(table, metadata, updates, query)
            return updates

        return planned_change(table, make)

    def note(self, schema: Schema, branch: Branch) -> str:
        """A note on the changed columns of a table of this schema."""
        growth = self.growth(schema)
        parts = []
        for what, widens in (("new columns", False), ("wider columns", True)):
            found = [each.message for each in growth if each.widens == widens]
            if found:
                more = f" and {len(found) - _MOST_NAMED:,} more" * (len(found) > _MOST_NAMED)
                parts.append(f"{what}: {', '.join(found[:_MOST_NAMED])}{more}")
        if parts and branch != MAIN:
            parts.append("columns are those of the whole table, not of a branch")
        return "; ".join(parts)


# ------------------------------------------------------------------ the union


def _of_struct(
    path: Path, fields: Sequence[t.NestedField], given: Sequence[tuple[str, ResultType]]
) -> Iterator[ColumnGrowth]:
    added: dict[str, ResultColumn] = {}
    for name, type in given:
        own = fields_named(name, fields)
        if own:
            yield from _of_type((*path, own[0].name), own[0].type, type)
        elif name.lower() in added:
            raise ProgrammingError(
                f'two new columns are called "{".".join((*path, name))}"; give one another name '
                "with AS"
            )
        else:
            added[name.lower()] = ResultColumn(name, type)
    for each in added.values():
        if each.type.has("null"):
            raise UnsupportedSqlError(
                f'a new column "{".".join((*path, each.name))}" that has only NULL, or a part of '
                "it that has",
                hint="CAST the NULL to a type",
            )
        (field,) = result_fields((ResultColumn(".".join((*path, each.name)), each.type),))
        yield ColumnGrowth((*path, each.name), field.type)


def _of_type(path: Path, type: t.IcebergType, given: ResultType) -> Iterator[ColumnGrowth]:
    match type, given.kind:
        case t.StructType(fields), "struct" | "tuple":
            names = [name for name, _ in given.children]
            if given.kind == "tuple" or is_by_place(names, [each.name for each in fields]):
                # Fields without names are matched by position.
                for field, (_, inner) in zip(fields, given.children, strict=False):
                    yield from _of_type((*path, field.name), field.type, inner)
            else:
                yield from _of_struct(path, fields, given.children)
        case t.ListType(), "list":
            inner = given.children[0][1]
            yield from _of_type((*path, "element"), type.element, inner)
        case t.MapType(), "map":
            inner = given.children[1][1]
            yield from _of_type((*path, "value"), type.value, inner)
        case t.PrimitiveType(), _ if not given.is_nested:
            try:
                (field,) = result_fields((ResultColumn(path[-1], given),))
            except UnsupportedSqlError:
                return  # whether its values can be stored is checked with the rows
            if field.type != type and is_widening(type, field.type):
                yield ColumnGrowth(path, field.type, widens=True)
