"""``readable_metrics``: a file's counts and bounds under the names and types of its columns.

Source: Java ``MetricsUtil.readableMetricsStruct``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from typing import Any, Final

from icesql.iceberg import types as t
from icesql.iceberg.bounds import decode_bound
from icesql.iceberg.manifest.data_file import DataFile
from icesql.iceberg.manifest.schema import MAPS
from icesql.iceberg.schema import Schema

_METRICS: Final = tuple(MAPS.values())


def metrics_type(schema: Schema, ids: Iterator[int]) -> t.StructType:
    """A struct for each primitive leaf of ``schema`` by its full name, sorted by names.

    A variant is not a leaf: its metrics belong to its parts.
    """
    return t.StructType(
        tuple(
            t.NestedField(next(ids), name, t.StructType(tuple(_metrics(leaf.type, ids))))
            for name, leaf in _leaves(schema)
        )
    )


def _metrics(value_type: t.IcebergType, ids: Iterator[int]) -> Iterator[t.NestedField]:
    for name in _METRICS:
        kind = value_type if name.endswith("bounds") else t.LONG
        yield t.NestedField(next(ids), name.removesuffix("s"), kind)


def metrics_reader(schema: Schema, struct: t.StructType) -> Callable[[DataFile], dict[int, Any]]:
    """The value of ``struct``, which ``metrics_type`` made of ``schema``, for a file.

    A count or bound that the manifest lacks, or a bound that cannot be read, is NULL.
    """
    columns = [
        (field.field_id, [each.field_id for each in t.children(field.type)], leaf)
        for field, (_, leaf) in zip(struct.fields, _leaves(schema), strict=True)
    ]

    def read(file: DataFile) -> dict[int, Any]:
        maps: list[Mapping[int, Any]] = [getattr(file, name) or {} for name in _METRICS]
        found: dict[int, Any] = {}
        for field_id, ids, leaf in columns:
            *counts, lower, upper = (each.get(leaf.field_id) for each in maps)
            bounds = [_bound(each, leaf.type) for each in (lower, upper)]
            found[field_id] = dict(zip(ids, counts + bounds, strict=True))
        return found

    return read


def _leaves(schema: Schema) -> list[tuple[str, t.NestedField]]:
    return sorted(
        (name, schema.field_by_id[field_id])
        for field_id, name in schema.name_by_id.items()
        if isinstance(schema.field_by_id[field_id].type, t.PrimitiveType)
        and not isinstance(schema.field_by_id[field_id].type, t.VariantType)
    )


def _bound(data: bytes | None, value_type: t.IcebergType) -> Any:
    value = None if data is None else decode_bound(value_type, data)
    if isinstance(value, Decimal) and isinstance(value_type, t.DecimalType):
        # Of a file whose own type has more digits, as files added by other writers may.
        return value if len(value.as_tuple().digits) <= value_type.precision else None
    return value
