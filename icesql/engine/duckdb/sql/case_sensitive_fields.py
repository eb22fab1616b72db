"""Replace names of struct fields that differ only in case by the engine's names for them."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from icesql.engine.duckdb.sql.read_text import Expression, TextReading
from icesql.engine.struct_names import engine_names, has_alike
from icesql.errors import AmbiguousColumnError
from icesql.iceberg.schema import Schema
from icesql.iceberg.types import IcebergType, StructType, walk
from icesql.query.columns import column_at
from icesql.query.names import SelectScope, find_field, meaning_of
from icesql.sql.positions import offset_of, unsupported
from icesql.sql.trees import exp


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
