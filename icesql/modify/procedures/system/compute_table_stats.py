"""compute_table_stats: write the statistics file of a snapshot's columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from icesql.modify.procedures.procedure import (
    SNAPSHOT,
    TABLE,
    Parameter,
    Plan,
    Rows,
    Step,
    procedure,
)

if TYPE_CHECKING:
    from icesql.modify.procedures.call import Call


@procedure(
    "counts the distinct values of columns: sketches in a statistics file",
    TABLE,
    SNAPSHOT,
    Parameter("columns", "array<string>", "all but nested ones"),
    rows="statistics_file varchar",
)
def compute_table_stats(call: Call) -> Plan:
    """Write the statistics file of a snapshot's columns."""
    from icesql.commit.branches import engine_summary
    from icesql.iceberg.metadata.json_fields import whole_number
    from icesql.maintain.statistics_files import columns_to_sketch, compute_table_statistics

    catalog, table = call.target()
    found = call.snapshot_of(table)
    if found is None:
        return Plan((), lambda: Rows([]), "the table has no snapshot yet")
    columns = columns_to_sketch(table, found, call["columns"])

    def run() -> Rows:
        created_by = " ".join(engine_summary().values())
        path = compute_table_statistics(catalog, table, found, columns, call.query, created_by)
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
