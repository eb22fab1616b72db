"""Resolve the names in each SELECT of a tree: its items, their columns, the enclosing SELECT.

Implements the part of DuckDB's scoping rules that icesql needs; names that it cannot resolve with
certainty are marked and left to the engine.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from datetime import date
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct, field
from msgspec.structs import replace

from icesql.errors import AmbiguousColumnError
from icesql.frozen import Frozen
from icesql.iceberg import types as t
from icesql.iceberg.schema import METADATA_COLUMNS, Schema, fields_named
from icesql.iceberg.types import NestedField, StructType
from icesql.query.constants.constant import Constant, Kind
from icesql.sql.parser.literal_list import LiteralList, held
from icesql.sql.positions import offset_of
from icesql.sql.trees import exp

if TYPE_CHECKING:
    from icesql.scan.plan import TableScan

_SCAN = re.compile(r"__scan_(\d+)")
PARTITION = "_partition"


class FromItem(Struct, eq=False):
    """One item of FROM. ``columns`` are its output names in lower case, None when unknown.

    ``scan`` is the index of an Iceberg scan, ``query`` the SELECT or set operation of a derived
    table or CTE. ``join`` is the join of which it is the right side, None for the first item.
    ``plain`` is False inside parentheses, pivots and samples, where nothing may be pushed.
    ``plain_columns`` are a scan's columns without children, so a dot cannot follow their names.
    ``filter_join`` is the SEMI or ANTI join whose right side contains the item.
    """

    name: str
    node: exp.Expr
    join: exp.Join | None = None
    scan: int | None = None
    query: exp.Query | None = None
    columns: frozenset[str] | None = None
    plain: bool = True
    filter_join: exp.Join | None = None
    plain_columns: frozenset[str] = frozenset()

    @property
    def is_filter_only(self) -> bool:
        """True on the right side of a SEMI or ANTI join, where only its ON sees the item."""
        return self.filter_join is not None

    def has(self, name: str) -> bool:
        """True if the item has a column with this name, including metadata columns."""
        lower = name.lower()
        if self.columns is not None and lower in self.columns:
            return True
        return self.scan is not None and (lower in METADATA_COLUMNS or lower == PARTITION)


class SelectScope(Struct, eq=False):
    """One SELECT with its items in order, and the SELECT that encloses it."""

    select: exp.Select
    parent: SelectScope | None
    items: list[FromItem] = field(default_factory=list)

    def around(self) -> Iterator[SelectScope]:
        """This SELECT and the ones around it, inner first."""
        scope: SelectScope | None = self
        while scope is not None:
            yield scope
            scope = scope.parent

    def own_nodes(self, *parts: str) -> Iterator[exp.Expr]:
        """The nodes of this SELECT, or of these arguments of it, outside nested queries."""
        return (each for each in _nodes(self.select, *parts) if not _is_query(each))

    @property
    def joins(self) -> list[exp.Join]:
        """The joins of this SELECT, in order."""
        return list(self.select.args.get("joins") or ())

    @property
    def aliases(self) -> frozenset[str]:
        """The aliases in the select list, in lower case."""
        return frozenset(
            each.alias.lower()
            for node in self.select.expressions
            for each in node.find_all(exp.Alias)
            if each.alias
        )


class Meaning(Frozen):
    """Items that may have a column, and the path below them: column, then struct children.

    An ambiguous name, or one that USING merges, has several items. ``certain`` is False if an
    item with unknown columns might have the name too.
    """

    items: tuple[FromItem, ...]
    path: tuple[str, ...]
    certain: bool


def find_column(schema: Schema, name: str, node: exp.Expr) -> NestedField | None:
    """The column with this name. Raises AmbiguousColumnError at the offset of ``node``."""
    try:
        return schema.find_column(name)
    except AmbiguousColumnError as error:
        error.offset = offset_of(node)
        raise


def select_scopes(tree: exp.Expr, schemas: Sequence[Schema]) -> list[SelectScope]:
    """Every SELECT of ``tree``, inner ones before the SELECTs that read from them."""
    builder = _Builder(schemas)
    if isinstance(tree, exp.Query):
        builder.visit(tree, None)
    return builder.scopes


def meaning_of(column: exp.Column, scope: SelectScope) -> Meaning:
    """The meaning of a column of ``scope``; without items if no known item has it."""
    parts = tuple(part.name for part in column.parts)
    certain = True
    child_of_none: Meaning | None = None
    for each in scope.around():
        visible = each.items
        if each is scope and any(item.is_filter_only for item in visible):
            # Computed only here: a column in an OR of 10,000 terms has as many ancestors.
            inside = _joins_around(column)
            visible = [
                item
                for item in visible
                if item.filter_join is None or any(item.filter_join is each for each in inside)
            ]
        if len(parts) > 1:
            named = [item for item in visible if item.name == parts[0].lower()]
            found = [item for item in named if item.has(parts[1])]
            if found:
                return Meaning(tuple(found), parts[1:], certain)
            if any(item.columns is None for item in named):
                certain = False
        # If two items of this SELECT have the name, it is ambiguous, and the engine refuses it. An
        # item with unknown columns affects only names resolved in enclosing SELECTs.
        found = [item for item in visible if item.has(parts[0])]
        if found:
            meaning = Meaning(tuple(found), parts, certain)
            if len(parts) == 1 or not all(parts[0].lower() in i.plain_columns for i in found):
                return meaning
            # A table with that name in an enclosing SELECT takes precedence.
            child_of_none = child_of_none or meaning
        certain = certain and all(item.columns is not None for item in visible)
    return child_of_none or Meaning((), parts, certain)


def top_level(node: exp.Expr, scope: SelectScope) -> tuple[FromItem, str] | None:
    """The one item of FROM that has a column, and its name; None for all other expressions."""
    if not isinstance(node, exp.Column) or isinstance(node.this, exp.Star):
        return None
    meaning = meaning_of(node, scope)
    if len(meaning.items) != 1 or not meaning.certain or len(meaning.path) != 1:
        return None
    return meaning.items[0], meaning.path[0]


def _joins_around(inner: exp.Expr) -> list[exp.Join]:
    """The joins of its SELECT that contain a column or an item of FROM, inner first."""
    found = []
    node = inner.parent
    while node is not None and not isinstance(node, exp.Select):
        if isinstance(node, exp.Join):
            found.append(node)
        node = node.parent
    return found


def scan_index(node: exp.Expr) -> int | None:
    """The index of a ``"__scan_<i>"`` table, None for other nodes."""
    if not isinstance(node, exp.Table) or not isinstance(node.this, exp.Identifier) or node.db:
        return None
    found = _SCAN.fullmatch(node.name)
    return int(found[1]) if found else None


def _is_query(node: exp.Expr) -> bool:
    return isinstance(node, exp.Select | exp.SetOperation)


def _nodes(query: exp.Expr, *parts: str) -> Iterator[exp.Expr]:
    """The nodes below a query, or in these arguments of it, but nothing inside nested queries."""
    for name, value in query.args.items():
        if name == "with_" or (parts and name not in parts):
            continue
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, exp.Expression):
                yield from each.dfs(prune=_is_query)


class _Builder(Struct):
    schemas: Sequence[Schema]
    scopes: list[SelectScope] = field(default_factory=list)
    outputs: dict[int, frozenset[str] | None] = field(default_factory=dict)

    def visit(self, query: exp.Expr, parent: SelectScope | None) -> None:
        if not isinstance(query, exp.Select):
            self._visit_operation(query, parent)
            return
        scope = SelectScope(query, parent)
        for cte in query.ctes:
            # A CTE sees the names around the SELECT, not its FROM.
            if isinstance(cte.this, exp.Query):
                self.visit(cte.this, parent)
        for nested in filter(_is_query, _nodes(query)):
            self.visit(nested, scope)
        scope.items = list(self._items(query))
        for item in scope.items:
            around = (each for each in _joins_around(item.node) if each.kind in ("SEMI", "ANTI"))
            item.filter_join = next(around, None)
        self.outputs[id(query)] = self._output(scope)
        self.scopes.append(scope)

    def _visit_operation(self, query: exp.Expr, parent: SelectScope | None) -> None:
        """Visit a set operation. The left operands of a long UNION are visited in a loop."""
        spine = [query]
        while isinstance(spine[-1], exp.SetOperation):
            left = spine[-1].this.unnest()
            if not isinstance(left, exp.SetOperation):
                break
            spine.append(left)
        for node in spine:
            for cte in node.ctes if isinstance(node, exp.Query) else ():
                self.visit(cte.this, parent)
        visited = {id(node): node for node in spine}
        for node in reversed(spine):
            for nested in filter(_is_query, _nodes(node)):
                if not isinstance(nested.parent, exp.CTE) and id(nested) not in visited:
                    self.visit(nested, parent)
            if isinstance(node, exp.SetOperation):
                self.outputs[id(node)] = self.outputs.get(id(node.this.unnest()))

    def _items(self, select: exp.Select) -> Iterator[FromItem]:
        plain = not select.args.get("sample") and not select.args.get("pivots")
        start = select.args.get("from_")
        if start is not None:
            yield from self._item(start.this, None, plain)
        for join in select.args.get("joins") or ():
            yield from self._item(join.this, join, plain)
        for lateral in select.args.get("laterals") or ():
            yield FromItem(lateral.alias_or_name.lower(), lateral)

    def _item(self, node: exp.Expr, join: exp.Join | None, plain: bool) -> Iterator[FromItem]:
        inner_joins = node.args.get("joins") or ()
        changed = node.args.get("pivots") or node.args.get("sample")
        alias = node.args.get("alias")
        renamed = isinstance(alias, exp.TableAlias) and bool(alias.args.get("columns"))
        plain = plain and not inner_joins and not changed
        named = [each for each in node.args.get("pivots") or () if each.alias]
        name = (named[-1] if named else node).alias_or_name.lower()
        match node:
            case exp.Table():
                index = scan_index(node)
                query = _cte(node) if index is None else None
                fields = () if index is None else self.schemas[index].fields
                columns = self.outputs.get(id(query))
                if index is not None:
                    columns = frozenset(each.name.lower() for each in fields)
                yield FromItem(
                    name,
                    node,
                    join,
                    index,
                    query,
                    None if renamed or node.args.get("pivots") else columns,
                    plain and not renamed,
                    plain_columns=frozenset(
                        each.name.lower()
                        for each in fields
                        if isinstance(each.type, t.PrimitiveType)
                        and not isinstance(each.type, t.VariantType | t.UnknownType)
                    ),
                )
            case exp.Subquery() if isinstance(node.this, exp.Select | exp.SetOperation):
                columns = None if changed or renamed else self.outputs.get(id(node.this))
                modified = any(node.args.get(each) for each in node.arg_types if each not in _BARE)
                plain = plain and not modified and not renamed
                yield FromItem(name, node, join, None, node.this, columns, plain)
            case exp.Subquery() | exp.Paren():
                yield from self._item(node.this, join, False)
            case _:
                yield FromItem(name, node, join, plain=plain)
        for inner in inner_joins:
            yield from self._item(inner.this, inner, False)

    def _output(self, scope: SelectScope) -> frozenset[str] | None:
        names: set[str] = set()
        if scope.select.args.get("exclude"):
            return None
        for node in scope.select.expressions:
            match node:
                case exp.Alias():
                    if node.this.find(exp.Columns):
                        return None
                    names.add(node.alias.lower())
                case exp.Star() if not any(node.args.values()):
                    for item in scope.items:
                        if item.columns is None:
                            return None
                        names |= item.columns
                case exp.Column() if not isinstance(node.this, exp.Star):
                    names.add(node.name.lower())
                case _:
                    return None
        return frozenset(names)


_BARE = ("this", "alias")


def _cte(table: exp.Table) -> exp.Query | None:
    """The query of the CTE that a table name refers to; None if it is not a CTE."""
    if table.db:
        return None
    inside: exp.Expr = table
    node = table.parent
    while node is not None:
        if isinstance(node, exp.Query):
            for cte in node.ctes:
                if cte is inside:
                    break  # a CTE sees only the ones before it
                if cte.alias.lower() == table.name.lower():
                    renamed = cte.args["alias"].args.get("columns")
                    query = cte.this
                    return query if isinstance(query, exp.Query) and not renamed else None
        if isinstance(node, exp.CTE):
            inside = node
        node = node.parent
    return None


# Values of long IN lists as constants, and the type of the column compared with them.

# Returns the field of a column.

Resolve = Callable[[exp.Column], NestedField | None]


def resolver(scope: SelectScope, item: FromItem, schema: Schema) -> Resolve:
    """A function from a column to its field in ``item``'s schema, None for other items' columns.

    The field of a struct has its full dotted name.
    """

    def resolve(column: exp.Column) -> NestedField | None:
        meaning = meaning_of(column, scope)
        if meaning.items != (item,) or not meaning.certain:
            return None
        field_found = find_column(schema, meaning.path[0], column)
        for child in meaning.path[1:]:
            if field_found is None or not isinstance(field_found.type, StructType):
                return None
            field_found = _inside(
                field_found, find_column(Schema(field_found.type.fields), child, column)
            )
        return field_found

    return resolve


def column_of(node: exp.Expr | None, resolve: Resolve) -> NestedField | None:
    """The field that ``node`` reads, also through struct access; None for other expressions."""
    match node:
        case exp.Paren():
            return column_of(node.this, resolve)
        case exp.Column():
            return None if isinstance(node.this, exp.Star) else resolve(node)
        case exp.Dot() if isinstance(node.expression, exp.Identifier):
            return child_of(column_of(node.this, resolve), node.expression.name)
        case exp.Bracket() if len(node.expressions) == 1:
            name = node.expressions[0]
            if name.is_string:
                return child_of(column_of(node.this, resolve), name.name)
    return None


def child_of(parent: NestedField | None, name: str) -> NestedField | None:
    """The struct's field with this name, dotted; None if no field or several fields match."""
    if parent is None or not isinstance(parent.type, StructType):
        return None
    return _inside(parent, find_field(parent.type.fields, name))


