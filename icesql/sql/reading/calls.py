"""Convert the calls in DuckDB's tree: operators, functions, aggregates and windows.

DuckDB's parser turns most operators and many forms (``INTERVAL 3 DAY``, ``[a, b]``, ``x IN list``,
``t.g.upper()``) into calls; the text at their offset shows which of them was written.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, Final

from sqlglot import exp
from sqlglot.dialects.duckdb import DuckDB

from icesql.sql.acceptance import (
    BY_TEXT_HINT,
    CALL_BY_TEXT,
    SCHEMAS,
    SESSION_CALLS,
    UNNAMED_AGGREGATE,
    check_function,
    is_known,
    named_aggregate,
)
from icesql.sql.keywords import word_map, word_set
from icesql.sql.lexer import tokens_in
from icesql.sql.positions import syntax_error
from icesql.sql.reading.engine_tree import Node
from icesql.sql.reading.expressions import (
    CONTAINED_BY,
    LEVELS,
    ExpressionReader,
    bracketed,
)

_BINARY: Final[dict[str, type[exp.Expr]]] = {
    "+": exp.Add, "-": exp.Sub, "*": exp.Mul, "/": exp.Div, "//": exp.IntDiv, "%": exp.Mod,
    "**": exp.Pow, "^": exp.Pow, "||": exp.DPipe, "&": exp.BitwiseAnd, "|": exp.BitwiseOr,
    "<<": exp.BitwiseLeftShift, ">>": exp.BitwiseRightShift, "~~": exp.Like, "~~*": exp.ILike,
    "~~~": exp.Glob, "^@": exp.StartsWith, "->": exp.JSONExtract, "->>": exp.JSONExtractScalar,
    "@>": exp.ArrayContainsAll, "<@": CONTAINED_BY, "&&": exp.ArrayOverlaps,
}  # fmt: skip
_NEGATED: Final = {"!~~": exp.Like, "!~~*": exp.ILike}
_UNARY: Final[dict[str, type[exp.Expr]]] = {"-": exp.Neg, "~": exp.BitwiseNot, "@": exp.Abs}
_ESCAPES: Final = {
    "like_escape": (exp.Like, False), "not_like_escape": (exp.Like, True),
    "ilike_escape": (exp.ILike, False), "not_ilike_escape": (exp.ILike, True),
}  # fmt: skip
_UNITS: Final = word_map("""
to_years = YEAR
to_months = MONTH
to_days = DAY
to_hours = HOUR
to_minutes = MINUTE
to_seconds = SECOND
to_milliseconds = MILLISECOND
to_microseconds = MICROSECOND
to_weeks = WEEK
to_quarters = QUARTER
to_decades = DECADE
to_centuries = CENTURY
to_millennia = MILLENNIUM
""")
# List functions that accept "x -> …"; in other functions the arrow extracts a JSON field.
_TAKE_ARROWS: Final = word_set(
    "list_transform array_transform list_apply array_apply apply list_filter array_filter "
    "filter list_reduce array_reduce reduce invoke"
)
_CONCATENATING: Final = word_set("string_agg listagg group_concat")
_WITHIN_GROUP: Final[dict[str, type[exp.Expr]]] = {
    "quantile_cont": exp.PercentileCont, "quantile_disc": exp.PercentileDisc, "mode": exp.Mode,
}  # fmt: skip
# Names for which sqlglot's builders make another function than DuckDB's, or no function.
_NO_BUILDER: Final = frozenset({"and", "apply", "case", "cast", "char", "exists", "or", "try_cast"})
_DIALECT: Final = DuckDB()
_FRAMES: Final = ("ROWS", "RANGE", "GROUPS")
_DEFAULT_FRAME: Final = ("UNBOUNDED_PRECEDING", "CURRENT_ROW_RANGE", "NO_OTHER")


class CallReader(ExpressionReader):
    """Reads calls; see ``queries.read_query``."""

    _builders = DuckDB.parser_class.FUNCTIONS

    def lambda_of(self, found: Node, *, takes_arrow: bool = True) -> exp.Expr:
        """Convert a lambda; ``->`` is a JSON field access where no lambda is accepted."""
        left = found["lhs"]
        if not takes_arrow and found["syntax_type"] == "SINGLE_ARROW":
            name = self.operand(found["expr"], 7)
            return exp.JSONExtract(this=self.operand(left, 7), expression=name)
        several = left["class"] == "FUNCTION"
        given = [each["expression"] for each in left["arguments"]] if several else [left]
        if any(each["class"] != "COLUMN_REF" for each in given):
            raise self.refuse("a lambda of anything but names", found)
        names = [each["column_names"][0] for each in given]
        self.variables.append({each.lower() for each in names})
        try:
            inner = self.expression(found["expr"])
        finally:
            self.variables.pop()
        parameters = [
            self.names(self.begin(each), [name])[0] for each, name in zip(given, names, strict=True)
        ]
        return exp.Lambda(this=inner, expressions=parameters)

    def _arguments(self, found: Node) -> list[exp.Expr]:
        takes_arrow = found["function_name"].lower() in _TAKE_ARROWS
        made = []
        for each in found["arguments"]:
            inner = each["expression"]
            if inner["class"] == "LAMBDA":
                value = self.lambda_of(inner, takes_arrow=takes_arrow)
            else:
                value = self.expression(inner, named=inner["alias"] == each["name"])
            if each["name"]:
                name = exp.Identifier(this=each["name"], quoted=False)
                value = exp.PropertyEQ(this=name, expression=value)
            made.append(value)
        return made

    # ------------------------------------------------------------------ functions

    def function(self, found: Node) -> exp.Expr:
        """Convert a call that is not a window function."""
        self.check_call(found)
        return self._function(found)

    def check_call(self, found: Node) -> None:
        """Raise UnsupportedSqlError or SqlSyntaxError for a call that is not allowed in a query."""
        name = str(found["function_name"]).lower()
        if not self.accepts.calls or (found.get("is_operator") and not name.isidentifier()):
            return
        if name == "getvariable":
            given = [each["expression"].get("literal", {}) for each in found["arguments"]]
            if [each.get("kind") for each in given] != ["STRING"]:
                what = "getvariable() takes the name of a variable"
                raise syntax_error(what, self.offset(found), ("a text",))
            return
        # A function of other systems that sqlglot knows may run on Spark; DuckDB itself refuses it.
        path, given = found["qualified_name"]["path"], found["arguments"]
        is_session = name in SESSION_CALLS and len(path) == 1 and not given
        if not is_session and (is_known(name) or name.upper() not in self._builders):
            check_function(name, self.offset(found))
        if name in CALL_BY_TEXT:
            aggregate = named_aggregate(found)
            if aggregate is None:
                raise self.refuse(UNNAMED_AGGREGATE, found, BY_TEXT_HINT)
            check_function(aggregate, self.offset(found))

    def _function(self, found: Node) -> exp.Expr:
        name = found["function_name"]
        if found["is_operator"] and not name.replace("_", "").isalnum():
            return self._operator_call(found, name)
        name, begin = name.lower(), self.begin(found)
        if name in _UNITS and begin is not None and self.begins_with(begin, "INTERVAL"):
            return self.placed(self._interval(found, _UNITS[name]), found)
        given = self._arguments(found)
        is_plain = not (
            found["distinct"]
            or found["filter"]
            or found["export_state"]
            or found["order_bys"]["orders"]
        )
        if is_plain and begin is not None:
            form = self._form(found, name, given, begin)
            if form is not None:
                return form
        return self.call_placed(self._modified(found, name, given), found)

    def _form(self, found: Node, name: str, given: list[exp.Expr], begin: int) -> exp.Expr | None:
        """Convert a function with special syntax; None for an ordinary call."""
        first = self.text[begin]
        match name:
            case "list_value" if first == "[":
                return exp.Array(expressions=given, bracket_notation=True)
            case "struct_pack" if first == "{":
                return exp.Struct(expressions=given)
            case "row" if first == "(" and len(given) > 1:
                return exp.Tuple(expressions=given)
            case "map" if len(given) == 2 and not self.has_place(
                found["arguments"][0]["expression"]
            ):
                return self.call_placed(self._map(found), found)
            case "contains" if len(given) == 2 and begin == self.begin(
                found["arguments"][0]["expression"]
            ):
                return self._in_list(found, *given)
            case "timezone" if len(given) == 2 and not self.begins_with(begin, "TIMEZONE"):
                return exp.AtTimeZone(this=bracketed(given[1], 10), zone=given[0])
            case _ if name in _ESCAPES and len(given) == 3:
                return _escape(name, given)
            case "regexp_matches" if first in "~!":
                return exp.RegexpLike(
                    this=bracketed(given[0], 6), expression=bracketed(given[1], 6)
                )
            case "regexp_full_match" if self.begins_with(begin, "SIMILAR"):
                return exp.RegexpFullMatch(this=given[0], expression=given[1])
            case _:
                return None

    def _in_list(self, found: Node, values: exp.Expr, value: exp.Expr) -> exp.Expr:
        """Convert ``value IN values`` without parentheses."""
        made = exp.In(this=bracketed(value, 6))
        if self.is_plain_list(found["arguments"][0]["expression"]):
            made.set("expressions", values.expressions)
        else:
            made.set("field", values)
        return made

    def _map(self, found: Node) -> exp.Expr:
        """Convert ``MAP {k: v}``, which DuckDB's parser splits into lists of keys and values."""
        keys, values = (each["expression"]["arguments"] for each in found["arguments"])
        pairs = [
            exp.PropertyEQ(
                this=self.expression(key["expression"]), expression=self.expression(v["expression"])
            )
            for key, v in zip(keys, values, strict=True)
        ]
        return exp.ToMap(this=exp.Struct(expressions=pairs))

    def _interval(self, found: Node, unit: str) -> exp.Expr:
        """Convert ``INTERVAL 3 DAY``, whose number DuckDB's parser casts and truncates."""
        inner = found["arguments"][0]["expression"]
        while not self.has_place(inner) and inner["class"] in ("CAST", "FUNCTION"):
            is_cast = inner["class"] == "CAST"
            inner = inner["child"] if is_cast else inner["arguments"][0]["expression"]
        value = self.expression(inner)
        if isinstance(value, exp.Literal):
            value = exp.Literal.string(value.name)
        elif isinstance(value, exp.Neg) and isinstance(value.this, exp.Literal):
            value = exp.Literal.string("-" + value.this.name)
        elif not isinstance(value, exp.Column | exp.Placeholder):
            value = exp.Paren(this=value)
        return exp.Interval(this=value, unit=exp.Var(this=unit))

    def _operator_call(self, found: Node, name: str) -> exp.Expr:
        given = self._arguments(found)
        if len(given) == 1:
            return self._unary(found, name, given[0])
        if name in ("~", "!~"):
            made: exp.Expr = exp.RegexpLike(this=given[0], expression=given[1])
            return made if name == "~" else exp.Not(this=made)
        kind = _NEGATED.get(name) or _BINARY.get(name)
        if kind is None or len(given) != 2:
            raise self.refuse(f"the operator {name}", found)
        level = LEVELS.get(kind, 6)
        made = kind(this=bracketed(given[0], level), expression=bracketed(given[1], level + 1))
        if name in _NEGATED:
            return exp.Not(this=made)
        if kind is exp.DPipe:
            made.set("safe", True)
        elif kind is exp.Div:
            made.set("typed", False)
            made.set("safe", False)
        return made

    def _unary(self, found: Node, name: str, value: exp.Expr) -> exp.Expr:
        if name == "+":
            return value
        if name == "!":
            return exp.Anonymous(this="factorial", expressions=[value])
        kind = _UNARY.get(name)
        if kind is None:
            raise self.refuse(f"the operator {name}", found)
        return kind(this=bracketed(value, 10))

    # ------------------------------------------------------------------ aggregates

    def _modified(self, found: Node, name: str, given: list[exp.Expr]) -> exp.Expr:
        """Convert a call with its DISTINCT, ORDER BY and FILTER."""
        orders = found["order_bys"]["orders"]
        if orders and name in _WITHIN_GROUP and self._says_within(found):
            aggregate = _WITHIN_GROUP[name](this=given[0] if given else None)
            call: exp.Expr = exp.WithinGroup(this=aggregate, expression=self.order(orders))
        else:
            call = self._plain(found, name, self._ordered(found, name, given, orders))
        return self._filtered(call, found["filter"])

    def _filtered(self, call: exp.Expr, condition: Node | None) -> exp.Expr:
        if not condition:
            return call
        return exp.Filter(this=call, expression=exp.Where(this=self.expression(condition)))

    def _ordered(
        self, found: Node, name: str, given: list[exp.Expr], orders: Sequence[Node]
    ) -> list[exp.Expr]:
        """Return the arguments with DISTINCT and ORDER BY applied to them."""
        if not given:
            return given
        if found["distinct"]:
            first = 1 if name in _CONCATENATING else len(given)
            given = [exp.Distinct(expressions=given[:first]), *given[first:]]
        if orders:
            place = 0 if name in _CONCATENATING else -1
            order = self.order(orders)
            order.set("this", given[place])
            given[place] = order
        return given

    def order(self, orders: Sequence[Node]) -> exp.Order:
        """Convert ORDER BY; ``ORDER BY ALL`` is a star without an offset in DuckDB's tree."""
        made = []
        for each in orders:
            inner = each["expression"]
            is_all = inner["class"] == "STAR" and not self.has_place(inner)
            value = exp.Var(this="ALL") if is_all else self.expression(inner)
            is_descending = each["type"] == "DESCENDING" or None
            nulls_first = each["null_order"] == "NULLS FIRST"
            made.append(exp.Ordered(this=value, desc=is_descending, nulls_first=nulls_first))
        return exp.Order(expressions=made)

    def _says_within(self, found: Node) -> bool:
        begin = self.begin(found)
        if begin is None:
            return False
        words = tokens_in(self.text, begin, self.end(found))
        return any(each.word == "WITHIN" for each in words)

    def _plain(self, found: Node, name: str, given: list[exp.Expr]) -> exp.Expr:
        """Convert a call to sqlglot's class for it, or to an Anonymous."""
        path = found["qualified_name"]["path"]
        if len(path) > 1:
            if path[0].lower() in SCHEMAS:
                return exp.Anonymous(this=found["function_name"], expressions=given)
            given = [self._object_of_method(found, path[:-1]), *given]
        has_names = any(isinstance(each, exp.PropertyEQ) for each in given)
        match name, len(given):
            case ("count_star", _) | ("count", 0):
                return exp.Count(this=exp.Star(), big_int=True)
            case "date_part", 2 if self._is_extract(found, given[0]):
                unit = exp.Var(this=given[0].name.upper())
                return exp.Extract(this=unit, expression=given[1])
            case "string_agg" | "listagg" | "group_concat", 1 | 2:
                return exp.GroupConcat(this=given[0], separator=given[1] if given[1:] else None)
            case "struct_pack", _:
                return exp.Struct(expressions=given)
            case "position", 2:
                return exp.StrPosition(this=given[0], substr=given[1])
        build: Any = None if has_names or name in _NO_BUILDER else self._builders.get(name.upper())
        made = None if build is None else _built(build, given)
        return made or exp.Anonymous(this=found["function_name"], expressions=given)

    def _object_of_method(self, found: Node, names: Sequence[str]) -> exp.Expr:
        """The column before ``.method()``, which DuckDB's tree has as schemas of the function."""
        column = {
            "class": "COLUMN_REF", "type": "COLUMN_REF", "alias": "", "column_names": list(names),
            "query_location": found["query_location"], "query_location_length": 0,
        }  # fmt: skip
        return self.expression(column)

    def _is_extract(self, found: Node, unit: exp.Expr) -> bool:
        begin = self.begin(found)
        if begin is None or not isinstance(unit, exp.Literal):
            return False
        return self.begins_with(begin, "EXTRACT")

    # ------------------------------------------------------------------ windows

    def window(self, found: Node) -> exp.Expr:
        """Convert a call with OVER."""
        self.check_call(found)
        name, given = found["function_name"].lower(), self._arguments(found)
        for extra in ("offset_expr", "default_expr"):
            if found[extra]:
                given.append(self.expression(found[extra]))
        given = self._ordered(found, name, given, found["arg_orders"])
        call = self.call_placed(self._plain(found, name, given), found)
        call = self._filtered(call, found["filter_expr"])
        if found["ignore_nulls"]:
            call = exp.IgnoreNulls(this=call)
        elif found["has_ignore_nulls"]:
            call = exp.RespectNulls(this=call)
        made = exp.Window(this=call, over="OVER")
        if found["partitions"]:
            made.set("partition_by", [self.expression(each) for each in found["partitions"]])
        if found["orders"]:
            made.set("order", self.order(found["orders"]))
        if (found["start"], found["end"], found["exclude_clause"]) != _DEFAULT_FRAME:
            made.set("spec", self._frame(found))
        return made

    def _frame(self, found: Node) -> exp.WindowSpec:
        start, end = found["start"], found["end"]
        kinds = [each for each in _FRAMES if start.endswith(each) or end.endswith(each)]
        first, first_side = self._bound(start, found["start_expr"])
        last, last_side = self._bound(end, found["end_expr"])
        exclude = found["exclude_clause"]
        return exp.WindowSpec(
            kind=kinds[0] if kinds else "RANGE",
            start=first,
            start_side=first_side,
            end=last,
            end_side=last_side,
            exclude=None if exclude == "NO_OTHER" else exp.Var(this=exclude.replace("_", " ")),
        )

    def _bound(self, word: str, value: Node | None) -> tuple[exp.Expr | str | None, str | None]:
        if word.startswith("CURRENT_ROW"):
            return "CURRENT ROW", None
        side = "PRECEDING" if "PRECEDING" in word else "FOLLOWING"
        if word.startswith("UNBOUNDED"):
            return "UNBOUNDED", side
        return None if value is None else self.expression(value), side


