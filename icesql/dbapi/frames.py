"""Converts results to pandas and Polars data frames, including types that they lack."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast

from icesql.errors import DataError

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow as pa

    from icesql.engine.result_schema import ResultColumn


def data_frame(table: pa.Table, columns: Sequence[ResultColumn]) -> pandas.DataFrame:
    """The rows of ``table``, whose columns are ``columns``, as a pandas DataFrame.

    A hugeint (the sum of integers) is int64 if all values fit, else a column of int objects.
    Raises DataError for values that pandas cannot represent.
    """
    import pandas
    import pyarrow as pa

    objects: dict[int, list[Any]] = {}
    table = _with_short_sums(table, columns)
    for place, column in enumerate(columns):
        values = table.column(place)
        if column.type.kind == "hugeint" and values.type != pa.int64():
            objects[place] = [None if v is None else int(v) for v in values.to_pylist()]
        elif column.type.has("union"):
            objects[place] = values.to_pylist()
        else:
            continue
        table = table.set_column(place, column.name, pa.nulls(len(values)))
    try:
        frame = table.to_pandas()
    except (OverflowError, ValueError, pa.ArrowException) as error:
        raise _no_equal("pandas", error) from error
    for place, values in objects.items():
        frame.isetitem(place, pandas.Series(values, dtype=object, index=frame.index))
    return frame


def _with_short_sums(table: pa.Table, columns: Sequence[ResultColumn]) -> pa.Table:
    """The table, with the columns of type hugeint as int64 if all of their values fit."""
    import pyarrow as pa

    for place, column in enumerate(columns):
        if column.type.kind == "hugeint":
            with suppress(pa.ArrowInvalid):
                values = table.column(place).cast(pa.int64())
                table = table.set_column(place, column.name, values)
    return table


def _no_equal(library: str, error: Exception) -> DataError:
    text = f"a value has no equal in {library} ({error})"
    return DataError(f"{text}; CAST it to VARCHAR or read it through arrow()")


def polars_frame(table: pa.Table, columns: Sequence[ResultColumn]) -> polars.DataFrame:
    """The rows of ``table``, whose columns are ``columns``, as a DataFrame of Polars.

    A hugeint (the sum of integers) is Int64 if all values fit, else Decimal(38, 0).
    Raises DataError for values that Polars cannot represent.
    """
    import polars

    try:
        return cast("polars.DataFrame", polars.from_arrow(_with_short_sums(table, columns)))
    except Exception as error:  # Polars' errors have no common base class
        raise _no_equal("Polars", error) from error
