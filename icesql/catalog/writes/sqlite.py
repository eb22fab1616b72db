"""Commits to the JDBC catalog in a SQLite file: one UPDATE conditional on the old location.

``JdbcRow`` is the row of a table or view in any database. Source: Iceberg Java
``JdbcTableOperations`` and ``JdbcUtil``, schema versions V0 and V1.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from typing import Any, Final

from icesql.catalog.sqlite_reader import connect, opened
from icesql.catalog.table import Identifier
from icesql.catalog.writes.change import Conflict, Done, Swap, TableChange, Unknown, swap_file
from icesql.errors import CatalogError, TableNotFoundError
from icesql.frozen import Frozen

# ------------------------------------------------------------------ the row, in any database


# The conditions on rows of schema V1, which distinguishes the two kinds.
_ONLY: Final = {
    "TABLE": "AND (iceberg_type = 'TABLE' OR iceberg_type IS NULL)",
    "VIEW": "AND upper(iceberg_type) = 'VIEW'",
}
# Runs a statement with named parameters; the result has ``fetchone`` and ``rowcount``.
Execute = Callable[[str, Mapping[str, Any]], Any]


class JdbcRow(Frozen):
    """One row of the catalog ``catalog``; ``typed`` is schema V1."""

    catalog: str
    identifier: Sequence[str]
    typed: bool
    kind: str = "TABLE"

    @property
    def values(self) -> dict[str, Any]:
        """The parameters of ``where``."""
        above = ".".join(self.identifier[:-1])
        return {"catalog": self.catalog, "namespace": above, "name": self.identifier[-1]}

    @property
    def where(self) -> str:
        """The condition that selects the row."""
        return (
            "WHERE catalog_name = :catalog AND table_namespace = :namespace "
            f"AND table_name = :name {_ONLY[self.kind] if self.typed else ''}"
        )

    def set_location(
        self,
        execute: Execute,
        base: str | None,
        new: str,
        is_base: Callable[[str], bool],
        taken: type[Exception],
    ) -> Conflict | None:
        """Insert the row, or set its metadata location if the present one ``is_base``.

        Call it in a transaction. ``taken`` is the database's error for a row that exists.
        """
        name = f"the {self.kind.lower()} {'.'.join(self.identifier)}"
        if base is None:
            kind = (", iceberg_type", f", '{self.kind}'") if self.typed else ("", "")
            try:
                execute(
                    "INSERT INTO iceberg_tables (catalog_name, table_namespace, table_name, "
                    f"metadata_location, previous_metadata_location{kind[0]}) "
                    f"VALUES (:catalog, :namespace, :name, :new, NULL{kind[1]})",
                    {**self.values, "new": new},
                )
            except taken:
                return Conflict(f"{name} was created meanwhile")
            return None
        query = f"SELECT metadata_location FROM iceberg_tables {self.where}"
        row = execute(query, self.values).fetchone()
        if row is None:
            return Conflict(f"{name} is gone")
        written = str(row[0])
        if is_base(written):
            changed = execute(
                "UPDATE iceberg_tables SET metadata_location = :new, previous_metadata_location = "
                f":old {self.where} AND metadata_location = :old",
                {**self.values, "new": new, "old": written},
            ).rowcount
            if changed == 1:
                return None
        return Conflict(f"{name} is no longer at {base}")


# ------------------------------------------------------------------ the SQLite file


# How long a writer waits for another one to finish.
_BUSY_SECONDS: Final = 10.0


class JdbcCatalog(Frozen):
    """The tables, or of the kind "VIEW" the views, of a catalog in a SQLite file.

    ``typed`` is schema V1, which distinguishes the two. ``find`` returns the present path of the
    metadata file that a row names.
    """

    file: str
    name: str
    typed: bool
    find: Callable[[str], str]
    kind: str = "TABLE"

    def _row(self, identifier: Sequence[str]) -> JdbcRow:
        return JdbcRow(self.name, identifier, self.typed, self.kind)

    # ------------------------------------------------------------------ tables

    def swap(
        self, identifier: Sequence[str], base_location: str | None, change: TableChange
    ) -> Swap:
        """As ``Catalog.swap``."""
        return swap_file(
            change, base_location, lambda new: self.set_location(identifier, base_location, new)
        )

    def set_location(self, identifier: Sequence[str], base: str | None, new: str) -> Swap:
        """Insert a row, or set its metadata location if that still is ``base``."""

        def is_base(written: str) -> bool:
            # The base is the path at which the file was found, not always the row's text.
            return base == written or self.find(written) == base

        # The outcome, from the moment at which COMMIT is sent.
        found: list[Swap] = []
        try:
            with writing(self.file) as database:
                refused = self._row(identifier).set_location(
                    database.execute, base, new, is_base, sqlite3.IntegrityError
                )
                if refused is not None:
                    return refused
                found.append(Unknown("it was left while it committed", new))
                found.append(_committed(database, new))
        except sqlite3.Error as error:
            if not found:
                is_busy = "locked" in str(error) or "busy" in str(error)
                if is_busy and isinstance(error, sqlite3.OperationalError):
                    return Conflict(f"the catalog {self.file} is locked by another writer")
                raise CatalogError(f"SQLite catalog {self.file}: {error}") from error
        except Exception:  # such as one raised by a signal handler
            if not found:
                raise
        return found[-1]

    def drop(self, identifier: Sequence[str]) -> None:
        """Remove a row. Raises TableNotFoundError, CatalogError."""
        row = self._row(identifier)
        with self._changing() as database:
            gone = database.execute(f"DELETE FROM iceberg_tables {row.where}", row.values).rowcount
            if gone != 1:
                raise TableNotFoundError(".".join(identifier))

    def rename(self, identifier: Sequence[str], new: Sequence[str]) -> None:
        """Change the names in a row. Raises TableNotFoundError, CatalogError."""
        row = self._row(identifier)
        with self._changing() as database:
            try:
                changed = database.execute(
                    "UPDATE iceberg_tables SET table_namespace = :to, table_name = :new "
                    + row.where,
                    {**row.values, "to": ".".join(new[:-1]), "new": new[-1]},
                ).rowcount
            except sqlite3.IntegrityError as error:
                raise CatalogError(f"{'.'.join(new)} already exists") from error
            if changed != 1:
                raise TableNotFoundError(".".join(identifier))

    # ------------------------------------------------------------------ namespaces

    def create_namespace(self, namespace: Identifier) -> None:
        """Add the row that represents a namespace without tables. Raises CatalogError."""
        text = ".".join(namespace)
        with self._changing() as database:
            _make_namespaces(database)
            if self._holds(database, text):
                raise CatalogError(f"namespace {text} already exists")
            database.execute(
                "INSERT INTO iceberg_namespace_properties VALUES (?, ?, 'exists', 'true')",
                (self.name, text),
            )

    def drop_namespace(self, namespace: Identifier) -> None:
        """Remove the rows of an empty namespace. Raises CatalogError."""
        text = ".".join(namespace)
        with self._changing() as database:
            if not self._holds(database, text):
                raise CatalogError(f"namespace {text} not found")
            tables = database.execute(
                "SELECT 1 FROM iceberg_tables WHERE catalog_name = ? AND "
                "(table_namespace = ? OR substr(table_namespace, 1, ?) = ?)",
                (self.name, text, len(text) + 1, f"{text}."),
            ).fetchone()
            others = database.execute(
                "SELECT 1 FROM iceberg_namespace_properties WHERE catalog_name = ? AND "
                "substr(namespace, 1, ?) = ?",
                (self.name, len(text) + 1, f"{text}."),
            ).fetchone()
            if tables or others:
                raise CatalogError(f"namespace {text} is not empty")
            database.execute(
                "DELETE FROM iceberg_namespace_properties WHERE catalog_name = ? AND namespace = ?",
                (self.name, text),
            )

    def namespace_property(self, namespace: Identifier, key: str) -> str | None:
        """A property of a namespace; None if it is not set."""
        with opened(self.file) as database:
            row = database.execute(
                "SELECT property_value FROM iceberg_namespace_properties WHERE catalog_name = ? "
                "AND namespace = ? AND property_key = ?",
                (self.name, ".".join(namespace), key),
            ).fetchone()
        return None if row is None or row[0] is None else str(row[0])

    def _holds(self, database: sqlite3.Connection, text: str) -> bool:
        found = database.execute(
            "SELECT 1 FROM iceberg_namespace_properties WHERE catalog_name = :name "
            "AND namespace = :text UNION ALL SELECT 1 FROM iceberg_tables "
            "WHERE catalog_name = :name AND table_namespace = :text",
            {"name": self.name, "text": text},
        ).fetchone()
        return found is not None

    @contextmanager
    def _changing(self) -> Iterator[sqlite3.Connection]:
        try:
            with writing(self.file) as database:
                yield database
                database.execute("COMMIT")
        except sqlite3.Error as error:
            raise CatalogError(f"SQLite catalog {self.file}: {error}") from error


def make_catalog(file: str) -> None:
    """Create the tables of a catalog (schema V1), and the file, if they do not exist.

    Raises CatalogError.
    """
    try:
        with closing(connect(file, "rwc", timeout=_BUSY_SECONDS)) as database, database:
            database.execute(
                "CREATE TABLE IF NOT EXISTS iceberg_tables (catalog_name VARCHAR(255) NOT NULL, "
                "table_namespace VARCHAR(255) NOT NULL, table_name VARCHAR(255) NOT NULL, "
                "metadata_location VARCHAR(1000), previous_metadata_location VARCHAR(1000), "
                "iceberg_type VARCHAR(5), "
                "PRIMARY KEY (catalog_name, table_namespace, table_name))"
            )
            _make_namespaces(database)
    except sqlite3.Error as error:
        raise CatalogError(f"SQLite catalog {file}: {error}") from error


def _make_namespaces(database: sqlite3.Connection) -> None:
    database.execute(
        "CREATE TABLE IF NOT EXISTS iceberg_namespace_properties ("
        "catalog_name VARCHAR(255) NOT NULL, namespace VARCHAR(255) NOT NULL, "
        "property_key VARCHAR(255) NOT NULL, property_value VARCHAR(1000), "
        "PRIMARY KEY (catalog_name, namespace, property_key))"
    )


def _committed(database: sqlite3.Connection, new: str) -> Swap:
    """Commit the transaction of a swap, and return its outcome."""
    try:
        database.execute("COMMIT")
    except sqlite3.Error as error:
        text = str(error)
        with suppress(sqlite3.Error):
            database.execute("ROLLBACK")
        if "locked" in text or "busy" in text:
            # A COMMIT that failed because readers hold the file was not applied.
            return Conflict(f"the catalog is locked: {text}")
        # For example, the disk failed during the COMMIT.
        return Unknown(text, new)
    return Done(new)


@contextmanager
def writing(file: str) -> Iterator[sqlite3.Connection]:
    """A transaction that excludes other writers from its start."""
    with closing(connect(file, "rw", timeout=_BUSY_SECONDS, isolation_level=None)) as database:
        database.execute("BEGIN IMMEDIATE")
        yield database
