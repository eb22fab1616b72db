"""Why manifests and files are skipped, as records for EXPLAIN."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from icesql.iceberg.expressions.predicate import Predicate
from icesql.iceberg.manifest.entries import ManifestEntries
from icesql.iceberg.manifest.manifest import ManifestFile
from icesql.iceberg.schema import Schema
from icesql.scan.plan import SkipRecord
from icesql.scan.pruning.metrics_evaluator import explain_metrics
from icesql.scan.pruning.partition_evaluator import explain_manifest, explain_partition
from icesql.scan.spec_scan import SpecScan

if TYPE_CHECKING:
    from icesql.scan.pruning.file_conditions import FileCondition

Kind = Literal["file", "delete"]


def skipped_manifest(manifest: ManifestFile, spec: SpecScan) -> SkipRecord:
    """A manifest whose partition summaries rule out ``spec.predicate``."""
    found = explain_manifest(manifest, spec.predicate, spec.spec, spec.partition_schema)
    predicate, reason = found or (str(spec.predicate), "no partition matches")
    return SkipRecord("manifest", manifest.manifest_path, "partition summary", predicate, reason)


def skipped_by_partition(
    entries: ManifestEntries, indexes: Iterable[int], spec: SpecScan, kind: Kind
) -> Iterator[SkipRecord]:
    """The files whose partition fails ``spec.predicate``."""
    known: dict[object, tuple[str, str]] = {}
    for index in indexes:
        partition = entries.partition[index]
        found = known.get(partition)
        if found is None:
            found = known[partition] = explain_partition(
                spec.predicate, spec.spec, partition, spec.partition_schema
            ) or (str(spec.predicate), "the partition does not match")
        yield SkipRecord(kind, entries.path[index], "partition", *found)


def skipped_by_metrics(
    entries: ManifestEntries,
    indexes: Iterable[int],
    row_filter: Predicate,
    schema: Schema,
    kind: Kind,
) -> Iterator[SkipRecord]:
    """The files whose counts and bounds rule out ``row_filter``."""
    for index in indexes:
        found = explain_metrics(entries, index, row_filter, schema)
        predicate, reason = found or (str(row_filter), "no row can match")
        yield SkipRecord(kind, entries.path[index], "metrics", predicate, reason)


def skipped_by_conditions(
    kind: Literal["manifest", "file"],
    paths: Sequence[str],
    ruled_out: Mapping[int, FileCondition],
) -> Iterator[SkipRecord]:
    """Where no row satisfies a condition, by the values or bounds of its columns."""
    for index, condition in sorted(ruled_out.items()):
        reason = "no value between the bounds of its columns satisfies it"
        yield SkipRecord(kind, paths[index], "condition", condition.sql, reason)
