"""Find queries that need only the extreme values or the number of a scan's rows.

Extreme values: ``ORDER BY c LIMIT n``, ``max(c)``, ``min(c)``. Counts: ``count(*)``, ``count(c)``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace
from sqlglot import exp

from icesql.iceberg import types as t
from icesql.iceberg.expressions.predicate import (
    ALWAYS_FALSE,
    ALWAYS_TRUE,
    Leaf,
    Operation,
    Predicate,
)
from icesql.iceberg.schema import Schema
from icesql.iceberg.types import NestedField, PrimitiveType
from icesql.query.constants.constant import Kind
from icesql.query.names import Resolve, SelectScope, find_column, resolver, top_level
from icesql.query.pushdown.comparison import all_of, any_of
from icesql.query.pushdown.computed.expression import COMPARISONS, Expression, expression_of
from icesql.query.pushdown.predicate import Translator, resolved_in, term_of
from icesql.query.pushdown.push_down import short_sql
from icesql.query.pushdown.select_forms import (
    SELECT_PARTS,
    has_only,
    is_plain_call,
    is_row_by_row,
    rows_wanted,
)
from icesql.scan.plan import TableScan
from icesql.scan.pruning.extremes import Extreme, is_ordered
from icesql.scan.pruning.metadata_count import Counted

if TYPE_CHECKING:
    from icesql.context import QueryContext
    from icesql.query.pushdown.computed.expression import Expression
    from icesql.query.spark_text import SparkConditions


# ------------------------------------------------------------------ excluded rows
# A condition excludes the rows for which it is false or NULL. If a file has no such row, each of
# its rows satisfies the condition, however much weaker the row filter is.


def complement(condition: Expression, resolve: Resolve, query: QueryContext) -> Predicate:
    """A predicate that holds for every row for which ``condition`` is not true.

    ALWAYS_TRUE if that is not known. ``resolve`` is that of ``implied_by``.

    >>> left_out("i > 2 AND name = 'a'")
    i <= 2 OR i IS NULL OR name <> 'a' OR name IS NULL
    >>> left_out("i + 1 > 2")
    true
    """
    try:
        return _left_out(resolved_in(condition, resolve, query), Translator(query), negated=False)
    except RecursionError:
        return ALWAYS_TRUE


def _left_out(each: Expression, translator: Translator, *, negated: bool) -> Predicate:
    """A predicate implied if ``each`` is false (``negated``: true) or NULL."""
    match each.name:
        case "not":
            return _left_out(each.arguments[0], translator, negated=not negated)
        case "and" | "or":
            parts = (_left_out(part, translator, negated=negated) for part in each.arguments)
            return any_of(parts) if (each.name == "and") != negated else all_of(parts)
        case "literal" if each.value[0] == "BOOLEAN":
            return ALWAYS_TRUE if (each.value[1] == "true") == negated else ALWAYS_FALSE
        case "is null" | "is not null":
            return translator.implied(each, negated=not negated)  # never NULL
        case _:
            found = _operand(each, translator)
            if found is None:
                return ALWAYS_TRUE
            is_null = Leaf(Operation.IS_NULL, term_of(found))
            return any_of([translator.implied(each, negated=not negated), is_null])


def _operand(each: Expression, translator: Translator) -> Expression | None:
    """The only column of a condition that is NULL exactly where this column is NULL."""
    if each.name == "input":
        return each if isinstance(each.value.type, t.BooleanType) else None
    if each.name not in (*COMPARISONS, "between", "in"):
        return None
    columns = [part for part in each.arguments if part.name == "input"]
    constants = [translator.constant(part) for part in each.arguments]
    values = [value for value in constants if value is not None and value.kind is not Kind.NULL]
    return columns[0] if len(columns) == 1 and len(values) == len(constants) - 1 else None


# ------------------------------------------------------------------ extremes and counts


_AGGREGATE_PARTS: Final = SELECT_PARTS | {"where"}
_TOP_PARTS: Final = _AGGREGATE_PARTS | {"order", "limit", "offset"}
# With more rows than this, bounds would rarely decide.
_MOST_ROWS: Final = 1_000_000


def with_extremes(
    tree: exp.Expr,
    scopes: Sequence[SelectScope],
    scans: tuple[TableScan, ...],
    query: QueryContext,
    wheres: Mapping[int, Expression],
    *,
    spark: SparkConditions | None,
) -> tuple[TableScan, ...]:
    """The scans, marked with the extremes and counts that a SELECT over one of them needs.

    Counts are used only for the whole query. ``wheres`` are the conditions of SELECTs that were
    converted before, by the identity of the SELECT. ``spark`` as for ``push_down``.
    """
    found = list(scans)
    for scope in scopes:
        if len(scope.items) != 1:
            continue
        (item,) = scope.items
        if item.scan is None or not item.plain:
            continue
        scan = found[item.scan]
        if scan.metadata_table or scan.changes:
            continue
        counts: tuple[Counted | None, ...] = ()
        wanted = _top(scope, scan.schema)
        if not wanted:
            wanted, counts = _aggregates(scope, scan.schema)
        whole = scope.select is tree and len(scans) == 1
        if (not wanted and not counts) or (counts and not whole):
            continue
        where, left_out = scope.select.args.get("where"), ALWAYS_FALSE
        if where is not None:
            resolve = resolver(scope, item, scan.schema)
            condition = wheres.get(id(scope.select)) or expression_of(where.this)
            known = spark is None or spark.reason(condition, resolve) is None
            left_out = complement(condition, resolve, query) if known else ALWAYS_TRUE
        found[item.scan] = replace(scan, extremes=wanted, counts=counts, left_out=left_out)
    return tuple(found)


def _top(scope: SelectScope, schema: Schema) -> tuple[Extreme, ...]:
    select = scope.select
    order, count = select.args.get("order"), rows_wanted(select)
    if order is None or count is None or not has_only(select, _TOP_PARTS):
        return ()
    if not all(map(is_row_by_row, select.expressions)) or not 0 < count <= _MOST_ROWS:
        return ()
    first = order.expressions[0]
    if not isinstance(first, exp.Ordered) or first.args.get("nulls_first"):
        return ()
    if first.args.get("with_fill") is not None:
        return ()
    field_id = _column(first.this, scope, schema)
    if field_id is None:
        return ()
    text = f"{short_sql(first)} LIMIT {count}"
    return (Extreme(field_id, bool(first.args.get("desc")), count, text),)


def _aggregates(
    scope: SelectScope, schema: Schema
) -> tuple[tuple[Extreme, ...], tuple[Counted | None, ...]]:
    """The extremes, and the counted column of each output; no counts if all are extremes."""
    select = scope.select
    if not has_only(select, _AGGREGATE_PARTS):
        return (), ()
    extremes: list[Extreme] = []
    counts: list[Counted | None] = []
    for node in select.expressions:
        call = node.this if isinstance(node, exp.Alias) else node
        if isinstance(call, exp.Count):
            counted = _counted(call, scope, schema)
            if counted is None:
                return (), ()
            counts.append(counted)
            continue
        if not is_plain_call(call, exp.Max, exp.Min):
            return (), ()
        field_id = _column(call.this, scope, schema)
        if field_id is None:
            return (), ()
        extremes.append(Extreme(field_id, isinstance(call, exp.Max), 1, short_sql(call)))
        counts.append(None)
    return tuple(extremes), tuple(counts) if any(counts) else ()


def _counted(call: exp.Count, scope: SelectScope, schema: Schema) -> Counted | None:
    """The counted column of ``count(*)``, ``count(1)`` or ``count(column)``, else None."""
    if not is_plain_call(call, exp.Count):
        return None
    match call.this:
        case None | exp.Literal(is_string=False):
            return Counted()
        case exp.Star() as star if not any(star.args.values()):
            return Counted()
        case _:
            column = _plain_column(call.this, scope, schema)
            is_value = column is not None and isinstance(column.type, PrimitiveType)
            return Counted(column.field_id) if column is not None and is_value else None


def _column(node: exp.Expr, scope: SelectScope, schema: Schema) -> int | None:
    """The top-level column of an expression, if bounds can locate its extremes."""
    column = _plain_column(node, scope, schema)
    return None if column is None or not is_ordered(column.type) else column.field_id


def _plain_column(node: exp.Expr, scope: SelectScope, schema: Schema) -> NestedField | None:
    """The top-level column that an expression reads, None for other expressions."""
    meant = top_level(node, scope)
    if meant is None or (meant[1].lower() in scope.aliases and not node.args.get("table")):
        return None  # ORDER BY prefers an alias with this name
    return find_column(schema, node.name, node)
