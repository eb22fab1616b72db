"""SqliteCatalog: the JDBC catalog's schema in a SQLite file, read with the standard library."""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

from icesql.catalog.current_metadata import is_parsed, read_where_it_is
from icesql.catalog.identifiers import matching, not_found
from icesql.catalog.sqlite_reader import SqliteReader, WouldWait, opened
from icesql.catalog.table import (
    Identifier,
    StoredView,
    Table,
    confining_roots,
    table_from_metadata,
)
from icesql.errors import (
    CatalogError,
    Error,
    StorageError,
    UnsupportedTableError,
)
from icesql.storage.cache import BoundedCache
from icesql.storage.open import (
    METADATA_BYTES,
    Reroot,
    Storage,
    components,
    existing,
    is_local,
    is_telling,
    local_spellings,
    split_path,
    storage_errors,
)
from icesql.storage.roots import Roots

if TYPE_CHECKING:
    from icesql.catalog.writes.change import Place, Swap, TableChange
    from icesql.catalog.writes.sqlite import JdbcCatalog

_HEADER: Final = b"SQLite format 3\0"
# PyIceberg's property. Unlike PyIceberg's, the default creates no file for a mistyped path.
_INIT: Final = "init_catalog_tables"
_SUFFIXES: Final = (".db", ".sqlite", ".sqlite3")

# A row: metadata location and kind.
_Row = tuple[str | None, str | None]


def sqlite_file(uri: str) -> str | None:
    """The absolute path of the SQLite file that ``uri`` names; None if it names none.

    Takes SQLAlchemy's sqlite:///relative, sqlite:////absolute and sqlite+driver:/// and the plain
    or file: path of a file that ends in .db, .sqlite or .sqlite3. Raises CatalogError for a
    SQLite database in memory, which only the process that wrote it can see.
    """
    found = re.fullmatch(r"sqlite(?:\+\w+)?:(?://)?(/?)(.*)", uri, re.DOTALL)
    if found is None:
        if not is_local(uri) or not uri.lower().endswith(_SUFFIXES):
            return None
        return existing(local_spellings(os.path.expanduser(uri)))
    text = found[2].partition("?")[0]
    text = text.removeprefix("file:")
    if text in ("", ":memory:"):
        raise CatalogError(f"{uri}: a SQLite catalog in memory cannot be opened; name a file")
    places = (text, unquote(text))
    return existing([os.path.abspath(os.path.expanduser(place)) for place in places])


def catalog_files(folder: str) -> list[str]:
    """Names of the SQLite files directly in ``folder`` that hold an Iceberg catalog, sorted."""
    with storage_errors(folder):
        names = sorted(
            entry.name
            for entry in os.scandir(folder)
            if entry.name.lower().endswith(_SUFFIXES) and entry.is_file()
        )
    return [name for name in names if _holds_catalog(os.path.join(folder, name))]


def _holds_catalog(path: str) -> bool:
    try:
        with open(path, "rb") as file:
            if file.read(len(_HEADER)) != _HEADER:
                return False
        with opened(path) as database:
            return _has_table(database, "iceberg_tables")
    except (OSError, CatalogError):
        return False


