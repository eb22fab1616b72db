"""Push the conditions and the limit of a query tree down into its scans.

A scan gets the predicate implied by the conditions around it, where skipping rows that fail it
cannot change the answer: every WHERE, the ON of joins on the side that an outer join does not
preserve, and WHEREs around derived tables and CTEs that are plain SELECTs.
The tree keeps all its conditions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Final

from msgspec import Struct, field
from msgspec.structs import replace
from sqlglot import exp

from icesql.frozen import Frozen
from icesql.iceberg.expressions.predicate import ALWAYS_TRUE, Predicate
from icesql.query.bound import PushedConjunct
from icesql.query.names import FromItem, SelectScope, meaning_of, resolver
from icesql.query.pushdown.computed.expression import (
    MOST_NODES,
    Expression,
    call,
    conjunction,
    expression_of,
    replaced,
    string,
)
from icesql.query.pushdown.select_forms import (
    SELECT_PARTS,
    OuterJoins,
    has_only,
    is_row_by_row,
    lists_values,
    on_keys,
    rows_wanted,
    select_keys,
    with_aliases,
    with_values_only,
)

if TYPE_CHECKING:
    from icesql.context import QueryContext
    from icesql.query.spark_text import SparkConditions
    from icesql.scan.plan import TableScan
    from icesql.scan.pruning.file_conditions import FileCondition


# ------------------------------------------------------------------ short texts
# They are for EXPLAIN and messages; long conditions show their first parts.


_MOST_NODES: Final = 1_000
_MOST_PARTS: Final = 5


def short_sql(node: exp.Expr) -> str:
    """The SQL of ``node`` in DuckDB's dialect, shortened if it is long."""
    try:
        if _is_small(node):
            return node.sql(dialect="duckdb")
        if isinstance(node, exp.And | exp.Or):
            parts = list(node.flatten(unnest=False))
            word = " AND " if isinstance(node, exp.And) else " OR "
            first = word.join(_part(each) for each in parts[:_MOST_PARTS])
            return f"{first}{word}… and {len(parts) - _MOST_PARTS:,} more"
    except RecursionError:
        pass
    return _part(node)


def _part(node: exp.Expr) -> str:
    kind = type(node).__name__.upper()
    return node.sql(dialect="duckdb") if _is_small(node) else f"a long {kind}"


def _is_small(node: exp.Expr) -> bool:
    return next(islice(node.walk(), _MOST_NODES, None), None) is None


# ------------------------------------------------------------------ conditions


# Clauses of a SELECT through which conditions may be pushed: none depends on the number of rows.
_PLAIN_PARTS: Final = SELECT_PARTS | {
    "where", "joins", "order", "group", "having", "distinct", "with_"
}  # fmt: skip
_LIMIT_PARTS: Final = SELECT_PARTS | {"limit", "offset"}
DECIDED: Final = "compared with the values and bounds of each file"
# The number of conditions that EXPLAIN lists.
_MOST_SHOWN: Final = 200
# The output names of a SELECT and their expressions, None if an expression is not certain.
SelectList = list[tuple[str, "exp.Expr | None"]]
_UNION_PARTS: Final = frozenset({"this", "expression", "distinct", "with_"})


class Condition(Frozen):
    """A condition over columns of the tree, with its text ``sql`` for users."""

    expression: Expression
    columns: tuple[exp.Column, ...]
    sql: str

    def over(self, inner: Mapping[int, Expression], note: str = "") -> Condition:
        """The condition with columns, given by identity, replaced by other expressions."""

        def change(each: Expression) -> Expression | None:
            return inner.get(id(each.value))

        made = replaced(self.expression, change, ("input",))
        columns = tuple(each.value for each in made.inputs)
        return Condition(made, columns, f"{self.sql}{note}" if self.sql else "")


