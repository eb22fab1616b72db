"""A text for DuckDB as its parser reads it, with types, to change expressions of it in place.

Expressions are changed in DuckDB's own tree, the smallest that change are written by DuckDB, and
stand in the text where they were read. The text is then read again: it has to be the changed tree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from icesql.engine.duckdb.sql.column_names import column_name, written, written_query
from icesql.engine.duckdb.sql.composed import Change, changed
from icesql.engine.duckdb.types import quoted
from icesql.errors import UnsupportedSqlError
from icesql.iceberg import types as t
from icesql.iceberg.schema import Schema
from icesql.query.column_types import ColumnTypes
from icesql.query.names import SelectScope, select_scopes
from icesql.sql.positions import unsupported
from icesql.sql.reading.engine_tree import NOWHERE, parse
from icesql.sql.reading.linked import read_again, read_linked, with_brackets
from icesql.sql.trees import exp
from icesql.sql.user_text import is_named

# An expression of DuckDB's tree, which is changed in place.
Expression = dict[str, Any]

_PLACES: Final = ("query_location", "query_location_length")
_HINT: Final = (
    "CAST columns of nanosecond times and UUIDs to TIMESTAMP or VARCHAR in a nested query, and use "
    "it there"
)


class TextReading:
    """The tree of a text whose tables have the names ``tables``, by those of the scans.

    ``lists`` are the literals for which names stand in the text.
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
        scans = {name: scan for scan, name in tables.items()}
        for table in tree.find_all(exp.Table):
            if table.name in scans:
                table.set("this", exp.to_identifier(scans[table.name], quoted=True))
        self._pairs = pairs  # which keeps what is known by its id
        self._nodes = {id(found): node for found, node in pairs}
        self._found = {id(node): found for found, node in pairs}
        self._scopes = select_scopes(tree, schemas)
        self._types = ColumnTypes(self._scopes, schemas)
        self._order = {id(each.value): at for at, each in enumerate(self._tree.walk())}
        self._changed: set[int] = set()

    def expressions(self) -> Iterator[tuple[Expression, exp.Expr, SelectScope]]:
        """The expressions of each SELECT, inner ones first, each once, with their nodes."""
        seen = set[int]()  # those of ROLLUP have several nodes
        for scope in self._scopes:
            for node in reversed(list(scope.own_nodes())):
                found = self._found.get(id(node))
                if found is not None and id(found) not in seen:
                    seen.add(id(found))
                    yield found, node, scope

    def type_of(self, found: Expression | exp.Expr, scope: SelectScope) -> t.IcebergType | None:
        """The type of an expression as it was read; None if unknown."""
        node = self._nodes.get(id(found)) if isinstance(found, dict) else found
        return self._types.of(node, scope)

    def list_of(self, found: Expression) -> str | None:
        """The literals for which a name stands; None for other expressions."""
        if found["class"] != "COLUMN_REF" or len(found["column_names"]) > 1:
            return None
        return self.lists.get(found["column_names"][0])

    def mark(self, found: Expression) -> None:
        """Note that an expression was changed in place."""
        self._changed.add(id(found))

    def wrap(self, found: Expression, make: Callable[..., Expression], *given: Any) -> None:
        """Put in the place of an expression what ``make`` makes of it."""
        made = make({**found, "alias": ""}, *given)
        alias = found["alias"]
        found.clear()
        found.update(made, alias=alias)
        self.mark(found)

    # ------------------------------------------------------------------ writing

    def changes(self) -> list[Change]:
        """The replacements in the text of the changed expressions.

        Raises UnsupportedSqlError where DuckDB cannot write one, or the text would not be read as
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
        """True for an expression whose parts are not apart in the text: x NOT IN (SELECT …), and
        CASE x WHEN …, whose x stands once in the text and in each condition of the tree.
        """
        if found.get("type") == "OPERATOR_NOT":
            return bool(found["children"][0]["class"] == "SUBQUERY")
        if found.get("class") != "CASE":
            return False
        tests = [each["when_expr"] for each in found["case_checks"]]
        starts = [self._start(each["left"]) for each in tests if each["class"] == "COMPARISON"]
        return len({*starts}) < len(starts)

    def _start(self, found: Expression) -> int | None:
        """Where the first part of an expression begins that stands in the text."""
        places = ((each.start, each.end) for each in self._tree.walk(found))
        return min((a for a, b in places if a is not None and a != b), default=None)

    def _is_changed(self, found: Expression) -> bool:
        return any(id(each.value) in self._changed for each in self._tree.walk(found))

    def _change(self, found: Expression) -> Change:
        start, end = self._place(found)
        return start, end, f"({written(found, self._cursor)})"

    def _place(self, found: Expression) -> tuple[int, int]:
        """Where an expression stands in the text, with the brackets around parts of it."""
        start = self._start(found)
        if start is None:
            raise _too_much()
        end = max(each.end or 0 for each in self._tree.walk(found) if each.end != each.start)
        return with_brackets(self._sql, start, end)

    def _names(self) -> Iterator[Change]:
        """Names for changed columns that have none: those that they would have had."""
        before = list(read_again(self._sql).walk())
        for scope in self._scopes:
            for node in scope.select.expressions:
                found = self._found.get(id(node))
                is_rows = isinstance(node, exp.Explode | exp.Unnest)
                if found is None or found["alias"] or (is_named(node) and not is_rows):
                    continue
                if self._is_changed(found):
                    name = column_name(before[self._order[id(found)]].value, (), self._cursor)
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
    """True if two of DuckDB's trees differ in places alone."""
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
    """The expression that ``text`` spells, with its names replaced by ``parts``."""
    (select,) = read_again(_template(text)).statements
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


def _template(text: str) -> str:
    return f"SELECT {text}"


def _too_much() -> UnsupportedSqlError:
    return unsupported(
        "this expression over nanosecond times, UUIDs or fields whose names differ only in case",
        None,
        _HINT,
    )
