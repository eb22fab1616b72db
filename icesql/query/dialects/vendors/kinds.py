"""The types of expressions, as far as the meanings of operators depend on them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from sqlglot import exp

from icesql.iceberg import types as iceberg
from icesql.query.column_types import ColumnTypes
from icesql.query.dialects import types as t
from icesql.query.dialects.types import SqlType
from icesql.query.names import FromItem, SelectScope

T: Final = exp.DataType.Type
Columns = list[tuple[str, SqlType]]
INTERVAL: Final = SqlType("interval")
ARRAY: Final = SqlType("array")
MAP: Final = SqlType("map")
ROW: Final = SqlType("struct")
DECIMAL: Final = SqlType("decimal")
TIME: Final = SqlType("time")

_OF_CASTS: Final[dict[Any, SqlType]] = {
    **dict.fromkeys((T.TINYINT, T.SMALLINT, T.INT, T.BIGINT), t.BIGINT),
    **dict.fromkeys((T.FLOAT, T.DOUBLE), t.DOUBLE),
    T.DECIMAL: DECIMAL,
    T.BOOLEAN: t.BOOLEAN,
    **dict.fromkeys((T.VARCHAR, T.TEXT, T.CHAR, T.NCHAR, T.NVARCHAR), t.STRING),
    **dict.fromkeys((T.BINARY, T.VARBINARY), t.BINARY),
    T.DATE: t.DATE,
    **dict.fromkeys((T.TIMESTAMP, T.TIMESTAMPNTZ, T.DATETIME), t.NTZ),
    **dict.fromkeys((T.TIMESTAMPTZ, T.TIMESTAMPLTZ), t.TIMESTAMP),
    T.TIME: TIME,
    T.UUID: t.UUID,
    T.ARRAY: ARRAY,
    T.MAP: MAP,
}  # fmt: skip
_WORDS: Final = {
    **dict.fromkeys(t.INTEGRAL, "integer"),
    **dict.fromkeys(t.FRACTIONAL, "double"),
    "string": "text",
    t.NTZ.kind: "timestamp",
    t.TIMESTAMP.kind: "timestamptz",
    ROW.kind: "row",
}


def word(of: SqlType) -> str:
    """A type as messages call it."""
    return _WORDS.get(of.kind, of.kind)


def type_of_cast(to: exp.DataType) -> SqlType | None:
    """The type of a cast's target; None for a type that no dialect here has."""
    return _OF_CASTS.get(to.this)


def type_of_column(type: iceberg.IcebergType | None) -> SqlType:
    """The type of an Iceberg column, UNKNOWN for None."""
    match type:
        case iceberg.TimeType():
            return TIME
        case iceberg.TimestampNanoType():
            return t.NTZ
        case iceberg.TimestamptzNanoType():
            return t.TIMESTAMP
        case None:
            return t.UNKNOWN
    return t.of_iceberg(type)


def converted(argument: SqlType, wanted: SqlType) -> SqlType | None:
    """The type of an argument where a function takes another, which DuckDB takes, too."""
    fits = (
        argument.kind in (wanted.kind, "null")
        or (argument.kind in t.INTEGRAL and wanted.kind in t.INTEGRAL)
        or (argument.kind in t.NUMERIC and wanted == t.DOUBLE)
    )
    return argument if fits else None


def common(types: Iterable[SqlType]) -> SqlType:
    """The type of what may be of one of these: numbers have one, others must be alike."""
    found = t.NULL
    for each in types:
        if each.kind == "null" or found.kind == "null" or {each.kind, found.kind} <= _NUMBERS:
            found = t.common(found, each) or t.UNKNOWN
        elif each.kind != found.kind:
            return t.UNKNOWN
    return found


_NUMBERS: Final = frozenset(t.NUMERIC)


