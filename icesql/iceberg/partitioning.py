"""Partition specs: which transforms of which columns a file was written by."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from icesql.frozen import Frozen
from icesql.iceberg import types as t
from icesql.iceberg.metadata.json_fields import (
    Malformed,
    as_int,
    as_list,
    as_object,
    optional_int,
    required_int,
    required_text,
)
from icesql.iceberg.schema import Schema

FIRST_FIELD_ID: Final = 1000


class PartitionField(Frozen):
    """One partition value; ``transform`` is the text of the metadata, such as "bucket[16]".

    ``source_ids`` has several ids for multi-argument transforms (v3), else one.
    """

    source_ids: tuple[int, ...]
    field_id: int
    transform: str
    name: str

    @property
    def source_id(self) -> int:
        """The column of a transform with one argument."""
        return self.source_ids[0]


class PartitionSpec(Frozen):
    """The partition fields of a spec, in order; partition tuples follow this order."""

    spec_id: int = 0
    fields: tuple[PartitionField, ...] = ()

    @property
    def is_unpartitioned(self) -> bool:
        """True also for a spec of void transforms only: its deletes are global."""
        return all(each.transform.lower() == "void" for each in self.fields)


def parse_spec(json: Any) -> PartitionSpec:
    """A spec from its JSON object {"spec-id", "fields"}. Raises Malformed."""
    fields = as_object(json, "partition spec")
    spec_id = required_int(fields, "spec-id", "partition spec", 32)
    where = f"partition spec {spec_id}"
    return PartitionSpec(spec_id, parse_spec_fields(fields.get("fields", []), where))


def parse_spec_fields(json: Any, where: str = "partition-spec") -> tuple[PartitionField, ...]:
    """The fields of a spec; those without an id get 1000, 1001, … by position (v1).

    Raises Malformed.
    """
    return tuple(
        _parse_field(as_object(each, f"{where} field"), position, where)
        for position, each in enumerate(as_list(json, where))
    )


def _parse_field(fields: Mapping[str, Any], position: int, where: str) -> PartitionField:
    several = fields.get("source-ids")
    if several is not None:
        listed = as_list(several, f"{where} source-ids")
        source_ids = tuple(as_int(each, f"{where} source-ids", 32) for each in listed)
        if not source_ids:
            raise Malformed(f"{where} has an empty source-ids")
    else:
        source_ids = (required_int(fields, "source-id", where, 32),)
    field_id = optional_int(fields, "field-id", where, 32)
    return PartitionField(
        source_ids,
        FIRST_FIELD_ID + position if field_id is None else field_id,
        required_text(fields, "transform", where),
        required_text(fields, "name", where),
    )


def partition_types(spec: PartitionSpec, schema: Schema) -> tuple[t.IcebergType, ...]:
    """The type of each partition value of ``spec``.

    UNKNOWN where it would be the type of a dropped column, and for transforms that icesql does not
    know; such values are taken as the manifest stores them.
    """
    return tuple(_result_types(spec.fields, schema))


_INTEGER_RESULT: Final = r"bucket\[\d+\]|year|month|hour"
_SOURCE_RESULT: Final = r"truncate\[\d+\]|identity|void"


def _result_types(fields: Iterable[PartitionField], schema: Schema) -> Iterable[t.IcebergType]:
    for each in fields:
        transform = each.transform.lower()
        source = schema.field_by_id.get(each.source_id)
        if len(each.source_ids) > 1:
            yield t.UNKNOWN
        elif re.fullmatch(_INTEGER_RESULT, transform):
            yield t.INTEGER
        elif transform == "day":
            yield t.DATE
        elif source is not None and re.fullmatch(_SOURCE_RESULT, transform):
            yield source.type
        else:
            yield t.UNKNOWN
