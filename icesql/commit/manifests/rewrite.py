"""Rewrites the manifests of a branch, clustered by partition: rewrite_manifests.

Source: Java ``RewriteManifestsSparkAction`` and ``BaseRewriteManifests``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from msgspec.structs import replace

from icesql.catalog.table import Catalog, Table
from icesql.commit.attempts import commit
from icesql.commit.file_changes import CommitResult, FileChanges
from icesql.commit.manifests.store import HeldManifest, check_carried
from icesql.commit.snapshot_operation import SnapshotOperation
from icesql.context import QueryContext
from icesql.errors import CommitConflictError, ProgrammingError
from icesql.frozen import Frozen
from icesql.iceberg.manifest.manifest import ManifestContent, ManifestFile
from icesql.iceberg.manifest.partition_values import UNSTORED
from icesql.iceberg.manifest.writer import ManifestEntry
from icesql.iceberg.metadata.snapshot import Snapshot
from icesql.iceberg.metadata.table_metadata import TableMetadata

_CONTENTS: Final = (ManifestContent.DATA, ManifestContent.DELETES)


class ManifestGroup(Frozen):
    """Manifests of one content to rewrite as ``count`` new ones."""

    content: ManifestContent
    manifests: tuple[ManifestFile, ...]
    count: int

    @property
    def files(self) -> int:
        """The number of live files in these manifests."""
        return sum(each.live_files for each in self.manifests)


def plan_manifests(
    manifests: Iterable[ManifestFile], spec_id: int, target_bytes: int
) -> list[ManifestGroup]:
    """Groups of a spec's manifests to rewrite, except one manifest that would become one again."""
    found = []
    for content in _CONTENTS:
        chosen = tuple(
            each
            for each in manifests
            if each.content is content and each.partition_spec_id == spec_id
        )
        size = sum(each.manifest_length or 0 for each in chosen)
        count = -(-size // max(target_bytes, 1))
        if chosen and not (len(chosen) == 1 and count <= 1):
            found.append(ManifestGroup(content, chosen, count))
    return found


def manifest_groups(
    table: Table, spec_id: int | None, sort_by: Sequence[str], query: QueryContext
) -> tuple[list[ManifestGroup], int]:
    """The groups that ``rewrite_manifests`` would rewrite on main, and the number of others."""
    return _ManifestRewrite(table, spec_id, sort_by, query).groups(table.metadata)


def rewrite_manifests(
    catalog: Catalog,
    table: Table,
    *,
    spec_id: int | None = None,
    sort_by: Sequence[str] = (),
    query: QueryContext,
) -> CommitResult:
    """Rewrite the manifests of one partition spec of main, by default the current spec.

    Entries are ordered by partition, or by the partition fields in ``sort_by``, and divided into
    manifests of the target size. Data and delete files do not change. Manifests of concurrent
    commits are rewritten, too. Raises ProgrammingError for an unknown spec or field, and as
    ``commit_append``.
    """
    operation = _ManifestRewrite(table, spec_id, sort_by, query)
    return operation.result(commit(catalog, table, operation, query))


class _ManifestRewrite(SnapshotOperation):
    """The next attempt reuses written manifests."""

    def __init__(
        self, table: Table, spec_id: int | None, sort_by: Sequence[str], query: QueryContext
    ) -> None:
        super().__init__(table, FileChanges("replace"), query)
        self._given_spec, self._sort_by = spec_id, sort_by
        self._fields(table.metadata)
        # The key has all fields of the manifests, since entries inherit row ids and numbers.
        self._written: dict[tuple[object, ManifestGroup], list[HeldManifest]] = {}

    def _spec_id(self, metadata: TableMetadata) -> int:
        wanted = self._given_spec
        if wanted is not None and wanted not in metadata.specs:
            known = ", ".join(map(str, metadata.specs))
            raise ProgrammingError(f"the table has no partition spec {wanted}; it has {known}")
        return metadata.default_spec_id if wanted is None else wanted

    def _fields(self, metadata: TableMetadata) -> tuple[int, ...]:
        """Indexes of the partition fields to sort by; all fields if no names are given."""
        known = [each.name for each in metadata.specs[self._spec_id(metadata)].fields]
        for each in self._sort_by:
            if each not in known:
                names_known = ", ".join(known) or "none"
                raise ProgrammingError(
                    f"{each!r} is no field of the partition spec; it has {names_known}"
                )
        return tuple(known.index(each) for each in self._sort_by) or tuple(range(len(known)))

    def groups(self, metadata: TableMetadata) -> tuple[list[ManifestGroup], int]:
        """The groups to rewrite, and the number of manifests that stay unchanged."""
        self._store.rebase(metadata)
        manifests = self._store.manifests_of(metadata.current_snapshot)
        found = plan_manifests(
            manifests, self._spec_id(metadata), self._store.settings.target_bytes
        )
        return found, len(manifests) - sum(len(each.manifests) for each in found)

    def _manifests(
        self, base: Table, parent: Snapshot | None
    ) -> tuple[list[ManifestFile], int, int] | None:
        groups, _ = self.groups(base.metadata)
        if not groups:
            return None
        written = [each for group in groups for each in self._rewritten(group)]
        gone = {each.manifest_path for group in groups for each in group.manifests}
        old = self._store.manifests_of(parent)
        kept = [each for each in old if each.manifest_path not in gone]
        check_carried(self._store, old, [*written, *map(HeldManifest, kept)])
        processed = {"entries-processed": str(sum(group.files for group in groups))}
        self._changes = replace(self._changes, summary=processed)
        # Data before deletes, as in all manifest lists.
        listed = [*(each.manifest for each in written), *kept]
        return sorted(listed, key=lambda each: each.content), len(gone), 0

    def _rewritten(self, group: ManifestGroup) -> list[HeldManifest]:
        key = self._store.written_as, group
        if key not in self._written:
            self._written[key] = [*self._write(group)]
        return self._written[key]

    def _write(self, group: ManifestGroup) -> Iterator[HeldManifest]:
        entries: list[ManifestEntry] = []
        for _, found in self._store.existing(group.manifests):
            entries += found
        if len(entries) != group.files:
            raise CommitConflictError(
                f"the manifests list {len(entries)} files and say that they are {group.files}; "
                "they are damaged, and stay as they are"
            )
        order = self._fields(self._store.metadata)
        entries.sort(key=lambda each: [null_first(each.file.partition[at]) for at in order])
        form = self._store.form(group.manifests[0].partition_spec_id, group.content)
        size = max(-(-len(entries) // group.count), 1)
        for start in range(0, len(entries), size):
            yield self._store.write(entries[start : start + size], form)


def null_first(value: Any) -> tuple[bool, Any]:
    """A sort key with NULL first."""
    return (False, 0) if value is None or value is UNSTORED else (True, value)
