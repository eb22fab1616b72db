"""Which column an expression is, and why an expression that holds one cannot be pushed."""

from __future__ import annotations

from collections.abc import Callable, Sequence

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
            return _child(column_of(node.this, resolve), node.expression.name)
        case exp.Bracket() if len(node.expressions) == 1:
            name = node.expressions[0]
            if isinstance(name, exp.Literal) and name.is_string:
                return _child(column_of(node.this, resolve), name.name)
    return None


def _child(parent: NestedField | None, name: str) -> NestedField | None:
    if parent is None or not isinstance(parent.type, StructType):
        return None
    exact = [child for child in parent.type.fields if child.name == name]
    same = exact or [c for c in parent.type.fields if c.name.lower() == name.lower()]
    return same[0] if len(same) == 1 else None


def why_not(node: exp.Expr) -> str:
    """In words, what keeps a condition from becoming an Iceberg expression."""
    if node.find(exp.Query):
        return "it depends on a subquery"
    if not node.find(exp.Column):
        return "it is neither a constant nor a column"
    functions = [each for each in node.find_all(exp.Func) if each.find(exp.Column)]
    for function in functions:
        if not isinstance(function, exp.Cast | exp.And | exp.Or):
            name = function.sql_name() if not isinstance(function, exp.Anonymous) else function.name
            return f"{name.lower()}() is not known to keep the order of its argument"
    if isinstance(node, exp.Column):
        return "the column does not belong to this scan alone"
    return "it has no form as an Iceberg expression"


def tuple_parts(node: exp.Expr) -> Sequence[exp.Expr]:
    """The parts of ``(a, b)``; none for any other expression."""
    match node:
        case exp.Tuple():
            return node.expressions
        case exp.Paren():
            return tuple_parts(node.this)
        case _:
            return ()
