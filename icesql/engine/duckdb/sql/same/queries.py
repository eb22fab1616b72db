"""Marks the queries and conditions of sqlglot's tree that DuckDB's parser reads alike.

Both trees are walked together from the top. A SELECT is the same if its FROM has the same tables
and joins in the same order and it has the same clauses; its conditions and the columns of its list
are then compared one by one. What does not meet keeps no mark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from sqlglot import exp

from icesql.engine.duckdb.sql.same.expressions import (
    Comparison,
    conjunction,
    flat,
    flat_conjunction,
)
from icesql.engine.duckdb.sql.same.gathered import chain_of, without_gathered
from icesql.engine.duckdb.sql.same.keys import mark_group_keys, mark_window_keys
from icesql.engine.duckdb.sql.same.readings import read_later, set_readings
from icesql.engine.duckdb.sql.same.subqueries import same_around_subquery
from icesql.query.names import nested_queries
from icesql.query.pushdown.same import mark_same
from icesql.sql.positions import first_offset

if TYPE_CHECKING:
    from icesql.engine.duckdb.sql.engine_tree import EngineTree

Node = Mapping[str, Any]

_JOIN_TYPES: Final = {"LEFT": "LEFT", "RIGHT": "RIGHT", "FULL": "FULL"}
_ONE_ROW_KINDS: Final = ("SEMI", "ANTI")
_OPERATIONS: Final[dict[type[exp.Expr], str]] = {
    exp.Union: "UNION",
    exp.Intersect: "INTERSECT",
    exp.Except: "EXCEPT",
}
_MODIFIERS: Final = {
    "DISTINCT_MODIFIER": ("distinct",),
    "ORDER_MODIFIER": ("order",),
    "LIMIT_MODIFIER": ("limit", "offset"),
}
_CLAUSES: Final = {
    "group": ("group_expressions", "group_sets"),
    "having": ("having",),
    "qualify": ("qualify",),
    "sample": ("sample",),
    "where": ("where_clause",),
}


def mark_tree(tree: exp.Expr, found: EngineTree, start: int) -> None:
    """Mark what is the same in ``tree`` and ``found``, whose text begins at offset ``start``."""
    if len(found.statements) == 1:
        marker = _Marker(lambda byte: found.offset(byte) + start)
        marker.follow(tree, found.statements[0])


class _Marker:
    def __init__(self, place: Callable[[int], int]) -> None:
        self._place, self._comparison = place, Comparison(place)

    def _same(self, node: exp.Expr | None, found: Node | None) -> bool:
        try:
            return self._comparison.same(node, found)
        except RecursionError:
            return False  # nested too deeply to be told, so it prunes nothing

    # -------------------------------------------------------------- queries

    def follow(self, node: exp.Expr, found: Node) -> None:
        """Mark what is the same in two queries at the same place of the trees."""
        stack: list[tuple[exp.Expr, Node]] = [(node, found)]
        while stack:
            node, found = stack.pop()
            while isinstance(node, exp.Subquery | exp.Paren):
                node = node.this
            self._ctes(node, found)
            if isinstance(node, exp.Select):
                if found["type"] == "SELECT_NODE":
                    self._select(node, found)
            elif isinstance(node, exp.SetOperation):
                stack += self._operation(node, found)

    def _ctes(self, node: exp.Expr, found: Node) -> None:
        ctes = node.ctes if isinstance(node, exp.Query) else []
        entries = found.get("cte_map", {}).get("map", ())
        if len(ctes) != len(entries):
            return
        for cte, entry in zip(ctes, entries, strict=True):
            if cte.alias == entry["key"]:
                value = entry["value"]
                self.follow(cte.this, value.get("query_node") or value["query"]["node"])

    def _operation(self, node: exp.SetOperation, found: Node) -> list[tuple[exp.Expr, Node]]:
        if found["type"] == "RECURSIVE_CTE_NODE":
            return [(node.this, found["left"]), (node.expression, found["right"])]
        children = found.get("children") or [found.get("left"), found.get("right")]
        wanted = _OPERATIONS.get(type(node))
        if found["type"] != "SET_OPERATION_NODE" or found["setop_type"] != wanted:
            return []
        branches = _branches(node, len(children))
        if branches is None or not self._same_modifiers(node, found):
            return []
        mark_same(node)
        return list(zip(branches, children, strict=True))

    def _select(self, node: exp.Select, found: Node) -> None:
        joins = self._from(node, found["from_table"])
        self._nested(node, found)
        if joins is None or not self._same_clauses(node, found):
            return
        mark_same(node)
        where = node.args.get("where")
        if where is not None:
            self._condition(where.this, found["where_clause"])
        having = node.args.get("having")
        if having is not None:
            self._condition(having.this, found["having"])
        mark_group_keys(node, found, self._same)
        for join, condition in joins:
            self._condition(join.args["on"], condition)
        if len(node.expressions) == len(found["select_list"]):
            for column, other in zip(node.expressions, found["select_list"], strict=True):
                self._column(column, other)

    def _same_clauses(self, node: exp.Select, found: Node) -> bool:
        for name, others in _CLAUSES.items():
            if bool(node.args.get(name)) != any(found.get(each) for each in others):
                group_all = name == "group" and found["aggregate_handling"] == "FORCE_AGGREGATES"
                if not (group_all and node.args.get(name)):
                    return False
        return self._same_modifiers(node, found)

    def _same_modifiers(self, node: exp.Expr, found: Node) -> bool:
        seen: set[str] = set()
        for each in found.get("modifiers", ()):
            names = _MODIFIERS.get(each["type"], ())
            if not names:
                return False
            if each["type"] == "ORDER_MODIFIER":
                self._mark_order(node, each)
            if each["type"] == "LIMIT_MODIFIER":
                seen.update(name for name in names if each.get(name))
                self._mark_limit(node, each)
            else:
                seen.update(names)
        if isinstance(node, exp.SetOperation):
            seen.discard("distinct")
            return seen == {
                name for name in ("order", "limit", "offset") if node.args.get(name) is not None
            }
        return seen == {
            name
            for names in _MODIFIERS.values()
            for name in names
            if node.args.get(name) is not None
        }

    def _mark_limit(self, node: exp.Expr, found: Node) -> None:
        """A limit that is not the same, such as one in percent, is no reason to push no filter."""
        for name in ("limit", "offset"):
            clause = node.args.get(name)
            value = found.get(name)
            if clause is None or value is None:
                continue
            rows = found.get("limit_type", "ROW_COUNT") == "ROW_COUNT" or name == "offset"
            if rows and self._same(clause.args.get("expression"), value):
                mark_same(clause)

    def _mark_order(self, node: exp.Expr, found: Node) -> None:
        """Mark the keys of ORDER BY that are the same, with their direction and place of NULL."""
        order = node.args.get("order")
        keys = order.expressions if order is not None else []
        for key, other in zip(keys, found["orders"], strict=False):
            if (
                isinstance(key, exp.Ordered)
                and bool(key.args.get("desc")) == (other["type"] == "DESCENDING")
                and bool(key.args.get("nulls_first")) == (other["null_order"] == "NULLS FIRST")
                and self._same(key.this, other["expression"])
            ):
                mark_same(key)

    # -------------------------------------------------------------- FROM

    def _from(self, node: exp.Select, found: Node) -> list[tuple[exp.Join, Node]] | None:
        """The joins with a condition and DuckDB's, None where FROM is not the same."""
        start = node.args.get("from_")
        joins = list(node.args.get("joins") or ())
        laterals = node.args.get("laterals")
        if start is None:
            return [] if found["type"] == "EMPTY" and not joins else None
        if laterals:
            return None
        spine = _spine(found, len(joins))
        if spine is None or not self._item(start.this, spine[0][0]):
            return None
        conditions: list[tuple[exp.Join, Node]] = []
        same = True
        for join, (item, other) in zip(joins, spine[1:], strict=True):
            same = self._item(join.this, item) and _same_join(join, other) and same
            if join.args.get("on") is not None and other.get("condition"):
                conditions.append((join, other["condition"]))
        return conditions if same else None

    def _item(self, node: exp.Expr, found: Node) -> bool:
        """Whether a table or subquery of FROM is the same; one that takes no filter may differ."""
        if isinstance(node, exp.Lateral):
            node = node.this
        alias = node.args.get("alias")
        renamed = isinstance(alias, exp.TableAlias) and bool(alias.args.get("columns"))
        if renamed != bool(found.get("column_name_alias")):
            return False
        match node:
            case exp.Subquery() if isinstance(node.this, exp.Query) and not node.args.get("joins"):
                if found["type"] != "SUBQUERY":
                    return False
                self.follow(node.this, found["subquery"]["node"])
                return bool(found.get("sample")) == bool(node.args.get("sample"))
            case exp.Table() if not node.args.get("joins") and isinstance(
                node.this, exp.Identifier
            ):
                if found["type"] not in ("BASE_TABLE", "TABLE_FUNCTION"):
                    return False
                start = node.meta.get("start")
                return start is None or self._place(int(found["query_location"])) == int(start)
            case exp.Subquery() | exp.Paren() | exp.Table():
                # Joins in parentheses: nothing is pushed into them, but into subqueries inside.
                self._inside(node, found)
                return True
            case _:
                return True

    def _inside(self, node: exp.Expr, found: Node) -> None:
        if found["type"] == "JOIN":
            nested = list(nested_queries(node))
            others = [each for each in _leaves(found) if each["type"] == "SUBQUERY"]
            if len(nested) == len(others):
                for each, other in zip(nested, others, strict=True):
                    self.follow(each, other["subquery"]["node"])

    # -------------------------------------------------------------- conditions and columns

    def _condition(self, node: exp.Expr, found: Node) -> None:
        """Mark the conditions that AND, OR and NOT connect, as far as both connect alike."""
        set_readings(node, found, self._place)
        stack = [(node, found)]
        while stack:
            node, found = stack.pop()
            while isinstance(node, exp.Paren):
                node = node.this
            kind = conjunction(node) or chain_of(node)
            if kind:
                same, parts, others = without_gathered(
                    flat(node), flat_conjunction(found, kind), kind
                )
                for each in same:
                    mark_same(each)
                    mark_same(each.this)
                if len(parts) == len(others):
                    stack += zip(parts, others, strict=True)
                continue
            if isinstance(node, exp.Not) and found["type"] == "OPERATOR_NOT":
                inner = node.this
                while isinstance(inner, exp.Paren):
                    inner = inner.this
                if conjunction(inner) or chain_of(inner):
                    stack.append((inner, found["children"][0]))
                    continue
            if same_around_subquery(node, found, self._same):
                mark_same(node)
            elif self._same(node, found):
                mark_same(node)
                while isinstance(node, exp.Not | exp.Paren):
                    node = node.this
                    mark_same(node)

    def _column(self, node: exp.Expr, found: Node) -> None:
        if isinstance(node, exp.Star):
            plain = not any(
                found.get(each)
                for each in ("relation_name", "exclude_list", "replace_list", "rename_list", "expr")
            )
            if found["type"] == "STAR" and plain and not any(node.args.values()):
                mark_same(node)
            return
        inner = node.this if isinstance(node, exp.Alias) else node
        written = node.alias if isinstance(node, exp.Alias) else ""
        if written == found.get("alias", ""):
            read_later(inner, found, self._place)
            if isinstance(inner, exp.Window):
                mark_window_keys(inner, found, self._same)
        if written == found.get("alias", "") and self._same(inner, found):
            mark_same(inner)
            mark_same(node)

    def _nested(self, node: exp.Select, found: Node) -> None:
        """The queries in expressions, which meet by the places of their text."""
        others = list(_subqueries(found))
        if not others:
            return
        for name, value in node.args.items():
            if name in ("with_", "from_", "laterals"):
                continue
            for each in value if isinstance(value, list) else [value]:
                if isinstance(each, exp.Join):
                    each = each.args.get("on")
                if isinstance(each, exp.Expression):
                    for nested in nested_queries(each):
                        self._by_place(nested, others)

    def _by_place(self, nested: exp.Query, others: Sequence[Node]) -> None:
        offset = first_offset(nested)
        if offset is None:
            return
        around = []
        for each in others:
            first = int(each["query_location"])
            if (
                self._place(first)
                <= offset
                < self._place(first + int(each["query_location_length"]))
            ):
                around.append(each)
        if around:
            closest = min(around, key=lambda each: int(each["query_location_length"]))
            self.follow(nested, closest["subquery"]["node"])


