"""Rows of Arrow types that no engine scans: half floats, and decimals of more than 38 digits."""

from __future__ import annotations

from bisect import bisect_left
from typing import Any, Final

from icesql.errors import DataError
from icesql.read.formats.file_fields import arrow_children

_DIGITS: Final = 38


def narrowed(table: Any) -> Any:
    """The Arrow table with half floats as floats, and wide decimals as those of 38 digits.

    Raises DataError for a column with a value that has more digits, which names column and row.
    """
    for index, field in enumerate(table.schema):
        kind = narrow_type(field.type)
        if kind != field.type:
            table = table.set_column(index, field.with_type(kind), _cast(field, table[index], kind))
    return table


def narrow_type(kind: Any) -> Any:
    """The type that takes the place of an Arrow type, at any depth; itself for all others."""
    import pyarrow as pa

    if kind == pa.float16():
        return pa.float32()
    if pa.types.is_decimal256(kind):
        return pa.decimal128(min(kind.precision, _DIGITS), min(kind.scale, _DIGITS))
    fields = () if isinstance(kind, pa.BaseExtensionType) else arrow_children(kind)
    new = [each.with_type(narrow_type(each.type)) for each in fields]
    if [each.type for each in new] == [each.type for each in fields]:
        return kind
    if pa.types.is_struct(kind):
        return pa.struct(new)
    if pa.types.is_map(kind):
        return pa.map_(*new)
    return pa.large_list(*new) if pa.types.is_large_list(kind) else pa.list_(*new)


def _cast(field: Any, values: Any, kind: Any) -> Any:
    import numpy as np
    import pyarrow as pa

    def cast(count: int) -> Any:
        # Taken: the cast of a slice looks at elements of lists outside of it, too.
        return values.take(pa.array(np.arange(count))).cast(kind)

    def fails(count: int) -> bool:
        try:
            cast(count)
        except pa.ArrowInvalid:
            return True
        return False

    try:
        return cast(len(values))
    except pa.ArrowInvalid as error:
        row = bisect_left(range(len(values) + 1), True, key=fails)
        raise DataError(
            f'row {row}, column "{field.name}": a value of type {field.type} does not fit {kind}: '
            f"{error}; CAST the column to a type with the digits that it needs"
        ) from error
    except pa.ArrowNotImplementedError as error:
        problem = f'column "{field.name}" has the type {field.type}, which cannot be read'
        raise DataError(f"{problem}; CAST it to {kind}") from error
