"""Rewrites old manifests without the files that a commit removes.

Source: Java ``ManifestFilterManager``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

from icesql.commit.files import FileKey, file_key
from icesql.commit.manifests.held import HeldManifest
from icesql.commit.manifests.store import ManifestStore, existing_entries
from icesql.iceberg.bounds import decode_bound
from icesql.iceberg.manifest.data_file import DataFile
from icesql.iceberg.manifest.manifest import FieldSummary, ManifestFile
from icesql.iceberg.manifest.writing.manifest_writer import deleted_entry
from icesql.iceberg.types import IcebergType, UUIDType

# True for a file to remove, whatever its key.
AlsoRemoved = Callable[[DataFile], bool]


class ManifestFilter:
    """Removes files from manifests; later attempts reuse the result for each manifest.

    A manifest is opened only if its summaries allow one of the files in it, and rewritten only if
    it contains one. ``also`` selects further files to remove; it is applied to opened manifests.
    """

    def __init__(
        self,
        removed: Sequence[DataFile],
        *,
        also: AlsoRemoved = lambda file: False,
    ) -> None:
        self._keys: frozenset[FileKey] = frozenset(map(file_key, removed))
        self._partitions: dict[int, set[tuple[Any, ...]]] = {}
        for each in removed:
            self._partitions.setdefault(each.spec_id, set()).add(each.partition)
        self._also = also
        self._known: dict[tuple[object, ManifestFile], HeldManifest] = {}

    def apply(
        self,
        store: ManifestStore,
        manifests: Sequence[ManifestFile],
        also_open: Callable[[ManifestFile], bool] = lambda manifest: False,
    ) -> list[HeldManifest]:
        """The outcome for each manifest, in the same order."""
        unknown = [
            each
            for each in manifests
            if (store.written_as, each) not in self._known
            and (self._may_hold(store, each) or also_open(each))
        ]
        for manifest, entries in store.read(unknown):
            made = [
                deleted_entry(each.file, store.snapshot_id)
                if file_key(each.file) in self._keys or self._also(each.file)
                else each
                for each in existing_entries(manifest, entries)
            ]
            gone = tuple(each.file for each in made if not each.is_live)
            found = HeldManifest(manifest)
            if gone:
                store.note(manifest, entries)
                form = store.form(manifest.partition_spec_id, manifest.content)
                found = store.write(made, form, gone)
            self._known[store.written_as, manifest] = found
        return [
            self._known.get((store.written_as, each)) or HeldManifest(each) for each in manifests
        ]

    def forget(self) -> None:
        """Forget the results: the files to remove have changed."""
        self._known.clear()

    def _may_hold(self, store: ManifestStore, manifest: ManifestFile) -> bool:
        wanted = self._partitions.get(manifest.partition_spec_id)
        if not wanted or not manifest.has_live_files:
            return False
        _, types = store.spec(manifest.partition_spec_id)
        return may_hold(manifest.partitions, types, wanted)


def may_hold(
    summaries: Sequence[FieldSummary] | None,
    types: Sequence[IcebergType],
    partitions: Collection[tuple[Any, ...]],
) -> bool:
    """True if a manifest with these summaries may have a file of one of the partitions."""
    if summaries is None or len(summaries) != len(types):
        return True
    tests = [_may_be(summary, type) for summary, type in zip(summaries, types, strict=True)]
    return any(
        all(test(value) for test, value in zip(tests, partition, strict=True))
        for partition in partitions
    )


def _may_be(summary: FieldSummary, type: IcebergType) -> Callable[[Any], bool]:
    lower = None if summary.lower_bound is None else decode_bound(type, summary.lower_bound)
    upper = None if summary.upper_bound is None else decode_bound(type, summary.upper_bound)

    def may_be(value: Any) -> bool:
        if value is None:
            return summary.contains_null
        if isinstance(type, UUIDType):
            return True  # Java orders the halves of a UUID as signed numbers
        if lower is None or upper is None or value.__class__ not in (lower.__class__, int):
            return True  # the bounds cannot be compared with this kind of value
        try:
            return bool(value != value or lower <= value <= upper)
        except TypeError:
            return True

    return may_be
