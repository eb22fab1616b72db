"""Copies of a system's tables, written by icesql before a query that names them runs."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pyarrow as pa

import icesql
from tests.campaigns.foreign.answers import plain_duckdb

# More rows cost time without finding more.
MOST_ROWS, FILES = 120_000, 3
Name = tuple[str, str]


class Copies(ABC):
    """Tables of the catalog ``name``, and of ``mirror``, a plain DuckDB with the same rows and types.

    Columns of types that Iceberg lacks are ``left_out``, larger tables ``too_large``.
    """

    def __init__(self, folder: Path, name: str, namespace: str) -> None:
        self.arguments = {
            "catalog": name, "uri": f"sqlite:///{folder}/catalog.db", "warehouse": str(folder),
            "properties": {"init_catalog_tables": "true"}, "files": True,
        }  # fmt: skip
        self._writer, self.mirror = icesql.connect(**self.arguments), plain_duckdb()
        self.left_out, self.too_large = list[tuple[Name, str]](), list[Name]()
        self._copied: dict[Name, pa.Table] = {}
        self._known: list[Name] | None = None
        self._fresh, self._schemas = set[Name](), set[str]()
        self._schema(namespace)

    @abstractmethod
    def names(self) -> list[Name]:
        """The existing tables, by schema and name."""

    @abstractmethod
    def columns(self, key: Name) -> dict[str, str]:
        """The columns of a table, and the type to which each is cast."""

    @abstractmethod
    def rows(self, key: Name, columns: list[str]) -> pa.Table:
        """Some columns of a table, of at most one row more than ``MOST_ROWS``."""

    def changed(self) -> None:
        """Has to be called after each statement that may have changed tables."""
        self._known = None
        self._fresh.clear()

    def bring(self, sql: str) -> list[Name]:
        """Copy the current state of the tables whose names ``sql`` contains; return their names."""
        if self._known is None:
            self._known = self.names()
            for gone in self._copied.keys() - {*self._known}:
                self._drop(gone)
        words = {word.lower().strip('"') for word in re.findall(r'"[^"]+"|\w+', sql)}
        words |= {word.lower() for word in re.findall(r"\w+", sql)}
        named = [key for key in self._known if key[1].lower() in words]
        for key in named:
            if key not in self._fresh:
                self._copy(key)
                self._fresh.add(key)
        return [key for key in named if key in self._copied]

    def _copy(self, key: Name) -> None:
        columns = self.columns(key)
        kept = [*columns]
        try:
            rows = self._write(key, columns)
        except Exception:
            kept = [each for each in kept if self._fits(key, {each: columns[each]})]
            self.left_out += {(key, each) for each in columns.keys() - kept} - {*self.left_out}
            rows = self._write(key, {each: columns[each] for each in kept}) if kept else None
        if rows is not None:
            self._copied[key] = rows

    def _fits(self, key: Name, column: dict[str, str]) -> bool:
        with suppress(Exception):
            self._write(key, column)
            return True
        return False

    def _write(self, key: Name, columns: dict[str, str]) -> pa.Table | None:
        """Write the rows of some columns to both places; None if there are too many."""
        rows, place = self.rows(key, [*columns]), _place(key)
        if rows.num_rows > MOST_ROWS:
            self.too_large.append(key)
            self._drop(key)
            return None
        if key in self._copied and self._copied[key].equals(rows):
            return rows
        self._schema(key[0])
        cells = ", ".join(f"CAST({quoted(name)} AS {kind}) AS {quoted(name)}" if kind else quoted(name)
                          for name, kind in columns.items())  # fmt: skip
        step = max(1, -(-rows.num_rows // FILES))
        begin = f"CREATE OR REPLACE TABLE {place} TBLPROPERTIES ('format-version' = '3') AS"
        # The rows of the newest file are read first.
        for at in reversed(range(0, max(rows.num_rows, 1), step)):
            self._writer.execute(
                f"{begin} SELECT {cells} FROM given", tables={"given": rows.slice(at, step)}
            )
            begin = f"INSERT INTO {place}"
        declared = self._writer.execute(f"SELECT * FROM {place} LIMIT 0").arrow()
        self.mirror.register("given", declared)
        self.mirror.execute(f"CREATE OR REPLACE TABLE {place} AS FROM given")
        self.mirror.register("given", rows)
        self.mirror.execute(f"INSERT INTO {place} FROM given")
        self.mirror.unregister("given")
        return rows

    def _schema(self, name: str) -> None:
        if name not in self._schemas:
            self._schemas.add(name)
            for each in (self._writer, self.mirror):
                each.execute(f"CREATE SCHEMA IF NOT EXISTS {quoted(name)}")

    def _drop(self, key: Name) -> None:
        self._copied.pop(key, None)
        for each in (self._writer, self.mirror):
            each.execute(f"DROP TABLE IF EXISTS {_place(key)}")

    def as_sql(self, key: Name, most: int = 12) -> str:
        """DuckDB's statement to recreate the table, with at most ``most`` rows."""
        made = self.mirror.execute(
            "SELECT sql FROM duckdb_tables() WHERE schema_name = ? AND table_name = ?", key
        ).fetchone()[0]
        cells = self.mirror.execute(
            f"SELECT CAST(COLUMNS(*) AS VARCHAR) FROM {_place(key)} LIMIT {most}"
        ).fetchall()
        if cells:
            rows = ("(" + ", ".join(map(_literal, row)) + ")" for row in cells)
            made += f" INSERT INTO {_place(key)} VALUES {', '.join(rows)};"
        more = self._copied[key].num_rows - len(cells)
        return made + (f" -- and {more} rows more" if more > 0 else "")

    @contextmanager
    def reordered(self, order: str) -> Iterator[None]:
        """A context in which the tables of the mirror have their rows in another order."""
        self.mirror.execute("BEGIN")
        try:
            for place in map(_place, self._copied):
                self.mirror.execute(
                    f"CREATE TEMP TABLE turned AS FROM {place} ORDER BY {order}; DELETE FROM "
                    f"{place}; INSERT INTO {place} FROM turned; DROP TABLE turned"
                )
            yield
        finally:
            self.mirror.execute("ROLLBACK")

    def close(self) -> None:
        """Close the connections."""
        self._writer.close()
        self.mirror.close()


def _place(key: Name) -> str:
    return ".".join(map(quoted, key))


def quoted(name: str) -> str:
    """A name in SQL."""
    return '"' + name.replace('"', '""') + '"'


def _literal(text: str | None) -> str:
    return "NULL" if text is None else "'" + text.replace("'", "''") + "'"
