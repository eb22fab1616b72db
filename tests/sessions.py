"""Queries in sessions of their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import icesql


def answer(
    sql: str, parameters: Sequence[Any] | Mapping[str, Any] | None = None, **given: Any
) -> list[tuple[Any, ...]]:
    """The rows of a query, by a connection with these arguments that is closed again."""
    with icesql.connect(**given) as connection:
        return connection.execute(sql, parameters).fetchall()


def fetched(
    connection: Any, sql: str, parameters: Sequence[Any] | Mapping[str, Any] | None = None
) -> Any:
    """The rows of a query of a connection or a cursor."""
    return connection.execute(sql, parameters).fetchall()
