"""Opens a table by its path, or a catalog by its name, URI or folder."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

from icesql.catalog.configuration import configuration, kind_of, of_storage
from icesql.catalog.current_metadata import (
    find_current_metadata,
    is_metadata_name,
    read_where_it_is,
)
from icesql.catalog.table import Catalog, Table, table_folder, table_from_metadata
from icesql.errors import (
    AccessDeniedError,
    CatalogError,
    CorruptFileError,
    TableNotFoundError,
    similar_names,
)
from icesql.storage.cache import BoundedCache
from icesql.storage.open import Storage, existing, is_local, local_spellings, storage_errors
from icesql.storage.roots import Roots

_REST: Final = "pyiceberg.catalog.rest.RestCatalog"


def open_table(
    path: str | os.PathLike[str],
    *,
    name: str | None = None,
    properties: Mapping[str, str] | None = None,
    cache: BoundedCache | None = None,
    within: Roots | None = None,
    confine: bool | Roots = False,
) -> Table:
    """The table at a path: its folder, its metadata folder, or one metadata file.

    Takes plain and ``~`` paths, file: URIs and the URIs of object stores. A table opened from
    this machine is read from its present folder, wherever it was written; one opened from a store
    is read from the paths in its metadata, with those of ``properties`` that are for files.

    Raises TableNotFoundError that names the files looked for, CorruptFileError for metadata that
    does not parse, StorageError if reading fails, and AccessDeniedError for a path or its metadata
    outside of ``within``; its text is the same whether or not a table exists there. ``confine``:
    see ``table_from_metadata``.
    """
    text = os.fspath(path)
    if within is not None:
        text = os.path.expanduser(text) if is_local(text) else text
        if not within.hold(text):
            raise denied_path()
    own = of_storage(properties or {})
    storage = Storage(own, cache=cache)
    location = _metadata_location(text, storage)
    if within is not None and not within.hold(location):
        raise denied_path()

    def read(place: str) -> Table:
        return table_from_metadata(
            (name or Path(table_folder(place)).name or "table",),
            place,
            properties=own,
            cache=cache,
            confine=confine,
        )

    return read_where_it_is(location, read, lambda: _metadata_location(text, storage))


def denied_path() -> AccessDeniedError:
    """The one error for a table's path that the connection does not allow."""
    return AccessDeniedError("no table may be read by this path", argument="tables_by_path")


def open_catalog(
    name: str | None = None,
    *,
    uri: str | None = None,
    warehouse: str | os.PathLike[str] | None = None,
    properties: Mapping[str, str] | None = None,
    cache: BoundedCache | None = None,
    confine: bool | Roots = False,
) -> Catalog:
    """Open the catalog of a name, a URI or a warehouse folder.

    - ``uri`` "sqlite:///file" or the path of a *.db, *.sqlite or *.sqlite3 file: the JDBC
      catalog in it, read with the standard library; ``name`` chooses among several in one file.
      New tables go to ``warehouse``, else beside the file.
    - ``warehouse``, a local folder, without a ``name`` that is configured: the one SQLite catalog
      file directly in it if there is one, else the folder's tables themselves.
    - anything else: ``name`` is looked up in ``.pyiceberg.yaml`` and PYICEBERG_* variables;
      ``uri``, ``warehouse`` and ``properties`` go on top. SQLite and REST among them are icesql's
      own, other kinds PyIceberg's, which extras bring.

    ``confine`` is for its tables: see ``table_from_metadata``.

    Raises CatalogError that says what is configured, MissingExtraError without PyIceberg or
    without a package that it needs for that kind.
    """
    from icesql.catalog.sqlite import SqliteCatalog, catalog_files, sqlite_file

    own = partial(SqliteCatalog, name=name, properties=properties, cache=cache, confine=confine)
    place = os.fspath(warehouse) if warehouse is not None else None
    if uri is not None and (file := sqlite_file(uri)) is not None:
        if place is not None:
            # The location of new tables, which record absolute paths.
            whole = place if "://" in place or place.startswith("file:") else _local(place)
            return own(file, properties={**(properties or {}), "warehouse": whole})
        return own(file)
    if uri is None and place is not None and is_local(place) and not _configured(name):
        from icesql.catalog.directory import DirectoryCatalog

        folder = _local(place)
        if not os.path.isdir(folder):
            if (file := sqlite_file(folder)) is not None and os.path.isfile(folder):
                return own(file)
            is_there = os.path.lexists(folder)
            wrong = "is not a folder" if is_there else f"does not exist; mkdir {folder} makes it"
            raise CatalogError(f"warehouse {folder} {wrong}")
        files = catalog_files(folder)
        if len(files) > 1:
            raise CatalogError(
                f"warehouse {folder} holds several SQLite catalogs ({', '.join(files)}); "
                "name one with uri=sqlite:///<file>"
            )
        if files:
            return own(os.path.join(folder, files[0]))
        return DirectoryCatalog(folder, name, properties=properties, cache=cache, confine=confine)
    given = dict[str, Any](properties or {})
    if uri is not None:
        given["uri"] = uri
    if place is not None:
        given["warehouse"] = place
    return _of_name(name, given, cache, confine)