@functools.cache
def _takes_dialect(build: Any) -> bool:
    compiled = getattr(build, "__code__", None)
    return compiled is not None and "dialect" in compiled.co_varnames


def _built(build: Any, given: list[exp.Expr]) -> exp.Expr | None:
    """Call one of sqlglot's builders; None if it does not take all the arguments."""
    try:
        made = build(given, dialect=_DIALECT) if _takes_dialect(build) else build(given)
    except (TypeError, ValueError, IndexError, AttributeError):
        return None
    if made is None or (not given and made.error_messages()):
        return None
    return made if all(_holds(made, each, given) for each in given) else None


def _holds(made: exp.Expr, argument: exp.Expr, given: list[exp.Expr]) -> bool:
    """True if ``made`` contains the argument: the node itself, or its text as the unit or as the
    time format.
    """
    if isinstance(argument, exp.Literal) and argument.is_string:
        if argument is given[0] and isinstance(made.args.get("unit"), exp.Var):
            return True
        pattern = made.args.get("format")
        if isinstance(pattern, exp.Literal) and not any(pattern is each for each in given):
            return True
    node: exp.Expr = argument
    while node is not made:
        parent = node.parent
        if parent is None or not _has_child(parent, node):
            return False
        node = parent
    return True


def _has_child(parent: exp.Expr, node: exp.Expr) -> bool:
    values = parent.args.get(node.arg_key or "")
    return any(each is node for each in values) if isinstance(values, list) else values is node


def _escape(name: str, given: list[exp.Expr]) -> exp.Expr:
    kind, is_negated = _ESCAPES[name]
    like = kind(this=bracketed(given[0], 6), expression=bracketed(given[1], 6))
    made = exp.Escape(this=like, expression=given[2])
    return exp.Not(this=made) if is_negated else made
