"""The manifests of the new snapshot, with their entries if this commit wrote them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from icesql.commit.files import FileChanges
from icesql.frozen import Frozen
from icesql.iceberg.manifest.data_file import DataFile
from icesql.iceberg.manifest.manifest import ManifestContent, ManifestFile
from icesql.iceberg.manifest.writing.manifest_writer import ManifestEntry, added_entry

if TYPE_CHECKING:
    from icesql.commit.manifests.store import ManifestStore


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