def push_down(
    tree: exp.Expr,
    scopes: Sequence[SelectScope],
    scans: tuple[TableScan, ...],
    query: QueryContext,
    *,
    spark: SparkConditions | None = None,
    for_explain: bool = True,
) -> tuple[tuple[TableScan, ...], tuple[PushedConjunct, ...]]:
    """The scans with row filters and limits, and the outcome of each condition.

    ``spark`` selects the conditions of a text that Spark itself runs. ``for_explain`` also writes
    the texts of the conditions for EXPLAIN, which takes time.
    ``scopes`` are the SELECTs of ``tree``, inner ones first. The tree is not changed.
    """
    if not query.settings.prune:
        return scans, ()
    scope_of = {id(scope.select): scope for scope in scopes}
    pusher = _Pusher(scans, query, scope_of, spark, for_explain)
    pusher.uses = Counter(id(item.query) for scope in scopes for item in scope.items if item.query)
    for scope in reversed(scopes):
        pusher.push(scope)
    limits = _limit(tree, scopes)
    filtered = []
    for index, scan in enumerate(scans):
        row_filter = ALWAYS_TRUE
        if parts := pusher.filters.get(index):
            from icesql.query.pushdown.comparison import all_of

            row_filter = all_of(parts)
        file_condition = tuple(pusher.conditions.get(index, ()))
        limit = limits.get(index)
        filtered.append(
            replace(scan, row_filter=row_filter, limit=limit, file_conditions=file_condition)
        )
    kept = tuple(filtered)
    if any(wants_extremes(scope.select) for scope in scopes):
        from icesql.query.pushdown.extremes import with_extremes

        kept = with_extremes(tree, scopes, kept, query, pusher.wheres, spark=spark)
    if spark is None and query.settings.engine == "local" and lists_values(tree):
        kept = with_values_only(scopes, kept)
    return kept, tuple(pusher.pushed)


def wants_extremes(tree: exp.Expr) -> bool:
    """Whether it may need extremes or counts: an ORDER BY with a LIMIT, min, max and count."""
    if not isinstance(tree, exp.Select):
        return False
    if tree.args.get("order") is not None:
        return tree.args.get("limit") is not None
    outputs = [each.unalias() for each in tree.expressions]
    return all(isinstance(each, exp.Max | exp.Min | exp.Count) for each in outputs)


