"""A text as DuckDB's parser reads it, with types, so that its expressions are changed in place.

Changes are made in DuckDB's own tree. DuckDB writes the smallest changed expressions, and they
replace the originals in the text. The text is then parsed again and must give the changed tree.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from icesql.engine.duckdb.sql.composed import Change, changed, rename_tables
from icesql.errors import UnsupportedSqlError
from icesql.iceberg import types as t
from icesql.iceberg.schema import Schema
from icesql.query.column_types import ColumnTypes
from icesql.query.names import SelectScope, select_scopes
from icesql.quoting import quoted
from icesql.sql.edited_text import is_named
from icesql.sql.parser.literal_list import MARK
from icesql.sql.positions import unsupported
from icesql.sql.reading.engine_tree import NOWHERE, Node, parse, read_tree
from icesql.sql.reading.statement import read_linked, with_brackets
from icesql.sql.trees import exp

# ------------------------------------------------------------------ expressions as SQL
# DuckDB names columns after this SQL.


_NOTHING: Final[dict[str, Any]] = {
    "type": "SELECT_NODE", "modifiers": [], "cte_map": {"map": []}, "group_expressions": [],
    "from_table": {"type": "EMPTY", "alias": "", "sample": None}, "where_clause": None,
    "group_sets": [], "aggregate_handling": "STANDARD_HANDLING", "having": None, "sample": None,
    "qualify": None,
}  # fmt: skip


def column_name(node: Node, lists: Sequence[str], cursor: Any) -> str:
    """The name that DuckDB gives to a column of this expression.

    ``lists`` replace its placeholders of long lists, in the order of the text.
    """
    if node["class"] == "COLUMN_REF":
        return str(node["column_names"][-1])
    name = written(node, cursor)
    for shown in lists:
        name = name.replace(MARK, shown, 1)
    return name


def written(node: Mapping[str, Any], cursor: Any) -> str:
    """The expression as DuckDB writes it, without its alias.

    Raises duckdb.Error and RecursionError for an expression that is nested too deep.
    """
    select = {**_NOTHING, "select_list": [{**node, "alias": ""}]}
    return written_query(select, cursor).removeprefix("SELECT ")


def written_query(node: Mapping[str, Any], cursor: Any) -> str:
    """The query as DuckDB writes it. Raises the errors of ``written``."""
    tree = {"error": False, "statements": [{"node": node, "named_param_map": []}]}
    sql = cursor.execute("SELECT json_deserialize_sql($1::JSON)", [json.dumps(tree)])
    return str(sql.fetchall()[0][0])


# ------------------------------------------------------------------ a text and its tree


# A mutable expression of DuckDB's tree.
Expression = dict[str, Any]

_PLACES: Final = ("query_location", "query_location_length")
_HINT: Final = (
    "CAST columns of nanosecond times and UUIDs to TIMESTAMP or VARCHAR in a nested query, and use "
    "it there"
)


class TextReading:
    """The tree of a text; ``tables`` maps the names of scans to the names in the text.

    ``lists`` maps each placeholder in the text to its literals.
    """

    def __init__(
        self,
        sql: str,
        tables: Mapping[str, str],
        lists: Mapping[str, str],
        schemas: Sequence[Schema],
        cursor: Any,
    ) -> None:
        self.lists = lists
        self._sql, self._cursor = sql, cursor
        self._tree = parse(cursor, sql)
        tree, pairs = read_linked(self._tree)
        rename_tables(tree, {name: scan for scan, name in tables.items()})
        self._pairs = pairs  # keeps the objects alive whose ids are keys below
        self._nodes = {id(found): node for found, node in pairs}
        self._found = {id(node): found for found, node in pairs}
        self._scopes = select_scopes(tree, schemas)
        self._types = ColumnTypes(self._scopes, schemas)
        self._order = {id(each): at for at, each in enumerate(self._tree.walk())}
        self._changed: set[int] = set()

    def expressions(self) -> Iterator[tuple[Expression, exp.Expr, SelectScope]]:
        """The expressions of each SELECT with their nodes, inner ones first, each once."""
        seen = set[int]()  # expressions of ROLLUP have several nodes
        for scope in self._scopes:
            for node in reversed(list(scope.own_nodes())):
                found = self._found.get(id(node))
                if found is not None and id(found) not in seen:
                    seen.add(id(found))
                    yield found, node, scope

    def type_of(self, found: Expression | exp.Expr, scope: SelectScope) -> t.IcebergType | None:
        """The type of an expression before any change; None if unknown."""
        node = self._nodes.get(id(found)) if isinstance(found, dict) else found
        return self._types.of(node, scope)

    def list_of(self, found: Expression) -> str | None:
        """The literals that a placeholder represents; None for other expressions."""
        if found["class"] != "COLUMN_REF" or len(found["column_names"]) > 1:
            return None
        return self.lists.get(found["column_names"][0])

    def mark(self, found: Expression) -> None:
        """Record that an expression was changed in place."""
        self._changed.add(id(found))

    def wrap(self, found: Expression, make: Callable[..., Expression], *given: Any) -> None:
        """Replace an expression by ``make`` of it, under its old alias."""
        made = make({**found, "alias": ""}, *given)
        alias = found["alias"]
        found.clear()
        found.update(made, alias=alias)
        self.mark(found)

    # ------------------------------------------------------------------ writing

    def changes(self) -> list[Change]:
        """The text replacements for the changed expressions.

        Raises UnsupportedSqlError if DuckDB cannot write one, or if the new text does not parse to
        the changed tree.
        """
        import duckdb

        if not self._changed:
            return []
        top = dict(self._tree.statements[0])
        try:
            changes = {self._change(found) for found in self._outermost(top)}
            changes.update(self._names())
            made = sorted(changes)
            text = changed(self._sql, made)
            if not self._reads_as(text, top):
                raise _too_much()
        except (duckdb.Error, RecursionError, ValueError):
            raise _too_much() from None
        return made

    def _outermost(self, top: Expression) -> Iterator[Expression]:
        stack: list[Any] = [top]
        while stack:
            each = stack.pop()
            if isinstance(each, list):
                stack += each
            elif isinstance(each, dict):
                if id(each) in self._changed or (self._is_whole(each) and self._is_changed(each)):
                    yield each
                else:
                    stack += each.values()

    def _is_whole(self, found: Expression) -> bool:
        """True for an expression whose parts have no separate text: x NOT IN (SELECT …), and
        CASE x WHEN …, where x occurs once in the text and in each condition of the tree.
        """
        if found.get("type") == "OPERATOR_NOT":
            return bool(found["children"][0]["class"] == "SUBQUERY")
        if found.get("class") != "CASE":
            return False
        tests = [each["when_expr"] for each in found["case_checks"]]
        starts = [self._start(each["left"]) for each in tests if each["class"] == "COMPARISON"]
        return len({*starts}) < len(starts)

    def _start(self, found: Expression) -> int | None:
        """The start of the first part of an expression that the text contains."""
        return min((start for start, _ in self._spans(found)), default=None)

    def _spans(self, found: Expression) -> Iterator[tuple[int, int]]:
        """The spans of the parts of an expression that the text contains."""
        spans = map(self._tree.span, self._tree.walk(found))
        return (span for span in spans if span is not None and span[0] != span[1])

    def _is_changed(self, found: Expression) -> bool:
        return any(id(each) in self._changed for each in self._tree.walk(found))

    def _change(self, found: Expression) -> Change:
        start, end = self._place(found)
        return start, end, f"({written(found, self._cursor)})"

    def _place(self, found: Expression) -> tuple[int, int]:
        """The span of an expression in the text, with the brackets around its parts."""
        start = self._start(found)
        if start is None:
            raise _too_much()
        end = max(end for _, end in self._spans(found))
        return with_brackets(self._sql, start, end)

    def _names(self) -> Iterator[Change]:
        """Aliases for changed columns without a name, so that they keep their old names."""
        before = list(read_tree(self._sql).walk())
        for scope in self._scopes:
            for node in scope.select.expressions:
                found = self._found.get(id(node))
                is_rows = isinstance(node, exp.Explode | exp.Unnest)
                if found is None or found["alias"] or (is_named(node) and not is_rows):
                    continue
                if self._is_changed(found):
                    name = column_name(before[self._order[id(found)]], (), self._cursor)
                    if "place" not in node.meta:
                        raise _too_much()
                    found["alias"] = name
                    end = node.meta["place"][1]
                    yield end, end, f" AS {quoted(name)}"

    def _reads_as(self, text: str, top: Expression) -> bool:
        """True if DuckDB reads ``text`` as the tree ``top``."""
        (found,) = parse(self._cursor, text).statements
        if are_same(found, top):
            return True
        return written_query(found, self._cursor) == written_query(top, self._cursor)


def are_same(one: Any, other: Any) -> bool:
    """True if two of DuckDB's trees differ only in offsets."""
    stack = [(one, other)]
    while stack:
        a, b = stack.pop()
        if isinstance(a, dict) and isinstance(b, dict):
            if a.keys() - _PLACES != b.keys() - _PLACES:
                return False
            stack += [(a[key], b[key]) for key in a.keys() - _PLACES]
        elif isinstance(a, list) and isinstance(b, list):
            if len(a) != len(b):
                return False
            stack += zip(a, b, strict=True)
        elif a != b:
            return False
    return True


def expression(text: str, **parts: Expression) -> Expression:
    """The parsed expression ``text``, with the names in it replaced by ``parts``."""
    (select,) = read_tree(f"SELECT {text}").statements
    made: Expression = dict(select["select_list"][0])
    stack: list[Any] = [made]
    while stack:
        each = stack.pop()
        if isinstance(each, list):
            stack += each
        elif isinstance(each, dict):
            if each.get("class") == "COLUMN_REF" and each["column_names"][0] in parts:
                part = parts[each["column_names"][0]]
                each.clear()
                each.update(part)
                continue
            if "query_location" in each:
                each.update(query_location=NOWHERE * 2 - 1, query_location_length=0)
            stack += each.values()
    return made


def _too_much() -> UnsupportedSqlError:
    return unsupported(
        "this expression over nanosecond times, UUIDs or fields whose names differ only in case",
        None,
        _HINT,
    )
