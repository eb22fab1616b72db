"""The evaluators of one scan for the files of one partition spec."""

from __future__ import annotations

from collections.abc import Mapping

from icesql.errors import CorruptFileError
from icesql.iceberg.expressions.predicate import ALWAYS_TRUE, Predicate
from icesql.iceberg.manifest.manifest import ManifestFile
from icesql.iceberg.manifest.partition_values import PartitionForm
from icesql.iceberg.metadata.table_metadata import TableMetadata
from icesql.iceberg.partitioning import PartitionSpec, partition_types
from icesql.iceberg.schema import Schema
from icesql.iceberg.types import IcebergType, NestedField
from icesql.scan.pruning.residual import ResidualEvaluator


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
