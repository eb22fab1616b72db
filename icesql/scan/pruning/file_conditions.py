"""Conditions that are asked of the values and bounds of a file, where no predicate can say them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from icesql.iceberg.expressions.predicate import Leaf, Operation, Term
from icesql.iceberg.manifest.partition_values import UNSTORED
from icesql.scan.pruning.column_summary import is_single_value
from icesql.scan.pruning.metrics_evaluator import ColumnStatistics

if TYPE_CHECKING:
    from icesql.context import QueryContext
    from icesql.iceberg.manifest.entries import FilterColumns
    from icesql.iceberg.schema import Schema
    from icesql.scan.spec_scan import SpecScan

# More different ones take longer to ask about than they are likely to save.
_MOST_ASKED: Final = 20_000


class ValueRange(Struct, frozen=True):
    """What the rows of a file hold in one column, in the internal form of its type.

    All values but NULL and NaN are between ``low`` and ``high``, which are None together where that
    is not known. ``nulls`` and ``nans``: whether there may be any. ``constant``: all rows hold
    ``low``, which is None for NULL.
    """

    low: Any = None
    high: Any = None
    nulls: bool = True
    nans: bool = False
    constant: bool = False


class FileCondition(Struct, frozen=True):
    """One condition. ``sql`` is for people.

    ``decide`` is given the ranges of the columns ``field_ids``, in their order, as they are in
    different files, and says for each whether a row may satisfy the condition; None for "not known
    of any".
    """

    sql: str
    field_ids: tuple[int, ...]
    decide: Callable[[Sequence[tuple[ValueRange, ...]], QueryContext], Sequence[bool] | None]


def passing(
    conditions: Iterable[FileCondition],
    entries: FilterColumns,
    indexes: Sequence[int],
    spec: SpecScan,
    schema: Schema,
    query: QueryContext,
) -> tuple[list[int], dict[int, FileCondition]]:
    """Those of ``indexes`` whose files may satisfy all conditions, and what ruled out the rest."""
    kept, ruled_out = list(indexes), dict[int, FileCondition]()
    ranges = Ranges(entries, spec, schema)
    for condition in conditions:
        if not kept:
            break
        asked: dict[tuple[ValueRange, ...], list[int]] = {}
        for index in kept:
            found = tuple(ranges.of(field_id, index) for field_id in condition.field_ids)
            asked.setdefault(found, []).append(index)
        if len(asked) > _MOST_ASKED:
            continue
        verdicts = condition.decide(list(asked), query)
        if verdicts is None:
            continue
        for members, may_match in zip(asked.values(), verdicts, strict=True):
            if not may_match:
                ruled_out.update(dict.fromkeys(members, condition))
        kept = [index for index in kept if index not in ruled_out]
    return kept, ruled_out


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
        if column.all_null:
            return ValueRange(constant=True)
        low, high = column.lower, column.upper
        nulls, nans = not column.no_nulls, not column.no_nans
        if low is None or high is None or low != low or high != high or low > high:
            return ValueRange(nulls=nulls, nans=nans)
        single = is_single_value(column) and not nulls and not nans
        return ValueRange(low, high, nulls, nans, single and not _is_zero(low))

    def _of_partition(self, value: Any) -> ValueRange | None:
        if value is UNSTORED or value != value:
            return None
        if value is None:
            return ValueRange(constant=True)
        # A zero has two signs, of which a partition keeps one.
        return ValueRange(value, value, nulls=False, constant=not _is_zero(value))


def _is_zero(value: Any) -> bool:
    return isinstance(value, float) and value == 0
