"""Convert the expressions in DuckDB's tree to sqlglot's nodes.

DuckDB's tree has no parentheses: a node gets them back if its parent has a higher precedence.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from sqlglot import exp
from sqlglot.dialects.duckdb import DuckDB

from icesql.context import check_reading
from icesql.sql.keywords import word_set
from icesql.sql.lexer import Token, tokens_in
from icesql.sql.reading.data_types import TypeReader
from icesql.sql.reading.engine_tree import Node

_COMPARISONS: Final[dict[str, type[exp.Binary]]] = {
    "COMPARE_EQUAL": exp.EQ,
    "COMPARE_NOTEQUAL": exp.NEQ,
    "COMPARE_LESSTHAN": exp.LT,
    "COMPARE_LESSTHANOREQUALTO": exp.LTE,
    "COMPARE_GREATERTHAN": exp.GT,
    "COMPARE_GREATERTHANOREQUALTO": exp.GTE,
    "COMPARE_NOT_DISTINCT_FROM": exp.NullSafeEQ,
    "COMPARE_DISTINCT_FROM": exp.NullSafeNEQ,
}
# Older sqlglot has no node for <@.
CONTAINED_BY: Final[type[exp.Expr]] = getattr(exp, "ArrayContainedBy", None) or type(
    "ArrayContainedBy", (exp.Binary, exp.Func), {}
)
# Precedence of a node; nodes that are not listed are delimited by their own syntax.
LEVELS: Final[dict[type[exp.Expr], int]] = {
    exp.Lambda: 0,
    exp.Or: 1,
    exp.And: 2,
    exp.Not: 3,
    **dict.fromkeys((exp.Is, exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE), 4),
    **dict.fromkeys((exp.NullSafeEQ, exp.NullSafeNEQ), 4),
    **dict.fromkeys((exp.In, exp.Between, exp.Like, exp.ILike, exp.Glob, exp.Escape), 5),
    exp.RegexpLike: 5,
    **dict.fromkeys((exp.DPipe, exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseLeftShift), 6),
    **dict.fromkeys((exp.BitwiseRightShift, exp.JSONExtract, exp.JSONExtractScalar), 6),
    **dict.fromkeys((exp.ArrayContainsAll, CONTAINED_BY, exp.ArrayOverlaps), 6),
    **dict.fromkeys((exp.Add, exp.Sub), 7),
    **dict.fromkeys((exp.Mul, exp.Div, exp.IntDiv, exp.Mod), 8),
    exp.Pow: 9,
    **dict.fromkeys((exp.Neg, exp.BitwiseNot, exp.Collate, exp.AtTimeZone, exp.Interval), 10),
}
ATOM: Final = 11
# Nodes that form long chains through their first operand: x[1][2], a.b.c.
_CHAINED: Final = word_set("ARRAY_EXTRACT ARRAY_SLICE STRUCT_EXTRACT OPERATOR_NOT")
_CLOCKS: Final[dict[str, type[exp.Func]]] = {
    "current_date": exp.CurrentDate,
    "current_timestamp": exp.CurrentTimestamp,
    "localtimestamp": exp.Localtimestamp,
    "current_time": exp.CurrentTime,
    "localtime": exp.Localtime,
}
_STAR_LISTS: Final = ("exclude_list", "qualified_exclude_list", "replace_list", "rename_list")
# Expressions read between two checks of the time limit: two milliseconds of reading (measured).
_READ_BETWEEN_CHECKS: Final = 64
# Key in the ``meta`` of a number: its text, if the node has another spelling.
WRITTEN: Final = "written"
_ONE_AMOUNT: Final = re.compile(
    r"(?i)\s*([+-]?[0-9]+)\s*"
    r"((?:(?:micro|milli)?second|minute|hour|day|week|month|quarter|year|decade)s?)\s*"
)


class ExpressionReader(TypeReader):
    """Reads expressions; see ``queries.read_query``."""

    # Methods of ``QueryReader`` and ``CallReader``.
    query_of: Callable[[Node], exp.Expr]
    function: Callable[[Node], exp.Expr]
    window: Callable[[Node], exp.Expr]
    lambda_of: Callable[..., exp.Expr]

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        # Operands that were read before their operator.
        self._ready: dict[int, exp.Expr] = {}
        self._read_before_check = 0
        # The parameters of the enclosing lambdas.
        self.variables: list[set[str]] = []

    def is_variable(self, name: str) -> bool:
        """True if a name is a parameter of an enclosing lambda."""
        return any(name.lower() in each for each in self.variables)

    def expression(self, found: Node, *, named: bool = False) -> exp.Expr:
        """Convert an expression. ``named``: the caller reads its alias.

        Raises UnsupportedSqlError for an expression without a node.
        """
        if found["alias"] and not named:
            raise self.refuse(f'an alias ("{found["alias"]}") at this place', found)
        ready = self._ready.pop(id(found), None)
        if ready is not None:
            return ready
        chain = [found]
        while (first := _first_operand(chain[-1])) is not None:
            chain.append(first)
        # Innermost first: a chain of operators may be longer than the stack is deep.
        for each in reversed(chain[1:]):
            self._ready[id(each)] = self._read(each)
        return self._read(found)

    def _read(self, found: Node) -> exp.Expr:
        self._read_before_check += 1
        if self._read_before_check == _READ_BETWEEN_CHECKS:
            self._read_before_check = 0
            check_reading()
        match found["class"]:
            case "COMPARISON":
                return self._comparison(found)
            case "COLUMN_REF":
                return self._column(found)
            case "CONSTANT":
                return self.constant(found)
            case "FUNCTION":
                return self.function(found)
            case "CONJUNCTION":
                return self._conjunction(found)
            case "OPERATOR":
                return self._operator(found)
            case "BETWEEN":
                return exp.Between(
                    this=self.operand(found["input"], 6),
                    low=self.operand(found["lower"], 6),
                    high=self.operand(found["upper"], 6),
                )
            case "CASE":
                return self._case(found)
            case "CAST":
                return self._cast(found)
            case "SUBQUERY":
                return self._subquery(found)
            case "PARAMETER":
                return self._parameter(found)
            case "STAR":
                return self._star(found)
            case "WINDOW":
                return self.window(found)
            case "COLLATE":
                collation = exp.Var(this=found["collation"])
                return exp.Collate(this=self.operand(found["child"], 10), expression=collation)
            case "LAMBDA":
                return self.lambda_of(found, takes_arrow=False)
            case "POSITIONAL_REFERENCE":
                index = exp.Literal.number(found["index"])
                return self.placed(exp.PositionalColumn(this=index), found)
            case other:
                raise self.refuse(f"this expression ({other})", found)

    def operand(self, found: Node, level: int) -> exp.Expr:
        """Convert an expression; put it in parentheses if its precedence is below ``level``."""
        return bracketed(self.expression(found), level)

    # ------------------------------------------------------------------ names and values

    def _column(self, found: Node) -> exp.Expr:
        names = found["column_names"]
        begin = self.begin(found)
        clock = _CLOCKS.get(names[0].lower()) if len(names) == 1 else None
        is_quoted = begin is not None and self.text[begin] == '"'
        if clock is not None and not is_quoted and not self.is_variable(names[0]):
            return self.call_placed(clock(), found)
        parts = self.names(begin, names)
        if self.is_variable(names[0]):
            made: exp.Expr = parts[0]
            rest = parts[1:]
        else:
            keys = ("this", "table", "db", "catalog")
            made = exp.Column(**dict(zip(keys, reversed(parts[:4]), strict=False)))
            rest = parts[4:]
        for part in rest:
            made = exp.Dot(this=made, expression=part)
        return made

    def constant(self, found: Node) -> exp.Expr:
        """Convert a literal; its text stays, except for a sign and for ``_`` between digits."""
        kind, text = found["literal"]["kind"], str(found["literal"].get("text", ""))
        match kind:
            case "STRING":
                made: exp.Expr = exp.Literal.string(text)
            case "INTEGER" | "NUMERIC":
                digits = text.replace("_", "").lstrip("+")
                made = exp.Literal.number(digits.lstrip("-").strip())
                if made.name != text:
                    made.meta[WRITTEN] = text
                made = exp.Neg(this=made) if digits.startswith("-") else made
            case "BOOLEAN":
                made = exp.Boolean(this=text == "true")
            case "NULL_LITERAL":
                made = exp.Null()
            case "HEX":
                made = exp.HexString(this=text)
            case "BIT":
                made = exp.BitString(this=text)
            case _:
                raise self.refuse(f"a literal of the kind {kind}", found)
        return self.placed(made, found)

    def _parameter(self, found: Node) -> exp.Expr:
        begin = self.begin(found)
        is_nameless = begin is None or self.text[begin] == "?"
        made = exp.Placeholder(this=None if is_nameless else found["identifier"])
        self.placed(made, found)
        if begin is not None:
            made.meta["stop"] = self.stop(found)
        return made

    def _star(self, found: Node) -> exp.Expr:
        begin = self.begin(found)
        star = exp.Star()
        place = -1 if begin is None else self.text.find("*", begin)
        if place >= 0:
            star.meta.update(start=self.sql_offset(place), end=self.sql_offset(place))
        if any(found[each] for each in _STAR_LISTS):
            self._set_lists(star, found, self.words_behind(place + 1) if place >= 0 else {})
        made: exp.Expr = star
        if found["relation_name"]:
            (table,) = self.names(begin, [found["relation_name"]])
            made = exp.Column(this=star, table=table)
        if found["columns"]:
            inner = made if found["expr"] is None else self._choice(found["expr"])
            return self.placed(exp.Columns(this=inner), found)
        if found["expr"] is not None:
            raise self.refuse("a star with a pattern", found)
        return made

    def _choice(self, found: Node) -> exp.Expr:
        """Convert the argument of COLUMNS; DuckDB's parser makes a lambda a filter of a star."""
        if found.get("function_name") == "list_filter" and not self.has_place(found):
            return self.lambda_of(found["arguments"][1]["expression"])
        return self.expression(found)

    def _set_lists(self, star: exp.Star, found: Node, words: Mapping[str, Token]) -> None:
        """Set EXCLUDE, REPLACE and RENAME of a star; ``words`` has their names."""

        def column(key: Node) -> exp.Column:
            made = exp.Column(this=self.named(key["column"], words))
            if key["table"]:
                made.set("table", self.named(key["table"], words))
            return made

        left_out = [exp.Column(this=self.named(each, words)) for each in found["exclude_list"]]
        left_out += map(column, found["qualified_exclude_list"])
        replaced = [
            exp.Alias(this=self.expression(each["value"]), alias=self.named(each["key"], words))
            for each in found["replace_list"]
        ]
        renamed = [
            exp.Alias(this=column(each["key"]), alias=self.named(each["value"], words))
            for each in found["rename_list"]
        ]
        for name, nodes in (("except_", left_out), ("replace", replaced), ("rename", renamed)):
            if nodes:
                star.set(name, nodes)

    # ------------------------------------------------------------------ operators

    def _conjunction(self, found: Node) -> exp.Expr:
        kind = exp.And if found["type"] == "CONJUNCTION_AND" else exp.Or
        level = LEVELS[kind]
        first, *others = found["children"]
        made = self.operand(first, level)
        for each in others:
            made = kind(this=made, expression=self.operand(each, level + 1))
        return made

    def _comparison(self, found: Node) -> exp.Expr:
        kind, left, right = found["type"], found["left"], found["right"]
        if kind.endswith("DISTINCT_FROM") and self._is_truth(left, right):
            # DuckDB's parser turns ``x IS TRUE`` into this.
            made = exp.Is(this=self.operand(left["child"], 5), expression=self.constant(right))
            return made if kind == "COMPARE_NOT_DISTINCT_FROM" else exp.Not(this=made)
        node = _COMPARISONS[kind]
        return node(this=self.operand(left, 5), expression=self.operand(right, 5))

    def _is_truth(self, left: Node, right: Node) -> bool:
        return (
            right["class"] == "CONSTANT"
            and right["literal"]["kind"] == "BOOLEAN"
            and not self.has_place(right)
            and left["class"] == "CAST"
        )

    def _operator(self, found: Node) -> exp.Expr:
        kind, children = found["type"], found["children"]
        match kind:
            case "OPERATOR_NOT":
                return exp.Not(this=self.operand(children[0], 3))
            case "OPERATOR_IS_NULL" | "OPERATOR_IS_NOT_NULL":
                made: exp.Expr = exp.Is(this=self.operand(children[0], 5), expression=exp.Null())
                return made if kind == "OPERATOR_IS_NULL" else exp.Not(this=made)
            case "OPERATOR_COALESCE":
                first, *rest = map(self.expression, children)
                return self.call_placed(exp.Coalesce(this=first, expressions=rest), found)
            case "COMPARE_IN":
                first, *rest = children
                items = [self.expression(each) for each in rest]
                return exp.In(this=self.operand(first, 6), expressions=items)
            case "ARRAY_EXTRACT":
                return self._bracket(children[0], self.expression(children[1]))
            case "ARRAY_SLICE":
                ends = [None if self._is_open(e) else self.expression(e) for e in children[1:]]
                part = exp.Slice(**dict(zip(("this", "expression", "step"), ends, strict=False)))
                return self._bracket(children[0], part)
            case "STRUCT_EXTRACT":
                return self._field(children[0], children[1])
            case "ARRAY_CONSTRUCTOR":
                return exp.Array(expressions=[self.expression(each) for each in children])
            case "GROUPING_FUNCTION":
                given = [self.expression(each) for each in children]
                return self.call_placed(exp.Grouping(expressions=given), found)
            case "OPERATOR_TRY":
                inner = self.expression(children[0])
                return self.call_placed(exp.Anonymous(this="TRY", expressions=[inner]), found)
            case "OPERATOR_UNPACK":
                inner = self.expression(children[0])
                if not isinstance(inner, exp.Columns):
                    inner = self.placed(exp.Columns(this=inner), found)
                inner.set("unpack", True)
                return inner
            case _:
                raise self.refuse(f"this operator ({kind})", found)

    def _bracket(self, value: Node, subscript: exp.Expr) -> exp.Expr:
        """Return a subscript as written, with the base it counts from; see ``parser.dialect``."""
        inner = self.operand(value, ATOM)
        return exp.Bracket(this=inner, expressions=[subscript], offset=DuckDB.INDEX_OFFSET)

    def _field(self, value: Node, name: Node) -> exp.Expr:
        if name["class"] != "CONSTANT" or name["literal"]["kind"] != "STRING":
            raise self.refuse("a field whose name is computed", name)
        begin = self.begin(name)
        field = self.names(None if begin is None else begin + 1, [name["literal"]["text"]])[0]
        inner = self.operand(value, ATOM)
        if isinstance(inner, exp.Column):
            inner = exp.Paren(this=inner)  # (c).f is a field; c.f could be a column of a table c
        return exp.Dot(this=inner, expression=field)

    def _is_open(self, found: Node) -> bool:
        """True for an omitted end of a slice, for which DuckDB's parser makes an empty list."""
        begin = self.begin(found)
        return (
            found["class"] == "FUNCTION"
            and found["function_name"] == "list_value"
            and not found["arguments"]
            and (begin is None or self.text[begin] != "[")
        )

    def _case(self, found: Node) -> exp.Expr:
        branches = [
            exp.If(this=self.expression(each["when_expr"]), true=self.expression(each["then_expr"]))
            for each in found["case_checks"]
        ]
        otherwise = found["else_expr"]
        is_written = otherwise["class"] != "CONSTANT" or self.has_place(otherwise)
        default = self.expression(otherwise) if is_written else None
        return self.placed(exp.Case(ifs=branches, default=default), found)

    # ------------------------------------------------------------------ casts and subqueries

    def _cast(self, found: Node) -> exp.Expr:
        kind, child = found["type_expr"], found["child"]
        if self._is_interval(kind, child):
            return self.placed(_interval(child["literal"]["text"]), found)
        node = exp.TryCast if found["try_cast"] else exp.Cast
        made = node(this=self.expression(child), to=self.data_type(kind))
        begin = self.begin(found)
        if begin is not None and self.text[begin] != ":":
            self.placed(made, found)
        elif begin is not None:
            made.set("this", bracketed(made.this, ATOM))
        return made

    def _is_interval(self, kind: Node, child: Node) -> bool:
        """True if a cast is the literal INTERVAL '1 day'."""
        return (
            kind["type"] == "TYPE"
            and kind["type_name"].upper() == "INTERVAL"
            and not self.has_place(kind)
            and child["class"] == "CONSTANT"
            and child["literal"]["kind"] == "STRING"
        )

    def _subquery(self, found: Node) -> exp.Expr:
        query = self.query_of(found["subquery"]["node"])
        kind = found["subquery_type"]
        if kind == "EXISTS":
            return self.placed(exp.Exists(this=query), found)
        if kind == "SCALAR":
            return exp.Subquery(this=query)
        child = self.operand(found["child"], 6)
        if found["comparison_type"] == "COMPARE_EQUAL":
            items = self._any_list(found)
            if items is not None:
                return exp.In(this=child, expressions=items)
            return exp.In(this=child, query=exp.Subquery(this=query))
        node = _COMPARISONS[found["comparison_type"]]
        return node(this=child, expression=exp.Any(this=exp.Subquery(this=query)))

    def _any_list(self, found: Node) -> list[exp.Expr] | None:
        """The items of ``x = ANY ([1, 2])``, which DuckDB's parser rewrites to a subquery."""
        query = found["subquery"]["node"]
        selected: Any = query.get("select_list", ())
        if len(selected) != 1 or self.has_place(selected[0]):
            return None
        if selected[0].get("function_name") != "unnest" or len(selected[0]["arguments"]) != 1:
            return None
        items = selected[0]["arguments"][0]["expression"]
        if not self.is_plain_list(items):
            return None
        return [self.expression(each["expression"]) for each in items["arguments"]]

    def is_plain_list(self, found: Node) -> bool:
        """True if all items of a list are integers, or all are texts.

        DuckDB converts the items of other lists to one type before it compares them, and NULL in a
        list differs from NULL in ``IN (…)``.
        """
        if found.get("function_name") != "list_value" or not found["arguments"]:
            return False
        items = [each["expression"] for each in found["arguments"]]
        kinds = {(each.get("literal") or {}).get("kind") for each in items}
        return kinds in ({"INTEGER"}, {"STRING"})

    def begins_with(self, begin: int, word: str) -> bool:
        """True if a keyword starts at this offset."""
        first = next(tokens_in(self.text, begin), None)
        return first is not None and first.start == begin and first.word == word


def _first_operand(found: Node) -> Node | None:
    """Return the first operand, without an alias, of an operator or cast; None for other nodes."""
    match found["class"]:
        case "CAST":
            first = found["child"]
        case "FUNCTION" if found["is_operator"] and found["arguments"]:
            first = found["arguments"][0]["expression"]
        case "OPERATOR" if found["type"] in _CHAINED:
            first = found["children"][0]
        case "COLLATE":
            first = found["child"]
        case _:
            return None
    return None if first["alias"] or first["class"] == "LAMBDA" else first


def bracketed(node: exp.Expr, level: int) -> exp.Expr:
    """Put a node in parentheses if its precedence is below ``level``."""
    return exp.Paren(this=node) if LEVELS.get(type(node), ATOM) < level else node


def _interval(text: str) -> exp.Interval:
    one = _ONE_AMOUNT.fullmatch(text)
    if one is None:
        return exp.Interval(this=exp.Literal.string(text))
    unit = exp.Var(this=one[2].upper().removesuffix("S"))
    return exp.Interval(this=exp.Literal.string(one[1]), unit=unit)
