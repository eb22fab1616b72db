"""The names and types of a query's columns, as DuckDB binds them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cached_property
from typing import Any, Final

from icesql.engine.duckdb_types import true_name
from icesql.engine.result_schema import ResultColumn, declare
from icesql.frozen import Frozen

# Types that their text describes completely.
_PLAIN: Final = r"[A-Z][A-Z0-9_ ]*|DECIMAL\([0-9]+,[0-9]+\)"
_QUERIES: Final = ("select", "with", "from")


class Described(Frozen, dict=True):
    """The name and the DuckDB type (an object with ``id`` and ``children``) of each column."""

    columns: tuple[str, ...]
    types: tuple[Any, ...]

    @cached_property
    def declared(self) -> tuple[ResultColumn, ...]:
        """The columns as icesql declares them."""
        return tuple(
            ResultColumn(true_name(name), declare(engine_type))
            for name, engine_type in zip(self.columns, self.types, strict=True)
        )


def describe(cursor: Any, sql: str, parameters: Mapping[str, Any] | None = None) -> Described:
    """The columns of a query without running it. Errors are those of ``EXPLAIN sql``."""
    import duckdb

    try:
        found = None if hasattr(cursor, "sql") else _by_statement(cursor, sql, parameters)
        if found is not None:
            return found
        with_relations()
        relation = cursor.sql(sql, params=parameters)
        return Described(tuple(relation.columns), tuple(relation.types))
    except duckdb.Error:
        # EXPLAIN raises the same error with its position in the SQL.
        cursor.execute(f"EXPLAIN {sql}", parameters)
        raise


def with_relations() -> None:
    """Import DuckDB's relations and its readers of Arrow; the command starts without them."""
    from duckdb import DuckDBPyRelation  # noqa: F401


def used_parameters(sql: str, parameters: Mapping[str, Any]) -> dict[str, Any] | None:
    """The parameters that SQL has: those of a scan are unused if no part of the query names it."""
    return {name: value for name, value in parameters.items() if f"${name}" in sql} or None


def register(cursor: Any, name: str, rows: Any) -> None:
    """Let SQL of a cursor read the Arrow data ``rows`` by a name."""
    with_relations()
    cursor.register(name, rows)


def _by_statement(cursor: Any, sql: str, parameters: Mapping[str, Any] | None) -> Described | None:
    """The columns from DESCRIBE: binding takes twice as long once, but needs no import.

    None for a query that does not begin with a word of ``_QUERIES``, and where the text of a
    type does not describe it completely.
    """
    if not sql.lstrip().lower().startswith(_QUERIES):
        return None
    rows = cursor.execute(f"DESCRIBE {sql}", parameters).fetchall()
    if not all(re.fullmatch(_PLAIN, str(row[1])) for row in rows):
        return None
    return Described(
        tuple(row[0] for row in rows), tuple(cursor.sqltype(str(row[1])) for row in rows)
    )
