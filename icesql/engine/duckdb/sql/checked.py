"""Check a text before it runs, with the engine's own parse of it.

Every text that the engine runs is checked here, whether the user wrote it or it was written from a
tree: every table is one that binding placed or a WITH query in scope, every function is one that
the table of functions allows, every parameter has a value. So no dialect, quotation or rewriting
can call something that the user may not call.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection
from typing import Any

from msgspec import Struct, field

from icesql.engine.duckdb.sql.long_lists import in_pieces, is_long_chain
from icesql.errors import Error, UnsupportedSqlError
from icesql.query.constants.volatile import is_clock
from icesql.sql.acceptance import (
    BY_TEXT_HINT,
    CALL_BY_TEXT,
    UNNAMED_AGGREGATE,
    is_known,
    named_aggregate,
    refusal,
)
from icesql.sql.edited_text import LIST, TABLE, VALUE, Edit, UserText
from icesql.sql.positions import unsupported
from icesql.sql.reading.engine_tree import EngineTree, Node, ParsedText, parse


class Facts(Struct):
    """Facts about a tree that later steps use.

    ``calls`` are the function calls outside of FROM, ``arrays`` the fixed-length array types,
    ``pieces`` the edits that cut long chains of OR and AND. ``makes_rows``: the query may compute
    more rows than its tables have.
    """

    calls: list[Node] = field(default_factory=list)
    tables: int = 0
    makes_rows: bool = False
    has_lambda: bool = False
    pieces: list[Edit] = field(default_factory=list)
    arrays: list[Node] = field(default_factory=list)


class _Checker:
    """Checks a text that was written from a tree, over ``tables`` of these names."""

    def __init__(self, tables: Collection[str] = ()) -> None:
        self._tables = tables
        self._in_from: dict[int, Node] = {}
        self._unknown: list[Node] = []
        self._chains: list[Node] = []
        self.facts = Facts()

    def check(self, tree: EngineTree, cursor: Any) -> Facts:
        """The facts of the only statement of a tree.

        Raises UnsupportedSqlError at the first construct that is not allowed. A function that
        neither the table of functions nor the engine knows passes: the engine reports it.
        """
        self._walk(tree.statements[0])
        for node in self._unknown:
            name = str(node["function_name"])
            if _exists(name, cursor):
                raise self.refused(f"the function {name}()", node, refusal(name) or "")
        self.facts.pieces += in_pieces(tree, self._chains, self.original)
        return self.facts

    def original(self, offset: int) -> int:
        """The offset in the user's SQL for one of the text."""
        return offset

    def is_value(self, node: Node) -> bool:
        """True if a constant replaces the node: a parameter, a clock or a variable."""
        return False

    def is_bound(self, node: Node) -> bool:
        """True if binding placed this table or call in FROM."""
        return node["type"] == "BASE_TABLE" and node["table_name"] in self._tables

    def refused(self, construct: str, node: Node, hint: str = "") -> UnsupportedSqlError:
        """The error at the offset of a node."""
        return unsupported(construct, None, hint)

    def _walk(self, statement: Node) -> None:
        stack: list[tuple[Any, frozenset[str]]] = [(statement, frozenset())]
        while stack:
            value, visible = stack.pop()
            if isinstance(value, list):
                stack.extend(
                    (each, visible) for each in reversed(value) if isinstance(each, dict | list)
                )
                continue
            if "cte_map" in value:
                visible = self._query(value, visible, stack)
            elif "class" in value:
                if self.is_value(value):
                    continue
                self._expression(value)
            elif "sample" in value and "type" in value and self._table(value, visible):
                continue
            stack.extend(
                (each, visible)
                for name, each in value.items()
                if isinstance(each, dict | list) and name not in ("cte_map", "qualified_name")
            )

    def _query(
        self, node: Node, visible: frozenset[str], stack: list[tuple[Any, frozenset[str]]]
    ) -> frozenset[str]:
        """The WITH queries that are visible in the node; each sees those before it."""
        if node["type"] != "SELECT_NODE":
            self.facts.makes_rows = True
        elif is_long_chain(node["where_clause"], "CONJUNCTION_AND"):
            self._chains.append(node["where_clause"])
        for entry in node["cte_map"]["map"]:
            name = str(entry["key"]).lower()
            query = entry["value"]["query_node"]
            own = {name} if query.get("type") == "RECURSIVE_CTE_NODE" else set()
            stack.append((entry["value"], visible | own))
            visible = visible | {name}
        return visible

    def _table(self, node: Node, visible: frozenset[str]) -> bool:
        """True if binding placed this table or call; raises for one that is not allowed."""
        kind = node["type"]
        if kind == "BASE_TABLE":
            self.facts.tables += 1
            name, path = str(node["table_name"]), node["qualified_name"]["path"]
            is_query = name.lower() in visible and (len(path) == 1 or path[0] == "recurring")
            if not self.is_bound(node) and not is_query:
                raise self.refused(f'the table "{".".join(path)}" at this place', node)
        elif kind == "TABLE_FUNCTION":
            self.facts.tables += 1
            if self.is_bound(node):
                return True
            self.facts.makes_rows = True
            function = node["function"]
            name = str(function.get("function_name"))
            if function.get("class") != "FUNCTION" or refusal(name, table=True) is not None:
                raise self.refused(f"the table function {name}()", node)
            self._in_from[id(function)] = function
        elif kind == "JOIN":
            self.facts.makes_rows = True
            if node["ref_type"] == "POSITIONAL":
                raise self.refused("POSITIONAL JOIN", node)
        elif kind == "EXPRESSION_LIST" or kind == "PIVOT":
            self.facts.makes_rows = True
        return False

    def _expression(self, node: Node) -> None:
        kind = node["class"]
        if kind == "FUNCTION" or kind == "WINDOW":
            self._call(node)
        elif kind == "PARAMETER":
            raise self.refused("a parameter at this place", node)
        elif kind == "CONJUNCTION":
            if is_long_chain(node, "CONJUNCTION_OR"):
                self._chains.append(node)
        elif kind == "TYPE":
            if node["type_name"].lower() == "array":
                self.facts.arrays.append(node)
        elif kind == "LAMBDA":
            self.facts.makes_rows = self.facts.has_lambda = True

    def _call(self, node: Node) -> None:
        name = str(node["function_name"]).lower()
        if node.get("is_operator") and not name.isidentifier():
            return
        reason = refusal(name)
        if reason is not None:
            if is_known(name):
                raise self.refused(f"the function {name}()", node, reason)
            self._unknown.append(node)
        if is_clock(name) and not node["arguments"]:
            raise self.refused(f"{name}() at this place", node)
        if name in CALL_BY_TEXT:
            aggregate = named_aggregate(node)
            if aggregate is None or refusal(aggregate) is not None:
                raise self.refused(UNNAMED_AGGREGATE, node, BY_TEXT_HINT)
        if name == "unnest":
            self.facts.makes_rows = True
        if id(node) not in self._in_from:
            self.facts.calls.append(node)


