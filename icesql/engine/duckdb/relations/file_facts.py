"""Integers of each file, such as sequence numbers, as SQL over the file's number in its list."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, groupby
from typing import TYPE_CHECKING, Final

from icesql.engine.duckdb.arrow_stream import ArrowStream

if TYPE_CHECKING:
    import pyarrow as pa

# A CASE over file numbers is cheaper than a join up to about this many branches.
_MOST_BRANCHES: Final = 50


class FileFacts:
    """Facts about ``count`` files, in the order in which a function aliased ``reader`` reads them.

    A fact is a constant if all files agree, else a CASE, else a column of a table that has to be
    registered as ``name``.
    """

    def __init__(self, count: int, reader: str, name: str) -> None:
        self._count, self._reader, self._name = count, reader, name
        self._columns: list[Sequence[int | None]] = []

    def expression(self, values: Sequence[int | None]) -> str:
        """SQL for ``values[file_index]``."""
        if len(set(values)) == 1:
            return _sql_integer(values[0])
        runs = _runs(values)
        if len(runs) <= _MOST_BRANCHES:
            branches = " ".join(
                f"WHEN {self._reader}.file_index < {end} THEN {_sql_integer(value)}"
                for end, value in runs[:-1]
            )
            return f"CASE {branches} ELSE {_sql_integer(runs[-1][1])} END"
        self._columns.append(values)
        return f'"{self._name}".v{len(self._columns) - 1}'

    @property
    def join(self) -> str:
        """The join after the function in FROM, for the expressions used so far."""
        if not self._columns:
            return ""
        return f' JOIN "{self._name}" ON {self._reader}.file_index = "{self._name}".file'

    @property
    def registered(self) -> dict[str, ArrowStream]:
        """The table to register, by its name; empty if no expression needs it."""
        if not self._columns:
            return {}
        import pyarrow as pa

        columns = {"file": pa.array(range(self._count), pa.uint64())}
        for number, values in enumerate(self._columns):
            columns[f"v{number}"] = pa.array(values, pa.int64())
        return {self._name: of_unknown_size(pa.table(columns))}


def of_unknown_size(table: pa.Table) -> ArrowStream:
    """A table whose number of rows is hidden from DuckDB.

    DuckDB's plans assume one row for files that are read by field id. A join partner of known size
    would become the probe side, and DuckDB would build the hash table from the files' rows.
    """
    return ArrowStream(table.schema, lambda: iter(table.to_batches()))


def _runs(values: Sequence[int | None]) -> list[tuple[int, int | None]]:
    """(end, value) of each run of equal values."""
    ends = accumulate(len(list(run)) for _, run in groupby(values))
    return list(zip(ends, (value for value, _ in groupby(values)), strict=True))


def _sql_integer(value: int | None) -> str:
    return "CAST(NULL AS BIGINT)" if value is None else str(value)
