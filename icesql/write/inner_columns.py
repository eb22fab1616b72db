"""Columns outside of lists and maps: values whose facts are counted while a file is written."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct

from icesql.iceberg import types as t


class InnerColumn(Struct, frozen=True):
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
