"""Conditions that are evaluated on values and bounds, where no predicate can express them.

They are evaluated for manifests by the summaries of their partition fields, then for files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

from icesql.frozen import Frozen
from icesql.iceberg import types as t
from icesql.iceberg.bounds import MICROS_PER_DAY, scaled, unscaled
from icesql.iceberg.calendar import days_from_civil
from icesql.iceberg.expressions.predicate import Leaf, Operation, Term
from icesql.iceberg.manifest.partition_values import UNSTORED
from icesql.iceberg.transforms import Identity, TimeTransform, Transform, Truncate, parse_transform
from icesql.scan.pruning.column_summary import ColumnSummary, is_single_value
from icesql.scan.pruning.metrics_evaluator import ColumnStatistics

if TYPE_CHECKING:
    from icesql.context import QueryContext
    from icesql.iceberg.manifest.entries import FilterColumns
    from icesql.iceberg.manifest.manifest import ManifestFile
    from icesql.iceberg.schema import Schema
    from icesql.scan.spec_scan import SpecScan

# More distinct ranges take longer to evaluate than they are likely to save.
_MOST_RANGES: Final = 20_000
_GREATEST: Final = {t.IntegerType: (1 << 31) - 1, t.LongType: (1 << 63) - 1}
_MICROS_PER_HOUR: Final = MICROS_PER_DAY // 24


class ValueRange(Frozen):
    """The range of one column in a file or manifest, in the internal form of its type.

    All values but NULL and NaN are between ``low`` and ``high``, which are None together where that
    is not known. ``nulls`` and ``nans``: whether there may be any. ``constant``: all rows hold
    ``low``, which is None for NULL.
    """

    low: Any = None
    high: Any = None
    nulls: bool = True
    nans: bool = False
    constant: bool = False


class FileCondition(Frozen):
    """One condition. ``sql`` is for people.

    ``decide`` takes the ranges of the columns ``field_ids``, in their order, for several files or
    manifests, and returns for each whether a row may satisfy the condition; None if it cannot
    decide for any.
    """

    sql: str
    field_ids: tuple[int, ...]
    decide: Callable[[Sequence[tuple[ValueRange, ...]], QueryContext], Sequence[bool] | None]


def passing(
    conditions: Iterable[FileCondition],
    members: Iterable[int],
    range_of: Callable[[int, int], ValueRange],
    query: QueryContext,
) -> tuple[list[int], dict[int, FileCondition]]:
    """Those of ``members`` that may satisfy all conditions, and what ruled out the others.

    ``range_of`` gives the range of a column, by its field id, in a member.
    """
    kept, ruled_out = list(members), dict[int, FileCondition]()
    for condition in conditions:
        if not kept:
            break
        groups: dict[tuple[ValueRange, ...], list[int]] = {}
        for member in kept:
            found = tuple(range_of(field_id, member) for field_id in condition.field_ids)
            groups.setdefault(found, []).append(member)
        if len(groups) > _MOST_RANGES:
            continue
        verdicts = condition.decide(list(groups), query)
        if verdicts is None:
            continue
        for same, may_match in zip(groups.values(), verdicts, strict=True):
            if not may_match:
                ruled_out.update(dict.fromkeys(same, condition))
        kept = [member for member in kept if member not in ruled_out]
    return kept, ruled_out


def summary_ranges(manifest: ManifestFile, spec: SpecScan) -> dict[int, ValueRange]:
    """The ranges of columns in the files of a manifest, by field id, as its summaries have them."""
    from icesql.scan.pruning.partition_evaluator import summarize

    summaries = manifest.partitions
    found: dict[int, ValueRange] = {}
    if summaries is None or len(summaries) != len(spec.types):
        return found
    for each, summary, value_type in zip(spec.spec.fields, summaries, spec.types, strict=True):
        source = spec.partition_schema.field_by_id.get(each.source_id)
        if source is None or len(each.source_ids) != 1 or isinstance(value_type, t.UnknownType):
            continue
        made = _range_of(summarize(summary, value_type))
        if made.low is None:
            continue
        transform = parse_transform(each.transform)
        ends = _sources(transform, made.low, made.high, source.type)
        if ends is None:
            continue
        constant = made.constant and isinstance(transform, Identity)
        made = ValueRange(*ends, made.nulls, made.nans, constant)
        known = found.get(source.field_id)
        found[source.field_id] = made if known is None else _both(known, made)
    return found


def _sources(
    transform: Transform, low: Any, high: Any, source_type: t.IcebergType
) -> tuple[Any, Any] | None:
    """The least and the greatest value whose partition values lie between two; None if unknown."""
    match transform, source_type:
        case Identity(), _:
            return low, high
        case Truncate(width), t.IntegerType() | t.LongType():
            # Beyond is where Java puts values that it truncates below the least one.
            end = high + width - 1
            return (low, end) if end <= _GREATEST[type(source_type)] else None
        case Truncate(width), t.DecimalType():
            scale = source_type.scale
            return low, scaled(unscaled(high, scale) + width - 1, scale)
        case Truncate(width), t.StringType():
            from icesql.iceberg.bounds import upper_text

            # A shorter text was not cut.
            end = high if len(high) < width else upper_text(high + " ", len(high))
            return None if end is None else (low, end)
        case TimeTransform(unit), t.DateType() | t.TimestampType() | t.TimestamptzType():
            is_date = isinstance(source_type, t.DateType)
            # Writers up to Iceberg 0.10 rounded toward zero.
            first = low - (low <= 0 and not (is_date and unit == "day"))
            if unit == "hour":
                return first * _MICROS_PER_HOUR, (high + 1) * _MICROS_PER_HOUR - 1
            step = 1 if is_date else MICROS_PER_DAY
            return _first_day(unit, first) * step, _first_day(unit, high + 1) * step - 1
        case _:
            return None


def _first_day(unit: str, number: int) -> int:
    match unit:
        case "year":
            return days_from_civil(1970 + number, 1, 1)
        case "month":
            return days_from_civil(1970 + number // 12, number % 12 + 1, 1)
        case _:
            return number


def _both(one: ValueRange, two: ValueRange) -> ValueRange:
    """The intersection of two partition fields' ranges of one column."""
    low, high = max(one.low, two.low), min(one.high, two.high)
    if low > high:
        return ValueRange(nans=True)  # they contradict each other
    nulls, nans = one.nulls and two.nulls, one.nans and two.nans
    return ValueRange(low, high, nulls, nans, one.constant or two.constant)


