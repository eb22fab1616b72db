"""Forms of SELECT that let conditions pass, or need only some of the rows.

A condition on an output with one value in each group of rows processed together may be evaluated
before rows are grouped, numbered by a window or made distinct: it excludes whole groups and
partitions.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from itertools import takewhile
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace
from sqlglot import exp

from icesql.frozen import Frozen
from icesql.query.names import FromItem, SelectScope, meaning_of
from icesql.query.pushdown.computed.expression import expression_of
from icesql.scan.plan import TableScan

if TYPE_CHECKING:
    from icesql.query.pushdown.computed.expression import Expression
    from icesql.query.pushdown.push_down import Condition


# Expressions of a select list that return several rows or columns.
_MAKES_ROWS = (exp.UDTF, exp.Columns, exp.Query, exp.Explode, exp.Posexplode, exp.Inline)


class SelectKeys(Frozen):
    """The keys of one SELECT; ``group`` is None without grouping."""

    group: tuple[exp.Expr, ...] | None
    windows: tuple[tuple[exp.Expr, ...], ...]

    def passes(self, output: exp.Expr) -> bool:
        """Whether a condition on an output, without its alias, is the same for each whole group."""
        if self.group is not None and output not in self.group:
            return False
        return all(output in each for each in self.windows)


def select_keys(select: exp.Select) -> SelectKeys | None:
    """The keys of a SELECT, None if no condition may pass through it."""
    distinct = select.args.get("distinct")
    if distinct is not None and distinct.args.get("on") is not None:
        return None
    group = _group_keys(select)
    groups = any(select.args.get(each) is not None for each in ("group", "having"))
    if group is None and groups:
        return None
    windows: list[tuple[exp.Expr, ...]] = []
    for node in select.expressions:
        inner = node.unalias()
        if isinstance(inner, exp.Window):
            if inner.args.get("alias") is not None:
                return None
            if inner.find(*_MAKES_ROWS) is not None:
                return None
            windows.append(tuple(inner.args.get("partition_by") or ()))
            continue
        spans = () if group is not None else (exp.AggFunc, exp.Anonymous)
        if inner.find(exp.Window, *_MAKES_ROWS, *spans) is not None:
            return None
    return SelectKeys(group, tuple(windows))


def _group_keys(select: exp.Select) -> tuple[exp.Expr, ...] | None:
    """The expressions of GROUP BY, None for grouping sets and ambiguous keys."""
    group = select.args.get("group")
    if group is None or any(value for name, value in group.args.items() if name != "expressions"):
        return None
    aliases = {
        each.alias.lower(): each.this for each in select.expressions if isinstance(each, exp.Alias)
    }
    found: list[exp.Expr] = []
    for key in group.expressions:
        if isinstance(key, exp.Literal) and not key.is_string and key.name.isdigit():
            place = int(key.name) - 1
            if not 0 <= place < len(select.expressions):
                return None
            found.append(select.expressions[place].unalias())
        elif isinstance(key, exp.Column):
            named = aliases.get(key.name.lower())
            if named is not None and named != key:
                return None  # an alias or a column with its name
            found.append(key)
        elif isinstance(key, exp.Literal | exp.Tuple | exp.Rollup | exp.Cube | exp.GroupingSets):
            return None
        else:
            found.append(key)
    return tuple(found)


def on_keys(condition: Condition, written: exp.Expr, select: exp.Select) -> bool:
    """Whether a condition of HAVING uses only columns that are grouping keys.

    ``written`` is the condition before its aliases were replaced.
    """
    keys = _group_keys(select)
    renamed = {
        each.alias.lower()
        for each in select.expressions
        if isinstance(each, exp.Alias) and each.this.name.lower() != each.alias.lower()
    }
    if any(each.name.lower() in renamed for each in condition.columns):
        return False  # a column or an alias of the select list
    if keys is None or written.find(exp.AggFunc, exp.Window, exp.Query, exp.Anonymous):
        return False
    return bool(condition.columns) and all(each in keys for each in condition.columns)


def with_aliases(condition: Condition, scope: SelectScope) -> Condition:
    """A condition with its aliases replaced by their expressions in the select list.

    A column takes precedence over an alias with its name.
    """
    named = [each for each in scope.select.expressions if isinstance(each, exp.Alias)]
    names = [each.alias.lower() for each in named]
    inside: dict[int, Expression] = {}
    for column in condition.columns if names else ():
        name = column.name.lower()
        if len(column.parts) != 1 or names.count(name) != 1:
            continue
        meaning = meaning_of(column, scope)
        if meaning.items or not meaning.certain:
            continue
        inner = named[names.index(name)].this
        if inner.find(exp.AggFunc, exp.Window, exp.Anonymous, *_MAKES_ROWS) is not None:
            return condition
        inside[id(column)] = expression_of(inner)
    return condition.over(inside) if inside else condition


# The items of a SELECT that a condition may filter, given the joins between them.

_JOIN_KINDS: Final = ("", "INNER", "CROSS", "OUTER", "SEMI", "ANTI")


class OuterJoins:
    """The joins of one SELECT. ``opaque``: no rows may be filtered before them."""

    def __init__(self, scope: SelectScope) -> None:
        self._items, self._joins = scope.items, scope.joins
        self.opaque = any(join.kind not in _JOIN_KINDS for join in self._joins) or bool(
            scope.select.args.get("sample")
        )

    def _nullable_before(self, end: exp.Join | None) -> set[int]:
        """Items that the joins before ``end``, or all joins, may fill with NULL."""
        nullable: set[int] = set()
        for join in takewhile(lambda each: each is not end, self._joins):
            if join.kind in ("SEMI", "ANTI"):
                continue
            right = {id(item) for item in self._items if item.join is join}
            if join.side in ("LEFT", "FULL"):
                nullable |= right
            if join.side in ("RIGHT", "FULL"):
                nullable |= {id(item) for item in self._left_of(join)}
        return nullable

    def _left_of(self, join: exp.Join) -> list[FromItem]:
        return list(takewhile(lambda item: item.join is not join, self._items))

    def is_usable(self, item: FromItem) -> bool:
        """Whether conditions may exclude rows of an item at all."""
        # The nearest row on the right side of an ASOF join depends on all of its rows.
        nearest = item.join is not None and item.join.method == "ASOF"
        return item.plain and not nearest

    def seen_by_where(self) -> list[tuple[FromItem, bool]]:
        """Items that WHERE may filter, each with True if it may be all NULL there."""
        return self._seen(self._items, None)

    def seen_by_on(self, join: exp.Join) -> list[tuple[FromItem, bool]]:
        """Items that the ON of ``join`` may filter, each with True if it may be all NULL there."""
        if join.method == "ASOF" or join.side == "FULL":
            return []
        right = [item for item in self._items if item.join is join]
        left = self._left_of(join)
        if join.kind == "ANTI" or (join.kind != "SEMI" and join.side == "LEFT"):
            left = []
        elif join.kind != "SEMI" and join.side == "RIGHT":
            right = []
        return self._seen([*left, *right], join)

    def _seen(
        self, items: Sequence[FromItem], join: exp.Join | None
    ) -> list[tuple[FromItem, bool]]:
        nullable = self._nullable_before(join)
        return [
            (item, id(item) in nullable)
            for item in items
            if self.is_usable(item) and not (item.is_filter_only and item.join is not join)
        ]


# SELECTs that process each row separately.

COMPARED: Final = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE)
# Nodes whose value depends on one row.
OF_ONE_ROW: Final = (
    exp.Column, exp.Identifier, exp.Alias, exp.Literal, exp.Boolean, exp.Null, exp.Paren, exp.Cast,
    exp.DataType, exp.DataTypeParam,
)  # fmt: skip
# A select list of these nodes returns one row for each input row.
_ROW_BY_ROW: Final = (*OF_ONE_ROW, exp.Star, exp.Dot, exp.Neg, exp.Add, exp.Sub, exp.Mul)
# The clauses of every SELECT through which conditions and limits pass.
SELECT_PARTS: Final = frozenset({"kind", "hint", "expressions", "operation_modifiers", "from_"})
# Clauses of a query that EXISTS may contain: only whether there is a row matters.
EXISTS_PARTS: Final = SELECT_PARTS | {"where", "joins", "distinct"}


def has_only(node: exp.Expr, parts: Container[str]) -> bool:
    """Whether a SELECT or set operation has only these clauses, by their names in the tree."""
    return all(name in parts or not value for name, value in node.args.items())


def is_row_by_row(node: exp.Expr) -> bool:
    """Whether an expression returns one value for each row and drops none."""
    return all(isinstance(each, _ROW_BY_ROW) for each in node.walk())


def rows_wanted(select: exp.Select) -> int | None:
    """LIMIT and OFFSET together; None without LIMIT and for other forms of either."""
    limit, offset = _whole_number(select.args.get("limit")), select.args.get("offset")
    skipped = 0 if offset is None else _whole_number(offset)
    return None if limit is None or skipped is None else limit + skipped


def _whole_number(node: exp.Expr | None) -> int | None:
    """The number in ``LIMIT n`` or ``OFFSET n``; None without a clause and for other forms."""
    if not isinstance(node, exp.Limit | exp.Offset):
        return None
    if any(value for name, value in node.args.items() if name != "expression"):
        return None
    number = node.expression
    if not isinstance(number, exp.Literal) or number.is_string or not number.name.isdigit():
        return None
    return int(number.name)


# ------------------------------------------------------------------ plain calls of aggregates
# sqlglot has one class for ``max(x)`` and ``max(x, n)``, and wraps the argument for other parts of
# a call (DISTINCT, ORDER BY, HAVING MAX). The class alone does not determine the meaning of a call.


# Nodes around an argument that change which rows count, or how often.
_AROUND: Final = (exp.Distinct, exp.Order, exp.HavingMax, exp.Limit, exp.IgnoreNulls)


def is_plain_call(node: exp.Expr, *kinds: type[exp.Expr]) -> bool:
    """Whether ``node`` calls one of ``kinds`` with one argument and nothing else.

    Also for ``count(*)`` and ``count()``. FILTER and OVER are nodes around the call; callers check
    for them.
    """
    if type(node) not in kinds or isinstance(node.args.get("this"), _AROUND):
        return False
    # ``big_int`` is set by the parser, not an argument.
    return all(name in ("this", "big_int") or not value for name, value in node.args.items())


# ------------------------------------------------------------------ distinct values
# ``SELECT DISTINCT region``, ``count(DISTINCT day)``, ``GROUP BY region`` with min and max: one of
# several equal rows is enough. For ``GROUP BY region`` with count(*) one of them and their number
# are enough.


_PARTS: Final = SELECT_PARTS | {"where", "group", "order", "limit", "offset", "distinct"}
_GROUPED: Final = _PARTS | {"having", "qualify", "windows"}
_CONDITION: Final = (
    *OF_ONE_ROW, *COMPARED, exp.Where, exp.And, exp.Or, exp.Not, exp.Is, exp.In, exp.Between,
    exp.Like, exp.Neg,
)  # fmt: skip


def lists_values(tree: exp.Expr) -> bool:
    """Whether the query may be one of these."""
    if not isinstance(tree, exp.Select):
        return False
    if tree.args.get("distinct") is not None or tree.args.get("group") is not None:
        return True
    return any(_is_distinct_count(each.unalias()) for each in tree.expressions)


def with_values_only(
    scopes: Sequence[SelectScope], scans: tuple[TableScan, ...]
) -> tuple[TableScan, ...]:
    """The scan, marked if the query needs only distinct values of its columns, or their counts."""
    if len(scopes) != 1 or len(scans) != 1 or len(scopes[0].items) != 1:
        return scans
    (scope,), (scan,) = scopes, scans
    (item,) = scope.items
    if item.scan != 0 or not item.plain or scan.metadata_table or scan.changes or scan.rows:
        return scans
    if _is_plain(scope.select):
        return (replace(scan, values_only=True),)
    # For any other GROUP BY, equal rows may still be read as one row and their number.
    groups = scope.select.args.get("group") is not None and has_only(scope.select, _GROUPED)
    return (replace(scan, rows_alike=True),) if groups else scans


def _is_plain(select: exp.Select) -> bool:
    group, distinct = select.args.get("group"), select.args.get("distinct")
    if not has_only(select, _PARTS) or (distinct is not None and any(distinct.args.values())):
        return False
    outputs = [each.unalias() for each in select.expressions]
    plain = [each for each in outputs if not _is_distinct_count(each)]
    if not all(_is_of_values(node) for each in plain for node in each.walk()):
        return False
    if not distinct and not group and any(each.find(exp.Min, exp.Max) is None for each in plain):
        return False
    where = select.args.get("where")
    order = select.args.get("order")
    ordered = [each.this for each in order.expressions] if order is not None else []
    bare = (*ordered, *(_keys(group) if group is not None else ()))
    return all(isinstance(each, exp.Column | exp.Literal) for each in bare) and (
        where is None or all(isinstance(node, _CONDITION) for node in where.walk())
    )


def _keys(group: exp.Expr) -> Sequence[exp.Expr]:
    """The keys of a plain GROUP BY; one star for any other GROUP BY."""
    if any(value for name, value in group.args.items() if name != "expressions"):
        return [exp.Star()]
    return list(group.expressions)


def _is_of_values(node: exp.Expr) -> bool:
    # A second equal row does not change these two aggregates.
    return isinstance(node, OF_ONE_ROW) or is_plain_call(node, exp.Max, exp.Min)


def _is_distinct_count(node: exp.Expr) -> bool:
    if not isinstance(node, exp.Count) or node.expressions:
        return False
    inner = node.this
    return (
        isinstance(inner, exp.Distinct)
        and inner.args.get("on") is None
        and len(inner.expressions) == 1
        and isinstance(inner.expressions[0], exp.Column)
    )
