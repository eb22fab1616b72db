"""A rewrite beside commits that came since it read its files.

Rows that others deleted by position or by vector are deleted in the new files as well: at each
attempt the positions that are deleted now, in the base of this attempt, less those that were when
the rewrite began, are looked up in what the rewrite noted of its rows (``write.row_origins``).
Equality deletes keep their effect by the files' older sequence number. A group conflicts, and it
alone, where a file of it is gone, a delete of its rows was taken back, or an equality delete came
that its new files would be too young for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from icesql.catalog.table import Table
from icesql.commit.rows import RewrittenFiles
from icesql.context import QueryContext
from icesql.errors import CommitConflictError, InternalError
from icesql.iceberg.manifest.data_file import DataFile
from icesql.iceberg.metadata.snapshot import Snapshot
from icesql.maintain.others import Deleted, NewDeletes, Others, equality_deletes
from icesql.maintain.rewrite.grouping import FileGroup
from icesql.maintain.rewrite.origins import Origins
from icesql.maintain.rewrite.plan import RewritePlan
from icesql.scan.deletes.vectors import Positions
from icesql.scan.tasks.task import FileScanTask
from icesql.storage.uncommitted import Uncommitted
from icesql.write.row_origins import RowOrigins

# The summary's count of rows that are deleted in the new files because others deleted them.
CARRIED_ROWS = "carried-over-deletes"
# And of the delete files by equality whose keys were looked up in the old files.
APPLIED_EQUALITY_DELETES = "applied-equality-deletes"


class FollowedGroups:
    """The groups of one commit, and what each attempt makes of them; see ``commit_rewrite``.

    ``files`` are the new ones by the number of a group. ``left_out`` says, of the last attempt,
    which groups are no part of it and why. ``was_left_out``: some group was in some attempt.
    """

    def __init__(
        self,
        plan: RewritePlan,
        groups: Sequence[FileGroup],
        files: Mapping[int, Sequence[DataFile]],
        origins: Origins,
        own: Mapping[int, int | None],
        query: QueryContext,
        new: Uncommitted,
    ) -> None:
        self._plan, self._groups, self._own, self._query = plan, groups, own, query
        self._files, self._origins = files, origins
        self._uncommitted, self._new = new, NewDeletes(new)
        self.left_out: dict[int, str] = {}
        self.was_left_out = False

    def __call__(self, base: Table, head: Snapshot | None) -> RewrittenFiles:
        """The files of the groups that can be committed to ``base``.

        Raises CommitConflictError where there is none.
        """
        assert self._plan.start is not None
        others = Others(self._plan.start, base, head, self._query, own=self._own)
        self.left_out = {}
        added: list[DataFile] = []
        removed: list[DataFile] = []
        rows = 0
        keys: set[str] = set()
        for group in self._groups:
            try:
                deletes, vectors = self._followed(group, others)
            except CommitConflictError as error:
                self.left_out[group.number] = str(error)
                continue
            added += [*self._files[group.number], *deletes]
            removed += [*(each.data_file for each in group.files), *vectors]
            rows += sum(each.record_count for each in deletes)
            keys |= {
                each.path for task in group.files for each in task.deletes if each.equality_ids
            }
        if self.left_out:
            self.was_left_out = True
            if len(self.left_out) == len(self._groups):
                raise CommitConflictError(next(iter(self.left_out.values())))
        self._uncommitted.hand_over(each.path for each in added)
        counts = {CARRIED_ROWS: rows, APPLIED_EQUALITY_DELETES: len(keys)}
        summary = {name: str(count) for name, count in counts.items() if count}
        return RewrittenFiles(tuple(added), tuple(removed), summary)

    def _followed(self, group: FileGroup, others: Others) -> tuple[list[DataFile], list[DataFile]]:
        """The deletes that a group's new files get, and the vectors that go with its old ones."""
        others.check_files(group.files)
        version = self._plan.table.metadata.format_version
        keeps_age = self._plan.request.options.use_starting_sequence_number and version > 1
        others.check_equality(group.files, self._files[group.number], keeps_age=keeps_age)
        touched = {number: each for number, each in enumerate(group.files) if others.touch(each)}
        vectors = [
            delete
            for number, each in enumerate(group.files)
            for delete in (others.positions_of(each) if number in touched else each.deletes)
            if delete.is_deletion_vector
        ]
        if not touched:
            return [], vectors
        new = others.deleted_positions(touched, self._plan.context)
        origins = _GroupOrigins(self._files[group.number], self._origins)
        if not origins.are_known:
            others.refuse(
                f"rows of {next(iter(touched.values())).data_file.path}, which it rewrites, were "
                "deleted, and there are too many of them to find each in the new files"
            )
        others.check_taken_back(touched, new, origins.live_positions)
        return self._carried(new, touched, origins, others.base), vectors

    def _carried(
        self,
        deleted: Mapping[int, Deleted],
        touched: Mapping[int, FileScanTask],
        origins: _GroupOrigins,
        base: Table,
    ) -> list[DataFile]:
        """The delete files and vectors of the new files."""
        new = {number: each.new for number, each in deleted.items() if len(each.new)}
        if not new:
            return []
        places: dict[int, int] = dict.fromkeys(new, 0)
        made = []
        for file, of_file in origins.files():
            parts = []
            for number, positions in new.items():
                part = of_file.rows_of(number, positions)
                places[number] += len(part)
                parts.append(part)
            rows = np.sort(np.concatenate(parts))
            if len(rows):
                made.append(self._new.of(base, file, rows))
        for number, task in touched.items():
            if number not in new or equality_deletes(task):
                continue  # equality deletes took rows that have no place in the new files
            if places[number] != len(new[number]):
                raise InternalError(
                    f"{len(new[number]):,} rows of {task.data_file.path} were deleted meanwhile, "
                    f"and {places[number]:,} of them are in the files that take its place; nothing "
                    "was committed"
                )
        return made


class _GroupOrigins:
    """Where the rows of a group's new files come from."""

    def __init__(self, files: Sequence[DataFile], origins: Origins) -> None:
        self._files, self._origins = files, origins

    @property
    def are_known(self) -> bool:
        return self._origins.has(self._files)

    def files(self) -> Iterator[tuple[DataFile, RowOrigins]]:
        for each in self._files:
            yield each, self._origins.of(each)

    def live_positions(self, number: int) -> Positions:
        """The positions of a source whose rows are in the new files, sorted."""
        parts = [np.empty(0, np.int64)]
        for _, origins in self.files():
            starts, lengths, _ = origins.of_source(number)
            if len(starts):
                offsets = np.arange(lengths.sum()) - np.repeat(
                    np.cumsum(lengths) - lengths, lengths
                )
                parts.append(np.repeat(starts, lengths) + offsets)
        return np.sort(np.concatenate(parts))
