"""rewrite_position_delete_files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from icesql.errors import UnsupportedSqlError
from icesql.maintain.delete_files import (
    DeleteGroup,
    DeleteOptions,
    plan_delete_files,
    rewrite_delete_files,
)
from icesql.maintain.procedures.plan import Plan, Rows, Step
from icesql.modify.engine_name import SUMMARY
from icesql.modify.procedures.call import Call


def rewrite_position_delete_files(call: Call) -> Plan:
    """The position delete files of partitions that have many."""
    if call["where"] is not None:
        raise UnsupportedSqlError(
            "where of rewrite_position_delete_files", hint="leave it out: small files are merged"
        )
    catalog, table = call.target()
    options = DeleteOptions.of(call["options"] or {}, table.metadata.properties)
    groups = plan_delete_files(table, options, call.work.query)

    def run() -> Rows:
        done = rewrite_delete_files(catalog, table, groups, summary=SUMMARY, query=call.work.query)
        sizes = (
            sum(each.file_size_in_bytes for each in files) for files in (done.removed, done.added)
        )
        row = (len(done.removed), len(done.added), *sizes)
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


PLANNERS: Final[Mapping[str, Callable[[Call], Plan]]] = {
    "rewrite_position_delete_files": rewrite_position_delete_files
}
