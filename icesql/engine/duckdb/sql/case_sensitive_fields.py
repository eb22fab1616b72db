"""Access to struct fields whose names differ only in case, by the names the engine has for them."""

from __future__ import annotations

from collections.abc import Sequence

from icesql.engine.struct_names import engine_names, has_alike
from icesql.errors import AmbiguousColumnError
from icesql.iceberg.schema import Schema
from icesql.iceberg.types import IcebergType, StructType, walk
from icesql.query.column_types import ColumnTypes, find_field
from icesql.query.names import SelectScope, meaning_of, select_scopes
from icesql.sql.positions import offset_of, unsupported
from icesql.sql.trees import exp


def with_case_sensitive_fields(tree: exp.Expr, schemas: Sequence[Schema]) -> exp.Expr:
    """A rewritten copy; ``tree`` itself where no schema has such structs.

    The spelling of the table wins. Raises AmbiguousColumnError for a name that several fields have
    up to case and none exactly, UnsupportedSqlError where it cannot be told whose field is meant.
    """
    if not any(has_alike(schema.fields) for schema in schemas):
        return tree
    tree = tree.copy()
    scopes = select_scopes(tree, schemas)
    types = ColumnTypes(scopes, schemas)
    alike = {
        child.name.lower()
        for schema in schemas
        for each in walk(schema.fields)
        if isinstance(each.type, StructType) and has_alike((each,))
        for child in each.type.fields
    }
    for scope in scopes:
        for node in list(scope.own_nodes()):  # outer ones first: inner names still say their types
            match node:
                case exp.Column():
                    _column(node, scope, types)
                case exp.Dot() if isinstance(node.expression, exp.Identifier):
                    parent = types.of(node.this, scope)
                    _rename(node, node.expression, parent, scope, alike)
                case exp.Bracket() if _is_text(node.expressions):
                    _rename(node, node.expressions[0], types.of(node.this, scope), scope, alike)
                case exp.StructExtract() | exp.Anonymous() if _is_text(node.expressions[-1:]):
                    name = "struct_extract" if isinstance(node, exp.StructExtract) else node.name
                    if name.lower() == "struct_extract":
                        _rename(node, node.expressions[-1], None, scope, alike)
    return tree


def _is_text(nodes: Sequence[exp.Expr]) -> bool:
    return len(nodes) == 1 and isinstance(nodes[0], exp.Literal) and bool(nodes[0].is_string)


def _column(node: exp.Column, scope: SelectScope, types: ColumnTypes) -> None:
    path = meaning_of(node, scope).path
    parts = list(node.parts)
    below = parts[len(parts) - len(path) + 1 :]
    if not below or isinstance(node.this, exp.Star):
        return
    written = node.name
    parent = types.of(_shorter(node, len(below)), scope)
    for part in below:
        if not isinstance(parent, StructType):
            return
        parent = _replaced(part, parent)
    if node.name != written:
        _alias(node, written, scope)


def _shorter(node: exp.Column, count: int) -> exp.Column:
    """The column without its last parts, at the same place in the tree."""
    parts = [part.copy() for part in list(node.parts)[: len(node.parts) - count]]
    names = ("this", "table", "db", "catalog")
    made = exp.Column(**dict(zip(names, reversed(parts), strict=False)))
    made.parent = node.parent
    return made


def _rename(
    node: exp.Expr,
    place: exp.Expr,
    parent: IcebergType | None,
    scope: SelectScope,
    alike: set[str],
) -> None:
    written = place.name
    if isinstance(parent, StructType):
        _replaced(place, parent)
        if place.name != written:
            _alias(node, written, scope)
    elif parent is None and written.lower() in alike:
        raise unsupported(
            f"the field {written} of a struct, where fields differ only in case",
            place,
            "name the column and the way to the field, as in column.field",
        )


def _replaced(place: exp.Expr, parent: StructType) -> IcebergType | None:
    """Put the engine's name of a field in ``place``; the type of the field."""
    field = find_field(parent.fields, place.name)
    if field is None:
        same = [each for each in parent.fields if each.name.lower() == place.name.lower()]
        if same:
            raise AmbiguousColumnError(
                place.name, candidates=[each.name for each in same], offset=offset_of(place)
            )
        return None
    names = engine_names(each.name for each in parent.fields)
    name = names[parent.fields.index(field)]
    if name != field.name:
        place.set("this", name)
        if isinstance(place, exp.Identifier):
            place.set("quoted", True)
    return field.type


def _alias(node: exp.Expr, written: str, scope: SelectScope) -> None:
    if node.parent is scope.select and node.arg_key == "expressions":
        named = exp.Alias(alias=exp.to_identifier(written, quoted=True))
        node.replace(named)
        named.set("this", node)
