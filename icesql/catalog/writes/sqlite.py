"""Commits to the JDBC catalog in a SQLite file: one UPDATE conditional on the old location.

Source: Iceberg Java ``JdbcTableOperations`` and ``JdbcUtil``, schema versions V0 and V1.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from typing import Final
from urllib.parse import quote

from msgspec import Struct

from icesql.catalog.sqlite_reader import connect, opened
from icesql.catalog.table import Identifier
from icesql.catalog.writes.change import Conflict, Done, Swap, TableChange, Unknown, swap_file
from icesql.errors import CatalogError, TableNotFoundError

# How long a writer waits for another one to finish.
_BUSY_SECONDS: Final = 10.0
# The conditions on rows of schema V1.
_ONLY: Final = {
    "TABLE": "AND (iceberg_type = 'TABLE' OR iceberg_type IS NULL)",
    "VIEW": "AND upper(iceberg_type) = 'VIEW'",
}


class JdbcCatalog(Struct, frozen=True):
    """The tables, or of the kind "VIEW" the views, of a catalog in a SQLite file.

    ``typed`` is schema V1, which distinguishes the two. ``find`` returns the present path of the
    metadata file that a row names.
    """

    file: str
    name: str
    typed: bool
    find: Callable[[str], str]
    kind: str = "TABLE"

    @property
    def only_kind(self) -> str:
        """The condition that excludes rows of the other kind."""
        return _ONLY[self.kind] if self.typed else ""

    def _named(self, identifier: Sequence[str]) -> str:
        return f"the {self.kind.lower()} {'.'.join(identifier)}"

    # ------------------------------------------------------------------ tables

    def swap(
        self, identifier: Sequence[str], base_location: str | None, change: TableChange
    ) -> Swap:
        """As ``Catalog.swap``."""
        return swap_file(
            change, base_location, lambda new: self.set_location(identifier, base_location, new)
        )

    def register(self, identifier: Sequence[str], location: str) -> Swap:
        """Insert a row for an existing metadata file."""
        return self.set_location(identifier, None, location)

    def set_location(self, identifier: Sequence[str], base: str | None, new: str) -> Swap:
        """Insert a row, or set its metadata location if that still is ``base``."""
        # The outcome, from the moment at which COMMIT is sent.
        found: list[Swap] = []
        try:
            with writing(self.file) as database:
                refused = (
                    self._insert(database, identifier, new)
                    if base is None
                    else self._update(database, identifier, base, new)
                )
                if refused is not None:
                    return refused
                found.append(Unknown("it was left while it committed", new))
                found.append(_committed(database, new))
        except sqlite3.OperationalError as error:
            if not found and ("locked" in str(error) or "busy" in str(error)):
                return Conflict(f"the catalog {self.file} is locked by another writer")
            if not found:
                raise CatalogError(f"SQLite catalog {self.file}: {error}") from error
        except sqlite3.Error as error:
            if not found:
                raise CatalogError(f"SQLite catalog {self.file}: {error}") from error
        except Exception:  # such as one raised by a signal handler
            if not found:
                raise
        return found[-1]

    def _insert(
        self, database: sqlite3.Connection, identifier: Sequence[str], new: str
    ) -> Conflict | None:
        kind = (", iceberg_type", f", '{self.kind}'") if self.typed else ("", "")
        try:
            database.execute(
                "INSERT INTO iceberg_tables (catalog_name, table_namespace, table_name, "
                f"metadata_location, previous_metadata_location{kind[0]}) "
                f"VALUES (?, ?, ?, ?, NULL{kind[1]})",
                (*self._key(identifier), new),
            )
        except sqlite3.IntegrityError:
            return Conflict(f"{self._named(identifier)} was created meanwhile")
        return None

    def _update(
        self, database: sqlite3.Connection, identifier: Sequence[str], base: str, new: str
    ) -> Conflict | None:
        """Compare and set, inside one transaction that excludes other writers."""
        name = self._named(identifier)
        row = database.execute(
            "SELECT metadata_location FROM iceberg_tables WHERE catalog_name = ? AND "
            f"table_namespace = ? AND table_name = ? {self.only_kind}",
            self._key(identifier),
        ).fetchone()
        if row is None:
            return Conflict(f"{name} is gone")
        written = str(row[0])
        # The base is the path at which the file was found, which may differ from the row's text.
        if base != written and self.find(written) != base:
            return Conflict(f"{name} is no longer at {base}")
        changed = database.execute(
            "UPDATE iceberg_tables SET metadata_location = ?, previous_metadata_location = ? "
            "WHERE catalog_name = ? AND table_namespace = ? AND table_name = ? "
            f"AND metadata_location = ? {self.only_kind}",
            (new, written, *self._key(identifier), written),
        ).rowcount
        return None if changed == 1 else Conflict(f"{name} is no longer at {base}")

    def _key(self, identifier: Sequence[str]) -> tuple[str, str, str]:
        return self.name, ".".join(identifier[:-1]), identifier[-1]

    def drop(self, identifier: Sequence[str]) -> None:
        """Remove a row. Raises TableNotFoundError, CatalogError."""
        with self._changing() as database:
            gone = database.execute(
                "DELETE FROM iceberg_tables WHERE catalog_name = ? AND table_namespace = ? "
                f"AND table_name = ? {self.only_kind}",
                self._key(identifier),
            ).rowcount
            if gone != 1:
                raise TableNotFoundError(".".join(identifier))

    def rename(self, identifier: Sequence[str], new: Sequence[str]) -> None:
        """Change the names in a row. Raises TableNotFoundError, CatalogError."""
        with self._changing() as database:
            try:
                changed = database.execute(
                    "UPDATE iceberg_tables SET table_namespace = ?, table_name = ? "
                    "WHERE catalog_name = ? AND table_namespace = ? AND table_name = ? "
                    + self.only_kind,
                    (".".join(new[:-1]), new[-1], *self._key(identifier)),
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
        with closing(connect(file, timeout=_BUSY_SECONDS)) as database, database:
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
    uri = f"file:{quote(file)}?mode=rw"
    with closing(connect(uri, uri=True, timeout=_BUSY_SECONDS, isolation_level=None)) as database:
        database.execute("BEGIN IMMEDIATE")
        yield database
