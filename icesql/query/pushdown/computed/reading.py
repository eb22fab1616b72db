"""What DuckDB reads in the place of a condition or a column, as an ``Expression``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from sqlglot import exp

from icesql.query.constants.current_time import is_clock
from icesql.query.pushdown.computed.expression import MOST_NODES, Expression
from icesql.sql.reading.data_types import DUCKDB_NAMES
from icesql.sql.reading.engine_node import KEY, engine_node

if TYPE_CHECKING:
    from icesql.context import QueryContext

Node = Mapping[str, Any]
# Runs SQL without tables on the engine, with parameters; None where it raises.
Ask = Callable[[str, Sequence[Any], "QueryContext"], "list[tuple[Any, ...]] | None"]

_READING: Final = "reading"

_COMPARISONS: Final = {
    "COMPARE_EQUAL": "=",
    "COMPARE_NOTEQUAL": "<>",
    "COMPARE_LESSTHAN": "<",
    "COMPARE_LESSTHANOREQUALTO": "<=",
    "COMPARE_GREATERTHAN": ">",
    "COMPARE_GREATERTHANOREQUALTO": ">=",
    "COMPARE_NOT_DISTINCT_FROM": "is not distinct from",
    "COMPARE_DISTINCT_FROM": "is distinct from",
}
_OPERATORS: Final = {
    "OPERATOR_NOT": "not",
    "OPERATOR_IS_NULL": "is null",
    "OPERATOR_IS_NOT_NULL": "is not null",
    "OPERATOR_COALESCE": "coalesce",
    "COMPARE_IN": "in",
    "CONJUNCTION_AND": "and",
    "CONJUNCTION_OR": "or",
    "ARRAY_EXTRACT": "array_extract",
    "ARRAY_SLICE": "array_slice",
}
_LITERALS: Final = {
    "INTEGER": "INTEGER",
    "NUMERIC": "NUMERIC",
    "STRING": "STRING",
    "BOOLEAN": "BOOLEAN",
    "NULL_LITERAL": "NULL",
}
_ONE_KIND: Final = ({"INTEGER"}, {"STRING"})


class Reading:
    """An expression that is made when it is asked for, and kept by copies of its node."""

    def __init__(self, make: Callable[[], Expression | None]) -> None:
        self._make: Callable[[], Expression | None] | None = make
        self._made: Expression | None = None

    def __deepcopy__(self, memo: Any) -> Reading:
        return self

    def expression(self) -> Expression | None:
        """The expression, None where it holds what nobody here knows."""
        if self._make is not None:
            try:
                self._made = self._make()
            except RecursionError:
                self._made = None
            self._make = None
        return self._made


def reading_of(node: exp.Expr) -> Reading | None:
    """What DuckDB reads in the place of a condition or of a column; None for other nodes."""
    known: Reading | None = node.meta.get(_READING)
    if known is not None:
        return known
    found = engine_node(node)
    return None if found is None else Reading(lambda: convert(node, found.value, found.sql_place))


def set_reading(node: exp.Expr, reading: Reading | None) -> None:
    """Say what stands there now instead of what DuckDB read."""
    node.meta.pop(KEY, None)
    node.meta.pop(_READING, None)
    if reading is not None:
        node.meta[_READING] = reading


def convert(node: exp.Expr, found: Node, place: Callable[[int], int]) -> Expression | None:
    """The expression of ``found``, which DuckDB read where ``node`` stands.

    None where it holds what ``query.pushdown.computed`` does not know.
    """
    try:
        return _Converter(node, place).read(found)
    except _Unknown:
        return None


class _Unknown(Exception):
    """A node that has no expression."""


class _Converter:
    """Converts one expression. ``node`` has the columns and parameters, by their places."""

    def __init__(self, node: exp.Expr, place: Callable[[int], int]) -> None:
        self._place, self._left = place, MOST_NODES
        self._columns: dict[tuple[int, tuple[str, ...]], exp.Expr] = {}
        self._parameters: dict[int, exp.Expr] = {}
        for each in node.walk():
            if "parameter_at" in each.meta:
                self._parameters[each.meta["parameter_at"]] = each
            elif isinstance(each, exp.Column | exp.Dot):
                path = _path(each)
                if path is not None and "start" in path[0].meta:
                    names = tuple(part.name for part in path)
                    self._columns[int(path[0].meta["start"]), names] = each

    def read(self, found: Node) -> Expression:
        """The expression of a node. Raises _Unknown."""
        self._left -= 1
        if self._left < 0:
            raise _Unknown
        kind = str(found["type"])
        if kind in _COMPARISONS:
            return Expression(
                _COMPARISONS[kind], (self.read(found["left"]), self.read(found["right"]))
            )
        if kind in _OPERATORS:
            return Expression(_OPERATORS[kind], tuple(map(self.read, found["children"])))
        match kind:
            case "VALUE_CONSTANT":
                return _constant(found)
            case "COLUMN_REF":
                return self._column(found)
            case "FUNCTION":
                return self._function(found)
            case "OPERATOR_CAST":
                name = "try_cast" if found.get("try_cast") else "cast"
                return Expression(name, (self.read(found["child"]),), _type(found["type_expr"]))
            case "COMPARE_BETWEEN":
                operands = (found["input"], found["lower"], found["upper"])
                return Expression("between", tuple(map(self.read, operands)))
            case "CASE_EXPR":
                parts = [
                    self.read(check[part])
                    for check in found["case_checks"]
                    for part in ("when_expr", "then_expr")
                ]
                return Expression("case", (*parts, self.read(found["else_expr"])))
            case "VALUE_PARAMETER":
                return self._parameter(found)
            case "SUBQUERY":
                return self._any_of_list(found)
            case _:
                raise _Unknown

    def _column(self, found: Node) -> Expression:
        names = tuple(map(str, found["column_names"]))
        node = self._columns.get((self._place(int(found["query_location"])), names))
        if node is not None:
            return Expression("input", (), node)
        if len(names) == 1 and is_clock(names[0].lower()):
            return self._clock(names[0])
        raise _Unknown

    def _clock(self, name: str) -> Expression:
        return Expression("clock", (), name.lower())

    def _parameter(self, found: Node) -> Expression:
        node = self._parameters.get(self._place(int(found["query_location"])))
        if not isinstance(node, exp.Literal):
            raise _Unknown
        text = str(node.this)
        if node.is_string:
            return Expression("literal", (), ("STRING", str(node.this)))
        if not text.isdigit():
            raise _Unknown
        return Expression("literal", (), ("INTEGER", text))

    def _function(self, found: Node) -> Expression:
        name = str(found["function_name"]).lower()
        given = _plain_arguments(found)
        if given is None:
            raise _Unknown
        if not given and is_clock(name):
            return self._clock(name)
        arguments = tuple(map(self.read, given))
        if name == "if" and len(arguments) == 3:
            return Expression("case", arguments)
        return Expression(name, arguments)

    def _any_of_list(self, found: Node) -> Expression:
        """``x = ANY ([1, 2])``, which DuckDB's parser takes apart."""
        query = found["subquery"]["node"]
        selected = query.get("select_list", ())
        plain = (
            found.get("subquery_type") == "ANY"
            and found.get("comparison_type") == "COMPARE_EQUAL"
            and query["type"] == "SELECT_NODE"
            and query["from_table"]["type"] == "EMPTY"
            and len(selected) == 1
            and not any(query.get(each) for each in ("where_clause", "modifiers", "sample"))
            and not any(query.get(each) for each in ("group_sets", "having", "qualify"))
        )
        if not plain or not found.get("child"):
            raise _Unknown
        unnest = self.read(selected[0])
        if unnest.name != "unnest" or len(unnest.arguments) != 1:
            raise _Unknown
        items = unnest.arguments[0]
        # The engine converts the items to one type before it compares them: times without a zone
        # become instants of UTC there. What has one reading are plain numbers and texts.
        kinds = {each.value[0] for each in items.arguments if each.name == "literal"}
        all_plain = all(each.name == "literal" for each in items.arguments)
        if items.name != "list_value" or not all_plain or kinds not in _ONE_KIND:
            raise _Unknown
        return Expression("in", (self.read(found["child"]), *items.arguments))


