"""A manifest of the snapshot that is made, with its entries if this commit wrote them."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from icesql.iceberg.manifest.manifest import ManifestFile
from icesql.iceberg.manifest.writing.entry import ManifestEntry


class HeldManifest(Struct, frozen=True):
    """``entries`` are None for a manifest of an older snapshot, which a store has to read.

    Those of this commit are not read back: what they inherit is not known before it is done.
    """

    manifest: ManifestFile
    entries: tuple[ManifestEntry, ...] | None = None

    @property
    def has_live_files(self) -> bool:
        """Whether anything in it is part of the table."""
        return self.manifest.has_live_files


def held(pairs: Sequence[tuple[ManifestFile, Sequence[ManifestEntry]]]) -> list[HeldManifest]:
    """Manifests that were written just now."""
    return [HeldManifest(manifest, tuple(entries)) for manifest, entries in pairs]
