"""Reads the manifests of a table, and keeps and writes those of one new snapshot."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import count
from typing import Final

from msgspec.structs import replace

from icesql.catalog.table import Table
from icesql.commit.file_changes import FileChanges, FileKey, file_key
from icesql.context import QueryContext
from icesql.errors import CommitConflictError, InternalError
from icesql.frozen import Frozen
from icesql.iceberg.manifest.avro_files import manifest_codec
from icesql.iceberg.manifest.data_file import DataFile, FileContent
from icesql.iceberg.manifest.entries import ADDED, DELETED, EXISTING, ManifestEntries
from icesql.iceberg.manifest.manifest import ManifestContent, ManifestFile
from icesql.iceberg.manifest.partition_values import PartitionForm
from icesql.iceberg.manifest.writer import (
    ListHeader,
    ManifestEntry,
    ManifestForm,
    added_entry,
    existing_entry,
    write_manifest,
    write_manifest_list,
)
from icesql.iceberg.metadata.json_fields import number_property
from icesql.iceberg.metadata.snapshot import Snapshot
from icesql.iceberg.metadata.table_metadata import TableMetadata
from icesql.iceberg.metadata.writing import metadata_folder
from icesql.iceberg.partitioning import PartitionSpec, partition_types
from icesql.iceberg.types import IcebergType
from icesql.scan.manifest_reader import ManifestReader
from icesql.scan.spec_scan import source_schema
from icesql.storage.new_files import NewFile, remove_file
from icesql.storage.open import Storage, is_local

# ------------------------------------------------------------------ live files carried over


# A file, its sequence number and that of its commit, its first row id, and its rows.
Carried = tuple[FileKey, int | None, int | None, int | None, int]


def live_of(entries: ManifestEntries) -> tuple[Carried, ...]:
    """The live files of a manifest, with the values that must not change."""
    row_ids = entries.rare.get("first_row_id", {})
    found = []
    for index, status in enumerate(entries.status):
        if status == DELETED:
            continue
        if entries.content[index] == FileContent.DATA:
            key: FileKey = (entries.path[index], None, None)
        else:
            key = file_key(entries.data_file(index))
        numbers = entries.sequence_number[index], entries.file_sequence_number[index]
        found.append((key, *numbers, row_ids.get(index), entries.record_count[index]))
    return tuple(found)


def check_carried(
    store: ManifestStore,
    old: Sequence[ManifestFile],
    kept: Sequence[HeldManifest],
    *,
    added: Collection[FileKey] = (),
    removed: Sequence[DataFile] = (),
) -> None:
    """Raise InternalError if a new snapshot's manifests lose, change or add files unexpectedly.

    ``kept`` are the manifests of the new snapshot, ``old`` those of its parent. Manifests in both
    are not checked. The newly written manifests have to contain all live files of the old manifests
    that are no longer listed, except ``removed``, equally often and with the same sequence numbers
    (which determine the deletes that apply to them), row ids and row counts; and each of ``added``
    once.
    """
    known = frozenset(old)
    listed = Counter(each.manifest for each in kept)
    for manifest, times in listed.items():
        if times > 1:
            raise _wrong(manifest.manifest_path, "be listed twice")
    wanted: Counter[Carried] = Counter()
    for manifest in old:
        if manifest not in listed and manifest.has_live_files:
            wanted.update(store.live_of(manifest))
    wanted.subtract(_carried(each, each) for each in removed)
    new = Counter(added)
    for held in kept:
        if held.entries is None and held.manifest not in known:
            raise _wrong(held.manifest.manifest_path, "be listed, which nobody wrote for it")
        for each in held.entries or ():
            if not each.is_live:
                continue
            if each.status == ADDED and each.snapshot_id == store.snapshot_id:
                new[file_key(each.file)] -= 1
            else:
                wanted[_carried(each.file, each)] -= 1
    for (key, number, *_), times in wanted.items():
        if times:
            problem = "be lost" if times > 0 else f"be listed anew, with sequence number {number}"
            raise _wrong(key[0], problem)
    for key, times in new.items():
        if times:
            problem = "be left out" if times > 0 else "be added, which no change requests"
            raise _wrong(key[0], problem)


def _carried(file: DataFile, entry: DataFile | ManifestEntry) -> Carried:
    numbers = entry.sequence_number, entry.file_sequence_number
    return file_key(file), *numbers, file.first_row_id, file.record_count


def _wrong(path: str, problem: str) -> InternalError:
    return InternalError(
        f"by this commit the file {path} would {problem}; nothing was committed. This is a bug "
        "in icesql"
    )


# ------------------------------------------------------------------ manifests of the new snapshot


class HeldManifest(Frozen):
    """A manifest; ``entries`` are None for one of an older snapshot, which a store has to read.

    ``removed`` are the files of an old manifest that this one, which replaces it, lacks.

    Manifests of this commit are not read back: the values that their entries inherit are not known
    before the commit is applied.
    """

    manifest: ManifestFile
    entries: tuple[ManifestEntry, ...] | None = None
    removed: tuple[DataFile, ...] = ()


# Manifests of the files that a commit adds; written once for all its attempts.


class AddedManifests:
    """The new manifests of data and of deletes, by spec.

    Snapshot id and names are the same in all attempts, and sequence numbers are inherited, so a
    retry writes them again only if the format or schema of the table has changed.
    """

    def __init__(self, changes: FileChanges) -> None:
        self._changes = changes
        self._made: dict[tuple[object, ...], list[HeldManifest]] = {}

    def of(self, store: ManifestStore, content: ManifestContent) -> list[HeldManifest]:
        """The new manifests of one content, highest spec id first."""
        key = content, store.written_as
        if key not in self._made:
            is_data = content is ManifestContent.DATA
            files = self._changes.added_data if is_data else self._changes.added_deletes
            self._made[key] = self._written(store, files, content)
        return self._made[key]

    def _written(
        self, store: ManifestStore, files: Sequence[DataFile], content: ManifestContent
    ) -> list[HeldManifest]:
        by_spec: dict[int, list[DataFile]] = {}
        for each in files:
            by_spec.setdefault(each.spec_id, []).append(each)
        found: list[HeldManifest] = []
        for spec_id in sorted(by_spec, reverse=True):
            entries = [
                added_entry(each, store.snapshot_id, self._age(each, content))
                for each in by_spec[spec_id]
            ]
            found += store.write_rolled(entries, store.form(spec_id, content))
        return found

    def _age(self, file: DataFile, content: ManifestContent) -> int | None:
        if content is ManifestContent.DATA:
            return self._changes.sequence_number
        return self._changes.delete_ages.get(file.path)


# ------------------------------------------------------------------ read and written manifests


# Java checks the length of a manifest after this number of entries.
_CHECKED_EVERY = 250
# The assumed compressed size of a manifest entry before the first manifest is written.
_GUESSED_BYTES = 150


class ManifestStore:
    """The manifests of a table as of ``table``; new ones belong to snapshot ``snapshot_id``.

    One store is used for all attempts of a commit, so no file name is used twice.
    """

    def __init__(self, table: Table, snapshot_id: int, own: OwnFiles, query: QueryContext) -> None:
        self.snapshot_id, self._own = snapshot_id, own
        self._reader = ManifestReader(table, query, self._form_of)
        self._unique, self._numbers = str(uuid.uuid4()), count()
        self._bytes_per_entry: float = _GUESSED_BYTES
        self._live: dict[ManifestFile, tuple[Carried, ...]] = {}
        self.rebase(table.metadata)

    def rebase(self, metadata: TableMetadata) -> None:
        """Use other metadata of the table from now on."""
        self.metadata = metadata
        self.settings = ManifestSettings.of(metadata.properties)
        # Manifests are written again if this has changed.
        self.written_as = metadata.format_version, metadata.current_schema_id
        self._folder = metadata_folder(metadata.location, metadata.properties)
        self._specs: dict[int, tuple[PartitionSpec, tuple[IcebergType, ...]]] = {}

    # ------------------------------------------------------------------ reading

    def manifests_of(self, snapshot: Snapshot | None) -> tuple[ManifestFile, ...]:
        """The manifests of a snapshot in the order of its list, with all counts known."""
        if snapshot is None:
            return ()
        found = self._reader.manifests_of(snapshot)
        return tuple(self._counted(each) for each in found)

    def keep(
        self, snapshot: Snapshot, listed: Sequence[ManifestFile], head: Snapshot | None
    ) -> None:
        """Cache the manifests of a list that ``write_list`` wrote, instead of those of ``head``.

        Not for format version 1, whose lists lack some of their fields.
        """
        version = self.metadata.format_version
        if version > 1 and all(_is_whole(each, version) for each in listed):
            self._reader.keep(snapshot, listed, None if head is None else head.manifest_list)

    def read(
        self, manifests: Sequence[ManifestFile]
    ) -> Iterator[tuple[ManifestFile, ManifestEntries]]:
        """Each manifest with its entries, inherited values filled in."""
        return self._reader.entries_of(manifests)

    def existing(
        self, manifests: Sequence[ManifestFile]
    ) -> Iterator[tuple[ManifestFile, list[ManifestEntry]]]:
        """Each manifest, which will be replaced, with its live files as EXISTING entries."""
        for manifest, entries in self.read(manifests):
            self.note(manifest, entries)
            yield manifest, existing_entries(manifest, entries)

    def note(self, manifest: ManifestFile, entries: ManifestEntries) -> None:
        """Remember the live files of a manifest that will be replaced."""
        self._live[manifest] = live_of(entries)

    def live_of(self, manifest: ManifestFile) -> tuple[Carried, ...]:
        """The live files of a manifest, which is read if they are not remembered."""
        if manifest not in self._live:
            ((_, entries),) = self.read([manifest])
            self.note(manifest, entries)
        return self._live[manifest]

    def spec(self, spec_id: int) -> tuple[PartitionSpec, tuple[IcebergType, ...]]:
        """A spec and the types of its partition values, even if source columns were dropped.

        Raises CommitConflictError if the table no longer has the spec.
        """
        if spec_id not in self._specs:
            spec = self.metadata.specs.get(spec_id)
            if spec is None:
                raise CommitConflictError(f"the table has no partition spec {spec_id} any more")
            sources = source_schema(spec, self.metadata.schema, self.metadata)
            self._specs[spec_id] = spec, partition_types(spec, sources)
        return self._specs[spec_id]

    def _form_of(self, manifest: ManifestFile) -> PartitionForm:
        return PartitionForm.of(*self.spec(manifest.partition_spec_id))

    def _counted(self, manifest: ManifestFile) -> ManifestFile:
        """The manifest, with counts read from it if a list of format version 1 has none."""
        counts = (
            manifest.entries_count,
            manifest.added_rows_count,
            manifest.existing_rows_count,
            manifest.deleted_rows_count,
            manifest.manifest_length,
        )
        if None not in counts:
            return manifest
        ((_, entries),) = self.read([manifest])
        files, rows = [0, 0, 0], [0, 0, 0]
        for status, record_count in zip(entries.status, entries.record_count, strict=True):
            files[status] += 1
            rows[status] += record_count
        length = manifest.manifest_length
        return replace(
            manifest,
            manifest_length=self._own.storage.size(manifest.manifest_path)
            if length is None
            else length,
            added_files_count=files[ADDED],
            existing_files_count=files[EXISTING],
            deleted_files_count=files[DELETED],
            added_rows_count=rows[ADDED],
            existing_rows_count=rows[EXISTING],
            deleted_rows_count=rows[DELETED],
        )

    # ------------------------------------------------------------------ writing

    def form(self, spec_id: int, content: ManifestContent) -> ManifestForm:
        """The form that new manifests of a spec and content share."""
        spec, types = self.spec(spec_id)
        metadata = self.metadata
        return ManifestForm(
            metadata.format_version, spec, metadata.schema, types, content, self.settings.codec
        )

    def write(
        self,
        entries: Sequence[ManifestEntry],
        form: ManifestForm,
        removed: tuple[DataFile, ...] = (),
    ) -> HeldManifest:
        """Write one manifest with these entries; see ``HeldManifest``."""
        path = f"{self._folder}/{self._unique}-m{next(self._numbers)}.avro"
        data, made = write_manifest(entries, form, path=path, snapshot_id=self.snapshot_id)
        self._own.write(path, data)
        self._bytes_per_entry = max(len(data) / len(entries), 1)
        return HeldManifest(made, tuple(entries), removed)

    def write_rolled(
        self, entries: Sequence[ManifestEntry], form: ManifestForm
    ) -> Iterator[HeldManifest]:
        """Write manifests of about the target size."""
        start = 0
        while start < len(entries):
            fitting = int(self.settings.target_bytes / self._bytes_per_entry)
            end = start + max(fitting // _CHECKED_EVERY * _CHECKED_EVERY, _CHECKED_EVERY)
            yield self.write(entries[start:end], form)
            start = end

    def write_list(
        self, manifests: Iterable[ManifestFile], attempt: int, header: ListHeader
    ) -> tuple[str, tuple[ManifestFile, ...], int]:
        """Write a manifest list; its path, its manifests, and the number of row ids it assigns."""
        path = f"{self._folder}/snap-{self.snapshot_id}-{attempt}-{self._unique}.avro"
        data, listed, rows = write_manifest_list([*manifests], header)
        self._own.write(path, data)
        return path, listed, rows


def existing_entries(manifest: ManifestFile, entries: ManifestEntries) -> list[ManifestEntry]:
    """The live files of a manifest as EXISTING entries."""
    files = map(entries.data_file, entries.live_indexes)
    return [existing_entry(each, manifest.added_snapshot_id or 0) for each in files]


def _is_whole(manifest: ManifestFile, version: int) -> bool:
    """True if a manifest list of this format version stores all known fields of a manifest."""
    has_row_ids = manifest.first_row_id is not None
    return manifest.added_snapshot_id is not None and (version > 2 or not has_row_ids)


# The files that one commit writes over all its attempts, and which of them are still needed.


class OwnFiles:
    """Manifests and lists that this commit wrote; deletes those that are not used in the end."""

    def __init__(self, storage: Storage) -> None:
        self.storage = storage
        self._written: set[str] = set()

    def write(self, path: str, data: bytes) -> None:
        """Write a file of the table. Raises OperationalError."""
        file = NewFile(self.storage, path)  # raises if the name is taken
        # Recorded before writing: a failed write to a store may leave a partial file.
        self._written.add(path)
        try:
            with file:
                file.write(data)
        except BaseException:
            if is_local(path):
                self._written.discard(path)  # a failed local write leaves no file of this name
            raise

    @property
    def paths(self) -> tuple[str, ...]:
        """Written paths of which it is still open whether they are used."""
        return tuple(sorted(self._written))

    def keep_only(self, used: Iterable[str]) -> None:
        """Delete written files that are not in ``used``; a failed deletion leaves an orphan."""
        for path in self._written.difference(used):
            remove_file(self.storage, path)
        self._written.clear()


# The table properties that control how manifests are written.

_TARGET: Final = "commit.manifest.target-size-bytes"
_LEAST: Final = "commit.manifest.min-count-to-merge"
_MERGE: Final = "commit.manifest-merge.enabled"
_PARTITIONS: Final = "write.summary.partition-limit"


class ManifestSettings(Frozen):
    """Settings for manifests; the newest bin is merged if it has ``least_to_merge`` members."""

    target_bytes: int
    least_to_merge: int
    merges: bool
    codec: str
    partition_limit: int

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> ManifestSettings:
        """Read them from table properties. Raises ProgrammingError for an invalid value."""
        return cls(
            number_property(properties, _TARGET, 8 << 20),
            number_property(properties, _LEAST, 100),
            properties.get(_MERGE, "true").lower() != "false",
            manifest_codec(properties),
            number_property(properties, _PARTITIONS, 0),
        )
