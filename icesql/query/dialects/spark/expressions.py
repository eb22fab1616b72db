"""Translate Spark expressions to DuckDB, each with its type.

A node without a handler is refused by name, so the output has no untranslated part.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from sqlglot import exp

from icesql.query.dialects import types as t
from icesql.query.dialects.functions import filled
from icesql.query.dialects.queries import Around, Scope, below, wrapped
from icesql.query.dialects.spark.calls import (
    DIALECT,
    Typed,
    around_call,
    by_duckdb,
    cast,
    check_parts,
    converted,
    find,
    unified,
)
from icesql.query.dialects.spark.functions.texts import like
from icesql.query.dialects.spark.operators import arithmetic, comparable, interval, literal_number
from icesql.query.dialects.types import SqlType
from icesql.sql.parser.literal_list import held, spread
from icesql.sql.positions import offset_of, unsupported

if TYPE_CHECKING:
    from icesql.query.dialects.spark.queries import SparkQueries

_LARGEST: Final = {"int": 2**31 - 1, "bigint": 2**63 - 1}
_BITS: Final[dict[type[exp.Expr], str]] = {
    exp.BitwiseAnd: "&",
    exp.BitwiseOr: "|",
    exp.BitwiseXor: "^",
}
# Operator precedence in Spark; sqlglot parses all of them left-associatively.
_BINDS: Final[dict[type[exp.Expr], int]] = {
    exp.BitwiseOr: 1,
    exp.BitwiseXor: 2,
    exp.BitwiseAnd: 3,
    exp.BitwiseLeftShift: 4,
    exp.BitwiseRightShift: 4,
    exp.DPipe: 5,
    exp.Add: 5,
    exp.Sub: 5,
}
# Types for which DuckDB evaluates a long IN list as Spark does, by the kind of the list.
_LISTED: Final = {"text": ("string",), "integer": ("int", "bigint"), "date": ("date",)}


class Expressions:
    """Translates the expressions of one SELECT; ``queries`` translates their subqueries."""

    def __init__(self, scope: Scope, queries: SparkQueries) -> None:
        self.scope, self.queries = scope, queries

    def of(self, node: exp.Expr) -> Typed:
        """Translate ``node``. Raises UnsupportedSqlError at its offset."""
        handler = HANDLERS.get(type(node))
        if handler is None:
            raise unsupported(f"{node.key.upper()} in {DIALECT}", node)
        return handler(self, node)

    def many(self, nodes: Sequence[exp.Expr]) -> list[Typed]:
        """Translate several expressions, in order."""
        return [self.of(each) for each in nodes]

    def truth(self, node: exp.Expr) -> exp.Expr:
        """Translate a condition: a boolean, or a text that is cast to one."""
        found = self.of(node)
        if found.type.kind in ("boolean", "null", "unknown"):
            return found.node
        return converted(found, t.BOOLEAN, node)

    def call(self, node: exp.Anonymous, around: Around | None = None) -> Typed:
        """Translate a call with the clauses around it."""
        from icesql.query.dialects.spark.functions.special import SPECIAL

        around = around or Around()
        name = str(node.name).lower()
        if around.ignore_nulls:
            name += "_ignore_nulls"
        special = SPECIAL.get(name)
        if special is not None:
            return special(self, node, around)
        arguments = list(node.expressions)
        if len(arguments) == 1 and isinstance(arguments[0], exp.Distinct):
            arguments, around.distinct = list(arguments[0].expressions), True
        return self.row(name, self.many(arguments), node, around)

    def row(
        self, name: str, given: Sequence[Typed], at: exp.Expr, around: Around | None = None
    ) -> Typed:
        """A function of the table applied to typed arguments."""
        from icesql.query.dialects.spark.functions.built import BUILT

        around = around or Around()
        match = find(name, given, at)
        pairs = list(zip(given, match.takes, strict=True))
        nodes = [converted(value, to, at) for value, to in pairs]
        if match.row.built:
            kinds = [value.type if to.kind == "any" else to for value, to in pairs]
            found = BUILT[match.row.text](list(map(Typed, nodes, kinds)), at)
        else:
            found = Typed(filled(match.row.tree(len(nodes)), nodes), match.gives)
        self._check_around(name, match.row.kind, at, around)
        if match.row.kind == "scalar":
            return found
        return Typed(wrapped(found.node, around), found.type)

    def _check_around(self, name: str, kind: str, at: exp.Expr, around: Around) -> None:
        shown = name.removesuffix("_ignore_nulls")
        if kind == "scalar" and (around.distinct or around.filter or around.window):
            raise unsupported(f"DISTINCT, FILTER or OVER with {shown}() in {DIALECT}", at)
        if around.order is not None:
            raise unsupported(f"WITHIN GROUP with {shown}() in {DIALECT}", at)
        if kind == "window" and around.window is None:
            raise unsupported(f"{shown}() without OVER in {DIALECT}", at)
        if around.distinct and around.window is not None:
            raise unsupported(f"{shown}(DISTINCT …) OVER in {DIALECT}", at)

    def ordered(self, nodes: Sequence[exp.Expr]) -> None:
        """Translate the keys of an ORDER BY in place."""
        for each in nodes:
            if not isinstance(each, exp.Ordered):
                raise unsupported(f"ORDER BY {each.key.upper()} in {DIALECT}", each)
            if isinstance(each.this, exp.Literal) and not each.this.is_string:
                continue
            found = self.of(each.this)
            comparable(each, [found], order=True)
            each.set("this", found.node)


Handler = Callable[[Expressions, Any], Typed]


def _literal(self: Expressions, node: exp.Literal) -> Typed:
    if node.is_string:
        return Typed(node, t.STRING)
    text = str(node.this)
    if "e" in text.lower():
        return _number(text, t.DOUBLE)
    if "." in text:
        whole, _, fraction = text.partition(".")
        digits = max(len(whole.lstrip("0")) + len(fraction), 1)
        if digits > t.MOST_DIGITS:
            raise unsupported(f"a number of {digits} digits in {DIALECT}", node)
        return Typed(node, SqlType("decimal", digits, len(fraction)))
    value = int(text)
    if value <= _LARGEST["int"]:
        return Typed(node, t.INT)
    if value <= _LARGEST["bigint"]:
        return Typed(node, t.BIGINT)
    return _number(text, t.decimal(len(text), 0))


def _number(text: str, to: SqlType) -> Typed:
    return Typed(exp.Cast(this=exp.Literal.string(text), to=t.duckdb_type(to)), to)


def _column(self: Expressions, node: exp.Column) -> Typed:
    if isinstance(node.this, exp.Star):
        raise unsupported(f"* inside an expression in {DIALECT}", node)
    parts = [part.name for part in node.parts]
    if len(parts) == 1 and parts[0].lower() in self.scope.variables:
        return _identifier(self, node.this)
    found = self.scope.type_of(parts)
    if found.kind == "unknown" and len(parts) == 1 and not node.this.args.get("quoted"):
        from icesql.query.dialects.spark.functions.special import WORDS

        if parts[0].lower() in WORDS:
            return self.row(parts[0].lower(), [], node)
    return Typed(node, found)


def _identifier(self: Expressions, node: exp.Identifier) -> Typed:
    kind = self.scope.variables.get(node.name.lower())
    if kind is None:
        raise unsupported(f'the name "{node.name}" in {DIALECT}', node)
    return Typed(exp.to_identifier(node.name, quoted=True), kind)


def _dot(self: Expressions, node: exp.Dot) -> Typed:
    if not isinstance(node.expression, exp.Identifier):
        raise unsupported(f"a function after a dot in {DIALECT}", node)
    inner = self.of(node.this)
    name = node.expression.name
    if inner.type.kind == "array" and inner.type.element.kind == "struct":
        kind = t.array(below(inner.type.element, [name]))
        text = "list_transform($1, lambda each: struct_extract(each, $2))"
        return by_duckdb(text, kind, inner, name)
    if inner.type.kind not in ("map", "struct"):
        raise unsupported(f".{name} of {inner.type} in {DIALECT}", node)
    return _element(self, node, inner, Typed(exp.Literal.string(name), t.STRING))


def _bracket(self: Expressions, node: exp.Bracket) -> Typed:
    if len(node.expressions) != 1:
        raise unsupported(f"a slice in {DIALECT}", node, "use slice(array, start, length)")
    return _element(self, node, self.of(node.this), self.of(node.expressions[0]))


def _element(self: Expressions, node: exp.Expr, inner: Typed, key: Typed) -> Typed:
    match inner.type.kind:
        case "array" if key.type.kind in t.INTEGRAL:
            text = (
                "CASE WHEN $2 < 0 OR $2 >= len($1) THEN error('no element ' || $2 || ' among '"
                " || len($1)) ELSE $1[$2 + 1] END"
            )
            return by_duckdb(text, inner.type.element, inner, key)
        case "map":
            wanted, value = inner.type.parts
            return by_duckdb("$1[$2]", value, inner, converted(key, wanted, node))
        case "struct" if key.node.is_string:
            kind = below(inner.type, [key.node.name])
            return by_duckdb("struct_extract($1, $2)", kind, inner, key)
    raise unsupported(f"an element of {inner.type} by {key.type} in {DIALECT}", node)


def _cast(self: Expressions, node: exp.Cast) -> Typed:
    to = t.of_cast(node.to)
    constant = isinstance(node.this, exp.Literal) and not isinstance(node, exp.TryCast)
    if to is None:
        if constant:  # a parameter of a type without a name in Spark's dialect
            return Typed(node, t.UNKNOWN)
        raise unsupported(f"a cast to {node.to.this.name} in {DIALECT}", node)
    if constant and offset_of(node) is None:
        node.set("to", t.duckdb_type(to))
        return Typed(node, to)
    inner = self.of(node.this)
    if inner.type.kind == "unknown":
        raise unsupported(f"a cast of a value whose type is not known in {DIALECT}", node)
    safe = isinstance(node, exp.TryCast) and bool(node.args.get("safe"))
    made = cast(inner.node, inner.type, to, safe=safe)
    if made is None:
        raise unsupported(f"a cast of {inner.type} to {to} in {DIALECT}", node)
    return Typed(made, to)


def _arithmetic(self: Expressions, node: exp.Binary) -> Typed:
    return arithmetic(node, self.of(node.this), self.of(node.expression))


def _negative(self: Expressions, node: exp.Neg) -> Typed:
    inner = self.of(node.this)
    if literal_number(inner.node) == "2147483648":
        return Typed(exp.Neg(this=inner.node), t.INT)
    if inner.type.kind == "string":
        inner = Typed(converted(inner, t.DOUBLE, node), t.DOUBLE)
    if inner.type.kind not in (*t.NUMERIC, *t.INTERVALS, "interval day", "null"):
        raise unsupported(f"-{inner.type} in {DIALECT}", node)
    return by_duckdb("-$1", inner.type, inner)


def _comparison(self: Expressions, node: exp.Binary) -> Typed:
    order = isinstance(node, exp.LT | exp.LTE | exp.GT | exp.GTE)
    both = [self.of(node.this), self.of(node.expression)]
    left, right = comparable(node, both, order=order)
    node.set("this", left)
    node.set("expression", right)
    return Typed(node, t.BOOLEAN)


def _connector(self: Expressions, node: exp.Connector) -> Typed:
    """Translate AND and OR without recursion: a long chain is a deep tree."""
    root = exp.Paren(this=node)
    stack: list[exp.Expr] = [node]
    while stack:
        each = stack.pop()
        if isinstance(each, exp.And | exp.Or):
            stack += [each.this, each.expression]
        elif isinstance(each, exp.Paren) and isinstance(each.this, exp.And | exp.Or):
            stack.append(each.this)
        else:
            place = exp.Placeholder()
            each.replace(place)
            place.replace(self.truth(each))
    return Typed(root.this.pop(), t.BOOLEAN)


def _paren(self: Expressions, node: exp.Paren) -> Typed:
    inner = self.of(node.this)
    return Typed(exp.Paren(this=inner.node), inner.type)


def _between(self: Expressions, node: exp.Between) -> Typed:
    if node.args.get("symmetric"):
        raise unsupported(f"BETWEEN SYMMETRIC in {DIALECT}", node)
    parts = [self.of(node.this), self.of(node.args["low"]), self.of(node.args["high"])]
    this, low, high = comparable(node, parts, order=True)
    return Typed(exp.Between(this=this, low=low, high=high), t.BOOLEAN)


def _in(self: Expressions, node: exp.In) -> Typed:
    inner = self.of(node.this)
    values = held(node)
    if values is not None and inner.type.kind in _LISTED.get(values.kind, ()):
        node.set("this", inner.node)
        return Typed(node, t.BOOLEAN)
    spread(node)
    query = node.args.get("query")
    if query is not None:
        columns = self.queries.translate(query, self.scope)
        if columns is None or len(columns) != 1:
            raise unsupported(f"IN of several columns in {DIALECT}", node)
        made = comparable(node, [inner, Typed(inner.node, columns[0][1])], order=False)
        if made[0] is not inner.node or made[1] is not inner.node:
            raise unsupported(
                f"{inner.type} IN a query of {columns[0][1]} in {DIALECT}", node, "cast it"
            )
        node.set("this", inner.node)
        return Typed(node, t.BOOLEAN)
    if node.args.get("unnest") or node.args.get("field"):
        raise unsupported(f"this IN in {DIALECT}", node)
    made = comparable(node, [inner, *self.many(node.expressions)], order=False)
    return Typed(exp.In(this=made[0], expressions=made[1:]), t.BOOLEAN)


def _is(self: Expressions, node: exp.Is) -> Typed:
    inner = self.of(node.this)
    if not isinstance(node.expression, exp.Null | exp.Boolean):
        raise unsupported(f"IS {node.expression.key.upper()} in {DIALECT}", node)
    if isinstance(node.expression, exp.Boolean) and inner.type.kind not in ("boolean", "null"):
        raise unsupported(f"IS TRUE of {inner.type} in {DIALECT}", node)
    return Typed(exp.Is(this=inner.node, expression=node.expression), t.BOOLEAN)


def _case(self: Expressions, node: exp.Case) -> Typed:
    ifs, default = node.args["ifs"], node.args.get("default")
    conditions: list[exp.Expr] = []
    if node.this is not None:
        wanted = self.many([node.this, *(each.this for each in ifs)])
        subject, *conditions = comparable(node, wanted, order=False)
        node.set("this", subject)
    else:
        conditions = [self.truth(each.this) for each in ifs]
    values = self.many([each.args["true"] for each in ifs] + [default] * (default is not None))
    made, kind = unified(values, node, "CASE")
    for each, condition, value in zip(ifs, conditions, made, strict=False):
        each.set("this", condition)
        each.set("true", value)
    if default is not None:
        node.set("default", made[-1])
    return Typed(node, kind)


def _concatenated(self: Expressions, node: exp.Expr) -> Typed:
    parts = [node.this, node.expression] if isinstance(node, exp.DPipe) else node.expressions
    _check_binding(node)
    return self.row("concat", self.many(parts), node)


def _check_binding(node: exp.Expr) -> None:
    """Refuse adjacent operators for which sqlglot's precedence differs from Spark's."""
    own = _BINDS.get(type(node))
    for side in ("this", "expression"):
        child = node.args.get(side)
        other = _BINDS.get(type(child)) if child is not None else None
        if own is None or other is None:
            continue
        if (side == "this" and other < own) or (side == "expression" and other <= own):
            raise unsupported(f"operators without parentheses here in {DIALECT}", node, "add them")


def _bits(self: Expressions, node: exp.Binary) -> Typed:
    _check_binding(node)
    given = [self.of(node.this), self.of(node.expression)]
    if any(each.type.kind not in (*t.INTEGRAL, "null") for each in given):
        raise unsupported(f"{_BITS[type(node)]} of these types in {DIALECT}", node)
    nodes, kind = unified(given, node, _BITS[type(node)])
    if isinstance(node, exp.BitwiseXor):
        return by_duckdb("xor($1, $2)", kind, *nodes)
    return by_duckdb(f"$1 {_BITS[type(node)]} $2", kind, *nodes)


def _shift(self: Expressions, node: exp.Binary) -> Typed:
    _check_binding(node)
    name = "shiftleft" if isinstance(node, exp.BitwiseLeftShift) else "shiftright"
    return self.row(name, [self.of(node.this), self.of(node.expression)], node)


def _inverted(self: Expressions, node: exp.BitwiseNot) -> Typed:
    inner = self.of(node.this)
    if inner.type.kind not in t.INTEGRAL:
        raise unsupported(f"~{inner.type} in {DIALECT}", node)
    return by_duckdb("~$1", inner.type, inner)


def _subquery(self: Expressions, node: exp.Expr) -> Typed:
    columns = self.queries.translate(node, self.scope)
    kind = columns[0][1] if columns is not None and len(columns) == 1 else t.UNKNOWN
    return Typed(node, kind)


def _exists(self: Expressions, node: exp.Exists) -> Typed:
    self.queries.translate(node.this, self.scope)
    return Typed(node, t.BOOLEAN)


def _named(name: str, *arguments: str) -> Handler:
    """A handler for a sqlglot node that is a function of the table."""

    def handler(self: Expressions, node: exp.Expr) -> Typed:
        check_parts(node, arguments, f"{name}() with")
        given = [node.args[each] for each in arguments if node.args.get(each) is not None]
        return self.row(name, self.many(given), node)

    return handler


def _trim(self: Expressions, node: exp.Trim) -> Typed:
    position = str(node.args.get("position") or "BOTH").upper()
    name = {"BOTH": "btrim", "LEADING": "ltrim_of", "TRAILING": "rtrim_of"}[position]
    given = [node.this]
    if node.expression is not None:
        given.append(node.expression)
    return self.row(name, self.many(given), node)


def _extract(self: Expressions, node: exp.Extract) -> Typed:
    unit = Typed(exp.Literal.string(node.this.name), t.STRING)
    return self.row("date_part", [unit, self.of(node.expression)], node)


def _if(self: Expressions, node: exp.If) -> Typed:
    arguments = [node.this, node.args["true"], node.args.get("false") or exp.Null()]
    return self.row("if", self.many(arguments), node)


HANDLERS: Final[dict[type[exp.Expr], Handler]] = {
    exp.Literal: _literal,
    exp.RawString: lambda self, node: Typed(exp.Literal.string(str(node.this)), t.STRING),
    exp.HexString: lambda self, node: by_duckdb("unhex($1)", t.BINARY, str(node.this)),
    exp.Null: lambda self, node: Typed(node, t.NULL),
    exp.Boolean: lambda self, node: Typed(node, t.BOOLEAN),
    exp.Column: _column,
    exp.Identifier: _identifier,
    exp.Dot: _dot,
    exp.Bracket: _bracket,
    exp.Cast: _cast,
    exp.TryCast: _cast,
    **dict.fromkeys((exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Mod), _arithmetic),
    exp.Neg: _negative,
    **dict.fromkeys(
        (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.NullSafeNEQ),
        _comparison,
    ),
    exp.And: _connector,
    exp.Or: _connector,
    exp.Not: lambda self, node: Typed(exp.Not(this=self.truth(node.this)), t.BOOLEAN),
    exp.Paren: _paren,
    exp.Between: _between,
    exp.In: _in,
    exp.Is: _is,
    exp.Case: _case,
    exp.If: _if,
    exp.DPipe: _concatenated,
    exp.Concat: _concatenated,
    **dict.fromkeys(_BITS, _bits),
    exp.BitwiseLeftShift: _shift,
    exp.BitwiseRightShift: _shift,
    exp.BitwiseNot: _inverted,
    exp.Subquery: _subquery,
    exp.Select: _subquery,
    exp.Exists: _exists,
    exp.Like: like,
    exp.ILike: like,
    exp.Escape: like,
    exp.RegexpLike: _named("rlike", "this", "expression"),
    exp.Interval: lambda self, node: interval(node),
    exp.Anonymous: Expressions.call,
    **dict.fromkeys(
        (exp.Window, exp.Filter, exp.IgnoreNulls, exp.RespectNulls, exp.WithinGroup),
        lambda self, node: self.call(*around_call(self, node)),
    ),
    exp.Substring: _named("substring", "this", "start", "length"),
    exp.StrPosition: _named("instr_from", "this", "substr", "position"),
    exp.Overlay: _named("overlay", "this", "expression", "from_", "for_"),
    exp.Trim: _trim,
    exp.Extract: _extract,
    exp.CurrentDate: _named("current_date"),
    exp.CurrentTimestamp: _named("current_timestamp"),
}
