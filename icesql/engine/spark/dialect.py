"""A bound tree as Spark SQL that means what DuckDB means by it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ErrorLevel, SqlglotError, UnsupportedError
from sqlglot.optimizer.annotate_types import annotate_types
from sqlglot.optimizer.qualify import qualify

from icesql.engine.duckdb_types import duckdb_type
from icesql.engine.spark.functions import rewrite_function
from icesql.engine.spark.kinds import Spelled, kind, refuse
from icesql.engine.spark.operators import rewrite_operator
from icesql.errors import UnsupportedSqlError
from icesql.sql.functions import function_key, function_keys

if TYPE_CHECKING:
    from icesql.scan.table_scan import TableScan

# Functions of sqlglot's tree that are no functions of SQL.
_SYNTAX: Final = (
    exp.Cast, exp.Case, exp.If, exp.Connector, exp.Exists, exp.Array, exp.Struct, exp.Interval,
    exp.AtTimeZone, exp.Explode, exp.CurrentDate, exp.CurrentTimestamp, exp.Unnest, exp.Map,
    exp.ToMap, exp.Coalesce, exp.ArrayConcat, exp.Bracket, exp.Like, exp.RegexpLike, exp.Concat,
)  # fmt: skip
_CARRIED: Final = frozenset({"time", "timestamp_ns", "uuid"})
# Where a value that Spark holds as another type may stand: its equality and order are the same.
_CARRIED_MAY_STAND: Final = (
    exp.Select, exp.Alias, exp.Paren, exp.Group, exp.Ordered, exp.EQ, exp.NEQ, exp.LT, exp.LTE,
    exp.GT, exp.GTE, exp.NullSafeEQ, exp.NullSafeNEQ, exp.Is, exp.In, exp.Between, exp.Count,
    exp.Min, exp.Max, exp.Coalesce, exp.Nullif, exp.Distinct, exp.Tuple, exp.Subquery, exp.Case,
    exp.If, exp.AnyValue, exp.First, exp.Last, exp.ArrayAgg, exp.Order, exp.Window, exp.Bracket,
    exp.Lag, exp.Lead, exp.IgnoreNulls, exp.FirstValue, exp.LastValue, exp.Join, exp.Dot,
    exp.Cast, exp.Column, exp.Explode, exp.Array, exp.ArgMax, exp.ArgMin, exp.Filter, exp.Add,
    exp.Sub, exp.ArrayContains,
)  # fmt: skip


def _spelled_sql(generator: Any, node: Spelled) -> str:
    return "".join(
        part if isinstance(part, str) else generator.sql(part) for part in node.args["parts"]
    )


def _timestamp_types() -> dict[Any, str]:
    kinds = exp.DataType.Type
    return {
        **Spark.Generator.TYPE_MAPPING,
        **dict.fromkeys((kinds.TIMESTAMP, kinds.DATETIME, kinds.TIMESTAMPNTZ), "TIMESTAMP_NTZ"),
        **dict.fromkeys((kinds.TIMESTAMPTZ, kinds.TIMESTAMPLTZ), "TIMESTAMP_LTZ"),
    }


class IcesqlSpark(Spark):
    """Spark's dialect as icesql writes it; it is never read."""

    class Generator(Spark.Generator):  # type: ignore[misc, valid-type]
        """Spark's generator with text of Spark's own in it."""

        TRANSFORMS: ClassVar = {**Spark.Generator.TRANSFORMS, Spelled: _spelled_sql}
        TYPE_MAPPING: ClassVar = _timestamp_types()


def qualified(tree: exp.Expr, scans: Sequence[TableScan]) -> exp.Expr:
    """A copy of the tree whose columns are qualified, stars expanded and types annotated.

    Raises UnsupportedSqlError where sqlglot cannot place a name.
    """
    schema: Mapping[str, Any] = {
        f"__scan_{index}": {
            column.name: duckdb_type(column.type) for column in scan.projection.fields
        }
        or {"__row": "INTEGER"}
        for index, scan in enumerate(scans)
    }
    for node in tree.find_all(exp.Columns):
        raise refuse(f"COLUMNS({node.this.sql(dialect='duckdb')})")
    try:
        made = qualify(
            tree.copy(), dialect="duckdb", schema=dict(schema), validate_qualify_columns=False
        )
        return annotate_types(made, schema=dict(schema), dialect="duckdb")
    except SqlglotError as error:
        raise refuse(f"this statement ({error})") from error


def spark_sql(tree: exp.Expr, names: Mapping[str, str], timezone: str) -> str:
    """A qualified tree in Spark's SQL, its scans called by ``names``.

    Raises UnsupportedSqlError naming what has no equal there.
    """
    tree = tree.copy()
    for select in tree.find_all(exp.Select):
        _order_distinct(select)
    for node in reversed(list(tree.dfs())):
        made = rewrite_operator(node, timezone)
        if made is node:
            made = rewrite_function(node)
        if made is not node:
            node.replace(made)
    for table in tree.find_all(exp.Table):
        if table.name in names:
            table.set("this", exp.to_identifier(names[table.name], quoted=True))
    try:
        return str(tree.sql(dialect=IcesqlSpark, unsupported_level=ErrorLevel.RAISE))
    except UnsupportedError as error:
        raise refuse(str(error)) from error


def _order_distinct(select: exp.Select) -> None:
    """ORDER BY of a SELECT DISTINCT by the names of its columns, the only ones Spark sees there."""
    order = select.args.get("order")
    if order is None or select.args.get("distinct") is None:
        return
    names = {
        each.unalias().unnest(): each.alias_or_name
        for each in select.expressions
        if each.alias_or_name
    }
    for ordered in order.expressions:
        name = names.get(ordered.this)
        if name is not None and isinstance(ordered.this, exp.Column):
            made = exp.column(name, quoted=True)
            made.type = ordered.this.type
            ordered.set("this", made)


def check_functions(tree: exp.Expr) -> None:
    """Raises UnsupportedSqlError for a function outside the table, or a misplaced carried value."""
    known = function_keys()
    for node in tree.walk():
        if isinstance(node, exp.Join) and str(node.args.get("method") or "").upper() == "ASOF":
            raise refuse("ASOF JOIN")
        if not isinstance(node, exp.Func) or isinstance(node, _SYNTAX):
            pass
        elif function_key(node) not in known:
            raise UnsupportedSqlError(
                f"the function {_written(node)}() on Spark",
                hint="it is not in the function table; run it with engine = 'local'",
            )
        _check_carried(node)


def _written(node: exp.Func) -> str:
    if isinstance(node, exp.Anonymous | exp.AnonymousAggFunc):
        return str(node.this).lower()
    text = node.sql(dialect="duckdb")
    name = text.partition("(")[0]
    return name.lower() if name.isidentifier() else node.sql_name().lower()


def _check_carried(node: exp.Expr) -> None:
    found = kind(node)
    if found not in _CARRIED or node.parent is None:
        return
    parent = node.parent
    if isinstance(parent, exp.Query | exp.Expression) and isinstance(parent, _CARRIED_MAY_STAND):
        return
    if isinstance(parent, exp.Query | exp.From | exp.CTE | exp.With | exp.TableAlias):
        return
    raise refuse(f"{parent.key} of a {found}")