def _range_of(column: ColumnSummary) -> ValueRange:
    if column.all_null:
        return ValueRange(constant=True)
    low, high = column.lower, column.upper
    nulls, nans = not column.no_nulls, not column.no_nans
    if low is None or high is None or low != low or high != high or low > high:
        return ValueRange(nulls=nulls, nans=nans)
    single = is_single_value(column) and not nulls and not nans
    return ValueRange(low, high, nulls, nans, single and not _is_zero(low))


class Ranges:
    """The ranges of columns in the files of one manifest."""

    def __init__(self, entries: FilterColumns, spec: SpecScan, schema: Schema) -> None:
        self._entries, self._schema = entries, schema
        self._columns = ColumnStatistics(entries, schema)
        self._positions = {
            each.source_ids[0]: position
            for position, each in enumerate(spec.spec.fields)
            if each.transform == "identity" and len(each.source_ids) == 1
        }

    def of(self, field_id: int, index: int) -> ValueRange:
        """The range of a column in the file of an entry."""
        position = self._positions.get(field_id)
        if position is not None:
            found = self._of_partition(self._entries.partition[index][position])
            if found is not None:
                return found
        if self._entries.record_count[index] <= 0:
            return ValueRange(nans=True)
        leaf = Leaf(Operation.NOT_NULL, Term(field_id, ""))
        column = self._columns.summary(leaf, index)
        if column is None:
            return ValueRange(nans=True)
        return _range_of(column)

    def _of_partition(self, value: Any) -> ValueRange | None:
        if value is UNSTORED or value != value:
            return None
        if value is None:
            return ValueRange(constant=True)
        # A zero has two signs, of which a partition keeps one.
        return ValueRange(value, value, nulls=False, constant=not _is_zero(value))


def _is_zero(value: Any) -> bool:
    return isinstance(value, float) and value == 0
