"""Commits to catalogs opened by PyIceberg: databases by SQL, Glue by PyIceberg's own commit.

Source: PyIceberg ``Catalog.commit_table``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Final

from icesql.catalog.client_errors import is_missing
from icesql.catalog.configuration import of_storage
from icesql.catalog.writes.change import (
    Conflict,
    Done,
    Place,
    Swap,
    TableChange,
    Unknown,
    free_location,
    requested_location,
    swap_file,
)
from icesql.catalog.writes.sqlite import JdbcRow
from icesql.errors import CatalogError, NotSupportedError, TableNotFoundError
from icesql.iceberg.metadata.changes.updates import (
    RemoveProperties,
    SetProperties,
    UpgradeFormatVersion,
    requirement_json,
    update_json,
)
from icesql.storage.cache import BoundedCache
from icesql.storage.open import Storage, is_local, local_spellings

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog as ForeignCatalog

# For the other kinds icesql has no atomic commit.
_WRITTEN: Final = ("sql", "glue")
# PyIceberg imports the class that this property names, which chooses metadata locations.
_PROVIDER: Final = "write.py-location-provider.impl"


class PyIcebergChanges:
    """The changes of a catalog of PyIceberg, ``_foreign``; NotSupportedError for other kinds.

    ``_calling`` is a context that translates errors of the client.
    """

    cache: BoundedCache | None
    kind: str
    _foreign: ForeignCatalog
    _calling: Callable[[], AbstractContextManager[None]]

    def swap(
        self, identifier: Sequence[str], base_location: str | None, change: TableChange
    ) -> Swap:
        """As ``Catalog.swap``, in databases and Glue."""
        foreign = self._foreign
        with self._calling():
            self._refuse(f"commits to {'.'.join(identifier)}")
            if self.kind == "sql":
                # One UPDATE conditional on the old metadata location; any format version.
                return swap_file(
                    change,
                    base_location,
                    lambda new: _set_location(foreign, identifier, base_location, new),
                )
            return _committed(foreign, identifier, base_location, change)

    def register(self, identifier: Sequence[str], location: str) -> Swap:
        """Register a metadata file as a table."""
        from pyiceberg.exceptions import TableAlreadyExistsError

        with self._calling():
            self._refuse(f"register_table of {'.'.join(identifier)}")
            try:
                self._foreign.register_table(tuple(identifier), location)
            except TableAlreadyExistsError as error:
                return Conflict(str(error))
        return Done(location)

    def place_new(self, identifier: Sequence[str], change: TableChange) -> Place:
        """As ``Catalog.place_new``, in databases."""
        foreign: Any = self._foreign
        name = ".".join(identifier)
        *above, last = identifier
        with self._calling():
            self._refuse(f"a new table {name}")
            if self.kind != "sql":
                raise NotSupportedError(
                    f"not supported: new tables in a catalog of type {self.kind}: {name}"
                )
            if foreign.table_exists(tuple(identifier)):
                raise CatalogError(f"{name} already exists")
            if not foreign.namespace_exists(tuple(above)):
                raise CatalogError(f"namespace {'.'.join(above)} not found")
            location = str(
                foreign._resolve_table_location(requested_location(change), ".".join(above), last)
            )
        storage = Storage(of_storage(foreign.properties), cache=self.cache)
        return Place(free_location(change, location, storage, name), storage)

    def rename(self, identifier: Sequence[str], new: Sequence[str]) -> None:
        """As ``Catalog.rename``."""
        with self._calling():
            self._refuse(f"renaming {'.'.join(identifier)}")
            try:
                self._foreign.rename_table(tuple(identifier), tuple(new))
            except Exception as error:
                if is_missing(error, "NoSuchTableError"):
                    raise TableNotFoundError(".".join(identifier)) from error
                raise

    def create_namespace(self, namespace: Sequence[str]) -> None:
        """As ``Catalog.create_namespace``."""
        with self._calling():
            self._refuse("new namespaces")
            self._foreign.create_namespace(tuple(namespace))

    def drop_namespace(self, namespace: Sequence[str]) -> None:
        """As ``Catalog.drop_namespace``."""
        with self._calling():
            self._refuse("dropping namespaces")
            self._foreign.drop_namespace(tuple(namespace))

    def _refuse(self, what: str) -> None:
        """Raise NotSupportedError for kinds of catalogs that icesql only reads."""
        if self.kind not in _WRITTEN:
            raise NotSupportedError(
                f"not supported: {what} in a catalog of type {self.kind}; icesql writes to REST, "
                "SQL and Glue catalogs, SQLite files and warehouse folders"
            )


# ------------------------------------------------------------------ databases


def _set_location(
    foreign: Any, identifier: Sequence[str], base_location: str | None, location: str
) -> Swap:
    """Set a table's metadata location. Raises only if the change was not committed."""
    from sqlalchemy import inspect

    columns = {each["name"] for each in inspect(foreign.engine).get_columns("iceberg_tables")}
    row = JdbcRow(foreign.name, identifier, "iceberg_type" in columns)
    # The outcome, from the moment at which COMMIT is sent.
    found: list[Swap] = []
    try:
        with foreign.engine.connect() as database:
            _in_transaction(database, row, base_location, location, found)
    except Exception:
        if not found:
            raise  # otherwise only closing the connection failed, or was interrupted
    return found[-1]


