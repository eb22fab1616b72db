"""Changes that other writers made to a table's files since a statement read them.

Maintenance that runs beside writers uses this at each attempt to commit, in ``rewrite`` and
``deletes``, to check whether it can still commit. Also writes the deletes that this requires.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from hashlib import blake2b
from types import MappingProxyType
from typing import Final, NoReturn

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from icesql.catalog.table import Table
from icesql.commit.files import file_key
from icesql.commit.validation.since import Since
from icesql.context import QueryContext
from icesql.errors import CommitConflictError
from icesql.frozen import Frozen
from icesql.iceberg.manifest.data_file import DataFile, FileContent
from icesql.iceberg.metadata.snapshot import Snapshot
from icesql.read.deletes.positions import PositionDeletes
from icesql.scan.deletes.delete_index import DeleteIndex
from icesql.scan.deletes.vectors import Positions
from icesql.scan.manifest_reader import ManifestReader
from icesql.scan.tasks.task import FileScanTask, ScanContext
from icesql.storage.uncommitted import Uncommitted
from icesql.write.position_deletes import write_deletes

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
