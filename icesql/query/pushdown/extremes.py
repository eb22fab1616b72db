"""Which extreme values a query asks for: ``ORDER BY c LIMIT n``, ``max(c)``, ``min(c)`` alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from msgspec.structs import replace
from sqlglot import exp

from icesql.iceberg.expressions.predicate import And, Leaf, Operation, Or, Predicate
from icesql.iceberg.schema import Schema
from icesql.query.bound import PushedConjunct
from icesql.query.names import SelectScope, find_column, meaning_of
from icesql.query.pushdown.same import is_same
from icesql.query.short_sql import short_sql
from icesql.scan.pruning.extremes import Extreme, is_ordered
from icesql.scan.table_scan import TableScan

_TOP_PARTS: Final = frozenset(
    {
        "kind", "hint", "expressions", "operation_modifiers", "from_", "where", "order", "limit",
        "offset",
    }
)  # fmt: skip
_AGGREGATE_PARTS: Final = _TOP_PARTS - {"order", "limit", "offset"}
_COMPARISONS: Final = (
    Operation.EQ, Operation.NOT_EQ, Operation.LT, Operation.LT_EQ, Operation.GT, Operation.GT_EQ,
)  # fmt: skip
# More rows than this are no extreme: bounds would rarely decide.
_MOST_ROWS: Final = 1_000_000


def with_extremes(
    tree: exp.Expr,
    scopes: Sequence[SelectScope],
    scans: tuple[TableScan, ...],
    pushed: Sequence[PushedConjunct],
    row_count: Callable[[exp.Expr | None], int | None],
    row_by_row: Callable[[exp.Expr], bool],
    *,
    marked: bool,
) -> tuple[TableScan, ...]:
    """The scans, where the tree is one SELECT over one of them with what it wants of it.

    ``row_count`` reads LIMIT and OFFSET; ``row_by_row`` says whether an expression gives one
    value for each row. ``marked``: only what ``mark_same`` was said of counts.
    """
    scope = next((scope for scope in scopes if scope.select is tree), None)
    if scope is None or len(scans) != 1 or len(scope.items) != 1:
        return scans
    item = scope.items[0]
    if item.scan != 0 or not item.plain or scans[0].metadata_table or scans[0].changes:
        return scans
    if marked and not _is_all_same(scope.select):
        return scans
    schema = scans[0].schema
    wanted = _top(scope, schema, row_count, row_by_row) or _aggregates(scope, schema)
    if not wanted:
        return scans
    where = scope.select.args.get("where")
    exact = where is None or _is_exact(where.this, pushed)
    return (replace(scans[0], extremes=wanted, is_filter_exact=exact),)


def _is_exact(condition: exp.Expr, pushed: Sequence[PushedConjunct]) -> bool:
    """Whether all that a condition says was pushed: each of its comparisons with a constant.

    Others may be pushed as something weaker: ``s LIKE '%b'``, and texts that are hard to read as
    dates, say that a value is not NULL.
    """
    said: Counter[str] = Counter()
    stack = [condition]
    while stack:
        node = stack.pop()
        match node:
            case exp.And() | exp.Or() | exp.Paren():
                stack += [each for each in node.args.values() if isinstance(each, exp.Expression)]
            case exp.EQ() | exp.NEQ() | exp.LT() | exp.LTE() | exp.GT() | exp.GTE():
                if sorted(map(_kind, (node.this, node.expression))) != ["column", "constant"]:
                    return False
                said["comparison"] += 1
            case exp.Between():
                parts = [_kind(node.args.get(name)) for name in ("this", "low", "high")]
                if parts != ["column", "constant", "constant"] or node.args.get("symmetric"):
                    return False
                said["comparison"] += 2
            case exp.Is(this=exp.Column(), expression=exp.Null()):
                said["IS NULL"] += 1
            case exp.Not(this=exp.Is(this=exp.Column(), expression=exp.Null())):
                said["IS NOT NULL"] += 1
            case _:
                return False
    kept: Counter[str] = Counter()
    for each in pushed:
        if each.predicate is None or each.note:
            return False
        kept.update(_leaves(each.predicate))
    return said == kept


def _leaves(predicate: Predicate) -> Iterator[str]:
    match predicate:
        case And(left, right) | Or(left, right):
            yield from _leaves(left)
            yield from _leaves(right)
        case Leaf(operation=Operation.IS_NULL):
            yield "IS NULL"
        case Leaf(operation=Operation.NOT_NULL):
            yield "IS NOT NULL"
        case Leaf(operation=operation) if operation in _COMPARISONS:
            yield "comparison"
        case _:
            yield "something else"


def _kind(node: exp.Expr | None) -> str:
    """What one side of a comparison is."""
    match node:
        case exp.Column():
            return "column"
        case exp.Literal() | exp.Neg(this=exp.Literal()):
            return "constant"
        case exp.Cast(this=exp.Literal()) if not isinstance(node, exp.TryCast):
            return "constant"
        case _:
            return "other"


def _is_all_same(select: exp.Select) -> bool:
    """Whether the engine's parser reads the same SELECT, its list, order and limit."""
    order = select.args.get("order")
    keys = order.expressions[:1] if order is not None else []
    clauses = [select.args.get("limit"), select.args.get("offset"), *select.expressions, *keys]
    return all(is_same(each) for each in (select, *clauses) if each is not None)


