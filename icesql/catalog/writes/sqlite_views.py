"""Views in the JDBC catalog of a SQLite file: rows of the type VIEW."""

from __future__ import annotations

import json
import sqlite3
import time
import uuid
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from icesql.catalog.table import confining_roots
from icesql.catalog.writes.change import Conflict, TableChange, Unknown
from icesql.catalog.writes.sqlite import JdbcCatalog, _committed, writing
from icesql.errors import CatalogError, CommitConflictError, CommitStateUnknownError, Error
from icesql.iceberg.metadata.file_names import next_metadata_name
from icesql.iceberg.metadata.view_changes import NewView, view_document
from icesql.storage.new_file import NewFile, remove_file
from icesql.storage.open import METADATA_BYTES, Storage

if TYPE_CHECKING:
    from icesql.catalog.sqlite import SqliteCatalog
    from icesql.catalog.table import Identifier


def create_view(catalog: SqliteCatalog, identifier: Identifier, new: NewView) -> None:
    """Create a view. Raises CatalogError if a table or view of its name exists."""
    from icesql.catalog.sqlite import place_of

    place = place_of(catalog, identifier, TableChange((), (), Storage(), 0))
    _put(catalog, identifier, new, place.location, place.storage, None)


def replace_view(catalog: SqliteCatalog, identifier: Identifier, new: NewView) -> None:
    """Add a version to a view.

    Raises CommitConflictError if another writer changed the view meanwhile.
    """
    catalog.check_own(identifier)
    old, base, storage = _current(catalog, identifier)
    _put(catalog, identifier, new, str(base["location"]), storage, (old, base))


def change_properties(
    catalog: SqliteCatalog, identifier: Identifier, given: Mapping[str, str], removed: Sequence[str]
) -> None:
    """Set and remove properties of a view. Raises CommitConflictError as ``replace_view``."""
    catalog.check_own(identifier)
    old, base, storage = _current(catalog, identifier)
    properties = {**base.get("properties", {}), **given}
    kept = {key: value for key, value in properties.items() if key not in removed}
    document = {**base, "properties": kept}
    _write(catalog, identifier, document, str(base["location"]), storage, old)


def rename_view(catalog: SqliteCatalog, identifier: Identifier, new: Identifier) -> None:
    """Rename a view.

    Raises CatalogError if the new name is taken or its namespace is missing.
    """
    catalog.check_own(identifier)
    jdbc = catalog._jdbc()
    text = ".".join(new[:-1])
    if tuple(new[:-1]) not in set(catalog.namespaces()):
        raise CatalogError(f"namespace {text} not found")
    key = ".".join(identifier[:-1]), identifier[-1]
    try:
        with writing(jdbc.file) as database:
            changed = database.execute(
                "UPDATE iceberg_tables SET table_namespace = ?, table_name = ? WHERE "
                "catalog_name = ? AND table_namespace = ? AND table_name = ? "
                "AND upper(iceberg_type) = 'VIEW'",
                (text, new[-1], jdbc.name, *key),
            ).rowcount
            database.execute("COMMIT")
    except sqlite3.IntegrityError as error:
        raise CatalogError(f"{'.'.join(new)} already exists") from error
    except sqlite3.Error as error:
        raise CatalogError(f"SQLite catalog {jdbc.file}: {error}") from error
    if changed != 1:
        raise CommitConflictError(f"the view {'.'.join(identifier)} is gone; run it again")


def _current(catalog: SqliteCatalog, identifier: Identifier) -> tuple[str, dict[str, Any], Storage]:
    """The metadata location of a view, its JSON, and the storage for its files."""
    from icesql.catalog.sqlite import _opened

    with _opened(catalog.file) as database:
        row = catalog._row(database, identifier)
    if row is None or row[0] is None:
        raise CommitConflictError(f"the view {'.'.join(identifier)} is gone; run it again")
    old = row[0]
    found = catalog._find(old)
    roots = confining_roots(catalog.confine, found)
    storage = Storage(catalog.properties, cache=catalog.cache, confine=roots)
    return old, json.loads(storage.read(found, most=METADATA_BYTES)), storage