class SqliteCatalog:
    """One catalog of a SQLite file that PyIceberg, Java or icesql wrote.

    The file is opened for each call, and read-only except for changes, so that other processes can
    write to it; ``load`` keeps it open. A file with several catalogs needs ``name``. Metadata files
    that were moved or copied together with the catalog's file are found near it; tables of such a
    catalog are read-only. Names match exactly, else case-insensitively if the match is unique.
    Source: JdbcUtil in Iceberg's Java sources, schema versions V0 and V1.
    """

    def __init__(
        self,
        file: str,
        name: str | None = None,
        *,
        properties: Mapping[str, str] | None = None,
        cache: BoundedCache | None = None,
        confine: bool | Roots = False,
    ) -> None:
        self.kind = "sqlite"
        self.file, self.properties, self.cache = file, dict(properties or {}), cache
        self.confine = confine
        self._reader = SqliteReader(file)
        if str(self.properties.get(_INIT, "false")).lower() == "true":
            from icesql.catalog.writes.sqlite import make_catalog

            make_catalog(file)
        if not os.path.isfile(file):
            raise CatalogError(
                f"SQLite catalog {file} not found; CREATE SCHEMA, where uri names the file, or the "
                f"property {_INIT}=true makes a new one"
            )
        with opened(file) as database:
            if not _has_table(database, "iceberg_tables"):
                raise CatalogError(
                    f"{file} is not an Iceberg catalog: it has no table iceberg_tables"
                )
            self._typed = "iceberg_type" in _columns(database, "iceberg_tables")
            self._has_namespaces = _has_table(database, "iceberg_namespace_properties")
            held = self._catalogs(database)
        if name is not None and name in held:
            self._catalog = name
        elif len(held) > 1:
            raise CatalogError(
                f"{file} holds several catalogs: {', '.join(held)}; "
                + (f"none is called {name}" if name else "choose one by name")
            )
        else:
            self._catalog = held[0] if held else (name or "default")
        self.name = name or self._catalog

    def __repr__(self) -> str:
        return f"SqliteCatalog({self.file!r}, {self._catalog!r})"

    def namespaces(self) -> list[Identifier]:
        """As ``Catalog.namespaces``; "a.b" in the file is the namespace (a, b)."""
        with opened(self.file) as database:
            texts = self._namespace_texts(database)
        names = [tuple(text.split(".")) for text in texts]
        return sorted({name[:depth] for name in names for depth in range(1, len(name) + 1)})

    def tables(self, namespace: Sequence[str] | None = None) -> list[Identifier]:
        """As ``Catalog.tables``; views are not tables."""
        with opened(self.file) as database:
            return _directly_in(namespace, self._tables(database))

    def load(self, identifier: Sequence[str]) -> Table:
        """As ``Catalog.load``; UnsupportedTableError for a view."""
        if (table := self.load_without_waiting(identifier)) is not None:
            return table
        wanted = tuple(identifier)
        with opened(self.file) as database:
            row = self._row(database, wanted)
            if row is None:
                found = matching(wanted, self._tables(database))
                if found is None:
                    raise not_found(wanted, self._tables(database), f"catalog {self.name}")
                wanted, row = found, self._row(database, found)
        return self._table(wanted, row)

    def load_without_waiting(self, identifier: Sequence[str]) -> Table | None:
        """As ``load`` for an exact name, if that needs no waiting; else None.

        It is None while a writer has the file, or on failure.
        """
        wanted = tuple(identifier)
        try:
            with self._reader.connection() as database:
                row = self._row(database, wanted)
        except WouldWait:
            return None
        if row is None or row[0] is None:
            return None
        if not is_local(row[0]) and not self._is_parsed(row[0]):
            return None
        return self._table(wanted, row)

    def _is_parsed(self, location: str) -> bool:
        """True if the cache has the metadata file of a store."""
        with suppress(Error):
            return is_parsed(location, self.storage_of(location))
        return False

    def storage_of(self, location: str) -> Storage:
        """The storage that reads a metadata file. Raises AccessDeniedError."""
        roots = confining_roots(self.confine, location)
        return Storage(self.properties, cache=self.cache, confine=roots)

    def _table(self, wanted: Identifier, row: _Row | None) -> Table:
        return read_where_it_is(
            row or (None, None), lambda row: self._read(wanted, row), lambda: self.row(wanted)
        )

    def _read(self, wanted: Identifier, row: _Row) -> Table:
        location, kind = row
        if str(kind or "").upper() == "VIEW":
            raise UnsupportedTableError("views", table=".".join(wanted))
        if location is None:
            raise CatalogError(
                f"catalog {self.name} ({self.file}) has no metadata location for the table "
                + ".".join(wanted)
            )
        return table_from_metadata(
            wanted,
            self._find(location),
            properties=self.properties,
            cache=self.cache,
            confine=self.confine,
        )

    def views(self, namespace: Sequence[str] | None = None) -> list[Identifier]:
        """As ``HasViews.views``; none in a file of schema V0, which has no views."""
        with opened(self.file) as database:
            return _directly_in(namespace, self._views(database))

    def load_view(self, identifier: Sequence[str]) -> StoredView | None:
        """As ``HasViews.load_view``."""
        from icesql.catalog.table import StoredView
        from icesql.iceberg.metadata.views import parse_view

        with opened(self.file) as database:
            found = matching(identifier, self._views(database))
            row = None if found is None else self._row(database, found)
        if found is None or row is None or row[0] is None:
            return None
        path = self._find(row[0])
        data = self.storage_of(path).read(path, most=METADATA_BYTES)
        return StoredView(found, parse_view(data, path), self.name)

    # ------------------------------------------------------------------ changes

    def check_own(self, identifier: Sequence[str]) -> None:
        """Raise UnsupportedTableError if a copied catalog would change a table of its original.

        In a copied catalog the metadata lies near the catalog's file, not at the recorded path.
        """
        row = self.row(identifier)
        location = None if row is None else row[0]
        if location is None or not is_local(location):
            return
        try:
            found = self._find(location)
        except StorageError:
            return  # no file was found elsewhere
        if not any(_in_one_folder(found, place) for place in _places(location, self.file)):
            raise UnsupportedTableError(
                f"changing {'.'.join(identifier)} in a copied catalog: {self.file} says that its "
                f"metadata is {location}, and it was found at {found}; change it through the "
                "catalog that this one is a copy of, or register it in a new one"
            )

    def swap(
        self, identifier: Sequence[str], base_location: str | None, change: TableChange
    ) -> Swap:
        """As ``Catalog.swap``: one UPDATE in a transaction that has no other writer."""
        self.check_own(identifier)
        return self._jdbc().swap(identifier, base_location, change)

    def register(self, identifier: Sequence[str], location: str) -> Swap:
        """Register a metadata file as a table."""
        return self._jdbc().set_location(identifier, None, location)

    def place_new(self, identifier: Sequence[str], change: TableChange) -> Place:
        """As ``Catalog.place_new``: below its namespace's location, the warehouse, or the file."""
        from icesql.catalog.writes.change import Place, free_location

        place = place_of(self, identifier, change)
        name = ".".join(identifier)
        return Place(free_location(change, place.location, place.storage, name), place.storage)

    def drop(self, identifier: Sequence[str], *, purge: bool = False) -> None:
        """As ``Catalog.drop``."""
        self._check_table(identifier)
        self._jdbc().drop(identifier)

    def rename(self, identifier: Sequence[str], new: Sequence[str]) -> None:
        """As ``Catalog.rename``."""
        self._check_table(identifier)
        self._jdbc().rename(identifier, new)

    def _check_table(self, identifier: Sequence[str]) -> None:
        if tuple(identifier) not in (tables := self.tables()):
            raise not_found(identifier, tables, f"catalog {self.name}")
        self.check_own(identifier)

    def create_namespace(self, namespace: Sequence[str]) -> None:
        """As ``Catalog.create_namespace``: a row."""
        self._jdbc().create_namespace(tuple(namespace))
        self._has_namespaces = True

    def drop_namespace(self, namespace: Sequence[str]) -> None:
        """As ``Catalog.drop_namespace``."""
        if tuple(namespace) not in self.namespaces():
            raise CatalogError(f"namespace {'.'.join(namespace)} not found")
        self._jdbc().drop_namespace(tuple(namespace))

    def _jdbc(self, kind: str = "TABLE") -> JdbcCatalog:
        from icesql.catalog.writes.sqlite import JdbcCatalog

        return JdbcCatalog(self.file, self._catalog, self._typed, self._find, kind)

    def close(self) -> None:
        """Close the file."""
        self._reader.close()

    # ------------------------------------------------------------------ rows

    def _catalogs(self, database: sqlite3.Connection) -> list[str]:
        query = "SELECT catalog_name FROM iceberg_tables"
        if self._has_namespaces:
            query += " UNION SELECT catalog_name FROM iceberg_namespace_properties"
        return sorted({str(row[0]) for row in database.execute(query)})

    def _namespace_texts(self, database: sqlite3.Connection) -> set[str]:
        query = "SELECT table_namespace FROM iceberg_tables WHERE catalog_name = :catalog"
        if self._has_namespaces:
            query += (
                " UNION SELECT namespace FROM iceberg_namespace_properties "
                "WHERE catalog_name = :catalog"
            )
        rows = database.execute(query, {"catalog": self._catalog})
        return {str(row[0]) for row in rows if row[0]}

    def _tables(self, database: sqlite3.Connection) -> list[Identifier]:
        tables = "AND upper(coalesce(iceberg_type, 'TABLE')) <> 'VIEW'"
        return self._listed(database, tables if self._typed else "")

    def _views(self, database: sqlite3.Connection) -> list[Identifier]:
        return self._listed(database, "AND upper(iceberg_type) = 'VIEW'") if self._typed else []

    def _listed(self, database: sqlite3.Connection, condition: str) -> list[Identifier]:
        rows = database.execute(
            "SELECT table_namespace, table_name FROM iceberg_tables WHERE catalog_name = ? "
            + condition,
            (self._catalog,),
        )
        return sorted(_identifier(above, name) for above, name in rows)

    def row(self, identifier: Sequence[str]) -> _Row | None:
        """The row of a table or view; None if there is none."""
        with opened(self.file) as database:
            return self._row(database, tuple(identifier))

    def _row(self, database: sqlite3.Connection, identifier: Identifier) -> _Row | None:
        *above, table = identifier
        found = database.execute(
            f"SELECT metadata_location, {'iceberg_type' if self._typed else 'NULL'} "
            "FROM iceberg_tables WHERE catalog_name = ? AND table_namespace = ? AND table_name = ?",
            (self._catalog, ".".join(above), table),
        ).fetchone()
        if found is None:
            return None
        location, kind = (None if each is None else str(each) for each in found)
        return location, kind

    def _find(self, location: str) -> str:
        """The present path of a metadata file, near the catalog's file if copied together with it.

        A copy reads its own files, not those of the original, which may be changed or gone.
        """
        if not is_local(location):
            return location
        places = _places(location, self.file)
        found = next((place for place in places if os.path.isfile(place)), None)
        copied = _copied(location, found, self.file)
        if found is None and copied is None:
            raise StorageError(
                location,
                f"catalog {self.name} names this metadata file, but it is neither there nor "
                f"near {self.file}",
            )
        return copied or found or location


