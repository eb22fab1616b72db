"""Narrow plans by the keys of small scans, for any engine.

A scan is read first if it is small according to metadata, and if its keys join to a scan whose
partitions or bounds differ enough for a key to exclude files. Its rows stay with its plan, so it is
read only once. Keys pass through chains of small tables (region, nation, customer, orders).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from icesql.scan.planner import plan as plan_scan
from icesql.scan.pruning.spread import may_leave_out_files

if TYPE_CHECKING:
    from icesql.context import QueryContext
    from icesql.query.bound import BoundQuery, KeyEdge
    from icesql.scan.plan import ScanPlan

# Limits of scans that are read first: with a filter, and without one, where keys are rarely few.
_MOST_ROWS: Final = 1_000_000
_MOST_ROWS_UNFILTERED: Final = 100_000
_MOST_BYTES: Final = 16 << 20
# If the join uses only the least or greatest value, one column of few files is read.
_MOST_ROWS_OF_EXTREMES: Final = 4_000_000
# A target needs at least this many files, and this many times the rows of the source.
_FEWEST_FILES: Final = 3
_TIMES: Final = 4


def expected(bound: BoundQuery, plans: Sequence[ScanPlan]) -> tuple[KeyEdge, ...]:
    """The edges by which the query will probably skip files, according to metadata."""
    if not bound.edges or any(each.settings.verify == "full" for each in plans):
        return ()
    rows = [each.rows_in_files for each in plans]
    small = {number for number, each in enumerate(plans) if _is_small(each, rows[number])}
    found: dict[KeyEdge, None] = {}
    wanted = [each for each in bound.edges if each.source in small and _is_worth(each, plans, rows)]
    # A source may itself be narrowed by the keys of other small scans.
    while wanted:
        edge = wanted.pop()
        if edge not in found:
            found[edge] = None
            wanted += [
                each
                for each in bound.edges
                if each.target == edge.source
                and each.source in small
                and rows[each.source] < rows[each.target]
            ]
    return tuple(found)


def narrowed(
    edges: Sequence[KeyEdge], plans: Sequence[ScanPlan], query: QueryContext
) -> tuple[ScanPlan, ...]:
    """Read the sources of ``edges``, which ``expected`` returned; the plans after narrowing.

    Raises the errors of reading and planning.
    """
    known = list(plans)
    waiting = {each.source for each in edges}
    while waiting:
        from icesql.engine.run_time.keys import keys_filter, read_rows

        query.check()
        source = min(waiting, key=lambda number: known[number].rows_in_files)
        waiting.remove(source)
        rows = read_rows(known[source], query)
        known[source] = replace(known[source], rows_read=rows)
        for edge in edges:
            if edge.source != source or known[edge.target].rows_read is not None:
                continue
            scan = known[edge.target].scan
            found = keys_filter(edge, rows, scan.schema)
            explain = known[edge.target].scan.explain
            wanted = replace(scan, row_filter=scan.row_filter & found, explain=explain)
            known[edge.target] = plan_scan(wanted, query)
    return tuple(known)


def _is_small(plan: ScanPlan, rows: int) -> bool:
    scan = plan.scan
    if plan.metadata is not None or plan.changes is not None or scan.limit is not None:
        return False
    from icesql.iceberg.expressions.predicate import ALWAYS_TRUE

    most = _MOST_ROWS_UNFILTERED if scan.row_filter is ALWAYS_TRUE else _MOST_ROWS
    if scan.extremes and len(scan.projection.fields) == 1:
        most = _MOST_ROWS_OF_EXTREMES
    size = plan.projected_bytes + plan.counts.total_delete_file_size_in_bytes
    is_known = all(task.data_file.record_count >= 0 for task in plan.files)
    return is_known and rows <= most and size <= _MOST_BYTES


def _is_worth(edge: KeyEdge, plans: Sequence[ScanPlan], rows: Sequence[int]) -> bool:
    """True if the keys of a small scan may exclude files of a large one."""
    target = plans[edge.target]
    if len(target.files) < _FEWEST_FILES or rows[edge.source] * _TIMES > rows[edge.target]:
        return False
    return may_leave_out_files(target, edge.target_id)
