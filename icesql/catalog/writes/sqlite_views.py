"""Views in the JDBC catalog of a SQLite file: rows of the type VIEW."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from icesql.catalog.writes.change import Conflict, TableChange, Unknown, pointed
from icesql.errors import (
    CatalogError,
    CommitConflictError,
    CommitStateUnknownError,
    TableNotFoundError,
)
from icesql.iceberg.metadata.views import NewView, view_document
from icesql.iceberg.metadata.writing import next_metadata_name
from icesql.storage.new_files import NewFile
from icesql.storage.open import METADATA_BYTES, Storage

if TYPE_CHECKING:
    from icesql.catalog.sqlite import SqliteCatalog
    from icesql.catalog.table import Identifier, StoredView


def create_view(catalog: SqliteCatalog, identifier: Identifier, new: NewView) -> None:
    """Create a view. Raises CatalogError if a table or view of its name exists."""
    from icesql.catalog.sqlite import place_of

    place = place_of(catalog, identifier, TableChange((), (), Storage(), 0))
    document = view_document(new, place.location, _now_ms(), None)
    _write(catalog, identifier, document, place.storage, None)


def replace_view(catalog: SqliteCatalog, view: StoredView, new: NewView) -> None:
    """Add a version to a view.

    Raises CommitConflictError if another writer changed the view meanwhile.
    """
    old, base, storage = _current(catalog, view.identifier)
    document = view_document(new, str(base["location"]), _now_ms(), base)
    _write(catalog, view.identifier, document, storage, old)


def change_properties(
    catalog: SqliteCatalog, view: StoredView, given: Mapping[str, str], removed: Sequence[str]
) -> None:
    """Set and remove properties of a view. Raises CommitConflictError as ``replace_view``."""
    old, base, storage = _current(catalog, view.identifier)
    properties = {**base.get("properties", {}), **given}
    kept = {key: value for key, value in properties.items() if key not in removed}
    _write(catalog, view.identifier, {**base, "properties": kept}, storage, old)


def rename_view(catalog: SqliteCatalog, identifier: Identifier, new: Identifier) -> None:
    """Rename a view.

    Raises CatalogError if the new name is taken or its namespace is missing.
    """
    catalog.check_own(identifier)
    if tuple(new[:-1]) not in set(catalog.namespaces()):
        raise CatalogError(f"namespace {'.'.join(new[:-1])} not found")
    try:
        catalog._jdbc("VIEW").rename(identifier, new)
    except TableNotFoundError as error:
        raise _gone(identifier) from error


def _gone(identifier: Identifier) -> CommitConflictError:
    return CommitConflictError(f"the view {'.'.join(identifier)} is gone; run it again")


def _current(catalog: SqliteCatalog, identifier: Identifier) -> tuple[str, dict[str, Any], Storage]:
    """The metadata location of a view, its JSON, and the storage for its files.

    Raises UnsupportedTableError for a view of a copied catalog.
    """
    catalog.check_own(identifier)
    row = catalog.row(identifier)
    if row is None or row[0] is None:
        raise _gone(identifier)
    old = row[0]
    found = catalog._find(old)
    storage = catalog.storage_of(found)
    return old, json.loads(storage.read(found, most=METADATA_BYTES)), storage


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _write(
    catalog: SqliteCatalog,
    identifier: Identifier,
    document: dict[str, Any],
    storage: Storage,
    old: str | None,
) -> None:
    """Write a document as the new metadata file of a view, replacing the file ``old``."""
    jdbc = catalog._jdbc("VIEW")
    if not jdbc.typed:
        raise CatalogError(f"catalog {jdbc.name} is of a schema before views")
    name = next_metadata_name(old, str(uuid.uuid4()), gzipped=False)
    path = f"{document['location'].rstrip('/')}/metadata/{name}"
    with NewFile(storage, path) as file:
        file.write(json.dumps(document, separators=(",", ":"), ensure_ascii=False).encode())
    ended = pointed(storage, path, partial(jdbc.set_location, identifier, old))
    if isinstance(ended, Conflict):
        raise CommitConflictError(f"{ended.reason}; run it again")
    if isinstance(ended, Unknown):
        raise CommitStateUnknownError(
            f"the change of the view {'.'.join(identifier)} was sent and its outcome is unknown: "
            f"{ended.reason}; look at it before running the statement again",
            files=[path],
        )


def drop_view(catalog: SqliteCatalog, identifier: Identifier) -> bool:
    """Remove a view from the catalog, its files stay; False if there was none."""
    catalog.check_own(identifier)
    try:
        catalog._jdbc("VIEW").drop(identifier)
    except TableNotFoundError:
        return False
    return True
