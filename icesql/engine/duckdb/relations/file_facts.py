"""Integers of each file, such as sequence numbers, as SQL over the file's number in its list."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from icesql.engine.duckdb.arrow_stream import ArrowStream

if TYPE_CHECKING:
    import pyarrow as pa

# The element of a list costs no more than a join up to about this many files.
_MOST_LISTED: Final = 500


class FileFacts:
    """Facts about ``count`` files, in the order in which a function aliased ``reader`` reads them.

    A fact is a constant if all files agree, else an element of a list, and for many files a column
    of a table that has to be registered as ``name``.
    """

    def __init__(self, count: int, reader: str, name: str) -> None:
        self._count, self._reader, self._name = count, reader, name
        self._columns: list[Sequence[int | None]] = []

    def expression(self, values: Sequence[int | None]) -> str:
        """SQL for ``values[file_index]``."""
        if len(set(values)) == 1:
            return _sql_integer(values[0])
        if len(values) <= _MOST_LISTED:
            listed = ", ".join(map(_sql_integer, values))
            return f"([{listed}])[CAST({self._reader}.file_index AS BIGINT) + 1]"
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


def _sql_integer(value: int | None) -> str:
    return "CAST(NULL AS BIGINT)" if value is None else str(value)