def _top(
    scope: SelectScope,
    schema: Schema,
    row_count: Callable[[exp.Expr | None], int | None],
    row_by_row: Callable[[exp.Expr], bool],
) -> tuple[Extreme, ...]:
    select = scope.select
    order, limit, offset = (select.args.get(part) for part in ("order", "limit", "offset"))
    if order is None or limit is None or not _has_only(select, _TOP_PARTS):
        return ()
    if not all(map(row_by_row, select.expressions)):
        return ()
    count, skipped = row_count(limit), 0 if offset is None else row_count(offset)
    if count is None or skipped is None or not 0 < count + skipped <= _MOST_ROWS:
        return ()
    first = order.expressions[0]
    if not isinstance(first, exp.Ordered) or first.args.get("nulls_first"):
        return ()
    if first.args.get("with_fill") is not None:
        return ()
    field_id = _column(first.this, scope, schema)
    if field_id is None:
        return ()
    text = f"{short_sql(first)} LIMIT {count + skipped}"
    return (Extreme(field_id, bool(first.args.get("desc")), count + skipped, text),)


def _aggregates(scope: SelectScope, schema: Schema) -> tuple[Extreme, ...]:
    select = scope.select
    if not _has_only(select, _AGGREGATE_PARTS):
        return ()
    found = []
    for node in select.expressions:
        call = node.this if isinstance(node, exp.Alias) else node
        if not isinstance(call, exp.Max | exp.Min) or call.expressions:
            return ()
        field_id = _column(call.this, scope, schema)
        if field_id is None:
            return ()
        found.append(Extreme(field_id, isinstance(call, exp.Max), 1, short_sql(call)))
    return tuple(found)


def _column(node: exp.Expr, scope: SelectScope, schema: Schema) -> int | None:
    """The top-level column that an expression is, if bounds can say where its extremes are."""
    if not isinstance(node, exp.Column):
        return None
    meaning = meaning_of(node, scope)
    if len(meaning.items) != 1 or len(meaning.path) != 1 or not meaning.certain:
        return None
    if meaning.path[0].lower() in scope.aliases and len(node.parts) == 1:
        return None  # ORDER BY prefers what the select list calls so
    column = find_column(schema, meaning.path[0], node)
    return None if column is None or not is_ordered(column.type) else column.field_id


def _has_only(select: exp.Select, parts: frozenset[str]) -> bool:
    return not any(value for name, value in select.args.items() if name not in parts)
