"""Kinds of values: as much of a type as the meanings of operators depend on."""

from __future__ import annotations

from typing import Any, Final

from sqlglot import exp

from icesql.iceberg import types as t
from icesql.query.column_types import ColumnTypes
from icesql.query.names import FromItem, SelectScope

T: Final = exp.DataType.Type
UNKNOWN: Final = "unknown"
Columns = list[tuple[str, str]]

_OF_CASTS: Final[dict[Any, str]] = {
    **dict.fromkeys((T.TINYINT, T.SMALLINT, T.INT, T.BIGINT), "integer"),
    **dict.fromkeys((T.FLOAT, T.DOUBLE), "double"),
    T.DECIMAL: "decimal",
    T.BOOLEAN: "boolean",
    **dict.fromkeys((T.VARCHAR, T.TEXT, T.CHAR, T.NCHAR, T.NVARCHAR), "text"),
    **dict.fromkeys((T.BINARY, T.VARBINARY), "binary"),
    T.DATE: "date",
    **dict.fromkeys((T.TIMESTAMP, T.TIMESTAMPNTZ, T.DATETIME), "timestamp"),
    **dict.fromkeys((T.TIMESTAMPTZ, T.TIMESTAMPLTZ), "timestamptz"),
    T.TIME: "time",
    T.UUID: "uuid",
    T.ARRAY: "array",
    T.MAP: "map",
}  # fmt: skip
NUMBERS: Final = frozenset({"integer", "decimal", "double"})
MOMENTS: Final = frozenset({"date", "timestamp", "timestamptz"})


def kind_of_cast(to: exp.DataType) -> str | None:
    """The kind of a cast's target; None for a type that no dialect here has."""
    found = _OF_CASTS.get(to.this)
    if found == "decimal" and to.expressions and len(to.expressions) == 1:
        return "decimal"
    return found


def kind_of_type(type: t.IcebergType | None) -> str:
    """The kind of an Iceberg type."""
    match type:
        case t.DecimalType():
            return "decimal"
        case t.ListType():
            return "array"
        case t.MapType():
            return "map"
        case t.StructType():
            return "row"
        case t.FixedType():
            return "binary"
        case None:
            return UNKNOWN
    return _NAMES.get(str(type), UNKNOWN)


_NAMES: Final = {
    "int": "integer",
    "long": "integer",
    "float": "double",
    "double": "double",
    "boolean": "boolean",
    "string": "text",
    "date": "date",
    "time": "time",
    "timestamp": "timestamp",
    "timestamp_ns": "timestamp",
    "timestamptz": "timestamptz",
    "timestamptz_ns": "timestamptz",
    "uuid": "uuid",
    "binary": "binary",
}