def _in_transaction(
    database: Any, row: JdbcRow, base_location: str | None, location: str, found: list[Swap]
) -> None:
    from sqlalchemy import text
    from sqlalchemy.exc import IntegrityError

    transaction = database.begin()
    refused = row.set_location(
        lambda sql, values: database.execute(text(sql), values),
        base_location,
        location,
        lambda written: _is_same(written, base_location or ""),
        IntegrityError,
    )
    if refused is not None:
        transaction.rollback()
        found.append(refused)
        return
    found.append(Unknown("the database was left while it committed", location))
    try:
        transaction.commit()
    except Exception as error:  # SQLAlchemy's or the driver's
        if _is_refused(error):
            found.append(Conflict(f"the database did not commit: {error}"))
        else:
            problem = f"the database failed while it committed: {error}"
            found.append(Unknown(problem, location))
    else:
        found.append(Done(location))


def _is_refused(error: Exception) -> bool:
    """True if a COMMIT was certainly rolled back: SQLSTATE class 40, except 40003 (unknown)."""
    below = getattr(error, "orig", None)
    state = getattr(below, "sqlstate", None) or getattr(below, "pgcode", None)
    if state in ("40000", "40001", "40002", "40P01"):
        return True
    # SQLite's COMMIT fails while readers hold the file.
    return type(below).__module__ == "sqlite3" and "database is locked" in str(below)


def _is_same(written: str, base_location: str) -> bool:
    """True if a location in a catalog names the metadata file ``base_location``."""
    if written == base_location:
        return True
    return is_local(written) and base_location in local_spellings(written)


# ------------------------------------------------------------------ by PyIceberg


def _committed(
    foreign: Any, identifier: Sequence[str], base_location: str | None, change: TableChange
) -> Swap:
    """Load, update and swap the table by PyIceberg; format versions 1 and 2."""
    from pydantic import TypeAdapter
    from pyiceberg.table.update import TableRequirement, TableUpdate

    name = ".".join(identifier)
    if base_location is None:
        raise NotSupportedError(f"not supported: new tables in a catalog of type glue: {name}")
    table = foreign.load_table(tuple(identifier))
    if not _is_same(table.metadata_location, base_location):
        return Conflict(f"the table {name} is no longer at {base_location}")
    requested = [e.format_version for e in change.updates if isinstance(e, UpgradeFormatVersion)]
    if max(table.metadata.format_version, *requested, 0) > 2:
        raise NotSupportedError(
            f"not supported: writing format version 3 to {name} in a catalog of type glue"
        )
    _check_provider(name, table.metadata.properties, change)
    updates = json.dumps([update_json(each) for each in change.updates])
    needed = json.dumps([requirement_json(each) for each in change.requirements])
    try:
        made = foreign.commit_table(
            table,
            TypeAdapter(tuple[TableRequirement, ...]).validate_json(needed),
            TypeAdapter(tuple[TableUpdate, ...]).validate_json(updates),
        )
    except Exception as error:
        if is_missing(error, "CommitFailedException"):
            # Glue's client retries by itself, and the retry may conflict with the first request.
            return Conflict(str(error), may_be_ours=True)
        # ValueError: the change does not fit the metadata, unless a response could not be decoded
        # after the request was sent; so the table is checked. Other errors may follow a request.
        if type(error) is ValueError and _is_still(foreign, identifier, base_location):
            raise
        return Unknown(f"{type(error).__name__}: {error}")
    return Done(str(made.metadata_location))


def _check_provider(name: str, properties: Mapping[str, str], change: TableChange) -> None:
    """Raise NotSupportedError if PyIceberg would import a class that the table names."""
    after = dict(properties)
    for each in change.updates:
        if isinstance(each, SetProperties):
            after |= each.properties
        elif isinstance(each, RemoveProperties):
            after = {key: value for key, value in after.items() if key not in each.names}
    if after.get(_PROVIDER):
        raise NotSupportedError(
            f"not supported: commits to {name} while its property {_PROVIDER} names a class; "
            f"ALTER TABLE {name} UNSET TBLPROPERTIES ('{_PROVIDER}') takes it away"
        )


def _is_still(foreign: Any, identifier: Sequence[str], base_location: str) -> bool:
    """True if the table certainly is still at ``base_location``."""
    try:
        return _is_same(foreign.load_table(tuple(identifier)).metadata_location, base_location)
    except Exception:  # any error of the client: the state is uncertain
        return False