class Kinds(ColumnTypes):
    """The types of expressions of translated SELECTs; ``meta`` may have that of a node."""

    def type(self, node: exp.Expr, scope: SelectScope | None) -> SqlType:
        """The type of a translated expression, UNKNOWN where nothing decides it."""
        known = node.meta.get("type")
        if isinstance(known, SqlType):
            return known
        match node:
            case exp.Literal():
                return t.STRING if node.is_string else _type_of_number(node.name)
            case exp.Boolean():
                return t.BOOLEAN
            case exp.Null():
                return t.NULL
            case exp.Paren() | exp.Alias() | exp.Neg() | exp.Distinct():
                inner = node.this if node.this is not None else node.expressions[0]
                return self.type(inner, scope)
            case exp.Order() | exp.Window() | exp.Filter() | exp.IgnoreNulls() | exp.WithinGroup():
                return self.type(node.this, scope) if node.this is not None else t.UNKNOWN
            case exp.RespectNulls():
                return self.type(node.this, scope)
            case exp.Cast():
                return type_of_cast(node.to) or t.UNKNOWN
            case exp.Interval():
                return INTERVAL
            case exp.CurrentDate():
                return t.DATE
            case exp.CurrentTimestamp():
                return t.TIMESTAMP
            case exp.Localtimestamp():
                return t.NTZ
            case exp.DPipe() | exp.Concat():
                return t.STRING
            case exp.Array():
                return ARRAY
            case exp.Struct() | exp.Tuple():
                return ROW
            case exp.Predicate() | exp.Connector() | exp.Not() | exp.Exists() | exp.Like():
                return t.BOOLEAN
            case exp.Add() | exp.Sub() | exp.Mul() | exp.Mod() | exp.Div():
                return arithmetic(self.type(node.this, scope), self.type(node.expression, scope))
            case exp.Case():
                branches = [each.args.get("true") for each in node.args.get("ifs") or ()]
                values = [*branches, node.args.get("default")]
                return common(self.type(each, scope) for each in values if each is not None)
            case exp.Column() | exp.Dot():
                return self._type_of_column(node, scope)
            case exp.Subquery():
                return self._type_of_query(node)
            case _:
                return t.UNKNOWN

    def _type_of_column(self, node: exp.Expr, scope: SelectScope | None) -> SqlType:
        if scope is None:
            return t.UNKNOWN
        found = type_of_column(self.of(node, scope))
        if found == t.UNKNOWN and isinstance(node, exp.Column) and len(node.parts) <= 2:
            return self._resolved(node, scope)
        return found

    def _resolved(self, column: exp.Column, scope: SelectScope) -> SqlType:
        """The type of a column by the expression of a derived table that makes it."""
        name, table = column.name.lower(), column.table.lower()
        for each in scope.around():
            certain = True
            found: list[SqlType] = []
            for item in each.items:
                if table and item.name != table:
                    continue
                columns = self._columns(item, each)
                if columns is None:
                    certain = False
                found += [type for own, type in columns or () if own == name]
            if not certain:
                return t.UNKNOWN
            if found:
                return common(found)
        return t.UNKNOWN

    def _columns(self, item: FromItem, scope: SelectScope) -> Columns | None:
        """The columns of something in FROM, in lower case; None where they are not known."""
        node = item.node
        columns: Columns | None = None
        if item.scan is not None:
            fields = self._schemas[item.scan].fields
            columns = [(each.name.lower(), type_of_column(each.type)) for each in fields]
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
        return [("", common(self.type(row[at], scope) for row in rows)) for at in range(width)]

    def _outputs(self, query: exp.Expr) -> Columns | None:
        if isinstance(query, exp.Subquery):
            return self._outputs(query.this)
        if isinstance(query, exp.SetOperation):
            left, right = self._outputs(query.this), self._outputs(query.expression)
            if left is None or right is None or len(left) != len(right):
                return None
            return [
                (name, common((type, other)))
                for (name, type), (_, other) in zip(left, right, strict=True)
            ]
        scope = self._scope_of.get(id(query))
        if scope is None:
            return None
        found: Columns = []
        for each in scope.select.expressions:
            if not each.is_star:
                found.append((each.alias_or_name.lower(), self.type(each, scope)))
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

    def _type_of_query(self, node: exp.Subquery) -> SqlType:
        columns = self._outputs(node.this)
        return columns[0][1] if columns is not None and len(columns) == 1 else t.UNKNOWN


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


def arithmetic(left: SqlType, right: SqlType) -> SqlType:
    """The type of ``+ - *`` of two types."""
    kinds = {left.kind, right.kind}
    if kinds <= _NUMBERS:
        return t.common(left, right) or t.UNKNOWN
    if INTERVAL.kind in kinds and kinds & {*t.MOMENTS}:
        return left if left.kind in t.MOMENTS else right
    if INTERVAL.kind in kinds and kinds <= {INTERVAL.kind, *t.INTEGRAL}:
        return INTERVAL
    return t.UNKNOWN


def _type_of_number(text: str) -> SqlType:
    if "e" in text.lower():
        return t.DOUBLE
    return DECIMAL if "." in text else t.BIGINT
