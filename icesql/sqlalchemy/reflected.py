"""Reflection of a catalog: namespaces, tables, views, columns and comments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

import sqlalchemy
from sqlalchemy import exc
from sqlalchemy.engine import Connection, RowMapping, default, reflection

import icesql
from icesql.sql.table_name import name_parts
from icesql.sqlalchemy.types import type_of

# Superset still requires SQLAlchemy 1.4, whose cache does not support postponed annotations.
IS_OLD: Final = sqlalchemy.__version__.startswith("1.")
_Function = TypeVar("_Function", bound=Callable[..., Any])


def _cached(function: _Function) -> _Function:
    """Cache the result in each inspector."""
    return function if IS_OLD else reflection.cache(function)


class IcesqlReflection(default.DefaultDialect):
    """The part of the dialect that reflects namespaces, tables, views and columns."""

    @_cached
    def get_schema_names(self, connection: Connection, **kw: Any) -> list[str]:
        """The namespaces of the catalog, inner ones with dots."""
        return [row[0] for row in connection.exec_driver_sql("SHOW SCHEMAS")]

    @_cached
    def get_table_names(
        self, connection: Connection, schema: str | None = None, **kw: Any
    ) -> list[str]:
        """The tables directly in a namespace.

        By default those of the current namespace, or, without one, those outside of any.
        """
        schema = schema or self.default_schema_name
        if schema is None:
            names = [row[0] for row in connection.exec_driver_sql("SHOW TABLES")]
            return [name_parts(name)[0] for name in names if len(name_parts(name)) == 1]
        place = self.identifier_preparer.quote_schema(schema)
        rows = connection.exec_driver_sql(f"SHOW TABLES FROM {place}")
        return [name_parts(row[0])[-1] for row in rows]

    @_cached
    def get_view_names(
        self, connection: Connection, schema: str | None = None, **kw: Any
    ) -> list[str]:
        """The views of a namespace."""
        schema = schema or self.default_schema_name
        return [
            name for place, name, _ in self._views(connection) if schema is None or place == schema
        ]

    def _views(self, connection: Connection) -> Sequence[Any]:
        sql = "SELECT table_schema, table_name, view_definition FROM information_schema.views"
        try:
            return connection.exec_driver_sql(sql).all()
        except exc.DBAPIError as error:
            if isinstance(error.orig, icesql.NotSupportedError | icesql.ProgrammingError):
                return []
            raise

    @_cached
    def get_view_definition(
        self, connection: Connection, view_name: str, schema: str | None = None, **kw: Any
    ) -> str:
        """The query of a view. Raises NoSuchTableError."""
        for place, name, query in self._views(connection):
            if name == view_name and place == (schema or self.default_schema_name):
                return str(query)
        raise exc.NoSuchTableError(view_name)

    @_cached
    def has_table(
        self, connection: Connection, table_name: str, schema: str | None = None, **kw: Any
    ) -> bool:
        """True if a table or a view of that name exists."""
        try:
            self._described(connection, table_name, schema, **kw)
        except exc.NoSuchTableError:
            return False
        return True

    @_cached
    def get_columns(
        self, connection: Connection, table_name: str, schema: str | None = None, **kw: Any
    ) -> list[Any]:
        """Name, type, nullability and comment of each column. Raises NoSuchTableError."""
        return [
            {
                "name": row["column"],
                "type": type_of(row["type"]),
                "nullable": bool(row["nullable"]),
                "default": None,
                "comment": row["comment"],
            }
            for row in self._described(connection, table_name, schema, **kw)
        ]

    @_cached
    def get_table_comment(
        self, connection: Connection, table_name: str, schema: str | None = None, **kw: Any
    ) -> Any:
        """The property ``comment`` of the table. Raises NoSuchTableError."""
        rows = self._rows_of(connection, "SHOW TBLPROPERTIES", table_name, schema)
        return {"text": {row["key"]: row["value"] for row in rows}.get("comment")}

    def _described(
        self,
        connection: Connection,
        table_name: str,
        schema: str | None,
        info_cache: dict[Any, Any] | None = None,
        **_: Any,
    ) -> Sequence[RowMapping]:
        """The rows of DESCRIBE, queried once for each inspector; ``has_table`` uses them, too."""
        key = ("icesql columns", table_name, schema)
        if info_cache is not None and key in info_cache:
            found: Sequence[RowMapping] = info_cache[key]
            return found
        found = self._rows_of(connection, "DESCRIBE", table_name, schema)
        if info_cache is not None:
            info_cache[key] = found
        return found

    def _rows_of(
        self, connection: Connection, command: str, table_name: str, schema: str | None
    ) -> Sequence[RowMapping]:
        name = self._name(table_name, schema)
        try:
            return connection.exec_driver_sql(f"{command} {name}").mappings().all()
        except exc.DBAPIError as error:
            if isinstance(error.orig, icesql.TableNotFoundError):
                raise exc.NoSuchTableError(table_name) from error
            raise

    def _name(self, table_name: str, schema: str | None) -> str:
        quoted = self.identifier_preparer.quote(table_name)
        schema = schema or self.default_schema_name
        if schema is None:
            return quoted
        return f"{self.identifier_preparer.quote_schema(schema)}.{quoted}"

    # Iceberg has none of these.

    def get_pk_constraint(self, *_: Any, **kw: Any) -> Any:
        """None."""
        return {"constrained_columns": [], "name": None}

    def get_foreign_keys(self, *_: Any, **kw: Any) -> Any:
        """None."""
        return []

    get_indexes = get_unique_constraints = get_check_constraints = get_foreign_keys
    # Temporary tables are not reflected.
    get_temp_table_names = get_sequence_names = get_foreign_keys
