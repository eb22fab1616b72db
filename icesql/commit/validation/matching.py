"""The files of manifests that may have rows of a predicate."""

from __future__ import annotations

from collections.abc import Sequence

from icesql.iceberg.expressions.predicate import ALWAYS_TRUE, Predicate
from icesql.iceberg.manifest.entries import ManifestEntries
from icesql.iceberg.metadata.table_metadata import TableMetadata
from icesql.scan.pruning.metrics_evaluator import metrics_mask
from icesql.scan.pruning.partition_evaluator import partition_mask
from icesql.scan.spec_scan import SpecScans


class Matching:
    """A predicate on fields of the current schema, by the partitions and metrics of files."""

    def __init__(self, metadata: TableMetadata, predicate: Predicate) -> None:
        self._schema, self._predicate = metadata.schema, predicate
        self.specs = SpecScans(predicate, metadata.schema, metadata)

    def files(self, entries: ManifestEntries, indexes: Sequence[int]) -> list[int]:
        """Those of ``indexes`` whose files may have a row of the predicate."""
        kept = self.in_partitions(entries, indexes)
        if not kept or self._predicate is ALWAYS_TRUE:
            return kept
        mask = metrics_mask(entries, self._predicate, self._schema, kept)
        return [index for index in kept if mask[index]]

    def in_partitions(self, entries: ManifestEntries, indexes: Sequence[int]) -> list[int]:
        """As ``files``, by the partitions alone."""
        if self._predicate is ALWAYS_TRUE:
            return [*indexes]
        spec = self.specs[entries.spec_id]
        if spec.predicate is ALWAYS_TRUE:
            return [*indexes]
        mask = partition_mask(entries, spec.predicate, spec.spec, indexes)
        return [index for index in indexes if mask[index]]
