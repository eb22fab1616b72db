"""rewrite_position_delete_files: few files of deletes by position of many."""

from __future__ import annotations

from typing import TYPE_CHECKING

from icesql.errors import CommitConflictError
from icesql.modify.procedures.procedure import OPTIONS, TABLE, WHERE, Plan, Rows, Step, procedure

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from icesql.maintain.deletes.options import DeleteGroup
    from icesql.modify.procedures.call import Call


@procedure(
    "makes few position delete files of many, without deletes of files that are gone",
    TABLE,
    OPTIONS,
    WHERE,
    rows="rewritten_delete_files_count integer, added_delete_files_count integer, "
    "rewritten_bytes_count bigint, added_bytes_count bigint",
)
def rewrite_position_delete_files(call: Call) -> Plan:
    """The position delete files of partitions that have many.

    With partial progress they come in several commits: those before one that fails stay.
    """
    from icesql.maintain.deletes.options import (
        DeleteOptions,
        plan_delete_files,
        rewrite_delete_files,
    )
    from icesql.maintain.deletes.run import Converted
    from icesql.modify.modified import SUMMARY
    from icesql.modify.procedures.call import files_condition

    catalog, table = call.target()
    options = DeleteOptions.of(call["options"] or {}, table.metadata.properties)
    groups = plan_delete_files(table, options, call.services.query, files_condition(call))

    def run() -> Rows:
        done = Converted(table)
        # A data file has one vector, whose positions may be those of several groups.
        is_one = table.metadata.format_version > 2
        for some in [groups] if is_one else options.commits(groups):
            if done.table.metadata.format_version != table.metadata.format_version:
                raise CommitConflictError(
                    f"{table.name} was upgraded meanwhile; what was committed stays, run the "
                    "statement again"
                )
            # From what the last commit left: others may expire what came before it.
            found = rewrite_delete_files(
                catalog, done.table, some, summary=SUMMARY, query=call.services.query
            )
            done = Converted(
                found.table, done.replaced + found.replaced, done.written + found.written,
                snapshot_id=found.snapshot_id or done.snapshot_id,
            )  # fmt: skip
        sizes = (
            sum(each.file_size_in_bytes for each in files)
            for files in (done.replaced, done.written)
        )
        row = (done.removed, done.added, *sizes)
        return Rows([row], snapshot_id=done.snapshot_id)

    return Plan(_steps(groups), run, f"{len(groups)} groups")


def _steps(groups: Sequence[DeleteGroup]) -> Iterator[Step]:
    for group in groups:
        for each in group.files:
            yield Step(
                "remove", "position delete file", each.path, group.reason,
                each.file_size_in_bytes, each.record_count,
            )  # fmt: skip
        rows = sum(each.record_count for each in group.files)
        reason = "the deletes of data files that are there still"
        yield Step("write", "position delete file", "(new)", reason, None, rows)