class _Pusher(Struct):
    scans: Sequence[TableScan]
    query: QueryContext
    scope_of: dict[int, SelectScope]
    spark: SparkConditions | None
    for_explain: bool
    uses: Counter[int] = field(default_factory=Counter)
    filters: dict[int, list[Predicate]] = field(default_factory=dict)
    conditions: dict[int, list[FileCondition]] = field(default_factory=dict)
    pushed: list[PushedConjunct] = field(default_factory=list)
    # By SELECT, then by its query and the FROM item that uses it: the conditions on that item.
    inherited: dict[int, dict[tuple[int, int], list[Condition]]] = field(default_factory=dict)
    # By SELECT: the condition of its WHERE.
    wheres: dict[int, Expression] = field(default_factory=dict)

    def push(self, scope: SelectScope) -> None:
        """Push every condition of one SELECT; those of enclosing SELECTs were pushed before."""
        outer = OuterJoins(scope)
        if outer.opaque:
            return
        own = [self._condition(each) for each in conjuncts(scope.select.args.get("where"))]
        if own:
            parts = [each.expression for each in own]
            self.wheres[id(scope.select)] = conjunction("and", parts)
        for condition in (*own, *self._of_uses(scope.select)):
            self._use(with_aliases(condition, scope), scope, outer.seen_by_where())
        for conjunct in conjuncts(scope.select.args.get("having")):
            plain = with_aliases(self._condition(conjunct), scope)
            if on_keys(plain, conjunct, scope.select):
                self._use(plain, scope, outer.seen_by_where())
        for join in scope.joins:
            for conjunct in conjuncts(join.args.get("on")):
                self._use(self._condition(conjunct), scope, outer.seen_by_on(join))
        if own and len(scope.items) > 1 and self.spark is None:
            self._push_implied(own, scope, outer)

    def _condition(self, node: exp.Expr) -> Condition:
        sql = short_sql(node) if self.for_explain else ""
        return Condition(expression_of(node), tuple(node.find_all(exp.Column)), sql)

    def _push_implied(
        self, own: Sequence[Condition], scope: SelectScope, outer: OuterJoins
    ) -> None:
        """Push conditions implied by the WHERE and equal columns."""
        from icesql.query.pushdown.transitive import equalities, implied

        found = list(equalities(own, None, scope, self.scans))
        for join in scope.joins:
            if join.method != "ASOF":
                parts = [self._condition(each) for each in conjuncts(join.args.get("on"))]
                found += equalities(parts, join, scope, self.scans)
        seen = [item for item, _ in outer.seen_by_where()]
        for condition, item, of_join in implied(own, found, scope):
            if outer.is_usable(item) and (of_join is not None or item in seen):
                # Equal columns are not NULL, so whether a condition holds for NULL does not matter.
                self._use(condition, scope, [(item, True)], for_explain=False)

    def _of_uses(self, select: exp.Expr) -> list[Condition]:
        """Conditions on the rows of a SELECT that are used, combined by OR for several uses."""
        used = self.inherited.get(id(select))
        if not used:
            return []
        (query, *_), *_ = used
        if len(used) != self.uses[query]:
            return []
        each, *others = used.values()
        if not others:
            return each
        parts = [part for parts in used.values() for part in parts]
        either = [conjunction("and", [part.expression for part in p]) for p in used.values()]
        columns = tuple(column for part in parts for column in part.columns)
        sql = " OR ".join(" AND ".join(part.sql for part in p) for p in used.values())
        return [Condition(conjunction("or", either), columns, sql if self.for_explain else "")]

    def _use(
        self,
        condition: Condition,
        scope: SelectScope,
        targets: Sequence[tuple[FromItem, bool]],
        *,
        for_explain: bool = True,
    ) -> None:
        """Push one condition into each target; the flag is True if an outer join may make it NULL.

        ``for_explain``: EXPLAIN lists the condition even if nothing was pushed.
        """
        from icesql.iceberg.expressions.predicate import evaluate
        from icesql.query.pushdown.predicate import implied_by

        reasons: list[str] = []
        concerned: list[int] = []
        found = False
        for item, nullable in targets:
            if not _mentions(condition, scope, item):
                continue
            if item.scan is None:
                if not nullable and item.query is not None:
                    found = self._through(condition, scope, item) or found
                continue
            concerned.append(item.scan)
            resolve = resolver(scope, item, self.scans[item.scan].schema)
            other = None if self.spark is None else self.spark.reason(condition.expression, resolve)
            if other is not None:
                reasons.append(other)
                continue
            implied = implied_by(
                condition.expression,
                resolve,
                self.query,
                condition.sql,
                asks=self.spark is None,
            )
            predicate, file_condition = implied.predicate, implied.condition
            reasons += implied.reasons
            if nullable and evaluate(predicate, lambda _: None):
                if predicate is not ALWAYS_TRUE:
                    reasons.append("it may hold for the NULL rows of an outer join")
                continue
            if file_condition is not None and not nullable:
                self.conditions.setdefault(item.scan, []).append(file_condition)
                found = True
            if predicate is not ALWAYS_TRUE:
                self.filters.setdefault(item.scan, []).append(predicate)
                found = True
            elif file_condition is None or nullable:
                continue
            if len(self.pushed) < _MOST_SHOWN:
                is_pushed = predicate is not ALWAYS_TRUE
                note = "; ".join(implied.reasons) if is_pushed else DECIDED
                shown = predicate if is_pushed else None
                self.pushed.append(PushedConjunct(item.scan, condition.sql, shown, note))
        if len(self.pushed) >= _MOST_SHOWN or not for_explain:
            return
        if not found and (reasons or condition.columns):
            scan = concerned[0] if len(concerned) == 1 else None
            why = "; ".join(dict.fromkeys(reasons)) or "it does not belong to one scan alone"
            self.pushed.append(PushedConjunct(scan, condition.sql, None, why))

    # -------------------------------------------------------------- derived tables

    def _through(self, condition: Condition, scope: SelectScope, item: FromItem) -> bool:
        """Pass a condition on a derived table to the SELECTs of its query."""
        query = item.query
        assert query is not None
        if _is_recursive(query):
            return False
        branches = list(_branches(query))
        lists = [found for each in branches if (found := self._select_list(each)) is not None]
        if len(lists) < len(branches) or len(set(map(len, lists))) > 1:
            return False
        names = [name.lower() for name, _ in lists[0]]
        handed = [self._substitute(condition, scope, item, names, each) for each in lists]
        inside = [each for each in handed if each is not None]
        if len(inside) < len(handed):
            return False
        if len(branches) > 1 and not self._types_agree(condition, names, branches, lists):
            return False
        for branch, inner in zip(branches, inside, strict=True):
            used = self.inherited.setdefault(id(branch), {})
            used.setdefault((id(query), id(item)), []).append(inner)
        return True

    def _select_list(self, branch: exp.Expr) -> SelectList | None:
        """Output names and expressions of a SELECT through which conditions may pass, else None."""
        scope = self.scope_of.get(id(branch))
        if scope is None or not has_only(scope.select, _PLAIN_PARTS):
            return None
        keys = select_keys(scope.select)
        if keys is None:
            return None
        found: list[tuple[str, exp.Expr | None]] = []
        for node in scope.select.expressions:
            match node:
                case exp.Star() if not any(node.args.values()) and keys.group is None:
                    if any(join.args.get("using") or join.method for join in scope.joins):
                        return None
                    for item in scope.items:
                        if item.scan is None or not item.name or item.is_filter_only:
                            return None
                        found += [
                            (column.name, named if keys.passes(named) else None)
                            for column in self.scans[item.scan].schema.fields
                            for named in (exp.column(column.name, table=item.name, quoted=True),)
                        ]
                case exp.Alias() | exp.Column() if not isinstance(node.this, exp.Star):
                    inner = node.unalias()
                    found.append((node.alias_or_name, inner if keys.passes(inner) else None))
                case _:
                    return None
        return found

    def _substitute(
        self,
        condition: Condition,
        scope: SelectScope,
        item: FromItem,
        names: Sequence[str],
        select_list: SelectList,
    ) -> Condition | None:
        """The condition over the columns inside, None if it has other columns."""
        inside: dict[int, Expression] = {}
        for column in condition.columns:
            meaning = meaning_of(column, scope)
            if meaning.items != (item,) or not meaning.certain:
                return None
            name = meaning.path[0].lower()
            if names.count(name) != 1:
                return None
            node = select_list[names.index(name)][1]
            if node is None:
                return None
            made = expression_of(node)
            for child in meaning.path[1:]:
                made = call("array_extract", made, string(child))
            inside[id(column)] = made
        found = condition.over(inside)
        return found if sum(1 for _ in found.expression.walk()) <= MOST_NODES else None

    def _types_agree(
        self,
        condition: Condition,
        names: Sequence[str],
        branches: Sequence[exp.Expr],
        lists: Sequence[SelectList],
    ) -> bool:
        """Whether the columns are bare columns of one type in all branches of a UNION.

        Otherwise the union converts them, and the condition need not hold inside.
        """
        used = {column.parts[-1].name.lower() for column in condition.columns}
        if not used <= {*names}:
            return False
        for name in used:
            types = set()
            for branch, select_list in zip(branches, lists, strict=True):
                node = select_list[names.index(name)][1]
                if not isinstance(node, exp.Column):
                    return False
                scope = self.scope_of[id(branch)]
                meaning = meaning_of(node, scope)
                if len(meaning.items) != 1 or meaning.items[0].scan is None:
                    return False
                schema = self.scans[meaning.items[0].scan].schema
                column = resolver(scope, meaning.items[0], schema)(node)
                types.add(None if column is None else column.type)
            if len(types) != 1 or None in types:
                return False
        return True


