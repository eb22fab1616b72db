"""The rows of a result kept in memory as a temporary table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from icesql.engine.result_schema import unique_names
from icesql.errors import ProgrammingError

if TYPE_CHECKING:
    from icesql.engine.result_reader import Result

# DuckDB's type of a column of NULLs only, and the type that a table gives to it.
_NULL, _INTEGER = '"NULL"', "INTEGER"


def keep_rows(
    result: Result, columns: Sequence[str], check: Callable[[int], None]
) -> tuple[tuple[tuple[str, str, str], ...], Any]:
    """Columns (name, declared type, type of the engine) of a result, and its Arrow table.

    ``columns`` are names for the first of them; repeated names get a number as in DuckDB.
    ``check`` receives the number of bytes so far, and raises an error if there are too many. The
    result is closed.
    """
    import pyarrow as pa

    try:
        if len(columns) > len(result.columns):
            raise ProgrammingError(
                f"{len(columns)} columns are named; the query has {len(result.columns)}"
            )
        # The last row ends the result, and its types with it.
        kinds = list(map(str, getattr(result, "engine_types", ()))) or [""] * len(result.columns)
        reader = result.arrow_reader()
        batches, size = [], 0
        for batch in reader:
            size += batch.nbytes
            check(size)
            batches.append(batch)
        schema, own = reader.schema, result.columns
    finally:
        result.close()
    names = unique_names([*columns, *(each.name for each in own[len(columns) :])])
    described = tuple(
        (name, column.type.kind, _INTEGER if kind == _NULL else kind)
        for name, column, kind in zip(names, own, kinds, strict=True)
    )
    return described, pa.Table.from_batches(batches, schema).rename_columns(names)
