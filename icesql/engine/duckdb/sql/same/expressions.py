"""Whether a node of sqlglot's tree and a node of DuckDB's stand for the same expression.

What is not known here is not the same. Known is all that ``query.pushdown`` makes predicates of,
and the calls and casts around it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final

from msgspec import Struct
from sqlglot import exp

from icesql.engine.duckdb.sql.same.methods import as_call
from icesql.engine.duckdb.sql.same.times import same_clock, same_interval, same_unit, same_variable
from icesql.engine.duckdb.sql.same.types import same_type
from icesql.sql.parser.literal_list import MARK, held

Node = Mapping[str, Any]

_COMPARISONS: Final[dict[type[exp.Expr], str]] = {
    exp.EQ: "COMPARE_EQUAL",
    exp.NEQ: "COMPARE_NOTEQUAL",
    exp.LT: "COMPARE_LESSTHAN",
    exp.LTE: "COMPARE_LESSTHANOREQUALTO",
    exp.GT: "COMPARE_GREATERTHAN",
    exp.GTE: "COMPARE_GREATERTHANOREQUALTO",
    exp.NullSafeEQ: "COMPARE_NOT_DISTINCT_FROM",
    exp.NullSafeNEQ: "COMPARE_DISTINCT_FROM",
}
_ARITHMETIC: Final[dict[type[exp.Expr], str]] = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*"}
# Functions of DuckDB under all of their names, and their arguments in order.
_CALLS: Final[dict[type[exp.Expr], tuple[tuple[str, ...], tuple[str, ...]]]] = {
    exp.Year: (("year",), ("this",)),
    exp.Left: (("left",), ("this", "expression")),
    exp.Substring: (("substring", "substr"), ("this", "start", "length")),
    exp.StartsWith: (("starts_with", "^@"), ("this", "expression")),
    exp.IsNan: (("isnan",), ("this",)),
    exp.DateFromParts: (("make_date",), ("year", "month", "day")),
}
_TRUNCATIONS: Final = ("date_trunc", "datetrunc")
_PARTS: Final = ("date_part", "datepart")


class Comparison(Struct, frozen=True):
    """Compares nodes; ``place`` gives the character of sqlglot's text at a byte of DuckDB's."""

    place: Callable[[int], int]

    def same(self, node: exp.Expr | None, found: Node | None) -> bool:
        """Whether both stand for one expression, at the same place where both name one."""
        # A sum of 900 terms is as deep on its left.
        while node is not None and found is not None:
            while isinstance(node, exp.Paren):
                node = node.this
            name = _ARITHMETIC.get(type(node))
            sides = None if name is None else _arguments(found, (name,))
            if sides is None or len(sides) != 2:
                return name is None and self._leaf(node, found)
            if not self.same(node.expression, sides[1]):
                return False
            node, found = node.this, sides[0]
        return False

    def _leaf(self, node: exp.Expr, found: Node) -> bool:
        found = as_call(found)
        plus = _arguments(found, ("+",))
        if plus is not None and len(plus) == 1:
            # sqlglot drops a plus sign that changes nothing.
            return self.same(node, plus[0])
        label = node.meta.get("parameter")
        if label is not None and found["type"] == "VALUE_PARAMETER":
            return str(found.get("identifier")) == str(label)
        if "clock" in node.meta:
            return same_clock(str(node.meta["clock"]), found)
        if "variable" in node.meta:
            return same_variable(str(node.meta["variable"]), found)
        kind = type(node)
        if kind in _COMPARISONS:
            return found["type"] == _COMPARISONS[kind] and self._both(node, found)
        if kind in _CALLS:
            names, arguments = _CALLS[kind]
            return _only(node, arguments) and self._call(
                found, names, [each for name in arguments if (each := node.args.get(name))]
            )
        return self._other(node, found)

    def _other(self, node: exp.Expr, found: Node) -> bool:
        match node:
            case exp.Column() | exp.Dot():
                return self._column(node, found)
            case exp.Literal() | exp.Null() | exp.Boolean() | exp.Neg():
                return self._constant(node, found)
            case exp.Cast():
                return self._cast(node, found)
            case exp.Not():
                return self._not(node.this, found)
            case exp.And() | exp.Or():
                return self._connected(node, found)
            case exp.Is():
                return not node.args.get("negate") and self._is(node, found, negated=False)
            case exp.In():
                return self._in(node, found)
            case exp.Between():
                return self._between(node, found)
            case exp.Like() | exp.Escape():
                return self._like(node, found)
            case exp.Bracket():
                return self._subscript(node, found)
            case exp.Interval():
                return same_interval(node, found, self.same)
            case exp.Tuple():
                return self._call(found, ("row",), node.expressions)
            case exp.Date() | exp.TsOrDsToDate():
                return _only(node, ("this",)) and self._cast_of(
                    node.this, exp.DataType(this=exp.DataType.Type.DATE), found
                )
            case exp.TimestampTrunc() | exp.DateTrunc():
                return self._of_unit(node, node.args.get("unit"), node.this, found, _TRUNCATIONS)
            case exp.Extract():
                return self._of_unit(node, node.this, node.expression, found, _PARTS)
            case exp.Count():
                return _only(node, ("this", "big_int")) and self._count(node.this, found)
            case exp.Anonymous():
                return self._call(found, (node.name.lower(),), node.expressions)
            case exp.Func():
                return self._by_name(node, found)
            case _:
                return False

    # -------------------------------------------------------------- names and values

    def _column(self, node: exp.Expr, found: Node) -> bool:
        if found["type"] == "STRUCT_EXTRACT":
            name = node.expression if isinstance(node, exp.Dot) else None
            inner, field = found["children"]
            return (
                isinstance(name, exp.Identifier)
                and _text(field) == name.name
                and self.same(node.this, inner)
            )
        path = _path(node)
        if found["type"] != "COLUMN_REF" or path is None:
            return False
        if [each.name for each in path] != list(found["column_names"]):
            return False
        start = path[0].meta.get("start")
        return start is None or self.place(int(found["query_location"])) == int(start)

    def _constant(self, node: exp.Expr, found: Node) -> bool:
        if isinstance(node, exp.Neg):
            if found["type"] == "FUNCTION":
                return self._call(found, ("-",), [node.this])
            number = _signed(node)
            return number is not None and number == _number(found)
        match node:
            case exp.Null():
                return _literal(found, "NULL_LITERAL") is not None
            case exp.Boolean():
                return _literal(found, "BOOLEAN") == ("true" if node.this else "false")
            case exp.Literal() if node.is_string:
                return _text(found) == str(node.this)
            case _:
                number = _signed(node)
                return number is not None and number == _number(found)

    def _cast(self, node: exp.Cast, found: Node) -> bool:
        extra = [name for name, value in node.args.items() if value and name not in _CAST_PARTS]
        safe = isinstance(node, exp.TryCast)
        return not extra and self._cast_of(node.this, node.to, found, safe=safe)

    def _cast_of(self, inner: exp.Expr, to: exp.Expr, found: Node, *, safe: bool = False) -> bool:
        return bool(
            found["type"] == "OPERATOR_CAST"
            and bool(found.get("try_cast")) == safe
            and same_type(to, found["type_expr"])
            and self.same(inner, found["child"])
        )

    def _subscript(self, node: exp.Bracket, found: Node) -> bool:
        if found["type"] != "ARRAY_EXTRACT" or len(node.expressions) != 1:
            return False
        inner, index = found["children"]
        return self.same(node.this, inner) and self.same(node.expressions[0], index)

    # -------------------------------------------------------------- conditions

    def _both(self, node: exp.Expr, found: Node) -> bool:
        return self.same(node.this, found["left"]) and self.same(node.expression, found["right"])

    def _connected(self, node: exp.Expr, found: Node) -> bool:
        parts, others = flat(node), flat_conjunction(found, conjunction(node))
        return len(parts) == len(others) > 1 and all(map(self.same, parts, others))

    def _not(self, inner: exp.Expr, found: Node) -> bool:
        while isinstance(inner, exp.Paren):
            inner = inner.this
        if found["type"] == "OPERATOR_NOT":
            return self.same(inner, found["children"][0])
        return isinstance(inner, exp.Is) and self._is(inner, found, negated=True)

    def _is(self, node: exp.Is, found: Node, *, negated: bool) -> bool:
        match node.expression:
            case exp.Null():
                wanted = "OPERATOR_IS_NOT_NULL" if negated else "OPERATOR_IS_NULL"
                return found["type"] == wanted and self.same(node.this, found["children"][0])
            case exp.Boolean() as value:
                wanted = "COMPARE_DISTINCT_FROM" if negated else "COMPARE_NOT_DISTINCT_FROM"
                boolean = exp.DataType(this=exp.DataType.Type.BOOLEAN)
                return (
                    found["type"] == wanted
                    and self._cast_of(node.this, boolean, found["left"])
                    and self.same(value, found["right"])
                )
            case _:
                return False

    def _between(self, node: exp.Between, found: Node) -> bool:
        return (
            found["type"] == "COMPARE_BETWEEN"
            and not node.args.get("negate")
            and not node.args.get("symmetric")
            and self.same(node.this, found["input"])
            and self.same(node.args["low"], found["lower"])
            and self.same(node.args["high"], found["upper"])
        )

    def _in(self, node: exp.In, found: Node) -> bool:
        if node.args.get("negate") or any(node.args.get(name) for name in _IN_PARTS):
            return False
        if found["type"] == "FUNCTION":
            return self._in_value(node, found)
        if found["type"] != "COMPARE_IN":
            return False
        operand, *items = found["children"]
        if not self.same(node.this, operand):
            return False
        if held(node) is not None:
            # One name stands in both texts for a long list; see ``sql.parser.literal_list``.
            return len(items) == 1 and items[0].get("column_names") == [MARK]
        return len(items) == len(node.expressions) and all(map(self.same, node.expressions, items))

    def _in_value(self, node: exp.In, found: Node) -> bool:
        """``x IN [1, 2]`` and ``x IN ?``: DuckDB calls contains()."""
        label = node.meta.get("parameter")
        arguments = _arguments(found, ("contains",))
        if arguments is None or len(arguments) != 2 or not self.same(node.this, arguments[1]):
            return False
        if label is not None:
            return str(arguments[0].get("identifier")) == str(label)
        if not all(map(_is_plain_item, node.expressions)):
            return False
        return self._call(arguments[0], ("list_value",), node.expressions)

    def _like(self, node: exp.Expr, found: Node) -> bool:
        if isinstance(node, exp.Like):
            name = "!~~" if node.args.get("negate") else "~~"
            return self._call(found, (name,), [node.this, node.expression])
        like = node.this
        negated = isinstance(like, exp.Not)
        like = like.this if negated else like
        if not isinstance(like, exp.Like):
            return False
        if negated != bool(like.args.get("negate")):
            if found["type"] != "OPERATOR_NOT":
                return False
            found = found["children"][0]
        return self._call(found, ("like_escape",), [like.this, like.expression, node.expression])

    # -------------------------------------------------------------- calls

    def _call(self, found: Node, names: Sequence[str], arguments: Sequence[exp.Expr]) -> bool:
        given = _arguments(found, names)
        return (
            given is not None
            and len(given) == len(arguments)
            and all(map(self.same, arguments, given))
        )

    def _count(self, counted: exp.Expr | None, found: Node) -> bool:
        match counted:
            case None:
                return self._call(found, ("count_star",), ())
            case exp.Star() as star:
                return not any(star.args.values()) and self._call(found, ("count_star",), ())
            case exp.Distinct(expressions=[value]) if not counted.args.get("on"):
                plain = {**found, "distinct": False}
                return bool(found.get("distinct")) and self._call(plain, ("count",), [value])
            case _:
                return self._call(found, ("count",), [counted])

    def _of_unit(
        self,
        node: exp.Expr,
        unit: exp.Expr | None,
        inner: exp.Expr,
        found: Node,
        names: Sequence[str],
    ) -> bool:
        given = _arguments(found, names)
        return (
            given is not None
            and len(given) == 2
            and _only(node, ("this", "expression", "unit"))
            and same_unit(unit, _text(given[0]))
            and self.same(inner, given[1])
        )

    def _by_name(self, node: exp.Func, found: Node) -> bool:
        """A function that nothing is pushed through: the same name and arguments in order."""
        arguments: list[exp.Expr] = []
        for name in node.arg_types:
            value = node.args.get(name)
            if isinstance(value, exp.Expression):
                arguments.append(value)
            elif isinstance(value, list):
                arguments += value
            elif value and name not in _FLAGS:
                return False
        names = [each.lower() for each in type(node).sql_names()]
        return self._call(found, names, arguments)


_CAST_PARTS: Final = ("this", "to", "safe", "_type")
_IN_PARTS: Final = ("query", "unnest", "field", "is_global")
_FLAGS: Final = ("safe", "coalesce")


_TIMES: Final = tuple(
    getattr(exp.DataType.Type, name)
    for name in ("DATE", "TIMESTAMP", "TIMESTAMPNTZ", "TIMESTAMPTZ", "TIMESTAMPLTZ")
)


def _is_plain_item(node: exp.Expr) -> bool:
    """Whether contains() finds an item of a list as IN does.

    To contains() a NULL among the items is no answer of NULL, and decimals are rounded.
    """
    if isinstance(node, exp.Cast):
        return node.to.this in _TIMES and isinstance(node.this, exp.Literal)
    number = node.this if isinstance(node, exp.Neg) else node
    if not isinstance(number, exp.Literal):
        return isinstance(node, exp.Boolean)
    return bool(number.is_string) or str(number.this).isdigit()


def flat(node: exp.Expr) -> list[exp.Expr]:
    """The parts of a chain of AND, or of OR, through parentheses; ``node`` alone for others."""
    while isinstance(node, exp.Paren):
        node = node.this
    if not isinstance(node, exp.And | exp.Or):
        return [node]
    kind = type(node)
    parts: list[exp.Expr] = []
    stack: list[exp.Expr] = [node]
    while stack:
        each = stack.pop()
        while isinstance(each, exp.Paren):
            each = each.this
        if type(each) is kind:
            stack += (each.expression, each.this)
        else:
            parts.append(each)
    return parts


def conjunction(node: exp.Expr) -> str:
    """DuckDB's name for a chain of AND or of OR, "" for any other node."""
    while isinstance(node, exp.Paren):
        node = node.this
    match node:
        case exp.And():
            return "CONJUNCTION_AND"
        case exp.Or():
            return "CONJUNCTION_OR"
        case _:
            return ""


