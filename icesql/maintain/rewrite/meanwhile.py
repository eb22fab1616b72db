"""Follow commits that other writers made since a rewrite read its files.

Rows that others deleted by position or vector are deleted in the new files as well: each attempt
takes the positions that are deleted now, in its base, without those deleted when the rewrite began,
and looks them up in the origins of the new rows (``write.row_origins``). Equality deletes stay
effective because new files keep the older sequence number. A group conflicts, without affecting
other groups, if one of its files is gone, a delete of its rows was undone, or an equality delete
was added that would not apply to its new files because of their sequence number.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
from msgspec import Struct

from icesql.catalog.table import Table
from icesql.commit.files import FileChanges
from icesql.context import QueryContext
from icesql.errors import CommitConflictError, InternalError
from icesql.iceberg.manifest.data_file import DataFile
from icesql.iceberg.metadata.snapshot import Snapshot
from icesql.maintain.others import Deleted, NewDeletes, Others, equality_deletes
from icesql.maintain.rewrite.grouping import FileGroup
from icesql.maintain.rewrite.origins import Origins
from icesql.maintain.rewrite.plan import RewritePlan
from icesql.scan.tasks.task import FileScanTask

# The summary's count of rows that are deleted in new files because others deleted them.
CARRIED_ROWS = "carried-over-deletes"
# The summary's count of equality delete files that were applied to the old files.
APPLIED_EQUALITY_DELETES = "applied-equality-deletes"


class FollowedGroups(Struct):
    """The groups of one commit, and their changes in each attempt; see ``commit_rewrite``.

    ``files`` are the new files by number of the group. ``left_out`` has the groups that the last
    attempt leaves out, with reasons. ``was_left_out``: some attempt left out a group.
    """

    plan: RewritePlan
    groups: Sequence[FileGroup]
    files: Mapping[int, Sequence[DataFile]]
    origins: Origins
    own: Mapping[int, int | None]
    query: QueryContext
    deletes: NewDeletes
    left_out: dict[int, str] = {}
    was_left_out: bool = False

    def __call__(self, base: Table, head: Snapshot | None) -> FileChanges:
        """The files of the groups that can be committed to ``base``.

        Raises CommitConflictError if no group can be.
        """
        assert self.plan.start is not None
        others = Others(self.plan.start, base, head, self.query, own=self.own)
        self.left_out = {}
        added: list[DataFile] = []
        removed: list[DataFile] = []
        rows = 0
        keys: set[str] = set()
        for group in self.groups:
            try:
                deletes, vectors = self._followed(group, others)
            except CommitConflictError as error:
                self.left_out[group.number] = str(error)
                continue
            added += [*self.files[group.number], *deletes]
            removed += [*(each.data_file for each in group.files), *vectors]
            rows += sum(each.record_count for each in deletes)
            keys |= {
                each.path for task in group.files for each in task.deletes if each.equality_ids
            }
        if self.left_out:
            self.was_left_out = True
            if len(self.left_out) == len(self.groups):
                raise CommitConflictError(next(iter(self.left_out.values())))
        self.deletes.new.hand_over(each.path for each in added)
        counts = {CARRIED_ROWS: rows, APPLIED_EQUALITY_DELETES: len(keys)}
        summary = {name: str(count) for name, count in counts.items() if count}
        return FileChanges("replace", (*added,), (*removed,), summary=summary, rows=0)

    def _followed(self, group: FileGroup, others: Others) -> tuple[list[DataFile], list[DataFile]]:
        """The deletes that a group's new files need, and the vectors removed with its old files."""
        others.check_files(group.files)
        version = self.plan.table.metadata.format_version
        keeps_age = self.plan.request.options.use_starting_sequence_number and version > 1
        others.check_equality(group.files, self.files[group.number], keeps_age=keeps_age)
        touched = {number: each for number, each in enumerate(group.files) if others.touch(each)}
        vectors = [
            delete
            for number, each in enumerate(group.files)
            for delete in (others.positions_of(each) if number in touched else each.deletes)
            if delete.is_deletion_vector
        ]
        if not touched:
            return [], vectors
        new = others.deleted_positions(touched, self.plan.context)
        files = self.files[group.number]
        if not self.origins.has(files):
            others.refuse(
                f"rows of {next(iter(touched.values())).data_file.path}, which it rewrites, were "
                "deleted, and there are too many of them to find each in the new files"
            )
        live_positions = partial(self.origins.live_positions, files)
        others.check_taken_back(touched, new, live_positions)
        return self._carried(new, touched, files, others.base), vectors

    def _carried(
        self,
        deleted: Mapping[int, Deleted],
        touched: Mapping[int, FileScanTask],
        files: Sequence[DataFile],
        base: Table,
    ) -> list[DataFile]:
        """The delete files and vectors for the new files."""
        new = {number: each.new for number, each in deleted.items() if len(each.new)}
        if not new:
            return []
        places: dict[int, int] = dict.fromkeys(new, 0)
        made = []
        for file in files:
            of_file, parts = self.origins.of(file), []
            for number, positions in new.items():
                part = of_file.rows_of(number, positions)
                places[number] += len(part)
                parts.append(part)
            rows = np.sort(np.concatenate(parts))
            if len(rows):
                made.append(self.deletes.of(base, file, rows))
        for number, task in touched.items():
            if number not in new or equality_deletes(task):
                continue  # rows of equality deletes are not in the new files
            if places[number] != len(new[number]):
                raise InternalError(
                    f"{len(new[number]):,} rows of {task.data_file.path} were deleted meanwhile, "
                    f"and {places[number]:,} of them are in the files that take its place; nothing "
                    "was committed"
                )
        return made