class Kinds(ColumnTypes):
    """The kinds of expressions of translated SELECTs; ``given`` are those of nodes already seen."""

    def kind(self, node: exp.Expr, scope: SelectScope | None) -> str:
        """The kind of a translated expression."""
        known = node.meta.get("kind")
        if known is not None:
            return str(known)
        match node:
            case exp.Literal():
                return "text" if node.is_string else _kind_of_number(node.name)
            case exp.Boolean():
                return "boolean"
            case exp.Null():
                return "null"
            case exp.Paren() | exp.Alias() | exp.Neg() | exp.Distinct():
                inner = node.this if node.this is not None else node.expressions[0]
                return self.kind(inner, scope)
            case exp.Order() | exp.Window() | exp.Filter() | exp.IgnoreNulls() | exp.WithinGroup():
                return self.kind(node.this, scope) if node.this is not None else UNKNOWN
            case exp.RespectNulls():
                return self.kind(node.this, scope)
            case exp.Cast():
                return kind_of_cast(node.to) or UNKNOWN
            case exp.Interval():
                return "interval"
            case exp.CurrentDate():
                return "date"
            case exp.CurrentTimestamp():
                return "timestamptz"
            case exp.Localtimestamp():
                return "timestamp"
            case exp.DPipe() | exp.Concat():
                return "text"
            case exp.Array():
                return "array"
            case exp.Struct() | exp.Tuple():
                return "row"
            case exp.Predicate() | exp.Connector() | exp.Not() | exp.Exists() | exp.Like():
                return "boolean"
            case exp.Add() | exp.Sub() | exp.Mul() | exp.Mod() | exp.Div():
                return arithmetic(self.kind(node.this, scope), self.kind(node.expression, scope))
            case exp.Case():
                branches = [each.args.get("true") for each in node.args.get("ifs") or ()]
                return self._common([*branches, node.args.get("default")], scope)
            case exp.Column() | exp.Dot():
                return self._kind_of_column(node, scope)
            case exp.Subquery():
                return self._kind_of_query(node)
            case _:
                return UNKNOWN

    def _common(self, nodes: list[Any], scope: SelectScope | None) -> str:
        kinds = {self.kind(each, scope) for each in nodes if each is not None} - {"null"}
        if len(kinds) == 1:
            return kinds.pop()
        if kinds and kinds <= NUMBERS:
            return "double" if "double" in kinds else "decimal"
        return UNKNOWN

    def _kind_of_column(self, node: exp.Expr, scope: SelectScope | None) -> str:
        if scope is None:
            return UNKNOWN
        found = kind_of_type(self.of(node, scope))
        if found == UNKNOWN and isinstance(node, exp.Column) and len(node.parts) <= 2:
            return self._resolved(node, scope)
        return found

    def _resolved(self, column: exp.Column, scope: SelectScope) -> str:
        """The kind of a column by the expression of a derived table that makes it."""
        name, table = column.name.lower(), column.table.lower()
        for each in scope.around():
            certain = True
            found: set[str] = set()
            for item in each.items:
                if table and item.name != table:
                    continue
                columns = self._columns(item, each)
                if columns is None:
                    certain = False
                found |= {kind for own, kind in columns or () if own == name}
            if not certain:
                return UNKNOWN
            if found:
                return found.pop() if len(found) == 1 else UNKNOWN
        return UNKNOWN

    def _columns(self, item: FromItem, scope: SelectScope) -> Columns | None:
        """The columns of something in FROM, in lower case; None where they are not known."""
        node = item.node
        columns: Columns | None = None
        if item.scan is not None:
            fields = self._schemas[item.scan].fields
            columns = [(each.name.lower(), kind_of_type(each.type)) for each in fields]
        elif isinstance(node, exp.Values):
            columns = self._rows(node, scope)
        elif isinstance(node, exp.Subquery):
            columns = self._outputs(node.this)
        elif isinstance(node, exp.Table):
            cte = _cte(node)
            if cte is not None:
                columns = _renamed(self._outputs(cte.this), cte)
        return _renamed(columns, node)

    def _rows(self, node: exp.Values, scope: SelectScope) -> Columns:
        rows = [
            row.expressions if isinstance(row, exp.Tuple) else [row] for row in node.expressions
        ]
        width = min(map(len, rows))
        return [("", self._common([row[at] for row in rows], scope)) for at in range(width)]

    def _outputs(self, query: exp.Expr) -> Columns | None:
        if isinstance(query, exp.Subquery):
            return self._outputs(query.this)
        if isinstance(query, exp.SetOperation):
            left, right = self._outputs(query.this), self._outputs(query.expression)
            if left is None or right is None or len(left) != len(right):
                return None
            return [
                (name, kind if kind == other else UNKNOWN)
                for (name, kind), (_, other) in zip(left, right, strict=True)
            ]
        scope = self._scope_of.get(id(query))
        if scope is None:
            return None
        found: Columns = []
        for each in scope.select.expressions:
            if not each.is_star:
                found.append((each.alias_or_name.lower(), self.kind(each, scope)))
                continue
            table = each.table.lower() if isinstance(each, exp.Column) else ""
            for item in scope.items:
                columns = self._columns(item, scope)
                if table and item.name != table:
                    continue
                if columns is None:
                    return None
                found += columns
        return found

    def _kind_of_query(self, node: exp.Subquery) -> str:
        columns = self._outputs(node.this)
        return columns[0][1] if columns is not None and len(columns) == 1 else UNKNOWN


def _renamed(columns: Columns | None, node: exp.Expr) -> Columns | None:
    alias = node.args.get("alias")
    names = alias.args.get("columns") or () if isinstance(alias, exp.TableAlias) else ()
    if columns is None or len(names) > len(columns):
        return None
    given = [each.name.lower() for each in names]
    return [(given[at] if at < len(given) else own, kind) for at, (own, kind) in enumerate(columns)]


def _cte(table: exp.Table) -> exp.CTE | None:
    """The CTE that a table name refers to."""
    inside: exp.Expr = table
    node = table.parent
    while node is not None and not table.db:
        for cte in node.ctes if isinstance(node, exp.Query) else ():
            if cte is inside:
                break  # a CTE sees only the ones before it
            if cte.alias.lower() == table.name.lower():
                return cte
        if isinstance(node, exp.CTE):
            inside = node
        node = node.parent
    return None


def arithmetic(left: str, right: str) -> str:
    """The kind of ``+ - *`` of two kinds."""
    kinds = {left, right}
    if kinds <= NUMBERS:
        return "double" if "double" in kinds else "decimal" if "decimal" in kinds else "integer"
    if "interval" in kinds and kinds & MOMENTS:
        return left if left in MOMENTS else right
    if kinds == {"interval"}:
        return "interval"
    if kinds == {"interval", "integer"}:
        return "interval"
    return UNKNOWN


def _kind_of_number(text: str) -> str:
    if "e" in text.lower():
        return "double"
    return "decimal" if "." in text else "integer"
