"""Rows of a CSV file as a query: texts in Arrow, which the engine casts to the columns' types."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from icesql.dbt.names import quoted

if TYPE_CHECKING:
    import agate

    import icesql

_NAME: Final = "__dbt_seed"


def select_of(connection: icesql.Connection, table: agate.Table, types: Sequence[str]) -> str:
    """A SELECT of all rows, to be run on this connection before ``forget``.

    A value that is none of its type is an error of that statement, which then changes nothing.
    """
    import pyarrow as pa

    columns = [
        pa.array([_text(value) for value in column.values()], pa.string())
        for column in table.columns
    ]
    # Names of a file may differ in case alone; positions never do.
    places = [f"c{index}" for index in range(len(columns))]
    connection.register(_NAME, pa.table(columns, names=places))
    casts = (
        f"CAST({place} AS {type}) AS {quoted(name)}"
        for place, type, name in zip(places, types, table.column_names, strict=True)
    )
    return f"SELECT {', '.join(casts)} FROM {_NAME}"


def forget(connection: icesql.Connection) -> None:
    """Let go of the rows."""
    connection.unregister(_NAME)


def _text(value: Any) -> str | None:
    return None if value is None else str(value)