def flat_conjunction(found: Node, kind: str) -> list[Node]:
    """The parts of a chain of AND (OR) of DuckDB's tree; ``found`` alone for any other node."""
    parts, stack = [], [found]
    while stack:
        each = stack.pop()
        if each["type"] == kind:
            stack += reversed(each["children"])
        else:
            parts.append(each)
    return parts


def _path(node: exp.Expr) -> list[exp.Expr] | None:
    """The identifiers of ``a.b.c``."""
    if isinstance(node, exp.Column):
        return None if isinstance(node.this, exp.Star) else list(node.parts)
    if isinstance(node, exp.Dot) and isinstance(node.expression, exp.Identifier):
        before = _path(node.this)
        return None if before is None else [*before, node.expression]
    return None


def _only(node: exp.Expr, names: Sequence[str]) -> bool:
    """Whether a node has nothing but the arguments of these names."""
    return all(name in names for name, value in node.args.items() if value)


def _arguments(found: Node, names: Sequence[str]) -> list[Node] | None:
    """The arguments of a plain call of a function of one of these names."""
    if found["type"] != "FUNCTION" or str(found["function_name"]).lower() not in names:
        return None
    return plain_arguments(found)


def plain_arguments(call: Node) -> list[Node] | None:
    """The arguments of a call; None where it has a schema, DISTINCT, FILTER, an order or names."""
    if len(call.get("qualified_name", {}).get("path", ())) > 1:
        return None
    if any(call.get(each) for each in ("distinct", "filter", "export_state")):
        return None
    if call.get("order_bys", {}).get("orders"):
        return None
    given = call.get("arguments", ())
    if any(each.get("name") or each.get("alias") for each in given):
        return None
    return [each["expression"] for each in given]


