"""Find columns whose values have to be among those of a column of another scan.

``fact JOIN dim ON fact.k = dim.k``, ``k IN (SELECT k FROM dim …)``, ``k = (SELECT …)`` and
``EXISTS (SELECT 1 FROM dim WHERE dim.k = fact.k)``: the query excludes rows of ``fact`` whose key
is not in ``dim`` anyway. The key may also be ``CAST(fact.ts AS DATE)``. An edge is found only
if the scan may skip these rows without changing the answer: where push-down may filter the scan,
so never on the side that an outer join preserves, and never for NOT IN and anti joins.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from sqlglot import exp

from icesql.frozen import Frozen
from icesql.iceberg import types as t
from icesql.query.bound import KeyEdge
from icesql.query.names import FromItem, SelectScope, find_column, top_level
from icesql.query.pushdown.push_down import conjuncts, short_sql
from icesql.query.pushdown.select_forms import (
    EXISTS_PARTS,
    SELECT_PARTS,
    OuterJoins,
    has_only,
    is_plain_call,
)

if TYPE_CHECKING:
    from icesql.iceberg.types import NestedField
    from icesql.scan.plan import TableScan

_WHOLE: Final = (t.IntegerType, t.LongType)
_MOST_EDGES: Final = 200

Targets = Sequence[tuple[FromItem, bool]]


def key_edges(scopes: Sequence[SelectScope], scans: Sequence[TableScan]) -> tuple[KeyEdge, ...]:
    """The edges of a query; ``scopes`` as for ``push_down``."""
    finder = _Finder(scans, {id(scope.select): scope for scope in scopes})
    found: dict[KeyEdge, None] = {}
    for scope in scopes:
        for edge in finder.edges(scope):
            found.setdefault(edge)
            if len(found) == _MOST_EDGES:
                return tuple(found)
    return tuple(found)


class _Place(Frozen):
    """A top-level column of a scan, or with ``of_day`` the day of its timestamps."""

    scan: int
    column: t.NestedField
    of_day: bool = False


class _Finder(Struct):
    scans: Sequence[TableScan]
    scope_of: dict[int, SelectScope]

    def edges(self, scope: SelectScope) -> Iterator[KeyEdge]:
        """The edges from the conditions of one SELECT."""
        outer = OuterJoins(scope)
        if outer.opaque:
            return
        for each in conjuncts(scope.select.args.get("where")):
            yield from self._of_condition(each, scope, outer.seen_by_where())
        for join in scope.joins:
            if join.kind == "ANTI" or join.method:
                continue
            targets = outer.seen_by_on(join)
            for each in conjuncts(join.args.get("on")):
                yield from self._of_condition(each, scope, targets)
            for name in join.args.get("using") or ():
                yield from self._of_using(name.name, scope, join, targets)

    def _of_condition(
        self, node: exp.Expr, scope: SelectScope, targets: Targets
    ) -> Iterator[KeyEdge]:
        match node:
            case exp.EQ(this=left, expression=right):
                for one, other in ((left, right), (right, left)):
                    target = self._target(one, scope, targets)
                    if target is None:
                        continue
                    if isinstance(other, exp.Subquery):
                        yield from self._from_query(target, other, node)
                    else:
                        yield from self._edge(target, self._source(other, scope), node)
            case exp.In() if node.args.get("query") is not None:
                target = self._target(node.this, scope, targets)
                if target is not None:
                    yield from self._from_query(target, node.args["query"], node)
            case exp.Exists():
                yield from self._of_exists(node, targets)

    def _of_using(
        self, name: str, scope: SelectScope, join: exp.Join, targets: Targets
    ) -> Iterator[KeyEdge]:
        """The edges from columns that USING compares, if one table before the join has the name."""
        named = [item for item in scope.items if item.has(name) and not item.is_filter_only]
        right = [item for item in scope.items if item.join is join]
        before = scope.items[: scope.items.index(right[0])] if len(right) == 1 else []
        left = [item for item in before if item in named]
        # A table with unknown columns might have the name too.
        if len(left) != 1 or any(item.columns is None for item in (*before, *right)):
            return
        for one, other in ((left[0], right[0]), (right[0], left[0])):
            if any(item is one for item, _ in targets) and one.scan is not None:
                target = self._place(one, name, join)
                text = f"USING ({name})"
                yield from self._edge(target, self._place(other, name, join), text)

    def _of_exists(self, node: exp.Exists, targets: Targets) -> Iterator[KeyEdge]:
        inner = self.scope_of.get(id(node.this.unnest()))
        if inner is None or not has_only(inner.select, EXISTS_PARTS) or OuterJoins(inner).opaque:
            return
        kinds = (exp.AggFunc, exp.Window, exp.UDTF, exp.Anonymous, exp.Query)
        if any(each.find(*kinds) is not None for each in inner.select.expressions):
            return
        for each in conjuncts(inner.select.args.get("where")):
            if isinstance(each, exp.EQ):
                yield from self._of_condition(each, inner, targets)

    # -------------------------------------------------------------- the two ends

    def _target(self, node: exp.Expr, scope: SelectScope, targets: Targets) -> _Place | None:
        """The column of a scan that may be filtered, else None."""
        inner = _inside_day(node)
        meant = top_level(node if inner is None else inner, scope)
        if meant is None or meant[0].scan is None:
            return None
        place = self._place(*meant, node)
        if place is None:
            return None
        if inner is not None:
            # The day of an instant depends on the zone of the session, and the day of a nanosecond
            # timestamp on its rounding before 1970.
            if not isinstance(place.column.type, t.TimestampType):
                return None
            place = _Place(place.scan, place.column, of_day=True)
        return place if any(item.scan == place.scan for item, _ in targets) else None

    def _source(self, node: exp.Expr, scope: SelectScope) -> _Place | None:
        """The column of a scan that contains all values of an expression except NULL, else None."""
        if is_plain_call(node, exp.Max, exp.Min):
            # The result is one of the values of the column.
            return self._source(node.this, scope)
        meant = top_level(node, scope)
        return None if meant is None else self._place(*meant, node)

    def _place(self, item: FromItem, name: str, node: exp.Expr) -> _Place | None:
        if item.scan is not None:
            column = find_column(self.scans[item.scan].schema, name, node)
            return None if column is None else _Place(item.scan, column)
        inner = None if item.query is None else self.scope_of.get(id(item.query))
        if inner is None or not item.plain:
            return None
        return self._output(inner, name)

    def _output(self, inner: SelectScope, name: str) -> _Place | None:
        """The column of a scan that contains all values of an output of a SELECT, else None."""
        found = [
            each
            for each in inner.select.expressions
            if isinstance(each, exp.Star) or each.alias_or_name.lower() == name.lower()
        ]
        if len(found) != 1:
            return None
        (node,) = found
        if not isinstance(node, exp.Star):
            return self._source(node.unalias(), inner)
        return (
            None if any(node.args.values()) else self._source(exp.column(name, quoted=True), inner)
        )

    def _from_query(self, target: _Place, node: exp.Expr, condition: exp.Expr) -> Iterator[KeyEdge]:
        """The edge from the values of a subquery with one column."""
        inner = self.scope_of.get(id(node.unnest()))
        if inner is None or len(inner.select.expressions) != 1:
            return
        (output,) = inner.select.expressions
        if isinstance(output, exp.Star):
            return
        value, only = output.unalias(), ""
        # With a WHERE, the value may not be the greatest or least of the whole column. Without
        # GROUP BY an aggregate always returns one row.
        whole = has_only(inner.select, SELECT_PARTS) and len(inner.items) == 1
        if is_plain_call(value, exp.Max, exp.Min) and whole:
            only = "max" if isinstance(value, exp.Max) else "min"
        yield from self._edge(target, self._source(value, inner), condition, only)

    def _edge(
        self,
        target: _Place | None,
        source: _Place | None,
        condition: exp.Expr | str,
        only: str = "",
    ) -> Iterator[KeyEdge]:
        if target is None or source is None or target.scan == source.scan:
            return
        if target.of_day:
            if not isinstance(source.column.type, t.DateType):
                return
        elif not compare_alike(target.column, source.column):
            return
        scans = (self.scans[each.scan] for each in (target, source))
        if any(scan.metadata_table or scan.changes or scan.rows for scan in scans):
            return
        text = condition if isinstance(condition, str) else short_sql(condition)
        yield KeyEdge(
            source=source.scan,
            source_id=source.column.field_id,
            source_name=source.column.name,
            target=target.scan,
            target_id=target.column.field_id,
            target_name=target.column.name,
            text=text,
            only=only,
            of_day=target.of_day,
        )


def _inside_day(node: exp.Expr) -> exp.Expr | None:
    """The column in CAST(column AS DATE), None for other expressions."""
    if type(node) is not exp.Cast or node.to.this != exp.DataType.Type.DATE:
        return None
    return node.this if isinstance(node.this, exp.Column) else None


def compare_alike(one: NestedField, other: NestedField) -> bool:
    """Whether SQL compares two columns without converting values."""
    if isinstance(one.type, _WHOLE) and isinstance(other.type, _WHOLE):
        return True
    return one.type == other.type and isinstance(one.type, t.ORDERED)
