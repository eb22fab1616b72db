"""rewrite_position_delete_files: merge many position delete files into few."""

from __future__ import annotations

from typing import TYPE_CHECKING

from icesql.errors import CommitConflictError
from icesql.modify.procedures.procedure import OPTIONS, TABLE, WHERE, Plan, Rows, Step, procedure

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from icesql.maintain.rewrite.plan import FileGroup
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
    """Merge the position delete files of partitions that have many.

    With partial progress there are several commits: those before a failed one stay.
    """
    from icesql.maintain.deletes.plan import plan_delete_files, plan_deletes
    from icesql.maintain.deletes.run import Converted, convert
    from icesql.maintain.rewrite.plan import rewrite_options
    from icesql.modify.procedures.call import files_condition

    catalog, table = call.target()
    options = rewrite_options(call["options"] or {}, table.metadata, "deletes")
    groups = plan_delete_files(table, options, call.query, files_condition(call))

    def run() -> Rows:
        done, commits = Converted(table), 1
        # A data file has one vector, which may take positions from several groups.
        if table.metadata.format_version < 3 and options.partial_progress_enabled:
            commits = options.partial_progress_max_commits
        size = max(-(-len(groups) // commits), 1)
        for start in range(0, len(groups), size):
            if done.table.metadata.format_version != table.metadata.format_version:
                raise CommitConflictError(
                    f"{table.name} was upgraded meanwhile; what was committed stays, run the "
                    "statement again"
                )
            # Planned on the result of the last commit: others may expire earlier snapshots.
            some = plan_deletes(done.table, groups[start : start + size], call.query)
            found = convert(catalog, some, call.query)
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


def _steps(groups: Sequence[FileGroup]) -> Iterator[Step]:
    for group in groups:
        for task, reason in zip(group.files, group.reasons, strict=True):
            yield Step.of_file("remove", "position delete file", task.data_file, reason)
        rows = sum(each.data_file.record_count for each in group.files)
        reason = "the deletes of data files that are there still"
        yield Step("write", "position delete file", "(new)", reason, None, rows)
