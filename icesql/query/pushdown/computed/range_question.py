"""A query for the engine: can a row of a file satisfy a condition, by the ranges of its columns.

If a column has one value in all rows of a file, the condition is evaluated with that value.
For comparisons of monotone expressions both ends of each range are enough: the file is
skipped if the comparison fails in the same way at all corners.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from icesql.frozen import Frozen
from icesql.iceberg import types as t
from icesql.query.pushdown.computed.expression import (
    COMPARISONS,
    OPPOSITE,
    Expression,
    call,
    string,
    whole,
)
from icesql.query.pushdown.computed.monotone import NUMBERS, TIMES, Shape
from icesql.query.pushdown.computed.simpler import WILDCARDS, before_any
from icesql.query.pushdown.computed.sql import GROWING, NotWritable, type_sql, write
from icesql.scan.pruning.file_conditions import FileCondition, ValueRange

if TYPE_CHECKING:
    from icesql.context import QueryContext

_MOST_COLUMNS: Final = 4
_MOST_CORNERS: Final = 3  # columns of one comparison, which has 2 to the power of them corners
_LONGEST: Final = 20_000
_SLACK_DAYS: Final = 4
_DAY: Final = 86_400_000_000
# Days in the years 1 and 9999.
_FIRST_DAY: Final = -719_000
_LAST_DAY: Final = 2_932_800


def file_condition(
    written: Expression, implied: Expression, sql: str, *, utc: bool
) -> FileCondition | None:
    """The condition to evaluate for files; ``implied`` follows from ``written``. None without one.

    ``utc``: the session's clock is never set back.
    """
    fields = {each.value.field_id: each.value for each in written.inputs}
    if not 0 < len(fields) <= _MOST_COLUMNS:
        return None
    if not all(type_sql(each.type) for each in fields.values()):
        return None
    if sum(each.name in GROWING for each in written.walk()) > 1:
        return None
    places = {field_id: place for place, field_id in enumerate(fields)}
    writer = _Question(places, utc)
    try:
        exact = writer.exact(written)
    except NotWritable:
        exact = None
    box = writer.may_hold(implied)
    if exact is None and box == "TRUE":
        return None
    every = " AND ".join(f"c{place}" for place in places.values())
    select = f"CASE WHEN {every} THEN {exact} ELSE {box} END" if exact is not None else box
    if len(select) > _LONGEST:
        return None
    types = tuple(each.type for each in fields.values())
    question = _sql(select, types)
    decide = _Decider(question, types, writer.widened, box != "TRUE", exact is not None)
    return FileCondition(sql, tuple(fields), decide)


class _Decider(Frozen):
    """Evaluates the condition for the ranges of files. See ``FileCondition.decide``."""

    question: str
    types: tuple[t.IcebergType, ...]
    widened: bool
    has_boxes: bool
    has_exact: bool

    def __call__(
        self, ranges: Sequence[tuple[ValueRange, ...]], query: QueryContext
    ) -> Sequence[bool] | None:
        places = [at for at, each in enumerate(ranges) if self._is_worth_it(each)]
        if not places:
            return None
        parameters: list[list[Any]] = []
        for column, column_type in enumerate(self.types):
            rows = [ranges[at][column] for at in places]
            slack = self._slack(column_type)
            raw = [(each.low, each.high, each.low if each.constant else None) for each in rows]
            known = [
                each.constant and (each.low is None or _plain(each.low, column_type, 0) is not None)
                for each in rows
            ]
            lows, highs, values = (list(each) for each in zip(*raw, strict=True))
            parameters += [
                [_plain(each, column_type, -slack) for each in lows],
                [_plain(each, column_type, slack) for each in highs],
                [_plain(each, column_type, 0) for each in values],
                known,
                [each.nulls for each in rows],
                [each.nans for each in rows],
            ]
        found = query.evaluate and query.evaluate(self.question, parameters, query)
        if not found or len(found) != len(places):
            return None
        verdicts = [True] * len(ranges)
        for at, (verdict,) in zip(places, found, strict=True):
            verdicts[at] = verdict is not False
        return verdicts

    def _is_worth_it(self, ranges: tuple[ValueRange, ...]) -> bool:
        if self.has_exact and all(each.constant for each in ranges):
            return True
        return self.has_boxes and any(each.constant or each.low is not None for each in ranges)

    def _slack(self, column_type: t.IcebergType) -> int:
        if not self.widened:
            return 0
        if isinstance(column_type, t.DateType):
            return _SLACK_DAYS
        if isinstance(column_type, t.TimestampType | t.TimestamptzType):
            return _SLACK_DAYS * _DAY
        return 0


class _Question:
    """Writes the SQL of the condition. The column at place 0 has these names in it: its low and
    high end, ``l0`` and ``h0``, NULL if not known; ``v0``, its one value; ``c0``, true if it has
    one; ``n0`` and ``a0``, true if it may have NULL and NaN.
    """

    def __init__(self, places: dict[int, int], utc: bool) -> None:
        self._places, self._utc = places, utc
        self.widened = False

    def _place(self, each: Expression) -> int:
        return self._places[each.value.field_id]

    def exact(self, condition: Expression) -> str:
        """SQL that is true if the condition is true of the values. Raises NotWritable."""
        return f"({write(condition, lambda each: f'v{self._place(each)}')} IS TRUE)"

    def may_hold(self, condition: Expression) -> str:
        """SQL that is true if the condition may be true of a row; TRUE if nothing is known."""
        match condition.name:
            case "and" | "or":
                parts = [self.may_hold(each) for each in condition.arguments]
                if condition.name == "or" and "TRUE" in parts:
                    return "TRUE"
                parts = [each for each in parts if each != "TRUE"]
                if not parts:
                    return "TRUE"
                return "(" + f" {condition.name.upper()} ".join(parts) + ")"
            case _:
                return self._leaf(condition)

    def _leaf(self, condition: Expression) -> str:
        try:
            exact = self.exact(condition)
            box = self._box(condition)
        except NotWritable:
            return "TRUE"
        places = {self._place(each) for each in condition.inputs}
        if not places:
            return exact
        every = " AND ".join(f"c{place}" for place in sorted(places))
        return f"(CASE WHEN {every} THEN {exact} ELSE {box} END)"

    # -------------------------------------------------------------- comparisons of ranges

    def _box(self, condition: Expression) -> str:
        """SQL that is true if a comparison may be true between the ends of the ranges."""
        parts = condition.arguments
        match condition.name:
            case "~~" if len(parts) == 2 and parts[1].text is not None:
                return self._starts(parts[0], before_any(parts[1].text, WILDCARDS))
            case "starts_with" if parts[1].text:
                return self._starts(parts[0], parts[1].text)
            case name if name in COMPARISONS and len(parts) == 2:
                return self._compared(name, *parts)
            case _:
                return "TRUE"

    def _starts(self, inner: Expression, prefix: str) -> str:
        if not prefix or not prefix.isascii():
            return "TRUE"
        return self._compared("=", call("left", inner, whole(len(prefix))), string(prefix))

    def _compared(self, operation: str, left: Expression, right: Expression) -> str:
        shape = Shape(self._utc)
        kinds = shape.kind(left), shape.kind(right)
        inputs = [*left.inputs, *right.inputs]
        places = sorted({self._place(each) for each in inputs})
        if not _meet(kinds, left, right) or len(places) != len(inputs):
            return "TRUE"
        if set(kinds) <= set(TIMES) and len(set(kinds)) > 1 and "zoned" in kinds and not self._utc:
            shape.zoned = True
        if len(places) > _MOST_CORNERS or (len(places) > 1 and not shape.strict):
            return "TRUE"
        self.widened = self.widened or shape.zoned
        floating = any(map(_is_float, inputs))
        return self._at_corners(operation, left, right, places, shape, floating=floating)

    def _at_corners(
        self,
        operation: str,
        left: Expression,
        right: Expression,
        places: Sequence[int],
        shape: Shape,
        *,
        floating: bool,
    ) -> str:
        corners = [
            dict(zip(places, ends, strict=True))
            for ends in itertools.product("lh", repeat=len(places))
        ]

        def all_are(one: str) -> str:
            """SQL that is true if the comparison is true at all corners."""
            return " AND ".join(
                f"(TRY({self._at(call(one, left, right), corner)}) IS TRUE)" for corner in corners
            )

        fails = map(all_are, "<>" if operation == "=" else (OPPOSITE[operation],))
        never = [f"({' OR '.join(f'({each})' for each in fails)})"]
        # The comparison is evaluated only if all guards are true.
        guards = [f"l{place} IS NOT NULL AND h{place} IS NOT NULL" for place in places]
        guards += self._guards(shape, places, corners)
        whole_condition = call(operation, left, right)
        if len(places) == 1:
            (place,) = places
            if not shape.strict:
                at_null = self._at(whole_condition, {place: None})
                never.append(f"(NOT n{place} OR TRY({at_null}) IS NOT TRUE)")
            if floating:
                at_nan = self._at(whole_condition, {place: "nan"})
                never.append(f"(NOT a{place} OR TRY({at_nan}) IS NOT TRUE)")
        elif floating:
            never += [f"NOT a{place}" for place in places]
        if floating:
            floats = {self._place(each) for each in whole_condition.inputs if _is_float(each)}
            guards += [f"isfinite({end}{place})" for place in sorted(floats) for end in "lh"]
        holds = f"NOT ({' AND '.join(never)})"
        return f"(CASE WHEN {' AND '.join(guards)} THEN {holds} ELSE TRUE END)"

    def _at(self, condition: Expression, corner: Mapping[int, str | None]) -> str:
        def input_of(each: Expression) -> str:
            place = self._place(each)
            end = corner[place]
            if end is None or end == "nan":
                value = "NULL" if end is None else "'NaN'"
                return f"CAST({value} AS {type_sql(each.value.type)})"
            return f"{end}{place}"

        return write(condition, input_of)

    def _guards(
        self, shape: Shape, places: Sequence[int], corners: Sequence[Mapping[int, str]]
    ) -> list[str]:
        for each in (*shape.guards, *shape.years):
            if len({self._place(one) for one in each.inputs}) > 1:
                return ["FALSE"]
        low, high = (dict.fromkeys(places, end) for end in "lh")
        found = [
            f"(TRY({self._at(each, low)} = {self._at(each, high)}) IS TRUE)"
            for each in shape.guards
        ]
        for each in shape.years:
            for end in (low, high):
                year = self._at(call("year", each), end)
                found.append(f"(TRY({year} BETWEEN 1000 AND 9999) IS TRUE)")
        for number, least, most in shape.ranges:
            for corner in corners:
                inside = f"{self._at(number, corner)} BETWEEN {least} AND {most}"
                found.append(f"(TRY({inside}) IS TRUE)")
        return found + [
            f"(TRY(isfinite({self._at(each, corner)})) IS TRUE)"
            for each in shape.finite
            for corner in corners
        ]


def _is_float(each: Expression) -> bool:
    return t.is_floating(each.value.type)


def _meet(kinds: tuple[str, str], left: Expression, right: Expression) -> bool:
    """Whether the comparison of two sides follows the order that each of them keeps."""
    if "" in kinds:
        return False
    for family in (NUMBERS, TIMES, ("text",), ("interval",)):
        if set(kinds) <= set(family):
            return True
    # A literal is cast to the type of the other side.
    return left.text is not None or right.text is not None


# ------------------------------------------------------------------ values


def _carried(column_type: t.IcebergType) -> tuple[str, str, str]:
    """The type in which values are sent to the engine, and SQL around them for their own type."""
    match column_type:
        case t.DateType():
            return "BIGINT", "(DATE '1970-01-01' + CAST(", " AS INTEGER))"
        case t.TimestampType():
            return "BIGINT", "make_timestamp(", ")"
        case t.TimestamptzType():
            return "BIGINT", "make_timestamptz(", ")"
        case t.FloatType():
            return "DOUBLE", "CAST(", " AS FLOAT)"
        case t.DecimalType():
            return "VARCHAR", "CAST(", f" AS {type_sql(column_type)})"
        case t.IntegerType():
            return "BIGINT", "CAST(", " AS INTEGER)"
        case _:
            return type_sql(column_type), "", ""


def _plain(value: Any, column_type: t.IcebergType, slack: int) -> Any:
    if value is None:
        return None
    match column_type:
        case t.DecimalType():
            return f"{value:f}"
        case t.TimestampType() | t.TimestamptzType() | t.DateType():
            # Times outside the calendar may cause a fatal error in the engine.
            unit = 1 if isinstance(column_type, t.DateType) else _DAY
            return value + slack if _FIRST_DAY < value // unit < _LAST_DAY else None
        case _:
            return value


def _sql(select: str, types: Sequence[t.IcebergType]) -> str:
    """A query whose parameters are six lists for each column."""
    raw, typed = [], []
    for place, column_type in enumerate(types):
        carrier, before, after = _carried(column_type)
        for number, name in enumerate("lhvcna"):
            parameter = f"${place * 6 + number + 1}"
            kind = carrier if name in "lhv" else "BOOLEAN"
            raw.append(f"unnest(CAST({parameter} AS {kind}[])) AS {name}{place}")
            made = f"{before}{name}{place}{after}" if name in "lhv" else f"{name}{place}"
            typed.append(f"{made} AS {name}{place}")
    inner = f"SELECT {', '.join(raw)}"
    return f"SELECT {select} FROM (SELECT {', '.join(typed)} FROM ({inner}))"
