"""One struct for the partition values of all specs of a table."""

from __future__ import annotations

from icesql.iceberg.metadata.table_metadata import TableMetadata
from icesql.iceberg.partitioning import partition_types
from icesql.iceberg.types import NestedField, StructType


def united_partition_type(metadata: TableMetadata) -> StructType:
    """The partition fields of all specs by their ids, without those whose column was dropped.

    A field has the name that the newest spec gives it and the type of a spec that does not void
    it. Source: Java ``Partitioning.partitionType``.
    """
    fields: dict[int, NestedField] = {}
    voided: set[int] = set()
    for spec in sorted(metadata.specs.values(), key=lambda each: each.spec_id, reverse=True):
        types = partition_types(spec, metadata.schema)
        for part, part_type in zip(spec.fields, types, strict=True):
            if metadata.schema.field_by_id.get(part.source_id) is None:
                continue
            known = fields.get(part.field_id)
            if known is not None and part.field_id not in voided:
                continue
            name = part.name if known is None else known.name
            fields[part.field_id] = NestedField(part.field_id, name, part_type)
            if part.transform.lower() == "void":
                voided.add(part.field_id)
            else:
                voided.discard(part.field_id)
    return StructType(tuple(fields[field_id] for field_id in sorted(fields)))
