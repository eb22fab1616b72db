"""Facts about one column in one file or manifest, and the outcome of a comparison with it.

The rules by which bounds and counts prove that no row matches, or that every row does, are all
here. They are those of the Iceberg spec and of Java's evaluators, applied to SQL's WHERE: NULL
matches only IS NULL, so a column of nulls cannot satisfy ``<>`` either.
"""

from __future__ import annotations

import operator
from bisect import bisect_left, bisect_right
from collections.abc import Callable
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Final

from icesql.frozen import Frozen
from icesql.iceberg import types as t
from icesql.iceberg.bounds import decode_bound
from icesql.iceberg.expressions.predicate import (
    ALWAYS_TRUE,
    And,
    Leaf,
    Operation,
    Or,
    Predicate,
)
from icesql.iceberg.expressions.render import render_value

if TYPE_CHECKING:
    from icesql.scan.plan import ScanPlan


Test = Callable[[Any], bool]
# Comparisons of a literal, on the left, with the least value, and with the greatest.
_LEAST: Final = {Operation.LT: operator.gt, Operation.LT_EQ: operator.ge, Operation.EQ: operator.ge}
_GREATEST: Final = {
    Operation.GT: operator.lt,
    Operation.GT_EQ: operator.le,
    Operation.EQ: operator.le,
}
# Text bounds are cut to 16 by default: only shorter ones are surely whole values.
_SURELY_WHOLE: Final = 16


class ColumnSummary(Frozen):
    """Facts about the values of one column; False and None mean "not known".

    ``lower`` and ``upper`` are decoded and enclose all values that are neither NULL nor NaN.
    ``valueless`` is true when there are only NULL and NaN. For types without NaN, ``no_nans`` is
    true. ``nulls_text`` is the reason why all values are NULL or NaN, such as "all 10 values are
    NULL"; ``show`` formats a bound for people if the type alone does not define it.
    """

    value_type: t.IcebergType
    lower: Any = None
    upper: Any = None
    no_nulls: bool = False
    all_null: bool = False
    no_nans: bool = False
    valueless: bool = False
    nulls_text: str = "all values are NULL or NaN"
    show: Callable[[Any], str] | None = None


def decoded_bounds(
    value_type: t.IcebergType, lower: bytes | None, upper: bytes | None
) -> tuple[Any, Any]:
    """Both bounds as values, None where there is none to use."""
    raw = (lower, upper)
    low, high = (None if each is None else decode_bound(value_type, each) for each in raw)
    if t.is_floating(value_type) and any(
        value is None and each is not None for value, each in zip((low, high), raw, strict=True)
    ):
        return None, None  # writers that let NaN into one bound may have spoilt the other
    return low, high


def why_none(leaf: Leaf, column: ColumnSummary) -> str | None:
    """Why no value of ``column`` satisfies ``leaf``; None when some might."""
    match leaf.operation:
        case Operation.IS_NULL:
            return "no value is NULL" if column.no_nulls else None
        case Operation.NOT_NULL:
            return column.nulls_text if column.all_null else None
        case Operation.IS_NAN:
            if column.all_null:
                return column.nulls_text
            return "no value is NaN" if column.no_nans else None
        case Operation.NOT_NAN:
            return column.nulls_text if column.valueless else None
        case Operation.NOT_EQ | Operation.NOT_IN | Operation.NOT_STARTS_WITH:
            return column.nulls_text if column.all_null else _why_none_differs(leaf, column)
        case _:
            return column.nulls_text if column.valueless else _why_out_of_bounds(leaf, column)


def bound_tests(operation: Operation, literal: Any) -> tuple[Test | None, Test | None]:
    """Tests of the lower and the upper bound, which both pass where a value may match.

    None for a bound that does not matter.
    """
    if operation is Operation.STARTS_WITH:
        # An upper bound may be cut.
        size = len(literal)
        return (
            lambda low: low[:size] <= literal,
            lambda high: high[:size] >= literal[: len(high)],
        )
    least, greatest = _LEAST.get(operation), _GREATEST.get(operation)
    return least and partial(least, literal), greatest and partial(greatest, literal)


def _why_out_of_bounds(leaf: Leaf, column: ColumnSummary) -> str | None:
    lower, upper, operation = column.lower, column.upper, leaf.operation
    if operation is Operation.IN:
        known = lower is not None or upper is not None
        return _why_no_literal_fits(leaf.literal, column) if known else None
    if isinstance(column.value_type, t.UUIDType):
        outside = operation is Operation.EQ and _outside_uuids(leaf.literal, lower, upper)
        return _bound("both", column) if outside else None
    least, greatest = bound_tests(operation, leaf.literal)
    if least is not None and lower is not None and not least(lower):
        return _bound("lower", column)
    if greatest is not None and upper is not None and not greatest(upper):
        return _bound("upper", column)
    return None


def _why_no_literal_fits(literals: frozenset[Any], column: ColumnSummary) -> str | None:
    lower, upper = column.lower, column.upper
    if isinstance(column.value_type, t.UUIDType):
        outside = all(_outside_uuids(each, lower, upper) for each in literals)
        return _bound("both", column) if outside else None
    if any_fits(sorted_literals(literals), lower, upper):
        return None
    if lower is None or upper is None:
        return _bound("upper" if lower is None else "lower", column)
    return _bound("both", column)


@lru_cache(maxsize=64)
def sorted_literals(literals: frozenset[Any]) -> list[Any]:
    """The literals of an IN list in order."""
    return sorted(literals)


def any_fits(literals: list[Any], lower: Any, upper: Any) -> bool:
    """Whether one of the sorted ``literals`` lies within the bounds; None means unbounded."""
    first = 0 if lower is None else bisect_left(literals, lower)
    return first < len(literals) and (upper is None or literals[first] <= upper)


