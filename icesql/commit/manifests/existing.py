"""Rewrites old manifests without the files that a commit removes, and merges small ones.

Source: Java ``ManifestFilterManager``, ``ManifestMergeManager`` and ``BinPacking.packEnd``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

from icesql.commit.file_changes import FileKey, file_key
from icesql.commit.manifests.store import HeldManifest, ManifestStore, existing_entries
from icesql.iceberg.bounds import decode_bound
from icesql.iceberg.manifest.data_file import DataFile
from icesql.iceberg.manifest.manifest import FieldSummary, ManifestFile
from icesql.iceberg.manifest.writer import ManifestEntry, deleted_entry
from icesql.iceberg.types import IcebergType, UUIDType
from icesql.scan.tasks import pack

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


# ------------------------------------------------------------------ small manifests merged


class ManifestMerge:
    """Merges the manifests of one content; later attempts reuse merged manifests.

    They are reused only if sequence numbers and row ids of the members are the same: entries
    inherit these, and a manifest of the same path may have others after a lost attempt.
    """

    def __init__(self) -> None:
        self._merged: dict[tuple[object, ...], HeldManifest] = {}

    def apply(self, store: ManifestStore, manifests: Sequence[HeldManifest]) -> list[HeldManifest]:
        """The manifests, merged in bins of the target size for each spec, highest spec id first.

        The bin with the newest manifest is merged only if it has ``least_to_merge`` members, so
        that most commits rewrite nothing.
        """
        if not store.settings.merges or not manifests:
            return [*manifests]
        by_spec: dict[int, list[HeldManifest]] = {}
        for each in manifests:
            by_spec.setdefault(each.manifest.partition_spec_id, []).append(each)
        newest = manifests[0]
        found: list[HeldManifest] = []
        for spec_id in sorted(by_spec, reverse=True):
            for members in packed_from_end(by_spec[spec_id], store.settings.target_bytes):
                is_newest = any(each is newest for each in members)
                few = is_newest and len(members) < store.settings.least_to_merge
                if len(members) == 1 or few:
                    found += members
                else:
                    found.append(self._merge(store, members))
        return found

    def _merge(self, store: ManifestStore, members: Sequence[HeldManifest]) -> HeldManifest:
        key = store.written_as, *(each.manifest for each in members)
        if key not in self._merged:
            entries: list[ManifestEntry] = []
            for each in members:
                if each.entries is None:
                    ((_, existing),) = store.existing([each.manifest])
                    entries += existing
                else:
                    entries += each.entries
            first = members[0].manifest
            form = store.form(first.partition_spec_id, first.content)
            self._merged[key] = store.write(entries, form)
        return self._merged[key]


def packed_from_end(manifests: Sequence[HeldManifest], target: int) -> list[list[HeldManifest]]:
    """Bins of at most ``target`` bytes, filled from the end of the list, in the list's order.

    Only the first bin may have room for further manifests.
    """
    bins = pack(
        reversed(manifests), target, lambda each: each.manifest.manifest_length or 0, lookback=1
    )
    return [one[::-1] for one in reversed([*bins])]