def _constant(found: Node) -> Expression:
    literal = found.get("literal") or {}
    kind = _LITERALS.get(str(literal.get("kind")))
    if kind is None:
        raise _Unknown
    return Expression("literal", (), (kind, str(literal.get("text", ""))))


def _type(found: Node) -> str:
    name = DUCKDB_NAMES.get(str(found.get("type_name")).upper())
    if found.get("type") != "TYPE" or name is None:
        raise _Unknown
    if len(found.get("qualified_name", {}).get("path", ())) > 1:
        raise _Unknown
    sizes = [(each.get("literal") or {}).get("text") for each in found.get("children") or ()]
    if not sizes:
        return name
    if name != "DECIMAL" or not all(str(each).isdigit() for each in sizes):
        raise _Unknown
    return f"DECIMAL({', '.join(map(str, sizes))})"


def _plain_arguments(call: Node) -> list[Node] | None:
    """The arguments of a call; None where it has a schema, DISTINCT, FILTER, an order or names."""
    if len(call["qualified_name"]["path"]) > 1 or call["order_bys"]["orders"]:
        return None
    if call["distinct"] or call["filter"] or any(each["name"] for each in call["arguments"]):
        return None
    return [each["expression"] for each in call["arguments"]]


def _path(node: exp.Expr) -> list[exp.Expr] | None:
    """The identifiers of ``a.b.c``."""
    if isinstance(node, exp.Column):
        return None if isinstance(node.this, exp.Star) else list(node.parts)
    if isinstance(node, exp.Dot) and isinstance(node.expression, exp.Identifier):
        before = _path(node.this)
        return None if before is None else [*before, node.expression]
    return None