def _put(
    catalog: SqliteCatalog,
    identifier: Identifier,
    new: NewView,
    location: str,
    storage: Storage,
    before: tuple[str, dict[str, Any]] | None,
) -> None:
    old, base = before or (None, None)
    now_ms = time.time_ns() // 1_000_000
    document = view_document(new, location, now_ms, base)
    _write(catalog, identifier, document, location, storage, old)


def _write(
    catalog: SqliteCatalog,
    identifier: Identifier,
    document: dict[str, Any],
    location: str,
    storage: Storage,
    old: str | None,
) -> None:
    """Write a document as the new metadata file of a view, replacing the file ``old``."""
    name = next_metadata_name(old, str(uuid.uuid4()), gzipped=False)
    path = f"{location.rstrip('/')}/metadata/{name}"
    with NewFile(storage, path) as file:
        file.write(json.dumps(document, separators=(",", ":"), ensure_ascii=False).encode())
    try:
        _set(catalog._jdbc(), identifier, old, path)
    except CommitStateUnknownError:
        raise  # the view may use that file
    except Error:
        remove_file(storage, path)
        raise


def _set(jdbc: JdbcCatalog, identifier: Identifier, old: str | None, new: str) -> None:
    text = ".".join(identifier)
    if not jdbc.typed:
        raise CatalogError(f"catalog {jdbc.name} is of a schema before views")
    key = jdbc.name, ".".join(identifier[:-1]), identifier[-1]
    try:
        with writing(jdbc.file) as database:
            if old is None:
                database.execute(
                    "INSERT INTO iceberg_tables (catalog_name, table_namespace, table_name, "
                    "metadata_location, previous_metadata_location, iceberg_type) "
                    "VALUES (?, ?, ?, ?, NULL, 'VIEW')",
                    (*key, new),
                )
            elif (
                database.execute(
                    "UPDATE iceberg_tables SET metadata_location = ?, "
                    "previous_metadata_location = ? WHERE catalog_name = ? AND table_namespace = ? "
                    "AND table_name = ? AND metadata_location = ? AND upper(iceberg_type) = 'VIEW'",
                    (new, old, *key, old),
                ).rowcount
                != 1
            ):
                raise CommitConflictError(f"the view {text} was changed meanwhile; run it again")
            ended = _committed(database, new)
    except sqlite3.IntegrityError as error:
        raise CatalogError(f"{text} already exists") from error
    except sqlite3.Error as error:
        raise CatalogError(f"SQLite catalog {jdbc.file}: {error}") from error
    if isinstance(ended, Conflict):
        raise CatalogError(f"SQLite catalog {jdbc.file}: {ended.reason}")
    if isinstance(ended, Unknown):
        raise CommitStateUnknownError(
            f"the change of the view {text} was sent and its outcome is unknown: {ended.reason}; "
            "look at it before running the statement again",
            files=[new],
        )


def drop_view(catalog: SqliteCatalog, identifier: Identifier) -> bool:
    """Remove a view from the catalog, its files stay; False if there was none."""
    catalog.check_own(identifier)
    jdbc = catalog._jdbc()
    try:
        with writing(jdbc.file) as database:
            gone = database.execute(
                "DELETE FROM iceberg_tables WHERE catalog_name = ? AND table_namespace = ? "
                "AND table_name = ? AND upper(iceberg_type) = 'VIEW'",
                (jdbc.name, ".".join(identifier[:-1]), identifier[-1]),
            ).rowcount
            database.execute("COMMIT")
    except sqlite3.Error as error:
        raise CatalogError(f"SQLite catalog {jdbc.file}: {error}") from error
    return bool(gone == 1)
