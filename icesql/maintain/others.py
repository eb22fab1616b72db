"""Changes that other writers made to a table's files since a statement read them.

Maintenance that runs beside writers uses this at each attempt to commit, in ``rewrite`` and
``deletes``, to check whether it can still commit. Also writes the deletes that this requires.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from hashlib import blake2b
from types import MappingProxyType
from typing import Final, NoReturn

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from icesql.catalog.table import Table
from icesql.commit.conflicts import Since
from icesql.commit.file_changes import FileChanges, file_key
from icesql.context import QueryContext
from icesql.errors import CommitConflictError, InternalError
from icesql.frozen import Frozen
from icesql.iceberg.manifest.data_file import DataFile, FileContent
from icesql.iceberg.metadata.snapshot import Snapshot
from icesql.maintain.rewrite.plan import FileGroup, RewritePlan
from icesql.read.deletes.scan_deletes import PositionDeletes
from icesql.scan.deletes.delete_index import DeleteIndex
from icesql.scan.deletes.vectors import Positions
from icesql.scan.manifest_reader import ManifestReader
from icesql.scan.tasks import FileScanTask, ScanContext
from icesql.storage.new_files import Uncommitted
from icesql.storage.temporary import make_temporary_folder, spilling_to
from icesql.write.deletes import write_deletes
from icesql.write.written import RowOrigins, Written, decode_origins

# ------------------------------------------------------------------ origins of a rewrite's new rows


_MOST_IN_MEMORY: Final = 32 << 20


class Origins:
    """The origins for each task's files; beyond a limit of memory they are in a file of ``folder``.

    The file is unlinked, so that it disappears with the process.
    """

    def __init__(self, folder: str, most_in_memory: int = _MOST_IN_MEMORY) -> None:
        self._folder, self._most, self._end = folder, most_in_memory, 0
        # The positions and lengths of a file's origins.
        self._places: dict[str, list[tuple[int, int]]] = {}
        self._file = tempfile.SpooledTemporaryFile(  # noqa: SIM115
            most_in_memory, dir=folder, prefix="icesql-origins-"
        )

    def take(self, written: Written) -> Written:
        """Keep the origins; return the rest."""
        with spilling_to(self._folder):
            self._file.seek(self._end)
            for file, origins in zip(written.data, written.origins, strict=False):
                places = self._places[file.path] = []
                for each in origins:
                    places.append((self._end, len(each)))
                    self._end += len(each)
                    if self._end > self._most:
                        make_temporary_folder(self._folder)
                    self._file.write(each)
        return replace(written, origins=())

    def has(self, files: Iterable[DataFile]) -> bool:
        """True if the origins of all these files are known."""
        return self._places.keys() >= {each.path for each in files}

    def of(self, file: DataFile) -> RowOrigins:
        """The origins of the rows of a file."""
        return decode_origins(tuple(self._read(*each) for each in self._places[file.path]))

    def live_positions(self, files: Iterable[DataFile], number: int) -> Positions:
        """The positions of a source file whose rows are in these files, sorted."""
        parts = [np.empty(0, np.int64)]
        for each in files:
            starts, lengths, _ = self.of(each).of_source(number)
            if len(starts):
                offsets = np.arange(lengths.sum()) - np.repeat(
                    np.cumsum(lengths) - lengths, lengths
                )
                parts.append(np.repeat(starts, lengths) + offsets)
        return np.sort(np.concatenate(parts))

    def _read(self, position: int, length: int) -> bytes:
        with spilling_to(self._folder):
            self._file.seek(position)
            return self._file.read(length)

    def forget(self, files: Iterable[DataFile]) -> None:
        """Discard the origins of these files."""
        for each in files:
            self._places.pop(each.path, None)
        if not self._places:
            self._end = 0

    def close(self) -> None:
        """Free the disk space. Can be called repeatedly."""
        self._places.clear()
        self._file.close()


# ------------------------------------------------------------------ changes of other writers


# The most rows of a file to check, a byte for each, to show that none of them became live again.
_MOST_SHOWN: Final = 1 << 28
_NONE: Final[Positions] = np.empty(0, np.int64)


class Deleted(Frozen):
    """The positions of a file that were deleted at the start, and those deleted now."""

    before: Positions
    after: Positions

    @property
    def new(self) -> Positions:
        """Positions that were deleted since."""
        return np.setdiff1d(self.after, self.before, assume_unique=True)

    @property
    def taken_back(self) -> Positions:
        """Positions that are no longer deleted."""
        return np.setdiff1d(self.before, self.after, assume_unique=True)


class Others:
    """Changes of files between snapshot ``start`` and the head of a branch of ``base``.

    ``own`` maps snapshots of the same statement to their parents. Raises CommitConflictError if the
    changes cannot be determined.
    """

    def __init__(
        self,
        start: Snapshot,
        base: Table,
        head: Snapshot | None,
        query: QueryContext,
        *,
        own: Mapping[int, int | None] = MappingProxyType({}),
    ) -> None:
        self.base, self._head, self._query = base, head, query
        number = start.sequence_number
        since = Since(start.snapshot_id, base, head, query, number=number, own=own)
        self._since, self._key_of = since, since.key_of
        new, self.removed_deletes = since.deletes()
        self.added_deletes = {*map(file_key, new)}
        self._vectors = {
            self._key_of(each.referenced_data_file or "") for each in new if each.is_deletion_vector
        }
        index_of = partial(DeleteIndex.of, base, compare_bounds=False)
        self._new_positions = index_of(
            each for each in new if not each.equality_ids and not each.is_deletion_vector
        )
        # Rewritten deletes keep their old sequence number and delete no further rows.
        self._new_equality = index_of(
            each for each in new if each.equality_ids and each.sequence_number > number
        )
        self._live: DeleteIndex | None = None

    def is_gone(self, task: FileScanTask) -> bool:
        """True if a file is no longer part of the table."""
        gone = self._since.gone
        return bool(gone) and self._key_of(task.data_file.path) in gone

    def check_files(self, tasks: Iterable[FileScanTask]) -> None:
        """Refuse files if one of them is gone."""
        for each in tasks:
            if self.is_gone(each):
                self.refuse(
                    f"the file {each.data_file.path} is no longer part of the table: it was "
                    "rewritten or deleted"
                )

    def check_equality(
        self, tasks: Sequence[FileScanTask], made: Sequence[DataFile], *, keeps_age: bool
    ) -> None:
        """Refuse new equality deletes that would not delete the same rows of the new files.

        ``keeps_age``: the new files have the sequence number of the start.
        """
        lost = self._since.lost_delete(
            self._new_equality,
            [each.data_file for each in tasks],
            made if keeps_age else None,
        )
        if lost is not None:
            self.refuse(lost)

    def touch(self, task: FileScanTask) -> bool:
        """True if deletes of a file were added or removed."""
        if self.removed_deletes and any(
            file_key(each) in self.removed_deletes for each in task.deletes
        ):
            return True
        if self._vectors and self._key_of(task.data_file.path) in self._vectors:
            return True
        return bool(self._new_positions.deletes_of(self._since.as_old(task.data_file)))

    def positions_of(self, task: FileScanTask) -> tuple[DataFile, ...]:
        """The vector or position delete files of a file in the head."""
        if self._live is None:
            reader = ManifestReader(self.base, self._query)
            listed = () if self._head is None else reader.manifests_of(self._head)
            live = reader.deletes(listed, FileContent.POSITION_DELETES)
            self._live = DeleteIndex.of(self.base, live, compare_bounds=False)
        return self._live.deletes_of(task.data_file)

    def deleted_positions(
        self, tasks: Mapping[int, FileScanTask], context: ScanContext
    ) -> dict[int, Deleted]:
        """The positions of each file that were deleted at the start, and those deleted now."""
        now = {n: replace(each, deletes=self.positions_of(each)) for n, each in tasks.items()}
        before_of = PositionDeletes(context, tasks.values(), self._query)
        now_of = PositionDeletes(context, now.values(), self._query)
        found = {}
        for number, task in tasks.items():
            both = before_of.positions(task), now_of.positions(now[number])
            found[number] = Deleted(*(_NONE if each is None else each for each in both))
        return found

    def check_taken_back(
        self,
        touched: Mapping[int, FileScanTask],
        deleted: Mapping[int, Deleted],
        live_positions: Callable[[int], Positions],
    ) -> None:
        """Refuse if rows are live again that were deleted at the start.

        ``live_positions`` gives the positions in a file that were live then.
        """
        for number, task in touched.items():
            found = deleted[number]
            lost = len(found.taken_back) > 0
            equality = map(file_key, equality_deletes(task))
            if not lost and not self.removed_deletes.isdisjoint(equality):
                # Rows of removed equality deletes may be deleted by position now.
                count = task.data_file.record_count
                lost = True  # unless all of these rows are still deleted
                if 0 <= count <= _MOST_SHOWN:
                    dead = np.ones(count, bool)
                    live = live_positions(number)
                    dead[live[live < count]] = False
                    dead[found.after] = False
                    lost = bool(dead.any())
            if lost:
                self.refuse(f"deletes of {task.data_file.path} were taken back")

    def refuse(self, what: str) -> NoReturn:
        """Raise CommitConflictError for a group that can no longer be committed."""
        raise CommitConflictError(
            f"another commit to {self.base.name} conflicts with this statement: {what}; "
            "nothing was changed, run the statement again"
        )


def equality_deletes(task: FileScanTask) -> list[DataFile]:
    """The equality deletes that apply to a file."""
    return [each for each in task.deletes if each.content is FileContent.EQUALITY_DELETES]


class NewDeletes(Struct):
    """Writes new deletes; attempts that delete the same rows of a file share one delete file."""

    new: Uncommitted
    # By data file, format version and a digest of the rows, which may be many.
    written: dict[tuple[str, int, bytes], DataFile] = {}

    def of(self, base: Table, file: DataFile, rows: Positions) -> DataFile:
        """The deletes for the sorted ``rows`` of a file, a vector in format version 3."""
        version = base.metadata.format_version
        key = file.path, version, blake2b(rows.tobytes(), digest_size=20).digest()
        if key not in self.written:
            made = write_deletes(base.metadata, base.storage, [(file, rows)])
            self.new.take([made.path])
            self.written[key] = made
        return self.written[key]


# ------------------------------------------------------------------ commits during a rewrite
# Rows that others deleted by position or vector are deleted in the new files as well: each attempt
# takes the positions that are deleted now, in its base, without those deleted when the rewrite
# began, and looks them up in the origins of the new rows (``write.written``). Equality deletes
# stay effective because new files keep the older sequence number. A group conflicts, without
# affecting other groups, if one of its files is gone, a delete of its rows was undone, or an
# equality delete was added that would not apply to its new files because of their sequence number.


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