def _literal(found: Node, kind: str) -> str | None:
    literal = found.get("literal")
    if found["type"] != "VALUE_CONSTANT" or not literal or literal.get("kind") != kind:
        return None
    return str(literal.get("text", ""))


def _text(found: Node) -> str | None:
    return _literal(found, "STRING")


def _number(found: Node) -> tuple[str, str] | None:
    """A number with its sign apart, in the spelling that decides its type."""
    text = _literal(found, "INTEGER")
    if text is None:
        text = _literal(found, "NUMERIC")
    return None if text is None else _spelled(text)


def _signed(node: exp.Expr) -> tuple[str, str] | None:
    sign = ""
    while isinstance(node, exp.Neg | exp.Paren):
        sign = sign if isinstance(node, exp.Paren) else "" if sign else "-"
        node = node.this
    if not isinstance(node, exp.Literal) or node.is_string:
        return None
    plus, spelled = _spelled(str(node.this))
    return sign or plus, spelled


def _spelled(text: str) -> tuple[str, str]:
    text = text.replace("_", "").lower()
    sign, digits = ("-", text[1:]) if text.startswith("-") else ("", text)
    if "e" not in digits and "." in digits:
        digits = f"{Decimal(digits):f}" if not digits.endswith(".") else digits
    return sign, digits
