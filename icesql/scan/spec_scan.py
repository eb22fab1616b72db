"""The evaluators and residuals of one scan for the files of one partition spec."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from icesql.errors import CorruptFileError
from icesql.iceberg.expressions.predicate import (
    ALWAYS_FALSE,
    ALWAYS_TRUE,
    Leaf,
    Predicate,
    leaves,
    replace_leaves,
)
from icesql.iceberg.manifest.manifest import ManifestFile
from icesql.iceberg.manifest.partition_values import UNSTORED, PartitionForm
from icesql.iceberg.metadata.table_metadata import TableMetadata
from icesql.iceberg.partitioning import PartitionSpec, partition_types
from icesql.iceberg.schema import Schema
from icesql.iceberg.types import IcebergType, NestedField

# ------------------------------------------------------------------ residuals
# Residuals: the rest of a row filter once the partition of a file is known.


class ResidualEvaluator:
    """The residuals of one predicate for the partitions of one spec; projects each leaf once.

    On the rows of a partition the residual is true exactly where the predicate is. NULL partition
    values come from NULL source values, which satisfy IS NULL alone.

    >>> for value in (10, 20, 30):
    ...     left_over("i < 25", "truncate[10]", "i", value)
    true
    i < 25
    false

    ``is_constant``: it is ``predicate`` in all partitions. Source: Java ``ResidualEvaluator``.
    """

    def __init__(self, predicate: Predicate, spec: PartitionSpec, schema: Schema) -> None:
        self.predicate = predicate
        self._positions = {each.field_id: at for at, each in enumerate(spec.fields)}
        self._projections = _projections(predicate, spec, schema)
        self.is_constant = all(
            may is ALWAYS_TRUE and must is ALWAYS_FALSE for may, must in self._projections.values()
        )
        self._known: dict[tuple[Any, ...], Predicate] = {}

    def residual(self, partition: tuple[Any, ...]) -> Predicate:
        """The simplified residual for one partition tuple."""
        if self.is_constant:
            return self.predicate
        found = self._known.get(partition)
        if found is None:
            # If a partition value is unknown, no row is known to match or to fail.
            unknown = UNSTORED in partition
            found = self.predicate
            if not unknown:
                found = replace_leaves(found, lambda leaf: self._reduced(leaf, partition))
            self._known[partition] = found
        return found

    def _reduced(self, leaf: Leaf, partition: tuple[Any, ...]) -> Predicate:
        from icesql.iceberg.expressions.predicate import evaluate

        may, must = self._projections[leaf]

        def value_of(field_id: int) -> Any:
            return partition[self._positions[field_id]]

        if not evaluate(may, value_of):
            return ALWAYS_FALSE
        return ALWAYS_TRUE if evaluate(must, value_of) else leaf


def _projections(
    predicate: Predicate, spec: PartitionSpec, schema: Schema
) -> Mapping[Leaf, tuple[Predicate, Predicate]]:
    found = list(leaves(predicate))
    if not found or not spec.fields:
        return dict.fromkeys(found, (ALWAYS_TRUE, ALWAYS_FALSE))
    from icesql.iceberg.expressions.projection import inclusive_leaf, strict_leaf

    return {
        leaf: (inclusive_leaf(leaf, spec, schema), strict_leaf(leaf, spec, schema))
        for leaf in found
    }


# ------------------------------------------------------------------ evaluators


class SpecScan:
    """A row filter projected by one spec.

    ``partition_schema`` has the sources of the spec, from any schema that has them, so that
    partition values have a type after their column was dropped. ``predicate`` is on partition
    values, and always true if the filter does not restrict them.
    """

    def __init__(
        self, spec: PartitionSpec, row_filter: Predicate, schema: Schema, metadata: TableMetadata
    ) -> None:
        self.spec = spec
        self.partition_schema = source_schema(spec, schema, metadata)
        self.types = partition_types(spec, self.partition_schema)
        self.types_by_id: Mapping[int, IcebergType] = {
            each.field_id: value_type
            for each, value_type in zip(spec.fields, self.types, strict=True)
        }
        self.predicate = _projected(row_filter, spec, schema)
        self.residuals = ResidualEvaluator(row_filter, spec, schema)


class SpecScans(dict[int, SpecScan]):
    """The scans of the specs of a table by their ids, made on first use; KeyError for others."""

    def __init__(self, row_filter: Predicate, schema: Schema, metadata: TableMetadata) -> None:
        super().__init__()
        self._filter, self._schema, self._metadata = row_filter, schema, metadata

    def __missing__(self, spec_id: int) -> SpecScan:
        spec = self._metadata.specs[spec_id]
        found = self[spec_id] = SpecScan(spec, self._filter, self._schema, self._metadata)
        return found

    def of(self, manifest: ManifestFile) -> SpecScan:
        """The scan of a manifest's spec. Raises CorruptFileError for an unknown one."""
        try:
            return self[manifest.partition_spec_id]
        except KeyError as error:
            raise CorruptFileError(
                manifest.manifest_path,
                f"written by partition spec {manifest.partition_spec_id}, "
                "which the table's metadata does not have",
            ) from error

    def form_of(self, manifest: ManifestFile) -> PartitionForm:
        """The form of partition values in a manifest. Raises as ``of`` does."""
        found = self.of(manifest)
        return PartitionForm.of(found.spec, found.types)


def _projected(row_filter: Predicate, spec: PartitionSpec, schema: Schema) -> Predicate:
    if row_filter is ALWAYS_TRUE or not spec.fields:
        return ALWAYS_TRUE
    from icesql.iceberg.expressions.projection import inclusive

    return inclusive(row_filter, spec, schema)


def source_schema(spec: PartitionSpec, schema: Schema, metadata: TableMetadata) -> Schema:
    """The source fields of a spec, flat: those of the scan's schema before any other's."""
    sources: dict[int, NestedField] = {}
    older = (metadata.schemas[schema_id] for schema_id in sorted(metadata.schemas, reverse=True))
    schemas = (schema, metadata.file_schema, *older)
    for source_id in {each for field in spec.fields for each in field.source_ids}:
        for known in schemas:
            if source_id in known.field_by_id:
                sources[source_id] = known.field_by_id[source_id]
                break
    return Schema(tuple(sources.values()), schema.schema_id)
