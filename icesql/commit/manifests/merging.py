"""Merges small manifests into larger ones.

Source: Java ``ManifestMergeManager`` and ``BinPacking.packEnd``.
"""

from __future__ import annotations

from collections.abc import Sequence

from icesql.commit.manifests.held import HeldManifest
from icesql.commit.manifests.store import ManifestStore
from icesql.iceberg.manifest.writing.manifest_writer import ManifestEntry
from icesql.scan.tasks.packing import pack


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
