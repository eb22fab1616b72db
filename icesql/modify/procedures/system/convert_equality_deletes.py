"""convert_equality_deletes: replace equality deletes by position deletes or deletion vectors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from icesql.modify.procedures.procedure import BRANCH, TABLE, WHERE, Plan, Rows, Step, procedure

if TYPE_CHECKING:
    from collections.abc import Iterator

    from icesql.maintain.deletes.plan import DeletesPlan
    from icesql.modify.procedures.call import Call


@procedure(
    "makes position deletes or deletion vectors of equality deletes; no data file is written",
    TABLE,
    WHERE,
    BRANCH,
    rows="removed_equality_delete_files_count integer, added_delete_files_count integer, "
    "converted_rows_count bigint, remaining_equality_delete_files_count integer",
)
def convert_equality_deletes(call: Call) -> Plan:
    """Replace the equality deletes of data files by position deletes or deletion vectors."""
    from icesql.maintain.deletes.plan import plan_conversion
    from icesql.maintain.deletes.run import convert
    from icesql.modify.procedures.call import files_condition

    catalog, table, branch = call.named_branch()
    query = call.query
    planned = plan_conversion(table, query, branch=branch, row_filter=files_condition(call))

    def run() -> Rows:
        runner = call.runner(planned.bytes)
        done = convert(catalog, planned, query, run=runner)
        note = ""
        if done.snapshot_id is None:
            note = "no equality delete is to be converted"
        elif done.left:
            note = (
                f"{done.left:,} equality delete files stay: they may be of data files that were "
                "not looked at"
            )
        row = (done.removed, done.added, done.rows, done.left)
        return Rows([row], note, done.snapshot_id)

    deletes = len(planned.deletes)
    place = call.engine_note(planned.bytes)
    return Plan(
        _steps(planned),
        run,
        f"{deletes:,} equality delete files, {len(planned.tasks):,} data files{place}",
    )


def _steps(planned: DeletesPlan) -> Iterator[Step]:
    for task in planned.tasks:
        reason = "the keys of its rows are looked up"
        yield Step.of_file("read", "data file", task.data_file, reason)
    for each in planned.deletes:
        reason = "its keys are looked up; it goes unless it applies to other data files"
        yield Step.of_file("read", "equality delete file", each, reason)
    kind = (
        "deletion vector" if planned.table.metadata.format_version > 2 else "position delete file"
    )
    if planned.tasks:
        yield Step("write", kind, "(new)", "one for each data file that loses rows")
