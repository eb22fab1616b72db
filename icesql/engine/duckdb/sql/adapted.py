"""Adapt expressions to DuckDB where it treats types or names of struct fields differently."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from icesql.engine.duckdb.sql.composed import Change, changed
from icesql.engine.duckdb.sql.nanosecond_types import NANOS, adapt_types, has_types
from icesql.engine.duckdb.sql.read_text import Expression, TextReading
from icesql.engine.duckdb_types import engine_names, has_alike
from icesql.errors import AmbiguousColumnError, UnsupportedSqlError
from icesql.frozen import Frozen
from icesql.iceberg.schema import Schema
from icesql.iceberg.types import UUID, IcebergType, StructType, walk
from icesql.query.columns import column_at
from icesql.query.names import SelectScope, find_field, meaning_of
from icesql.sql.positions import offset_of, unsupported
from icesql.sql.trees import exp
from icesql.stack import with_deep_stack

# ------------------------------------------------------------------ fields that differ only in case


def alike_names(schemas: Sequence[Schema]) -> frozenset[str]:
    """The names, in lower case, of the fields of structs whose names differ only in case."""
    return frozenset(
        child.name.lower()
        for schema in schemas
        for each in walk(schema.fields)
        if isinstance(each.type, StructType) and has_alike((each,))
        for child in each.type.fields
    )


def rename_fields(reading: TextReading, alike: Collection[str]) -> None:
    """Replace field names in a text by the engine's names. The spelling of the table wins.

    Raises AmbiguousColumnError for a name that matches several fields up to case and none exactly,
    UnsupportedSqlError where the struct that owns the field is unknown.
    """
    for found, node, scope in reading.expressions():
        _Renaming(reading, scope, alike).rename(found, node)


class _Renaming:
    def __init__(self, reading: TextReading, scope: SelectScope, alike: Collection[str]) -> None:
        self._reading, self._scope, self._alike = reading, scope, alike

    def rename(self, found: Expression, node: exp.Expr) -> None:
        match found["class"], found["type"]:
            case "COLUMN_REF", _:
                self._column(found, node)
            case "OPERATOR", "STRUCT_EXTRACT" | "ARRAY_EXTRACT":
                parent = self._reading.type_of(node.this, self._scope)
                self._field(found, found["children"][1], node, parent)
            case "FUNCTION", _ if _extracts(found):
                struct, name = (each["expression"] for each in found["arguments"])
                self._field(found, name, node, self._reading.type_of(struct, self._scope))

    def _field(
        self, found: Expression, name: Expression, node: exp.Expr, parent: IcebergType | None
    ) -> None:
        literal = name.get("literal") or {}
        if literal.get("kind") == "STRING":
            place = [*node.iter_expressions()][-1]
            literal["text"] = self._name(found, literal["text"], parent, place)[0]

    def _column(self, found: Expression, node: exp.Expr) -> None:
        names, column = found["column_names"], node
        places: list[exp.Expr] = []
        while isinstance(column, exp.Dot):
            places.insert(0, column.expression)
            column = column.this
        places = [*(column.parts if isinstance(column, exp.Column) else [column]), *places]
        parent: IcebergType | None = None
        first = 1
        if isinstance(column, exp.Column):
            path = meaning_of(column, self._scope).path
            first = len(column.parts) - len(path) + 1
            if first < len(names):
                shorter = column_at([part.copy() for part in column.parts[:first]], column)
                parent = self._reading.type_of(shorter, self._scope)
                if not isinstance(parent, StructType):
                    return
        for index in range(first, len(names)):
            names[index], parent = self._name(found, names[index], parent, places[index])

    def _name(
        self, found: Expression, name: str, parent: IcebergType | None, place: exp.Expr
    ) -> tuple[str, IcebergType | None]:
        """The engine's name for a field of ``parent``, and the field's type."""
        if not isinstance(parent, StructType):
            if parent is None and name.lower() in self._alike:
                raise unsupported(
                    f"the field {name} of a struct, where fields differ only in case",
                    place,
                    "name the column and the way to the field, as in column.field",
                )
            return name, None
        field = find_field(parent.fields, name)
        if field is None:
            same = [each.name for each in parent.fields if each.name.lower() == name.lower()]
            if same:
                raise AmbiguousColumnError(name, candidates=same, offset=offset_of(place))
            return name, None
        position = parent.fields.index(field)
        made = engine_names(each.name for each in parent.fields)[position]
        if made != field.name:
            self._reading.mark(found)
            return made, field.type
        return name, field.type


def _extracts(found: Expression) -> bool:
    return found["function_name"].lower() == "struct_extract" and len(found["arguments"]) == 2


# ------------------------------------------------------------------ the adapter


class Adapter(Frozen):
    """How to adapt the texts of one query: for nanosecond and UUID types, and for fields ``alike``.

    ``by_value``: the changes depend on the constants of the text.
    """

    schemas: Sequence[Schema]
    cursor: Any
    has_types: bool
    alike: frozenset[str]
    by_value: bool

    def changes(
        self,
        sql: str,
        tables: Mapping[str, str],
        lists: Mapping[str, str],
        place: Callable[[int], int | None],
    ) -> list[Change]:
        """The replacements of expressions of a text, in order.

        ``tables`` maps scans to their names in the text, ``lists`` maps the placeholder of each
        long list to its literals. Raises UnsupportedSqlError, AmbiguousColumnError; ``place`` maps
        their offsets in the text to those in the user's SQL.
        """

        def read() -> list[Change]:
            reading = TextReading(sql, tables, lists, self.schemas, self.cursor)
            if self.alike:
                rename_fields(reading, self.alike)
            if self.has_types:
                adapt_types(reading)
            return reading.changes()

        try:
            return with_deep_stack(read)
        except (AmbiguousColumnError, UnsupportedSqlError) as error:
            if error.offset is not None:
                error.offset = place(error.offset)
            raise

    def adapted(self, sql: str, tables: Mapping[str, str], lists: Mapping[str, str]) -> str:
        """A text with its changes; errors have no offset, since the user did not write the text."""
        return changed(sql, self.changes(sql, tables, lists, lambda _: None))


def adapter_of(tree: exp.Expr, schemas: Sequence[Schema], cursor: Any) -> Adapter | None:
    """The adapter of a query; None where its text needs no change."""
    finer = has_types(tree, schemas, *NANOS)
    typed = finer or has_types(tree, schemas, UUID)
    alike = alike_names(schemas)
    return Adapter(schemas, cursor, typed, alike, finer) if typed or alike else None