def _why_none_differs(leaf: Leaf, column: ColumnSummary) -> str | None:
    """Why every value equals what ``leaf`` excludes, or starts with it."""
    lower, upper, literal = column.lower, column.upper, leaf.literal
    if not column.no_nans or lower is None or upper is None:
        return None
    # Rows with NULL do not match either, so null counts do not matter.
    match leaf.operation:
        case Operation.NOT_STARTS_WITH:
            # Both bounds share the prefix, so does everything between them; an upper bound that
            # was cut and raised is no shorter than the prefix then.
            starts = lower.startswith(literal) and upper.startswith(literal)
            return f"all values start with {_shown(column, literal)}" if starts else None
        case Operation.NOT_EQ if is_single_value(column) and lower == literal:
            return f"all values are {_shown(column, lower)}"
        case Operation.NOT_IN if is_single_value(column) and lower in literal:
            return f"all values are {_shown(column, lower)}"
        case _:
            return None


def is_single_value(column: ColumnSummary) -> bool:
    """Whether the bounds prove that all values but NULL and NaN are one value."""
    if column.lower is None or column.upper is None or column.lower != column.upper:
        return False
    if isinstance(column.value_type, t.StringType | t.BinaryType | t.FixedType):
        # Other writers may cut both bounds to the same prefix.
        return len(column.lower) < _SURELY_WHOLE
    return True


def _outside_uuids(literal: bytes, lower: bytes | None, upper: bytes | None) -> bool:
    """Whether a UUID lies outside the bounds however their writer ordered UUIDs.

    The spec orders UUIDs as unsigned numbers, Java as two signed longs.
    """
    if lower is None or upper is None or lower > upper:
        return False
    if lower <= literal <= upper:
        return False
    first, last = _signed_halves(lower), _signed_halves(upper)
    return first > last or not first <= _signed_halves(literal) <= last


def _signed_halves(uuid: bytes) -> tuple[int, int]:
    return int.from_bytes(uuid[:8], "big", signed=True), int.from_bytes(
        uuid[8:], "big", signed=True
    )


def _bound(which: str, column: ColumnSummary) -> str:
    if which == "both":
        lower, upper = _shown(column, column.lower), _shown(column, column.upper)
        return f"bounds are {lower} to {upper}"
    return f"{which} bound is {_shown(column, column.lower if which == 'lower' else column.upper)}"


def _shown(column: ColumnSummary, value: Any) -> str:
    return render_value(column.value_type, value) if column.show is None else column.show(value)


# ------------------------------------------------------------------ whole predicates


def why_not(
    predicate: Predicate,
    reason_of: Callable[[Leaf], str | None],
    text_of: Callable[[Leaf], str],
) -> tuple[str, str] | None:
    """The part of ``predicate`` that nothing satisfies, as text, and why; None if something might.

    For AND, reports the first failing side; for OR, both.
    """
    match predicate:
        case Leaf():
            reason = reason_of(predicate)
            return None if reason is None else (text_of(predicate), reason)
        case And(left, right):
            return why_not(left, reason_of, text_of) or why_not(right, reason_of, text_of)
        case Or(left, right):
            first = why_not(left, reason_of, text_of)
            second = first and why_not(right, reason_of, text_of)
            if first is None or second is None:
                return None
            reasons = first[1] if first[1] == second[1] else f"{first[1]}; {second[1]}"
            return f"{first[0]} OR {second[0]}", reasons
        case _ if predicate is ALWAYS_TRUE:
            return None
        case _:
            return "false", "the condition is never true"


# ------------------------------------------------------------------ lists of values
# Whether a list of values of a column can leave out files at all.
#
# If every file holds the whole range of a column, no value rules out a file.


# Above this average share of the files with one value, pruning is not tried.
_MOST_OF_ALL: Final = 0.5
_SAMPLED: Final = 100


def may_leave_out_files(plan: ScanPlan, field_id: int) -> bool:
    """Whether one value of a top-level column is in half of a plan's files or fewer.

    Partition values of the column, whatever their transform, and bounds decide.
    """
    if len(plan.files) < 2:
        return False
    return _differs_by_partition(plan, field_id) or _share(plan, field_id) <= _MOST_OF_ALL


def _differs_by_partition(plan: ScanPlan, field_id: int) -> bool:
    specs = plan.scan.table.metadata.specs
    places = {
        spec_id: [
            number
            for number, each in enumerate(spec.fields)
            if each.source_ids == (field_id,) and each.transform.lower() != "void"
        ]
        for spec_id, spec in specs.items()
    }
    seen: set[Any] = set()
    for task in plan.files:
        values = task.data_file.partition
        for place in places.get(task.spec_id, ()):
            seen.add((task.spec_id, place, values[place] if place < len(values) else None))
    return len(seen) > 1 and all(places.get(task.spec_id) for task in plan.files)


def _share(plan: ScanPlan, field_id: int) -> float:
    """The share of files that may hold a value, on average over some of their lower bounds."""
    kind = plan.scan.schema.field_by_id[field_id].type
    lows, highs, unknown = [], [], 0
    for each in plan.survivors:
        lower = each.entries.values_of("lower_bounds", field_id)
        upper = each.entries.values_of("upper_bounds", field_id)
        for index in each.indexes:
            low, high = decoded_bounds(kind, lower[index], upper[index])
            if low is None or high is None:
                unknown += 1
            else:
                lows.append(low)
                highs.append(high)
    if not lows:
        return 1.0
    lows.sort()
    highs.sort()
    step = max(1, len(lows) // _SAMPLED)
    around = [
        unknown + bisect_right(lows, value) - bisect_left(highs, value) for value in lows[::step]
    ]
    return sum(around) / len(around) / (len(lows) + unknown)
