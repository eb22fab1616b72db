"""Whether a list of values of a column can leave out files at all.

If every file holds the whole range of a column, no value rules out a file.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING, Any, Final

from icesql.scan.pruning.column_summary import decoded_bounds

if TYPE_CHECKING:
    from icesql.scan.plan import ScanPlan

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