def _inside(parent: NestedField, child: NestedField | None) -> NestedField | None:
    return child and replace(child, name=f"{parent.name}.{child.name}")


def find_field(fields: Sequence[NestedField], name: str) -> NestedField | None:
    """The field with this name: the exact match, else the only case-insensitive one."""
    same = fields_named(name, fields)
    return same[0] if len(same) == 1 else None


_EPOCH: Final = date(1970, 1, 1).toordinal()
_RANGES: Final[dict[type[t.IcebergType], int]] = {t.IntegerType: 1 << 31, t.LongType: 1 << 63}


def stored_values(values: LiteralList, column_type: t.IcebergType) -> frozenset[Any] | None:
    """The values in the internal form of a column's type, without NULL and values out of range.

    None if the comparison of the two types is not this simple.
    """
    limit = _RANGES.get(type(column_type))
    known = frozenset(values.values) - {None}
    if values.kind == "decimal" and limit is not None:
        known = frozenset(int(each) for each in known if each == int(each))
    if values.kind in ("integer", "decimal") and limit is not None:
        return frozenset(each for each in known if -limit <= each < limit)
    if values.kind == "text" and isinstance(column_type, t.StringType):
        return known
    if values.kind == "date" and isinstance(column_type, t.DateType):
        return frozenset(map(_day, known))
    return None


