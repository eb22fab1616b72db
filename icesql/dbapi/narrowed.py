"""Rows of Arrow types that no engine scans: half floats, and decimals of more than 38 digits."""

from __future__ import annotations

from typing import Any, Final

from icesql.errors import DataError

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

    types = pa.types
    if kind == pa.float16():
        return pa.float32()
    if types.is_decimal256(kind):
        return pa.decimal128(min(kind.precision, _DIGITS), min(kind.scale, _DIGITS))
    if isinstance(kind, pa.BaseExtensionType) or not types.is_nested(kind):
        return kind
    if types.is_struct(kind):
        return pa.struct([each.with_type(narrow_type(each.type)) for each in kind])
    if types.is_map(kind):
        fields = kind.key_field, kind.item_field
        return pa.map_(*(each.with_type(narrow_type(each.type)) for each in fields))
    if types.is_fixed_size_list(kind):
        return pa.list_(_narrow(kind.value_field), kind.list_size)
    if types.is_large_list(kind):
        return pa.large_list(_narrow(kind.value_field))
    if types.is_list(kind):
        return pa.list_(_narrow(kind.value_field))
    return kind


def _narrow(field: Any) -> Any:
    return field.with_type(narrow_type(field.type))


def _cast(field: Any, values: Any, kind: Any) -> Any:
    import numpy as np
    import pyarrow as pa

    def cast(first: int, count: int) -> Any:
        # Taken: the cast of a slice looks at elements of lists outside of it, too.
        return values.take(pa.array(np.arange(first, first + count))).cast(kind)

    def fits(first: int, count: int) -> bool:
        try:
            cast(first, count)
        except pa.ArrowInvalid:
            return False
        return True

    try:
        return cast(0, len(values))
    except pa.ArrowInvalid as error:
        first, count = 0, len(values)
        while count > 1:  # the first half that has a value which does not fit
            half = count // 2
            first, count = (first + half, count - half) if fits(first, half) else (first, half)
        raise DataError(
            f'row {first + 1}, column "{field.name}": a value of type {field.type} does not fit '
            f"{kind}: {error}; CAST the column to a type with the digits that it needs"
        ) from error
    except pa.ArrowNotImplementedError as error:
        raise DataError(
            f'column "{field.name}" has the type {field.type}, which cannot be read; CAST it to '
            f"{kind}"
        ) from error
