"""Which column an expression is."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from icesql.iceberg.schema import Schema
from icesql.iceberg.types import NestedField, StructType
from icesql.query.names import FromItem, SelectScope, find_column, meaning_of

Resolve = Callable[[exp.Column], NestedField | None]


def resolver(scope: SelectScope, item: FromItem, schema: Schema) -> Resolve:
    """Gives the field of ``item``'s schema that a column means; None for columns of others."""

    def resolve(column: exp.Column) -> NestedField | None:
        meaning = meaning_of(column, scope)
        if meaning.items != (item,) or not meaning.certain:
            return None
        field_found = find_column(schema, meaning.path[0], column)
        for child in meaning.path[1:]:
            if field_found is None or not isinstance(field_found.type, StructType):
                return None
            field_found = find_column(Schema(field_found.type.fields), child, column)
        return field_found

    return resolve


def column_of(node: exp.Expr | None, resolve: Resolve) -> NestedField | None:
    """The field that ``node`` is, through struct access; None for anything else."""
    match node:
        case exp.Paren():
            return column_of(node.this, resolve)
        case exp.Column():
            return None if isinstance(node.this, exp.Star) else resolve(node)
        case exp.Dot() if isinstance(node.expression, exp.Identifier):
            return child_of(column_of(node.this, resolve), node.expression.name)
        case exp.Bracket() if len(node.expressions) == 1:
            name = node.expressions[0]
            if isinstance(name, exp.Literal) and name.is_string:
                return child_of(column_of(node.this, resolve), name.name)
    return None


def child_of(parent: NestedField | None, name: str) -> NestedField | None:
    """The field of a struct by its name, None if there is none or several."""
    if parent is None or not isinstance(parent.type, StructType):
        return None
    exact = [child for child in parent.type.fields if child.name == name]
    same = exact or [c for c in parent.type.fields if c.name.lower() == name.lower()]
    return same[0] if len(same) == 1 else None