def _day(text: str) -> int:
    """Days since 1970-01-01."""
    return date.fromisoformat(text).toordinal() - _EPOCH


def constants_of(values: LiteralList) -> Iterator[Constant]:
    """Each distinct value as a typed constant, including NULL."""
    kinds = {"integer": Kind.INTEGER, "text": Kind.TEXT}
    for each in dict.fromkeys(values.values):
        if each is None:
            yield Constant(Kind.NULL, None)
        elif values.kind == "date":
            yield Constant(Kind.DATE, _day(each))
        elif values.kind == "decimal":
            yield Constant(Kind.INTEGER if isinstance(each, int) else Kind.DECIMAL, each)
        else:
            yield Constant(kinds[values.kind], each)


def type_lists(scopes: Sequence[SelectScope], scans: Sequence[TableScan]) -> bool:
    """Set the ``operand`` of each long IN list to the type of the column compared with it.

    The type is None for other operands. Returns False if there is no such list.
    """
    found = False
    for scope in scopes:
        for node in [each for each in scope.own_nodes() if isinstance(each, exp.In)]:
            if held(node) is not None:
                node.set("operand", _type_of(node.this, scope, scans))
                found = True
    return found


def _type_of(
    node: exp.Expr, scope: SelectScope, scans: Sequence[TableScan]
) -> t.IcebergType | None:
    def resolve(column: exp.Column) -> t.NestedField | None:
        items = meaning_of(column, scope).items
        index = items[0].scan if len(items) == 1 else None
        return None if index is None else resolver(scope, items[0], scans[index].schema)(column)

    found = column_of(node, resolve)
    return None if found is None else found.type
