"""The schema of the table's Parquet files: every field with its id, none of type unknown."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import count

import pyarrow as pa
import pyarrow.compute as pc
from msgspec.structs import replace

from icesql.errors import UnsupportedTableError
from icesql.frozen import Frozen
from icesql.iceberg import types as t
from icesql.iceberg.avro.schema import avro_name
from icesql.iceberg.metadata.table_metadata import TableMetadata
from icesql.iceberg.schema import LINEAGE, Schema
from icesql.read.columns.arrow_schema import FIELD_ID, VARIANT_BYTES, arrow_type
from icesql.read.formats.reader import VARIANT_RELEASE


def stored_fields(fields: tuple[t.NestedField, ...]) -> tuple[t.NestedField, ...]:
    """The fields that files store: all but those of type unknown, and structs of only those.

    Raises UnsupportedTableError for a list or map of type unknown.
    """
    return tuple(found for each in fields if (found := _stored(each, each.name)) is not None)


def written_schema(metadata: TableMetadata) -> Schema:
    """The columns of rewritten files: the current ones, and row lineage in version 3."""
    schema = metadata.schema
    if metadata.format_version < 3:
        return schema
    return replace(schema, fields=(*schema.fields, *LINEAGE))


def stored_places(schema: Schema) -> tuple[int | None, ...]:
    """The index of each column among those that files store, None for one that they do not."""
    places = count()
    return tuple(next(places) if stored_fields((each,)) else None for each in schema.fields)


def _stored(field: t.NestedField, name: str) -> t.NestedField | None:
    if isinstance(field.type, t.UnknownType):
        return None
    inner = t.children(field.type)
    kept = [found for each in inner if (found := _stored(each, f"{name}.{each.name}")) is not None]
    if isinstance(field.type, t.StructType) and not kept:
        return None
    if isinstance(field.type, t.ListType | t.MapType) and len(kept) < len(inner):
        raise UnsupportedTableError(f"writing column {name}, a collection of type unknown")
    return replace(field, type=t.with_children(field.type, kept))


def parquet_schema(schema: Schema) -> pa.Schema:
    """The Arrow schema with which pyarrow writes what the specification requires.

    Names are in the form that Avro allows, as Java writes them; readers use ids. A required field
    is not nullable. Raises UnsupportedTableError as ``stored_fields``.
    """
    return pa.schema([_field(each) for each in stored_fields(schema.fields)])


def _field(field: t.NestedField) -> pa.Field:
    return pa.field(
        avro_name(field.name),
        written_type(field.type),
        nullable=not field.required,
        metadata={FIELD_ID: str(field.field_id).encode()},
    )


def written_type(type: t.IcebergType) -> pa.DataType:
    """The Arrow type of a stored type, with ids and nullability of inner fields."""
    match type:
        case t.StructType(fields):
            return pa.struct([_field(each) for each in fields])
        case t.ListType():
            return pa.list_(_field(type.element_field))
        case t.MapType():
            return pa.map_(_field(type.key_field), _field(type.value_field))
        case t.VariantType():
            return VARIANT_BYTES
        case _:
            return arrow_type(type)


def leaf_ids(schema: Schema) -> tuple[int, ...]:
    """The id of each leaf column of a file, in Parquet's order.

    A variant has two leaf columns, its metadata and its value.
    """
    return tuple(
        each.field_id
        for each in t.walk(stored_fields(schema.fields))
        if not t.children(each.type)
        for _ in range(2 if isinstance(each.type, t.VariantType) else 1)
    )


def check_release(stored: tuple[t.NestedField, ...]) -> None:
    """Raise UnsupportedTableError for a variant if this pyarrow cannot read variants back."""
    release = int(pa.__version__.partition(".")[0])
    if release < VARIANT_RELEASE:
        for each in t.walk(stored):
            if isinstance(each.type, t.VariantType):
                raise UnsupportedTableError(
                    f"writing the variant {each.name} with pyarrow {pa.__version__}",
                    hint=f"pip install 'pyarrow>={VARIANT_RELEASE}'",
                )


def with_binary_variants(schema: Schema) -> Schema:
    """A projection with which readers return variants in binary form, as files store them."""
    if not any(isinstance(each.type, t.VariantType) for each in t.walk(schema.fields)):
        return schema
    return replace(schema, fields=tuple(_binary(each) for each in schema.fields))


def _binary(field: t.NestedField) -> t.NestedField:
    if isinstance(field.type, t.VariantType):
        return replace(field, type=t.VariantType(binary=True))
    inner = [_binary(each) for each in t.children(field.type)]
    return replace(field, type=t.with_children(field.type, inner))


def annotated_schema(schema: Schema) -> pa.Schema:
    """``parquet_schema`` with Parquet's own types for top-level geometries and geographies."""
    plain = parquet_schema(schema)
    return pa.schema(
        [
            own.with_type(_geo_type(each.type, own.type))
            for each, own in zip(stored_fields(schema.fields), plain, strict=True)
        ]
    )


def _geo_type(type: t.IcebergType, plain: pa.DataType) -> pa.DataType:
    match type:
        case t.GeometryType(crs):
            return _GeoArrow(crs, None)
        case t.GeographyType(crs, algorithm):
            return _GeoArrow(crs, algorithm)
        case _:
            return plain


class _GeoArrow(pa.ExtensionType):  # type: ignore[misc]
    """WKB under the extension name that makes pyarrow write the logical type."""

    def __init__(self, crs: str, edges: str | None) -> None:
        given = {"crs": crs} | ({} if edges is None else {"edges": edges})
        self._given = json.dumps(given)
        super().__init__(pa.binary(), "geoarrow.wkb")

    def __arrow_ext_serialize__(self) -> bytes:
        return self._given.encode()

    @classmethod
    def __arrow_ext_deserialize__(cls, storage: pa.DataType, serialized: bytes) -> _GeoArrow:
        given = json.loads(serialized)
        return cls(given["crs"], given.get("edges"))


# Columns outside of lists and maps: values whose facts are counted while a file is written.


class InnerColumn(Frozen):
    """A column, or a field of structs: its id, its type, and its path of column indices."""

    field_id: int
    type: t.IcebergType
    path: tuple[int, ...]

    def of(self, table: pa.Table) -> pa.ChunkedArray:
        """The values in ``table``; NULL where a struct around them is."""
        values = table.column(self.path[0])
        for place in self.path[1:]:
            values = pc.struct_field(values, [place])
        return values


def inner_columns(
    fields: Sequence[t.NestedField],
    *types: type[t.IcebergType],
    path: tuple[int, ...] = (),
) -> Iterator[InnerColumn]:
    """The columns of these types among stored fields."""
    for place, each in enumerate(fields):
        if isinstance(each.type, t.StructType):
            yield from inner_columns(each.type.fields, *types, path=(*path, place))
        elif isinstance(each.type, types):
            yield InnerColumn(each.field_id, each.type, (*path, place))
