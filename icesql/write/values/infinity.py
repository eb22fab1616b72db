"""Infinite dates and times, which engines have and Iceberg has not."""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from icesql.write.casts import list_elements, plain_array
from icesql.write.values.misfit import Misfit, of_row

# Arrow has no infinity: DuckDB gives the largest number there is, and its negative.
_MOST: Final = {32: (1 << 31) - 1, 64: (1 << 63) - 1}


def refuse_infinity(values: pa.Array) -> None:
    """Raise Misfit for an infinite date or time at any depth of ``values``."""
    values = plain_array(values)
    kind = values.type
    if pa.types.is_struct(kind):
        for index in range(kind.num_fields):
            refuse_infinity(pc.struct_field(values, [index]))
    elif pa.types.is_map(kind):
        refuse_infinity(values.cast(pa.list_(pa.struct([kind.key_field, kind.item_field]))))
    elif pa.types.is_nested(kind) and kind.num_fields == 1 and not pa.types.is_union(kind):
        try:
            refuse_infinity(list_elements(values))
        except Misfit as misfit:
            raise of_row(misfit, pc.fill_null(pc.list_value_length(values), 0)) from misfit
    elif pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        most = _MOST[kind.bit_width]
        numbers = values.view(pa.int32() if kind.bit_width == 32 else pa.int64())
        # In one pass, and without scalars of Python, for which pyarrow imports pandas.
        least, greatest = (each.as_py() for each in pc.min_max(numbers).values())
        if least is None or -most < least <= greatest < most:
            return
        for number, text in ((most, "infinity"), (-most, "-infinity")):
            row = pc.index(numbers, pa.scalar(number, numbers.type)).as_py()
            if row >= 0:
                raise Misfit(row, f"{text} does not fit: Iceberg has no infinite dates and times")
