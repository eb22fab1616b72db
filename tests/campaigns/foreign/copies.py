"""Copies of a DuckDB database's tables: as Iceberg tables, and in a plain DuckDB beside them.

The plain DuckDB (the mirror) has the types that Iceberg has, so that both sides answer over the
same rows: TINYINT is INTEGER there too, an ENUM is VARCHAR. Views are copied as their rows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import duckdb
import pyarrow as pa

from tests.campaigns.foreign.duckdb_reference import arrow_table
from tests.campaigns.foreign.iceberg_catalog import IcebergCatalog

# More rows cost time and show nothing new.
MOST_ROWS = 120_000
_LISTING = """
SELECT schema_name, table_name, temporary FROM duckdb_tables() WHERE NOT internal
  AND database_name IN ('memory', 'temp')
UNION ALL
SELECT schema_name, view_name, temporary FROM duckdb_views() WHERE NOT internal
  AND database_name IN ('memory', 'temp')
ORDER BY ALL
"""
# How a type of DuckDB is stored: its SQL type and its Iceberg type. What is not here is left out.
_STORED = {
    "boolean": ("BOOLEAN", "boolean"),
    "tinyint": ("INTEGER", "int"),
    "smallint": ("INTEGER", "int"),
    "integer": ("INTEGER", "int"),
    "utinyint": ("INTEGER", "int"),
    "usmallint": ("INTEGER", "int"),
    "uinteger": ("BIGINT", "long"),
    "bigint": ("BIGINT", "long"),
    "ubigint": ("DECIMAL(20,0)", "decimal(20, 0)"),
    "hugeint": ("DECIMAL(38,0)", "decimal(38, 0)"),
    "float": ("FLOAT", "float"),
    "double": ("DOUBLE", "double"),
    "date": ("DATE", "date"),
    "time": ("TIME", "time"),
    "timestamp": ("TIMESTAMP", "timestamp"),
    "timestamp_s": ("TIMESTAMP", "timestamp"),
    "timestamp_ms": ("TIMESTAMP", "timestamp"),
    "timestamp_ns": ("TIMESTAMP_NS", "timestamp_ns"),
    "timestamp with time zone": ("TIMESTAMPTZ", "timestamptz"),
    "varchar": ("VARCHAR", "string"),
    "json": ("VARCHAR", "string"),
    "enum": ("VARCHAR", "string"),
    "uuid": ("UUID", "uuid"),
    "blob": ("BLOB", "binary"),
    "null": ("INTEGER", "int"),
}


class Unstorable(Exception):
    """A type that Iceberg, or the writer of the tests, has not."""


@dataclass
class Copy:
    """One copied table: its rows as they are stored, and the number of columns left out."""

    rows: pa.Table
    types: dict[str, str]
    left_out: int


@dataclass
class Copies:
    """The Iceberg catalog ``iceberg`` and the database ``mirror``, grown as tables are used.

    ``left_out`` counts columns of types that Iceberg has not, ``too_large`` tables.
    """

    iceberg: IcebergCatalog
    mirror: Any
    copied: dict[tuple[str, str], Copy] = field(default_factory=dict)
    left_out: int = 0
    too_large: int = 0
    _listed: list[tuple[str, str, bool]] | None = None
    _fresh: set[tuple[str, str]] = field(default_factory=set)

    def changed(self) -> None:
        """Call it after each statement that may have changed the database."""
        self._listed = None
        self._fresh.clear()

    def bring(self, database: Any, sql: str) -> list[tuple[str, str]]:
        """Copy the tables whose names ``sql`` holds, as ``database`` sees them now; their names."""
        if self._listed is None:
            self._listed = database.execute(_LISTING).fetchall()
            known = {(schema, name) for schema, name, _ in self._listed}
            for gone in [key for key in self.copied if key not in known]:
                self._drop(*gone)
        words = {word.lower() for word in re.findall(r'"[^"]+"|\w+', sql)}
        words |= {word.strip('"') for word in words}
        named = []
        for schema, name, _ in self._listed:
            if name.lower() in words:
                named.append((schema, name))
                if (schema, name) not in self._fresh:
                    self._copy(database, schema, name)
                    self._fresh.add((schema, name))
        return [key for key in named if key in self.copied]

    def as_sql(self, key: tuple[str, str], most: int = 12) -> str:
        """A statement that makes the table again in DuckDB, of at most ``most`` rows."""
        copy = self.copied[key]
        name = f"{_quoted(key[0])}.{_quoted(key[1])}" if key[0] != "main" else _quoted(key[1])
        columns = ", ".join(f"{_quoted(c)} {t}" for c, t in copy.types.items())
        place = f"{_quoted(key[0])}.{_quoted(key[1])}"
        texts = self.mirror.execute(
            f"SELECT {', '.join(f'CAST({_quoted(c)} AS VARCHAR)' for c in copy.types)} FROM {place} "
            f"LIMIT {most}"
        ).fetchall()
        made = f"CREATE TABLE {name} ({columns});"
        if texts:
            rows = ", ".join("(" + ", ".join(map(_literal, row)) + ")" for row in texts)
            made += f" INSERT INTO {name} VALUES {rows};"
        more = copy.rows.num_rows - len(texts)
        return made + (f" -- and {more} rows more" if more > 0 else "")

    @contextmanager
    def reordered(self, order: str) -> Iterator[None]:
        """A block in which the tables of the mirror hold their rows in another order."""
        self.mirror.execute("BEGIN")
        try:
            for schema, name in self.copied:
                place = f"{_quoted(schema)}.{_quoted(name)}"
                self.mirror.execute(
                    f"CREATE TEMP TABLE turned AS FROM {place} ORDER BY {order}; DELETE FROM "
                    f"{place}; INSERT INTO {place} FROM turned; DROP TABLE turned"
                )
            yield
        finally:
            self.mirror.execute("ROLLBACK")

    # ------------------------------------------------------------ one table

    def _copy(self, database: Any, schema: str, name: str) -> None:
        place = f"{_quoted(schema)}.{_quoted(name)}"
        described = database.execute(f"SELECT * FROM {place} LIMIT 0").description
        fields, expressions, types = [], [], {}
        ids = iter(range(len(described) + 1, 100_000))
        left_out = 0
        for at, (column, kind, *_) in enumerate(described, start=1):
            try:
                sql_type, iceberg = _stored(kind, ids)
                if "hugeint" in str(kind).lower():
                    # The greatest 128-bit integers have one digit more than any decimal.
                    cast = f"max(CAST({_quoted(column)} AS {sql_type}))"
                    database.execute(f"SELECT {cast} FROM {place}").fetchall()
            except (Unstorable, duckdb.ConversionException):
                left_out += 1
                continue
            fields.append({"id": at, "name": column, "required": False, "type": iceberg})
            expressions.append(f"CAST({_quoted(column)} AS {sql_type}) AS {_quoted(column)}")
            types[column] = sql_type
        if not fields:
            self.left_out += left_out
            return
        rows = arrow_table(
            database.execute(f"SELECT {', '.join(expressions)} FROM {place} LIMIT {MOST_ROWS + 1}")
        )
        if rows.num_rows > MOST_ROWS:
            self.too_large += 1
            self._drop(schema, name)
            return
        before = self.copied.get((schema, name))
        if before is not None and before.types == types and before.rows.equals(rows):
            return
        self.left_out += left_out
        self._mirror(schema, name, rows, types)
        self.iceberg.write(schema, name, rows, fields)
        self.copied[schema, name] = Copy(rows, types, left_out)

    def _mirror(self, schema: str, name: str, rows: pa.Table, types: dict[str, str]) -> None:
        columns = ", ".join(f"CAST({_quoted(c)} AS {t}) AS {_quoted(c)}" for c, t in types.items())
        self.mirror.execute(f"CREATE SCHEMA IF NOT EXISTS {_quoted(schema)}")
        self.mirror.register("rows_to_copy", rows)
        self.mirror.execute(
            f"CREATE OR REPLACE TABLE {_quoted(schema)}.{_quoted(name)} AS "
            f"SELECT {columns} FROM rows_to_copy"
        )
        self.mirror.unregister("rows_to_copy")

    def _drop(self, schema: str, name: str) -> None:
        self.copied.pop((schema, name), None)
        self.mirror.execute(f"DROP TABLE IF EXISTS {_quoted(schema)}.{_quoted(name)}")
        self.iceberg.drop(schema, name)


def _stored(kind: Any, ids: Iterator[int]) -> tuple[str, Any]:
    """The SQL type and the Iceberg type (JSON) that ``kind`` is stored as."""
    match str(kind.id).lower():
        case "decimal":
            parts = dict(kind.children)
            inner = f"{parts['precision']},{parts['scale']}"
            return f"DECIMAL({inner})", f"decimal({inner.replace(',', ', ')})"
        case "list" | "array":
            number = next(ids)
            sql, iceberg = _stored_inside(kind.children[0][1], ids)
            return f"{sql}[]", {
                "type": "list", "element-id": number, "element": iceberg, "element-required": False
            }  # fmt: skip
        case "map":
            key, value = next(ids), next(ids)
            (key_sql, key_type), (value_sql, value_type) = (
                _stored_inside(child, ids) for _, child in kind.children
            )
            return f"MAP({key_sql}, {value_sql})", {
                "type": "map", "key-id": key, "key": key_type,
                "value-id": value, "value": value_type, "value-required": False,
            }  # fmt: skip
        case "struct":
            parts, fields = [], []
            for name, child in kind.children:
                number = next(ids)
                sql, iceberg = _stored_inside(child, ids)
                if not name:
                    raise Unstorable(str(kind))
                parts.append(f"{_quoted(name)} {sql}")
                fields.append({"id": number, "name": name, "required": False, "type": iceberg})
            if not fields:
                raise Unstorable(str(kind))
            return f"STRUCT({', '.join(parts)})", {"type": "struct", "fields": fields}
        case name if name in _STORED:
            return _STORED[name]
    raise Unstorable(str(kind))


def _stored_inside(kind: Any, ids: Iterator[int]) -> tuple[str, Any]:
    sql, iceberg = _stored(kind, ids)
    if iceberg == "uuid":
        raise Unstorable("the writer stores no UUID inside another value")
    return sql, iceberg


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _literal(text: str | None) -> str:
    return "NULL" if text is None else "'" + text.replace("'", "''") + "'"
