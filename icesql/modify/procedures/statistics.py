"""compute_table_stats and compute_partition_stats."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from icesql.catalog.table import Table
from icesql.commit.snapshots.engine import engine_summary
from icesql.errors import SnapshotNotFoundError
from icesql.iceberg.metadata.property_numbers import whole_number
from icesql.iceberg.metadata.snapshot import Snapshot
from icesql.maintain.procedures.plan import Plan, Rows, Step
from icesql.modify.procedures.call import Call

_NONE: Final = "the table has no snapshot yet"


def compute_table_stats(call: Call) -> Plan:
    """The statistics file of a snapshot's columns."""
    from icesql.maintain.statistics.columns import columns_to_sketch, compute_table_statistics

    catalog, table = call.target()
    found = _snapshot(call, table)
    if found is None:
        return Plan((), lambda: Rows([]), _NONE)
    columns = columns_to_sketch(table, found, call["columns"])

    def run() -> Rows:
        created_by = " ".join(engine_summary().values())
        path = compute_table_statistics(
            catalog, table, found, columns, call.services.query, created_by
        )
        return Rows([(path,)])

    names = ", ".join(each.name for each in columns)
    steps = [
        Step(
            "read", "snapshot", str(found.snapshot_id), f"the live values of {names}",
            None, whole_number(found.summary.get("total-records")),
        ),
        Step("write", "statistics file", "(new)", f"a sketch for each of {len(columns)} columns"),
    ]  # fmt: skip
    return Plan(steps, run)


def compute_partition_stats(call: Call) -> Plan:
    """The statistics file of a snapshot's partitions."""
    from icesql.maintain.statistics.partitions import compute_partition_statistics, partition_rows

    catalog, table = call.target()
    found = _snapshot(call, table)
    if found is None:
        return Plan((), lambda: Rows([]), _NONE)

    def run() -> Rows:
        return Rows([(compute_partition_statistics(catalog, table, found, call.services.query),)])

    if not call.explain:
        return Plan((), run)
    count = len(partition_rows(table, found, call.services.query))
    reason = f"of snapshot {found.snapshot_id}, by its manifests alone"
    return Plan([Step("write", "partition statistics", "(new)", reason, None, count)], run)


def _snapshot(call: Call, table: Table) -> Snapshot | None:
    """The one that is asked for; None for a table without any."""
    wanted: int | None = call["snapshot_id"]
    if wanted is None:
        return table.metadata.current_snapshot
    found = table.metadata.snapshot(wanted)
    if found is None:
        raise SnapshotNotFoundError(f"snapshot {wanted}", table=table.name)
    return found


PLANNERS: Final[Mapping[str, Callable[[Call], Plan]]] = {
    "compute_partition_stats": compute_partition_stats,
    "compute_table_stats": compute_table_stats,
}