def _places(location: str, file: str) -> list[str]:
    """Candidates for the absolute path of a local path in a catalog's ``file``, best first."""
    scheme, _, rest = split_path(location)
    if scheme or rest.startswith("/"):
        return local_spellings(location)
    # A relative path was relative to the writer's working directory: the catalog's folder or ours.
    return [os.path.join(os.path.dirname(file), rest), os.path.abspath(rest)]


def _copied(location: str, found: str | None, file: str) -> str | None:
    """The metadata file that was moved or copied together with the catalog's ``file``; or None.

    ``found`` is the file at the path that the catalog records, None if there is none.
    """
    folder = os.path.dirname(os.path.abspath(file))
    if found is not None and found.startswith(f"{folder.rstrip('/')}/"):
        return None
    near = Reroot("", folder).find_inside(location)
    names = components(location)[-3:]
    # Every table has a file v3.metadata.json: the table's folder has to match, too.
    if near is None or not (re.match(r"\d+-", names[-1]) or near.endswith("/".join(names))):
        return None
    if found is not None and (
        _in_one_folder(near, found) or not (is_telling(near) or _are_equal(near, found))
    ):
        return None
    return near


def _in_one_folder(one: str, other: str) -> bool:
    """True if two files lie in the same folder, with links resolved."""
    try:
        return os.path.samefile(os.path.dirname(one), os.path.dirname(other))
    except OSError:
        return False