class _OfUsersText(_Checker):
    """Checks a user's text, whose tables and values are identified by their offsets."""

    def __init__(self, text: UserText, read: ParsedText) -> None:
        super().__init__()
        self._read = read
        self._values = {each.start: each.end for each in text.edits if each.kind in (VALUE, LIST)}
        self._starts = sorted(each.start for each in text.edits if each.kind == TABLE)
        self._seen: set[int] = set()

    def check(self, tree: EngineTree, cursor: Any) -> Facts:
        facts = super().check(tree, cursor)
        if len(self._seen) < len(self._starts):
            raise UnsupportedSqlError("this statement", hint="DuckDB reads it in another way")
        return facts

    def original(self, offset: int) -> int:
        return self._read.sources.original(offset)

    def is_value(self, node: Node) -> bool:
        if node["class"] not in ("PARAMETER", "FUNCTION", "COLUMN_REF"):
            return False
        place = self._read.place(node)
        return place is not None and self._values.get(place[0]) == place[1]

    def is_bound(self, node: Node) -> bool:
        place = self._read.place(node)
        if place is None:
            return False
        index = bisect_left(self._starts, place[0])
        start = self._starts[index] if index < len(self._starts) else place[1]
        # A call starts where its table starts; a table may have an alias with a colon before it.
        if start >= place[1] or (node["type"] == "TABLE_FUNCTION" and start > place[0]):
            return False
        self._seen.add(start)
        return True

    def refused(self, construct: str, node: Node, hint: str = "") -> UnsupportedSqlError:
        place = self._read.place(node)
        return unsupported(construct, None if place is None else place[0], hint)


def check_text(text: UserText, read: ParsedText, cursor: Any) -> Facts:
    """The facts of a text. Raises UnsupportedSqlError for constructs that may not run."""
    return _OfUsersText(text, read).check(read.tree, cursor)


def check_written(sql: str, cursor: Any, tables: Collection[str]) -> Facts:
    """``check_text`` for a text that was written from a tree, over ``tables`` of these names."""
    try:
        tree = parse(cursor, sql)
    except Error as error:
        raise UnsupportedSqlError("this translation", hint=str(error)) from None
    if len(tree.statements) != 1:
        raise UnsupportedSqlError("this translation", hint="it is more than one statement")
    return _Checker(tables).check(tree, cursor)


def _exists(name: str, cursor: Any) -> bool:
    found = cursor.execute(
        "SELECT count(*) FROM duckdb_functions() WHERE lower(function_name) = lower(?)", [name]
    )
    return bool(found.fetchall()[0][0])
