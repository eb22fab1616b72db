"""Rows that a program holds, as a temporary table that queries read."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

from icesql.engine.temporary import apart
from icesql.errors import DataError, ProgrammingError

_TAKEN = (
    "a pandas or Polars DataFrame, an Arrow table, batch, reader or dataset, a mapping of columns, "
    "or anything with __arrow_c_stream__"
)


def as_arrow(rows: Any, check: Callable[[int], None]) -> tuple[tuple[str, ...], Any, int]:
    """Names of the columns, which differ in any case, the rows, and how many bytes were copied.

    Arrow data is taken as it is; a dataset stays one, whose files are read with the columns and
    filters of each query; a reader is read to its end. ``check`` is told how many bytes that came
    to, and raises where they are too many. Raises ProgrammingError for what is no table, DataError
    for values that Arrow has none for.
    """
    import pyarrow as pa

    copied = 0
    try:
        if isinstance(rows, pa.Table):
            table = rows
        elif isinstance(rows, pa.RecordBatch):
            table = pa.Table.from_batches([rows])
        elif _is(rows, "pyarrow.dataset", "Dataset"):
            return tuple(_named_apart(rows.schema.names)), rows, 0
        elif _is(rows, "pandas", "DataFrame"):
            table = pa.Table.from_pandas(rows, preserve_index=False)
        elif isinstance(rows, Mapping):
            table = pa.table(dict(rows))
        elif hasattr(rows, "__arrow_c_stream__"):
            reader = pa.RecordBatchReader.from_stream(rows)
            batches = []
            # What a library holds in memory is not copied; what a reader makes is.
            is_new = not hasattr(rows, "shape")
            for batch in reader:
                copied += batch.nbytes if is_new else 0
                check(copied)
                batches.append(batch)
            table = pa.Table.from_batches(batches, reader.schema)
        else:
            raise ProgrammingError(f"{type(rows).__name__} is no table; give {_TAKEN}")
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise DataError(f"these rows cannot be read as Arrow: {error}") from error
    names = _named_apart(table.column_names)
    return tuple(names), table.rename_columns(names), copied


def _named_apart(names: list[str]) -> list[str]:
    if not names:
        raise ProgrammingError("a table without columns cannot be queried")
    return apart([str(name) for name in names])


def _is(value: Any, module: str, name: str) -> bool:
    """Whether a value is of a class of a library, which is imported then."""
    found = getattr(sys.modules.get(module), name, None)
    return isinstance(found, type) and isinstance(value, found)