def _are_equal(one: str, other: str) -> bool:
    try:
        import filecmp

        return filecmp.cmp(one, other, shallow=False)
    except OSError:
        return False


def place_of(catalog: SqliteCatalog, identifier: Sequence[str], change: TableChange) -> Place:
    """As ``SqliteCatalog.place_new``, but files may exist there: those of dropped views stay."""
    from icesql.catalog.writes.change import Place, default_location, requested_location

    wanted, name = tuple(identifier), ".".join(identifier)
    if catalog.row(wanted) is not None:
        raise CatalogError(f"{name} already exists")
    if wanted[:-1] and wanted[:-1] not in catalog.namespaces():
        raise CatalogError(
            f"namespace {'.'.join(wanted[:-1])} not found in catalog {catalog.name}; "
            "make it with CREATE SCHEMA"
        )
    location = requested_location(change)
    if location is None:
        given = (
            catalog._jdbc().namespace_property(wanted[:-1], "location")
            if catalog._has_namespaces and wanted[:-1]
            else None
        )
        folder = os.path.dirname(os.path.abspath(catalog.file))
        warehouse = catalog.properties.get("warehouse") or folder
        location = (
            default_location(given, wanted[-1:]) if given else default_location(warehouse, wanted)
        )
    return Place(location, Storage(catalog.properties, cache=catalog.cache))


def _directly_in(namespace: Sequence[str] | None, found: Sequence[Identifier]) -> list[Identifier]:
    return [each for each in found if namespace is None or each[:-1] == tuple(namespace)]


def _identifier(namespace: object, name: object) -> Identifier:
    """The identifier in a row; SQLite's values may be of any type."""
    above = str(namespace).split(".") if namespace else ()
    return (*above, str(name))


def _has_table(database: sqlite3.Connection, name: str) -> bool:
    query = "SELECT 1 FROM sqlite_master WHERE type IN ('table', 'view') AND name = ?"
    return database.execute(query, (name,)).fetchone() is not None


def _columns(database: sqlite3.Connection, table: str) -> set[str]:
    return {str(row[1]) for row in database.execute(f"PRAGMA table_info({table})")}
