"""Checks that a commit changes the number of live rows by the number its statement counted.

At each attempt, the numbers are compared with the base of that attempt:

- Data files and deletion vectors give the exact change: rows of added data files, minus live rows
  of removed data files, minus rows that new vectors delete beyond the vectors they replace. In a
  table without other deletes the numbers must be equal. If they are not, the removed vectors are
  read: vectors of other writers may contain positions beyond the rows of their file.
- Position delete files (format version 2) may name a row twice, or a row that is gone. A removed
  data file to which some apply counts with a range of live rows: from its rows minus all of these
  positions up to all of its rows.
- The number of rows that an equality delete removes is known only by reading. A removed data file
  to which one applies counts with any number of live rows up to its row count. ``checks`` handles
  deletes that were added since the file was read.
- If a removed data file is listed twice, or has no row count, the numbers are not compared.

Independently of the numbers, a delete file may be removed only if its data file is removed, too, or
new deletes replace it, or it applies to no live data file (for positions in several files, only the
caller that has read them can know). Only if neither of the first two holds does this check read
manifests that the commit does not read anyway. An append reads none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress

from msgspec.structs import replace

from icesql.catalog.table import Table
from icesql.commit.file_changes import FileChanges, FileKey, data_of, file_key
from icesql.commit.manifests.existing import may_hold
from icesql.commit.manifests.store import HeldManifest, ManifestStore, existing_entries
from icesql.errors import Error, InternalError, rows_changed
from icesql.iceberg.manifest.data_file import DataFile, FileContent
from icesql.iceberg.manifest.manifest import ManifestContent, ManifestFile
from icesql.scan.deletes.delete_index import DeleteIndex, partition_of
from icesql.scan.deletes.vectors import rows_of_vector


class LiveRows:
    """The effect of the commit of ``changes`` on live rows.

    ``removed`` are the entries of removed files found in the base; ``old`` are the manifests of the
    base, ``kept`` those of the new snapshot.
    """

    def __init__(
        self,
        table: Table,
        store: ManifestStore,
        changes: FileChanges,
        removed: Sequence[DataFile],
        old: Sequence[ManifestFile],
        kept: Sequence[HeldManifest],
    ) -> None:
        self._table, self._store, self._changes = table, store, changes
        self._old, self._kept = old, kept
        self._key_of = table.storage.same_file_key
        self._is_certain = len({file_key(each) for each in removed}) == len(removed)
        self._gone = {self._key_of(each.path): each for each in data_of(removed)}
        # If bounds identify a single data file, the planner has set referenced_data_file.
        self._named = {file_key(each): each.referenced_data_file for each in changes.removed}
        self._removed = [each for each in removed if each.content is not FileContent.DATA]
        self._removed_of: dict[str, list[DataFile]] = {}
        for each in self._removed:
            if (path := self._path(each)) is not None:
                self._removed_of.setdefault(path, []).append(each)
        self._new = {
            path: each for each in changes.added_deletes if (path := self._path(each)) is not None
        }

        self._of_vector: dict[FileKey, int] = {}
        self._several = {
            partition_of(each)
            for each in changes.added_deletes
            if _is_position_file(each) and self._path(each) is None
        }

    def check(self, *, moved: bool) -> None:
        """Raise if the numbers disagree, or deletes are lost.

        CommitConflictError if other writers have ``moved`` the branch since the statement read it,
        else InternalError.
        """
        problem = self._problem()
        if problem is not None and self._count_vectors():
            problem = self._problem()
        if problem is None:
            return
        if moved:
            raise rows_changed(
                f"another commit to {self._table.name} conflicts with this statement: {problem}; "
                "nothing was changed, run the statement again"
            )
        raise InternalError(
            f"cannot commit to {self._table.name}: {problem}; nothing was changed. Either files of "
            "the table are not what its metadata says (SET verify = 'full' reads them), or this is "
            "a bug in icesql"
        )

    def _problem(self) -> str | None:
        return self._lost_deletes() or self._miscounted()

    def _count_vectors(self) -> bool:
        """Read the removed vectors; True if one has positions beyond the rows of its data file.

        Vectors of other writers may have such positions. Most commits need not read them.
        """
        vectors = {self._path(each): each for each in self._removed if each.is_deletion_vector}
        if not vectors:
            return False
        table = self._table
        for file in self._live(map(HeldManifest, self._old), ManifestContent.DATA):
            vector = vectors.get(self._key_of(file.path))
            if vector is None:
                continue
            with suppress(Error):  # an unreadable vector does not explain the difference
                rows = rows_of_vector(vector, file.record_count, table.storage, table.name)
                if rows != vector.record_count:
                    self._of_vector[file_key(vector)] = rows
        return bool(self._of_vector)

    def _rows(self, delete: DataFile) -> int:
        """The number of rows that a delete names."""
        return self._of_vector.get(file_key(delete), delete.record_count)

    def _path(self, delete: DataFile) -> str | None:
        """The key of the single data file that a delete refers to; None if it may be several."""
        named = delete.referenced_data_file or self._named.get(file_key(delete))
        return None if named is None else self._key_of(named)

    # ------------------------------------------------------------------ deletes that go

    def _lost_deletes(self) -> str | None:
        """The problem if a removed delete still applies to a remaining data file."""
        open_ = [each for each in self._removed if not self._has_successor(each)]
        if not open_:
            return None
        removed_keys = self._changes.removed_keys
        by_age = [each for each in open_ if file_key(each) not in removed_keys]
        oldest = self._oldest() if by_age else 0
        for each in by_age:
            if each.sequence_number >= oldest:
                return f"the deletes of {each.path} would be lost"
        found = self._applied([each for each in open_ if file_key(each) in removed_keys])
        return None if found is None else f"the deletes of {found.path} would be lost"

    def _has_successor(self, delete: DataFile) -> bool:
        """True if the data file of a delete is removed, too, or new deletes replace it."""
        if delete.path in self._changes.converted:
            return True
        path = self._path(delete)
        if path is not None and path in self._gone:
            return True
        many = path is None or partition_of(delete) in self._several
        if many and self._changes.deletes_read and _is_position_file(delete):
            return True
        if path is None:
            return False
        # Only the counts of vectors have each row once.
        new = self._new.get(path)
        least = self._rows(delete) if delete.is_deletion_vector else 0
        return new is not None and new.record_count >= least

    def _applied(self, deletes: Sequence[DataFile]) -> DataFile | None:
        """The first of the removed deletes that applies to a live data file of the new snapshot."""
        if not deletes:
            return None
        vectors = {self._path(each): each for each in deletes if each.is_deletion_vector}
        going = {file_key(each): each for each in deletes if not each.is_deletion_vector}
        # A vector replaces all other position deletes of its file.
        staying = [
            each
            for each in self._live(self._kept if going else (), ManifestContent.DELETES)
            if each.is_deletion_vector
        ]
        index = DeleteIndex.of(self._table, [*going.values(), *staying], compare_bounds=False)
        for file in self._live(self._holding(deletes), ManifestContent.DATA):
            if vectors and (vector := vectors.get(self._key_of(file.path))) is not None:
                return vector
            for delete in index.deletes_of(file) if going else ():
                if file_key(delete) in going:
                    return going[file_key(delete)]
        return None

    def _holding(self, deletes: Sequence[DataFile]) -> Iterator[HeldManifest]:
        """The manifests that may list a data file to which one of the deletes applies."""
        specs = self._table.metadata.specs
        everywhere = any(specs[each.spec_id].is_unpartitioned for each in deletes)
        partitions: dict[int, set[tuple[object, ...]]] = {}
        for each in deletes:
            partitions.setdefault(each.spec_id, set()).add(each.partition)
        for held in self._kept:
            spec_id = held.manifest.partition_spec_id
            if not everywhere:
                _, types = self._store.spec(spec_id)
                wanted = partitions.get(spec_id)
                if not wanted or not may_hold(held.manifest.partitions, types, wanted):
                    continue
            yield held

    # ------------------------------------------------------------------ numbers

    def _miscounted(self) -> str | None:
        """The problem if the files contradict the number that the statement counted."""
        counted, added = self._changes.rows, self._changes.added_data
        held = [each.record_count for each in (*added, *self._gone.values())]
        if counted is None or not self._is_certain or any(each < 0 for each in held):
            return None
        exact = sum(each.record_count for each in added)
        for path, file in self._gone.items():
            exact -= file.record_count - self._in_vector(path)
        for path, new in self._new.items():
            if path not in self._gone:
                replaced = self._removed_of.get(path, ())
                exact -= new.record_count - sum(map(self._rows, replaced))
        if exact == counted:
            return None
        least, most = self._range(exact)
        if least <= counted <= most:
            return None
        change = f"{most:+,}" if least == most else f"{least:+,} to {most:+,}"
        return f"its files change the number of live rows by {change}, its rows by {counted:+,}"

    def _range(self, exact: int) -> tuple[int, int]:
        """The bounds of the change if deletes with an unknown number of rows apply."""
        least = most = exact
        deletes = self._live(map(HeldManifest, self._old), ManifestContent.DELETES)
        files = (each for each in deletes if not each.is_deletion_vector)
        index = DeleteIndex.of(self._table, files, compare_bounds=False)
        for path, file in self._gone.items():
            known = self._in_vector(path)
            applied = index.deletes_of(file)
            left = file.record_count - known
            if any(each.equality_ids for each in applied):
                most += left
            elif not known:
                most += min(left, sum(each.record_count for each in applied))
        for path, new in self._new.items():
            if path in self._gone:
                continue
            replaced = self._removed_of.get(path, ())
            least -= sum(each.record_count for each in replaced if not each.is_deletion_vector)
            if new.is_deletion_vector and not self._in_vector(path):
                # The first vector of a file includes the positions of its delete files.
                file = replace(new, path=new.referenced_data_file or "", sequence_number=0)
                applied = index.deletes_of(file)
                most += sum(each.record_count for each in applied if not each.equality_ids)
        return least, most

    def _in_vector(self, path: str) -> int:
        """The number of rows that the removed vector of a data file deletes."""
        replaced = self._removed_of.get(path, ())
        return sum(self._rows(each) for each in replaced if each.is_deletion_vector)

    # ------------------------------------------------------------------ files

    def _live(
        self, manifests: Iterable[HeldManifest], content: ManifestContent
    ) -> Iterator[DataFile]:
        """The live files of manifests, with their sequence numbers in the new snapshot."""
        new = self._table.metadata.last_sequence_number + 1
        for held in manifests:
            manifest = held.manifest
            if manifest.content is not content or not manifest.has_live_files:
                continue
            if held.entries is not None:
                for each in held.entries:
                    if each.is_live:
                        number = each.sequence_number
                        yield replace(each.file, sequence_number=new if number is None else number)
                continue
            ((_, entries),) = self._store.read([manifest])
            yield from (each.file for each in existing_entries(manifest, entries))

    def _oldest(self) -> int:
        """The lowest sequence number of the remaining data."""
        found = [self._table.metadata.last_sequence_number + 1]
        for held in self._kept:
            manifest = held.manifest
            if manifest.content is not ManifestContent.DATA or not manifest.has_live_files:
                continue
            if held.entries is None:
                found.append(manifest.min_sequence_number)
            else:
                numbers = [each.sequence_number for each in held.entries if each.is_live]
                found += [each for each in numbers if each is not None]
        return min(found)


def _is_position_file(file: DataFile) -> bool:
    return file.content is FileContent.POSITION_DELETES and not file.is_deletion_vector
