"""Reflection of a catalog: namespaces, tables, views, columns with their types, and comments."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final, TypeVar

import sqlalchemy
from sqlalchemy import exc, types
from sqlalchemy.engine import Connection, RowMapping, default, reflection

import icesql
from icesql.quoting import literal
from icesql.sql.table_name import name_parts

# ------------------------------------------------------------------ types


# JSON in text columns: Iceberg has no JSON type; the engine extracts values by path.


class _Path:
    """A bound value that is rendered as a JSON path, also as a literal."""

    def bind_processor(self, dialect: Any) -> Callable[[Any], Any]:
        """The path as text."""
        return self._path

    def literal_processor(self, dialect: Any) -> Callable[[Any], str]:
        """The path as a literal."""
        return lambda value: literal(self._path(value))

    def _path(self, value: Any) -> str:
        return "$" + _step(value)


class IcesqlJSONIndex(_Path, types.JSON.JSONIndexType):
    """``column["key"]`` and ``column[0]``."""


class IcesqlJSONPath(_Path, types.JSON.JSONPathType):
    """``column[("key", 0)]``."""

    def _path(self, value: Sequence[Any]) -> str:
        return "$" + "".join(map(_step, value))


def _step(value: Any) -> str:
    return f"[{value}]" if isinstance(value, int) else f".{json.dumps(value, ensure_ascii=False)}"


if TYPE_CHECKING:
    _UserDefinedType = types.UserDefinedType[Any]
    _Numeric = types.Numeric[Any]
else:  # SQLAlchemy 1.4, which Superset still requires, has no type parameters
    _UserDefinedType, _Numeric = types.UserDefinedType, types.Numeric


class IcebergType(_UserDefinedType):
    """A type without a SQLAlchemy equivalent, such as a struct or map; ``text`` is its spelling."""

    cache_ok = True

    def __init__(self, text: str) -> None:
        self.text = text

    def get_col_spec(self, **_: Any) -> str:
        """The type in icesql's spelling."""
        return self.text


_SIMPLE: Final[Mapping[str, Callable[[], types.TypeEngine[Any]]]] = {
    "boolean": types.BOOLEAN,
    "int": types.INTEGER,
    "long": types.BIGINT,
    "float": types.REAL,
    "double": types.DOUBLE if hasattr(types, "DOUBLE") else types.FLOAT,
    "string": types.VARCHAR,
    "uuid": types.UUID if hasattr(types, "UUID") else lambda: IcebergType("UUID"),
    "binary": types.BLOB,
    "date": types.DATE,
    "time": types.TIME,
    "timestamp": types.TIMESTAMP,
    "timestamp_ns": types.TIMESTAMP,
    "timestamptz": lambda: types.TIMESTAMP(timezone=True),
    "timestamptz_ns": lambda: types.TIMESTAMP(timezone=True),
}
_DECIMAL: Final = re.compile(r"decimal\((\d+), ?(\d+)\)")


class IcesqlNumeric(_Numeric):
    """Numeric that also converts floating-point results of the engine, as of divisions."""

    cache_ok = True

    def result_processor(self, dialect: Any, coltype: object) -> Callable[[Any], Any] | None:
        """Converts to Decimal or float, by the type's ``asdecimal``."""
        if not self.asdecimal:
            return lambda value: None if value is None else float(value)
        return lambda value: Decimal(repr(value)) if isinstance(value, float) else value


# types.Float is listed so that it keeps its class: as a subclass of Numeric it would be replaced.
COLSPECS: Final = {
    types.Numeric: IcesqlNumeric,
    types.Float: types.Float,
    types.JSON.JSONIndexType: IcesqlJSONIndex,
    types.JSON.JSONPathType: IcesqlJSONPath,
}


def type_of(text: str) -> types.TypeEngine[Any]:
    """The SQLAlchemy type for ``text``, a type in the spelling of DESCRIBE."""
    if (simple := _SIMPLE.get(text)) is not None:
        return simple()
    if (decimal := _DECIMAL.fullmatch(text)) is not None:
        return types.DECIMAL(int(decimal[1]), int(decimal[2]))
    if text.startswith("fixed["):
        return types.BLOB()
    if text.startswith("list<") and text.endswith(">"):
        inner = type_of(text[5:-1])
        # SQLAlchemy represents nested arrays as one type with a number of dimensions.
        if isinstance(inner, types.ARRAY):
            return types.ARRAY(inner.item_type, dimensions=(inner.dimensions or 1) + 1)
        return types.ARRAY(inner, dimensions=1)
    return IcebergType(text)


# ------------------------------------------------------------------ reflection


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
