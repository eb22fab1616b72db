"""Converts rows that a program holds to Arrow, for a temporary table that queries read."""

from __future__ import annotations

import sys
from bisect import bisect_left
from collections.abc import Callable, Mapping
from typing import Any, Final
from weakref import WeakSet

from icesql.engine.result_schema import unique_names
from icesql.errors import DataError, Error, ProgrammingError
from icesql.read.formats.file_fields import arrow_children

# Arrow types that no engine scans: half floats, and decimals of more than 38 digits.

_DIGITS: Final = 38


def narrowed(table: Any) -> Any:
    """The Arrow table with half floats as floats, and wide decimals as decimals of 38 digits.

    Raises DataError, with column and row, for a value that has more digits.
    """
    for index, field in enumerate(table.schema):
        kind = narrow_type(field.type)
        if kind != field.type:
            table = table.set_column(index, field.with_type(kind), _cast(field, table[index], kind))
    return table


def narrow_type(kind: Any) -> Any:
    """The replacement for an Arrow type that no engine scans, at any depth; else the type."""
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
        # ``take`` copies, because casting a slice also casts list elements outside of the slice.
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


_TAKEN = (
    "a pandas or Polars DataFrame, a LazyFrame, an Arrow table, batch, reader or dataset, a "
    "mapping of columns, or anything with __arrow_c_stream__"
)
# Readers that have been read: a second read would return no rows.
_READ: Final[WeakSet[Any]] = WeakSet()


def as_arrow(rows: Any, check: Callable[[int], None]) -> tuple[tuple[str, ...], Any, int]:
    """Unique column names (ignoring case), the rows, and the number of copied bytes.

    Arrow data is used without a copy, except for types that no engine scans (``narrowed``). A
    dataset stays a dataset, whose files each query reads with its own columns and filters. A
    LazyFrame is run now; a reader is read to its end, once. ``check`` is called with the number of
    copied bytes, and raises if they are too many. Raises ProgrammingError for values that are not
    tables and for a reader that was read before, DataError for values that Arrow or the engines do
    not support and for failures of the library that produces the rows.
    """
    import pyarrow as pa

    copied = 0
    try:
        if isinstance(rows, pa.Table):
            table = rows
        elif isinstance(rows, pa.RecordBatch):
            table = pa.Table.from_batches([rows])
        elif _is(rows, "pyarrow.dataset", "Dataset"):
            for each in rows.schema:
                if narrow_type(each.type) != each.type:
                    raise DataError(
                        f'column "{each.name}" of the dataset has the type {each.type}, which '
                        f"cannot be read there; give dataset.to_table(), or CAST it to "
                        f"{narrow_type(each.type)} in the files"
                    )
            return tuple(_named_apart(rows.schema.names)), rows, 0
        elif _is(rows, "pandas", "DataFrame"):
            table = pa.Table.from_pandas(rows, preserve_index=False)
        elif isinstance(rows, Mapping):
            table = pa.table(dict(rows))
        elif _is(rows, "polars", "LazyFrame"):
            frame = rows.collect()
            check(copied := frame.estimated_size())
            table = pa.table(frame)
        elif hasattr(rows, "__arrow_c_stream__"):
            if isinstance(rows, pa.RecordBatchReader):
                _begin(rows)
            reader = pa.RecordBatchReader.from_stream(rows)
            batches = []
            # Objects with a shape are in memory already, so only the batches of readers count.
            is_new = not hasattr(rows, "shape")
            for batch in reader:
                copied += batch.nbytes if is_new else 0
                check(copied)
                batches.append(batch)
            table = pa.Table.from_batches(batches, reader.schema)
        else:
            raise ProgrammingError(f"{type(rows).__name__} is no table; give {_TAKEN}")
    except Error:
        raise
    except Exception as error:  # any error of the library that produces the rows
        raise DataError(f"these rows cannot be read as Arrow: {error}") from error
    names, read = _named_apart(table.column_names), narrowed(table)
    if read is not table:
        check(copied := copied + read.nbytes)
    return tuple(names), read.rename_columns(names), copied


def _begin(reader: Any) -> None:
    if reader in _READ:
        raise ProgrammingError(
            "this reader was read before, and a reader gives its rows once; register what its rows "
            "are of, or reader.read_all()"
        )
    _READ.add(reader)


def _named_apart(names: list[str]) -> list[str]:
    if not names:
        raise ProgrammingError("a table without columns cannot be queried")
    return unique_names([str(name) for name in names])


def _is(value: Any, module: str, name: str) -> bool:
    """True for a value of a library's class; if the library is not imported, it is none."""
    found = getattr(sys.modules.get(module), name, None)
    return isinstance(found, type) and isinstance(value, found)