def _branches(node: exp.SetOperation, count: int) -> list[exp.Expr] | None:
    """The ``count`` queries of a chain of one operation, in order; None for any other chain.

    DuckDB has one node for ``a UNION ALL b UNION ALL c``, and two where parentheses say so.
    """
    found: list[exp.Expr] = [node.expression]
    inner: exp.Expr = node.this
    while len(found) + 1 < count:
        if type(inner) is not type(node) or any(
            bool(inner.args.get(name)) != (name == "distinct" and bool(node.args.get(name)))
            for name in inner.args
            if name not in ("this", "expression")
        ):
            return None
        found.append(inner.expression)
        inner = inner.this
    return [inner, *reversed(found)]


def _same_join(node: exp.Join, found: Node) -> bool:
    if node.kind in _ONE_ROW_KINDS:
        wanted = node.kind
    else:
        wanted = _JOIN_TYPES.get(node.side, "INNER")
    kind = found["ref_type"]
    method = kind if kind in ("NATURAL", "ASOF", "POSITIONAL") else ""
    return (
        found["join_type"] == wanted
        and method == node.method
        and bool(found.get("condition")) == (node.args.get("on") is not None)
        and bool(found.get("using_columns")) == bool(node.args.get("using"))
    )


def _spine(found: Node, joins: int) -> list[tuple[Node, Node]] | None:
    """The items of FROM in order, each with the join that brings it in.

    To DuckDB a comma joins less tightly than JOIN: ``a, b JOIN c`` is a with (b JOIN c).
    """
    spine = _left_spine(found)
    while len(spine) <= joins:
        index = next(
            (
                number
                for number, (item, join) in enumerate(spine)
                if item["type"] == "JOIN" and join.get("is_implicit")
            ),
            None,
        )
        if index is None:
            return None
        item, join = spine[index]
        inner = _left_spine(item)
        spine[index : index + 1] = [(inner[0][0], join), *inner[1:]]
    return spine if len(spine) == joins + 1 else None


def _left_spine(found: Node) -> list[tuple[Node, Node]]:
    spine: list[tuple[Node, Node]] = []
    while found["type"] == "JOIN":
        spine.append((found["right"], found))
        found = found["left"]
    spine.append((found, {}))
    spine.reverse()
    return spine


def _leaves(found: Node) -> Iterator[Node]:
    if found["type"] == "JOIN":
        yield from _leaves(found["left"])
        yield from _leaves(found["right"])
    else:
        yield found


def _subqueries(found: Node) -> Iterator[Node]:
    """The subqueries in the expressions of one SELECT of DuckDB's."""
    stack: list[Any] = [
        value for name, value in found.items() if name not in ("cte_map", "from_table")
    ]
    table = found["from_table"]
    while table["type"] == "JOIN":
        stack += [table.get("condition"), table["right"].get("condition")]
        table = table["left"]
    while stack:
        each = stack.pop()
        if isinstance(each, dict):
            if each.get("class") == "SUBQUERY":
                if int(each["query_location"]) < 1 << 63:
                    yield each
                stack.append(each.get("child"))
            else:
                stack.extend(each.values())
        elif isinstance(each, list):
            stack.extend(each)
