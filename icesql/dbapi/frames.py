"""Converts results to pandas and Polars data frames, including types that they lack."""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any

from icesql.errors import DataError

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow as pa

    from icesql.engine.result_schema import ResultColumn, ResultType


def data_frame(table: pa.Table, columns: Sequence[ResultColumn]) -> pandas.DataFrame:
    """The rows of ``table``, whose columns are ``columns``, as a pandas DataFrame.

    A hugeint (the sum of integers) is int64 if all values fit, else a column of int objects.
    Raises DataError for values that pandas cannot represent.
    """
    import pandas
    import pyarrow as pa

    objects: dict[int, list[Any]] = {}
    for place, column in enumerate(columns):
        values = table.column(place)
        if column.type.kind == "hugeint":
            try:
                made = values.cast(pa.int64())
            except pa.ArrowInvalid:
                made = pa.nulls(len(values))
                objects[place] = [None if v is None else int(v) for v in values.to_pylist()]
        elif _has_union(column.type):
            made, objects[place] = pa.nulls(len(values)), values.to_pylist()
        else:
            continue
        table = table.set_column(place, column.name, made)
    try:
        frame = table.to_pandas()
    except (OverflowError, ValueError, pa.ArrowException) as error:
        raise DataError(
            f"a value has no equal in pandas ({error}); CAST it to VARCHAR or read it through "
            "arrow()"
        ) from error
    for place, values in objects.items():
        frame.isetitem(place, pandas.Series(values, dtype=object, index=frame.index))
    return frame


def _has_union(declared: ResultType) -> bool:
    return declared.kind == "union" or any(_has_union(child) for _, child in declared.children)


def polars_frame(
    module: ModuleType, table: pa.Table, columns: Sequence[ResultColumn]
) -> polars.DataFrame:
    """The rows of ``table``, whose columns are ``columns``, as a DataFrame of Polars (``module``).

    A hugeint (the sum of integers) is Int64 if all values fit, else Decimal(38, 0).
    Raises DataError for values that Polars cannot represent.
    """
    import pyarrow as pa

    for place, column in enumerate(columns):
        if column.type.kind == "hugeint":
            try:
                made = table.column(place).cast(pa.int64())
            except pa.ArrowInvalid:
                continue
            table = table.set_column(place, column.name, made)
    try:
        frame: polars.DataFrame = module.from_arrow(table)
    except Exception as error:  # Polars' errors have no common base class
        raise DataError(
            f"a value has no equal in Polars ({error}); CAST it to VARCHAR or read it through "
            "arrow()"
        ) from error
    return frame