# ------------------------------------------------------------------ pieces


def _mentions(condition: Condition, scope: SelectScope, item: FromItem) -> bool:
    items = [meaning_of(column, scope).items for column in condition.columns]
    return not items or any(item in each for each in items)


def conjuncts(node: exp.Expr | None) -> Iterator[exp.Expr]:
    """The parts of an AND, each of which is implied by the whole; none without a clause."""
    match node:
        case None:
            return
        case exp.Where() | exp.Having() | exp.Paren():
            yield from conjuncts(node.this)
        case exp.And():
            for part in node.flatten():
                yield from conjuncts(part)
        case _:
            yield node


def _branches(query: exp.Expr) -> Iterator[exp.Expr]:
    """The SELECTs of a UNION, the SELECT itself, or another query as it is."""
    match query:
        case exp.Select():
            yield query
        case exp.Union() if has_only(query, _UNION_PARTS):
            # The left operands of a UNION are nested as deeply as it has branches.
            rights = [query.expression]
            left = query.this
            while isinstance(left, exp.Union) and has_only(left, _UNION_PARTS):
                rights.append(left.expression)
                left = left.this
            for each in (left, *reversed(rights)):
                yield from _branches(each)
        case exp.Subquery() if has_only(query, frozenset({"this"})):
            yield from _branches(query.this)
        case _:
            yield query  # not a SELECT: it has no select list, so no condition passes


def _is_recursive(query: exp.Expr) -> bool:
    cte = query.parent
    return isinstance(cte, exp.CTE) and bool(cte.parent and cte.parent.args.get("recursive"))


# ------------------------------------------------------------------ LIMIT


def _limit(tree: exp.Expr, scopes: Sequence[SelectScope]) -> dict[int, int]:
    """Scan index → number of rows needed, only for SELECT columns FROM table LIMIT n."""
    scope = next((scope for scope in scopes if scope.select is tree), None)
    if scope is None or len(scope.items) != 1 or not has_only(scope.select, _LIMIT_PARTS):
        return {}
    item = scope.items[0]
    if item.scan is None or not item.plain:
        return {}
    rows = rows_wanted(scope.select)
    if rows is None or not all(map(is_row_by_row, scope.select.expressions)):
        return {}
    return {item.scan: rows}
