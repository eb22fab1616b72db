"""Checks that rewritten manifests carry over every live file unchanged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from icesql.commit.files import FileKey, file_key
from icesql.errors import InternalError
from icesql.iceberg.manifest.data_file import DataFile, FileContent
from icesql.iceberg.manifest.entries import ADDED, DELETED, ManifestEntries
from icesql.iceberg.manifest.manifest import ManifestFile
from icesql.iceberg.manifest.writing.manifest_writer import ManifestEntry

if TYPE_CHECKING:
    from icesql.commit.manifests.held import HeldManifest
    from icesql.commit.manifests.store import ManifestStore

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
