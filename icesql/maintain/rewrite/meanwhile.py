"""What becomes of a rewrite after what others committed since it read its files.

Rows that others deleted by position or by vector are deleted in the new files as well: at each
attempt the positions that are deleted now, in the base of this attempt, less those that were when
the rewrite began, are looked up in what the rewrite noted of its rows (``write.row_origins``).
Equality deletes keep their effect by the files' older sequence number. A group conflicts, and it
alone, where a file of it is gone, a delete of its rows was taken back, or an equality delete came
that its new files would be too young for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NoReturn

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from icesql.catalog.table import Table
from icesql.commit.files import FileKey, file_key
from icesql.commit.rows import RewrittenFiles
from icesql.commit.validation.history import History
from icesql.context import QueryContext
from icesql.errors import CommitConflictError, InternalError
from icesql.iceberg.expressions.predicate import ALWAYS_TRUE
from icesql.iceberg.manifest.data_file import DataFile, FileContent
from icesql.iceberg.manifest.entries import ADDED, DELETED
from icesql.iceberg.manifest.manifest import ManifestContent
from icesql.iceberg.metadata.snapshot import Snapshot
from icesql.maintain.rewrite.grouping import FileGroup
from icesql.maintain.rewrite.origins import Origins
from icesql.maintain.rewrite.plan import RewritePlan
from icesql.maintain.rewrite.task import RewriteResult
from icesql.read.deletes.positions import PositionDeletes, Positions
from icesql.scan.deletes.delete_index import DeleteIndex
from icesql.scan.manifest_reader import ManifestReader
from icesql.scan.spec_scan import typed_specs
from icesql.scan.tasks.task import FileScanTask
from icesql.storage.new_file import remove_file
from icesql.write.deletion_vectors import as_bitmap, write_deletion_vector
from icesql.write.position_deletes import write_position_deletes
from icesql.write.row_origins import RowOrigins

# The summary's count of rows that are deleted in the new files because others deleted them.
CARRIED_ROWS = "carried-over-deletes"


class FollowedGroups:
    """The groups of one commit, and what each attempt makes of them; see ``commit_rewrite``.

    ``results`` are by the number of a group. ``left_out`` says, of the last attempt, which groups
    are no part of it and why. ``was_left_out``: some group was in some attempt.
    """

    def __init__(
        self,
        plan: RewritePlan,
        groups: Sequence[FileGroup],
        results: Mapping[int, Sequence[RewriteResult]],
        origins: Origins,
        own: Mapping[int, int | None],
        query: QueryContext,
    ) -> None:
        self._plan, self._groups, self._own, self._query = plan, groups, own, query
        self._origins = origins
        self._results = {
            each.number: sorted(results[each.number], key=lambda result: result.number)
            for each in groups
        }
        self._written: dict[tuple[str, bytes], DataFile] = {}
        self._used: set[str] = set()
        self.left_out: dict[int, str] = {}
        self.was_left_out = False

    def __call__(self, base: Table, head: Snapshot | None) -> RewrittenFiles:
        """The files of the groups that can be committed to ``base``.

        Raises CommitConflictError where there is none.
        """
        others = _Others(self._plan, base, head, self._own, self._query)
        self.left_out = {}
        added: list[DataFile] = []
        removed: list[DataFile] = []
        rows = 0
        for group in self._groups:
            try:
                deletes, vectors = self._followed(group, others)
            except CommitConflictError as error:
                self.left_out[group.number] = str(error)
                continue
            added += [*self._files(group), *deletes]
            removed += [*(each.data_file for each in group.files), *vectors]
            rows += sum(each.record_count for each in deletes)
        if self.left_out:
            self.was_left_out = True
            if len(self.left_out) == len(self._groups):
                raise CommitConflictError(next(iter(self.left_out.values())))
        self._used.update(each.path for each in added)
        summary = {CARRIED_ROWS: str(rows)} if rows else {}
        return RewrittenFiles(tuple(added), tuple(removed), summary)

    def remove_unused(self) -> None:
        """Remove delete files that no attempt got to hand over."""
        for each in self._written.values():
            if each.path not in self._used:
                remove_file(self._plan.table.storage, each.path)

    def _files(self, group: FileGroup) -> list[DataFile]:
        return [file for result in self._results[group.number] for file in result.files]

    def _followed(self, group: FileGroup, others: _Others) -> tuple[list[DataFile], list[DataFile]]:
        """The deletes that a group's new files get, and the vectors that go with its old ones."""
        others.check_files(group)
        others.check_equality(group, self._files(group))
        touched = {number: each for number, each in enumerate(group.files) if others.touch(each)}
        vectors = [
            delete
            for number, each in enumerate(group.files)
            for delete in (others.positions_of(each) if number in touched else each.deletes)
            if delete.is_deletion_vector
        ]
        if not touched:
            return [], vectors
        new = self._newly_deleted(touched, others)
        origins = _GroupOrigins(self._results[group.number], self._origins)
        if not origins.are_known:
            others.refuse(
                f"rows of {next(iter(touched.values())).data_file.path}, which it rewrites, were "
                "deleted, and there are too many of them to find each in the new files"
            )
        others.check_taken_back(touched, origins, new)
        return self._carried(new, touched, origins, others.base), vectors

    def _newly_deleted(
        self, touched: Mapping[int, FileScanTask], others: _Others
    ) -> dict[int, _Deleted]:
        """What is deleted of each file now and was at the start, by position."""
        now = {n: replace(each, deletes=others.positions_of(each)) for n, each in touched.items()}
        context = self._plan.context
        before_of = PositionDeletes(context, touched.values(), self._query)
        now_of = PositionDeletes(context, now.values(), self._query)
        found = {}
        for number, task in touched.items():
            before = _within(before_of.positions(task), task.data_file)
            after = _within(now_of.positions(now[number]), task.data_file)
            found[number] = _Deleted(before, after)
        return found

    def _carried(
        self,
        deleted: Mapping[int, _Deleted],
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
                made.append(self._delete_file(base, file, rows))
        for number, task in touched.items():
            if number not in new or _equality(task):
                continue  # equality deletes took rows that have no place in the new files
            if places[number] != len(new[number]):
                raise InternalError(
                    f"{len(new[number]):,} rows of {task.data_file.path} were deleted meanwhile, "
                    f"and {places[number]:,} of them are in the files that take its place; nothing "
                    "was committed"
                )
        return made

    def _delete_file(self, base: Table, file: DataFile, rows: Positions) -> DataFile:
        """The delete file of these rows of a new file, written once for all attempts."""
        version = base.metadata.format_version
        key = file.path, bytes([version]) + rows.tobytes()
        if key not in self._written:
            if version > 2:
                made = write_deletion_vector(base.metadata, base.storage, file, as_bitmap(rows))
            else:
                made = write_position_deletes(base.metadata, base.storage, file, rows)
            self._written[key] = made
        return self._written[key]


class _Deleted(Struct, frozen=True):
    """The positions of a file that were deleted when the rewrite began, and that are now."""

    before: Positions
    after: Positions

    @property
    def new(self) -> Positions:
        return np.setdiff1d(self.after, self.before, assume_unique=True)

    @property
    def taken_back(self) -> Positions:
        return np.setdiff1d(self.before, self.after, assume_unique=True)


class _GroupOrigins:
    """Where the rows of a group's new files come from."""

    def __init__(self, results: Sequence[RewriteResult], origins: Origins) -> None:
        self._results, self._origins = results, origins

    @property
    def are_known(self) -> bool:
        return all(map(self._origins.has, self._results))

    def files(self) -> Iterator[tuple[DataFile, RowOrigins]]:
        for each in self._results:
            yield from self._origins.files(each)

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


class _Others:
    """What others did to the files of a rewrite between its start and the head of its branch.

    Raises CommitConflictError where that is not known.
    """

    def __init__(
        self,
        plan: RewritePlan,
        base: Table,
        head: Snapshot | None,
        own: Mapping[int, int | None],
        query: QueryContext,
    ) -> None:
        assert plan.start is not None
        self._plan, self.base, self._head, self._query = plan, base, head, query
        self._key_of = base.storage.same_file_key
        self._start = plan.start
        version = plan.table.metadata.format_version
        self._keeps_age = plan.request.options.use_starting_sequence_number and version > 1
        history = History(base, head, self._start.snapshot_id, ALWAYS_TRUE, query, own=own)
        self._gone = {
            self._key_of(entries.path[index])
            for _, _, entries, indexes in history.changed(None, ManifestContent.DATA)
            for index in indexes
            if entries.status[index] == DELETED
        }
        new: list[DataFile] = []
        self._removed: set[FileKey] = set()
        for _, _, entries, indexes in history.changed(None, ManifestContent.DELETES):
            for index in indexes:
                file = entries.data_file(index)
                if entries.status[index] == ADDED:
                    new.append(file)
                else:
                    self._removed.add(file_key(file))
        self._vectors = {
            self._key_of(each.referenced_data_file or "") for each in new if each.is_deletion_vector
        }
        self._new_positions = self._index(
            each for each in new if not each.equality_ids and not each.is_deletion_vector
        )
        # Those as old as what they took the place of delete nothing more.
        number = self._start.sequence_number
        self._new_equality = self._index(
            each for each in new if each.equality_ids and each.sequence_number > number
        )
        self._live: DeleteIndex | None = None

    def _index(self, deletes: Iterable[DataFile]) -> DeleteIndex:
        metadata = self.base.metadata
        return DeleteIndex(
            deletes, metadata.specs, metadata.file_schema, self._key_of, compare_bounds=False
        )

    def check_files(self, group: FileGroup) -> None:
        """Refuse a group of which a file is gone."""
        for each in group.files:
            if self._gone and self._key_of(each.data_file.path) in self._gone:
                self.refuse(
                    f"the file {each.data_file.path} is no longer part of the table: it was "
                    "rewritten or deleted"
                )

    def check_equality(self, group: FileGroup, made: Sequence[DataFile]) -> None:
        """Refuse equality deletes that came and would not be the same rows' in the new files."""
        specs = self.base.metadata.specs
        for each in group.files:
            for delete in self._new_equality.deletes_of(self._as_old(each.data_file)):
                stays = self._keeps_age and (
                    specs[delete.spec_id].is_unpartitioned
                    or all(file.spec_id == each.data_file.spec_id for file in made)
                )
                if not stays:
                    self.refuse(f"rows of {each.data_file.path}, which it rewrites, were deleted")
        if not self._keeps_age:
            return
        for file in made:
            if all(each.data_file.spec_id == file.spec_id for each in group.files):
                continue
            for delete in self._new_equality.deletes_of(self._as_old(file)):
                if not specs[delete.spec_id].is_unpartitioned:
                    self.refuse(f"rows of the partition that gets {file.path} were deleted")

    def _as_old(self, file: DataFile) -> DataFile:
        """The file as old as it is, or as the start is where it is younger, as new ones are."""
        number = self._start.sequence_number
        return replace(file, sequence_number=min(file.sequence_number, number))

    def touch(self, task: FileScanTask) -> bool:
        """Whether deletes of a file came or went."""
        if any(file_key(each) in self._removed for each in task.deletes):
            return True
        if self._vectors and self._key_of(task.data_file.path) in self._vectors:
            return True
        return bool(self._new_positions.deletes_of(self._as_old(task.data_file)))

    def positions_of(self, task: FileScanTask) -> tuple[DataFile, ...]:
        """The vector or position deletes of a file in the head."""
        if self._live is None:
            self._live = self._index(self._live_positions())
        return self._live.deletes_of(task.data_file)

    def _live_positions(self) -> Iterator[DataFile]:
        if self._head is None:
            return
        base = self.base
        specs = typed_specs(base.metadata)
        reader = ManifestReader(base.storage, self._query, base.name)
        listed = [
            each
            for each in reader.manifests_of(self._head)
            if each.content is ManifestContent.DELETES and each.has_live_files
        ]
        for _, entries in reader.entries_of(listed, lambda each: specs[each.partition_spec_id]):
            for index, alive in enumerate(entries.live):
                if alive and entries.content[index] == FileContent.POSITION_DELETES:
                    yield entries.data_file(index)

    def check_taken_back(
        self,
        touched: Mapping[int, FileScanTask],
        origins: _GroupOrigins,
        deleted: Mapping[int, _Deleted],
    ) -> None:
        """Refuse where rows live again that the new files do not have."""
        for number, task in touched.items():
            found = deleted[number]
            lost = len(found.taken_back) > 0
            if not lost and any(file_key(each) in self._removed for each in _equality(task)):
                # Rows that equality deletes took may be deleted by position now.
                places = np.arange(task.data_file.record_count)
                taken = np.setdiff1d(places, origins.live_positions(number), assume_unique=True)
                lost = len(np.setdiff1d(taken, found.after, assume_unique=True)) > 0
            if lost:
                self.refuse(f"deletes of {task.data_file.path}, which it rewrites, were taken back")

    def refuse(self, what: str) -> NoReturn:
        """Raise CommitConflictError for a group that cannot follow."""
        raise CommitConflictError(
            f"another commit to {self.base.name} conflicts with this statement: {what}; "
            "nothing was changed, run the statement again"
        )


def removed_by(table: Table, snapshot: Snapshot, query: QueryContext) -> set[str]:
    """The paths of the data files that a snapshot removed."""
    specs = typed_specs(table.metadata)
    reader = ManifestReader(table.storage, query, table.name)
    own = [
        each
        for each in reader.manifests_of(snapshot)
        if each.content is ManifestContent.DATA
        and each.added_snapshot_id == snapshot.id_in_manifests
    ]
    return {
        entries.path[index]
        for _, entries in reader.entries_of(own, lambda each: specs[each.partition_spec_id])
        for index, status in enumerate(entries.status)
        if status == DELETED and entries.snapshot_id[index] == snapshot.id_in_manifests
    }


def _within(positions: Positions | None, file: DataFile) -> Positions:
    """Positions of rows that a file has: writers may name others."""
    if positions is None:
        return np.empty(0, np.int64)
    return positions[positions < file.record_count] if file.record_count >= 0 else positions


def _equality(task: FileScanTask) -> list[DataFile]:
    return [each for each in task.deletes if each.content is FileContent.EQUALITY_DELETES]
