"""The manifests and entries behind a metadata table, without those that its filter rules out."""

from __future__ import annotations

from typing import Any, Final

from icesql.context import QueryContext
from icesql.iceberg.expressions.predicate import ALWAYS_TRUE
from icesql.iceberg.manifest.entries import ManifestEntries
from icesql.iceberg.manifest.manifest import ManifestContent, ManifestFile
from icesql.iceberg.manifest.partition_values import UNSTORED
from icesql.scan.manifest_reader import ManifestReader
from icesql.scan.spec_scan import SpecScans
from icesql.scan.table_scan import TableScan

_KINDS: Final = {
    "data_files": frozenset({ManifestContent.DATA}),
    "delete_files": frozenset({ManifestContent.DELETES}),
    "position_deletes": frozenset({ManifestContent.DELETES}),
}
_BOTH: Final = frozenset(ManifestContent)

Row = tuple[Any, ...]


class ManifestWalk(ManifestReader):
    """Reads the manifests of one snapshot, or of all, once each.

    A filter on fields of ``partition`` skips manifests by their summaries; rows are filtered by the
    caller.
    """

    def __init__(self, scan: TableScan, name: str, query: QueryContext) -> None:
        metadata = scan.table.metadata
        self.specs = SpecScans(ALWAYS_TRUE, metadata.schema, metadata)
        super().__init__(scan.table, query, self.specs.form_of)
        self._scan, self._kinds = scan, _KINDS.get(name.removeprefix("all_"), _BOTH)

    def manifests(self) -> list[ManifestFile]:
        """The manifests of the scan's snapshot that may have rows."""
        snapshot = self._scan.snapshot
        return self._wanted(() if snapshot is None else self.manifests_of(snapshot))

    def all_manifests(self) -> list[ManifestFile]:
        """The manifests of every snapshot that may have rows, each once."""
        found: dict[str, ManifestFile] = {}
        for snapshot in self._scan.table.metadata.snapshots.values():
            self._query.check()
            for each in self.manifests_of(snapshot):
                found.setdefault(each.manifest_path, each)
        return self._wanted(found.values())

    def partition_of(self, entries: ManifestEntries, index: int) -> dict[int, Any]:
        """The partition values of an entry by partition field id, without those not stored."""
        fields = self._scan.table.metadata.specs[entries.spec_id].fields
        return {
            each.field_id: value
            for each, value in zip(fields, entries.partition[index], strict=False)
            if value is not UNSTORED
        }

    def _wanted(self, manifests: Any) -> list[ManifestFile]:
        kept = [each for each in manifests if each.content in self._kinds]
        if not self._query.settings.prune or self._scan.row_filter is ALWAYS_TRUE:
            return kept
        from icesql.scan.pruning.manifest_evaluator import manifest_may_match

        return [
            each
            for each in kept
            if manifest_may_match(each, self._scan.row_filter, self.specs.of(each).types_by_id)
        ]