def _of_name(
    name: str | None, given: dict[str, Any], cache: BoundedCache | None, confine: bool | Roots
) -> Catalog:
    """The catalog that PyIceberg's configuration calls ``name``, with ``given`` on top.

    Raises CatalogError that lists the configured names for an unknown one.
    """
    config, is_named = configuration(), name is not None
    name = name or config.default_name
    configured = config.catalog(name)
    if not configured and not given:
        known = sorted(config.catalogs)
        near = similar_names(name, known)
        hint = (
            f"did you mean {near[0]}?"
            if near
            else f"configured are: {', '.join(known)}"
            if known
            else "none is configured; write one into .pyiceberg.yaml or name a warehouse folder"
        )
        raise CatalogError(f'no catalog "{name}"; {hint}')
    merged: dict[str, Any] = {
        **{key: v if isinstance(v, Mapping) else str(v) for key, v in configured.items()},
        **given,
    }
    if merged.get("type", "sql").lower() == "sql" and "py-catalog-impl" not in merged:
        from icesql.catalog.sqlite import SqliteCatalog, sqlite_file

        file = sqlite_file(merged["uri"]) if "uri" in merged else None
        if file is not None:
            return SqliteCatalog(file, name, properties=merged, cache=cache, confine=confine)
    if merged.get("py-catalog-impl") == _REST:
        merged = {**merged, "type": "rest"}
        del merged["py-catalog-impl"]
    if kind_of(merged) == "rest" and merged.get("uri") and "py-catalog-impl" not in merged:
        # Whatever its authentication.
        from icesql.catalog.rest.catalog import RestCatalog

        return RestCatalog(name, merged, cache, confine)
    from icesql.catalog.pyiceberg import open_pyiceberg

    return open_pyiceberg(name, given, merged, cache, confine, is_named=is_named)


def _configured(name: str | None) -> bool:
    if name is None:
        return False
    return bool(configuration().catalog(name))


def _local(path: str) -> str:
    """An absolute local path of a plain or ~ path or a file: URI, the spelling that exists."""
    return existing(local_spellings(os.path.expanduser(path)))


def _metadata_location(text: str, storage: Storage) -> str:
    if not is_local(text):
        text = text.rstrip("/")
        if is_metadata_name(text.rpartition("/")[2]):
            return text
    else:
        text = _local(text)
        if os.path.isfile(text):
            if is_metadata_name(os.path.basename(text)) or _looks_like_metadata(text):
                return text
            raise TableNotFoundError(
                text, hint="that is a file, but not the metadata (JSON) of an Iceberg table"
            )
        if not os.path.isdir(text):
            raise TableNotFoundError(text, hint="no such file or folder")
    for folder in (f"{text.rstrip('/')}/metadata", text):
        found = find_current_metadata(folder, storage)
        if found is not None:
            return found
    raise TableNotFoundError(
        text,
        hint="looked for *.metadata.json (plain or gzip) in it and in its folder metadata; "
        "give a table's folder or one metadata file",
    )


def _looks_like_metadata(path: str) -> bool:
    with storage_errors(path), open(path, "rb") as file:
        start = file.read(64)
    if start.strip() == b"":
        raise CorruptFileError(path, "the file is empty", offset=0)
    return start.lstrip(b"\xef\xbb\xbf \t\r\n").startswith((b"{", b"\x1f\x8b"))
