"""The names and types of a query's columns, as DuckDB binds it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cached_property
from typing import Any, Final

from msgspec import Struct

from icesql.engine.result_schema import ResultColumn, declare
from icesql.engine.struct_names import true_name

# Types whose text says all of them.
_PLAIN: Final = r"[A-Z][A-Z0-9_ ]*|DECIMAL\([0-9]+,[0-9]+\)"
_QUERIES: Final = ("select", "with", "from")


class Described(Struct, frozen=True, dict=True):
    """One name and one DuckDB type (an object with ``id`` and ``children``) a column."""

    columns: tuple[str, ...]
    types: tuple[Any, ...]

    @cached_property
    def declared(self) -> tuple[ResultColumn, ...]:
        """The columns as icesql declares them."""
        return tuple(
            ResultColumn(true_name(name), declare(engine_type))
            for name, engine_type in zip(self.columns, self.types, strict=True)
        )


def describe(cursor: Any, sql: str, parameters: Mapping[str, Any] | None) -> Described:
    """The columns of a query, which is not run. Errors are those of ``EXPLAIN sql``."""
    import duckdb

    try:
        found = None if hasattr(cursor, "sql") else _by_statement(cursor, sql, parameters)
        if found is not None:
            return found
        with_relations()
        relation = cursor.sql(sql, params=parameters)
        return Described(tuple(relation.columns), tuple(relation.types))
    except duckdb.Error:
        # These know their place in the SQL.
        cursor.execute(f"EXPLAIN {sql}", parameters)
        raise


def with_relations() -> None:
    """Have DuckDB's relations and its readers of Arrow, which the command starts without."""
    from duckdb import DuckDBPyRelation  # noqa: F401


def register(cursor: Any, name: str, rows: Any) -> None:
    """Let SQL of a cursor read ``rows``, which are Arrow's, by a name."""
    with_relations()
    cursor.register(name, rows)


def _by_statement(cursor: Any, sql: str, parameters: Mapping[str, Any] | None) -> Described | None:
    """The columns as a statement tells them: a query takes twice as long to bind, once.

    None for what the statement is not written for, or does not tell exactly.
    """
    if not sql.lstrip().lower().startswith(_QUERIES):
        return None
    rows = cursor.execute(f"DESCRIBE {sql}", parameters).fetchall()
    if not all(re.fullmatch(_PLAIN, str(row[1])) for row in rows):
        return None
    return Described(
        tuple(row[0] for row in rows), tuple(cursor.sqltype(str(row[1])) for row in rows)
    )
