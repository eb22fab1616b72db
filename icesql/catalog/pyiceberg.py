"""PyIcebergCatalog: every other kind of catalog, set up by the user's .pyiceberg.yaml."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from icesql.catalog.identifiers import matching, not_found
from icesql.catalog.open import Catalog, Identifier, Table, table_from_metadata
from icesql.errors import (
    CatalogError,
    CorruptFileError,
    MissingExtraError,
    NotSupportedError,
    StorageError,
    TableNotFoundError,
    UnsupportedTableError,
    similar_names,
)
from icesql.iceberg.metadata import parse_metadata
from icesql.storage.cache import BoundedCache
from icesql.storage.credentials import redact
from icesql.storage.open import Storage
from icesql.storage.reroot import Reroot, is_local

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog as ForeignCatalog
    from pyiceberg.table import Table as ForeignTable
    from pyiceberg.utils.config import Config


def open_pyiceberg(
    name: str | None = None,
    *,
    uri: str | None = None,
    warehouse: str | None = None,
    properties: Mapping[str, str] | None = None,
    cache: BoundedCache | None = None,
) -> Catalog:
    """The catalog that PyIceberg's configuration calls ``name``, with the arguments on top.

    One that turns out to be SQLite is opened without PyIceberg's catalog. Raises CatalogError
    with the configured names for an unknown one.
    """

    given = dict(properties or {})
    if uri is not None:
        given["uri"] = uri
    if warehouse is not None:
        given["warehouse"] = warehouse
    config = _configuration()
    known = config.get_known_catalogs()
    name = name or config.get_default_catalog_name()
    configured = config.get_catalog_config(name) or {}
    if not configured and not given:
        near = similar_names(name, known)
        hint = (
            f"did you mean {near[0]}?"
            if near
            else f"configured are: {', '.join(sorted(known))}"
            if known
            else "none is configured; write one into .pyiceberg.yaml or name a warehouse folder"
        )
        raise CatalogError(f'there is no catalog "{name}"; {hint}')
    merged = {**{key: str(value) for key, value in configured.items()}, **given}
    if merged.get("type", "sql").lower() == "sql" and "py-catalog-impl" not in merged:
        from icesql.catalog.sqlite import SqliteCatalog, sqlite_file

        file = sqlite_file(merged["uri"]) if "uri" in merged else None
        if file is not None:
            return SqliteCatalog(file, name, properties=merged, cache=cache)
    with _translated(f"catalog {name}", merged):
        from pyiceberg.catalog import load_catalog

        foreign = load_catalog(name, **given)
    return PyIcebergCatalog(foreign, name, merged, cache)


def is_configured(name: str) -> bool:
    """Whether .pyiceberg.yaml or the environment has a catalog called ``name``."""
    return bool(_configuration().get_catalog_config(name))


def _configuration() -> Config:
    from pyiceberg.utils.config import Config
    from strictyaml import YAMLError  # type: ignore[import-untyped]  # PyIceberg's parser

    try:
        config = Config()
        config.get_known_catalogs()
    except (YAMLError, ValueError, OSError) as error:
        raise CatalogError(f".pyiceberg.yaml cannot be read: {error}") from error
    return config


class PyIcebergCatalog:
    """A catalog that PyIceberg talks to; metadata is parsed by icesql wherever it can be read."""

    def __init__(
        self,
        foreign: ForeignCatalog,
        name: str,
        properties: Mapping[str, str] | None = None,
        cache: BoundedCache | None = None,
    ) -> None:
        self.name, self.cache = name, cache
        self._foreign, self._properties = foreign, dict(properties or {})

    def __repr__(self) -> str:
        return f"PyIcebergCatalog({self.name!r})"

    def namespaces(self) -> list[Identifier]:
        """As ``Catalog.namespaces``."""
        found: list[Identifier] = []
        waiting: list[Identifier] = [()]
        while waiting:
            above = waiting.pop()
            for namespace in self._namespaces_in(above):
                if namespace not in found and namespace != above:
                    found.append(namespace)
                    waiting.append(namespace)
        return sorted(found)

    def tables(self, namespace: Sequence[str] | None = None) -> list[Identifier]:
        """As ``Catalog.tables``."""
        if namespace is None:
            return [table for each in self.namespaces() for table in self.tables(each)]
        if not namespace:
            return []
        with self._calling():
            return sorted(tuple(table) for table in self._foreign.list_tables(tuple(namespace)))

    def load(self, identifier: Sequence[str]) -> Table:
        """As ``Catalog.load``; the storage has the credentials that the catalog vended."""
        from pyiceberg.exceptions import NoSuchTableError

        wanted = tuple(identifier)
        try:
            with self._calling():
                table = self._foreign.load_table(wanted)
        except CatalogError as error:
            if not isinstance(error.__cause__, NoSuchTableError):
                raise
            found = None
            try:
                near = self.tables(wanted[:-1]) if wanted[:-1] else self.tables()
                found = matching(wanted, near)
            except CatalogError:
                near = []  # a catalog that cannot list can still say that there is no such table
            if found is None or found == wanted:
                raise not_found(wanted, near, f"catalog {self.name}") from error
            wanted = found
            with self._calling():
                table = self._foreign.load_table(found)
        return self._table(wanted, table)

    def commit(self, identifier: Sequence[str], *, expected: str | None, new: str) -> str:
        """NotSupportedError: such catalogs take updates and requirements, not metadata files."""
        raise NotSupportedError(f"not supported: commits to {'.'.join(identifier)} in {self.name}")

    def drop(self, identifier: Sequence[str]) -> None:
        """As ``Catalog.drop``."""
        from pyiceberg.exceptions import NoSuchTableError

        try:
            with self._calling():
                self._foreign.drop_table(tuple(identifier))
        except CatalogError as error:
            if isinstance(error.__cause__, NoSuchTableError):
                raise TableNotFoundError(".".join(identifier)) from error
            raise

    def close(self) -> None:
        """As ``Catalog.close``."""
        with self._calling():
            self._foreign.close()

    def _namespaces_in(self, above: Identifier) -> list[Identifier]:
        try:
            with self._calling():
                return [tuple(each) for each in self._foreign.list_namespaces(above)]
        except CatalogError:
            if above:  # Glue and Hive have one level and say so by failing
                return []
            raise

    def _table(self, identifier: Identifier, table: ForeignTable) -> Table:
        properties = {key: str(value) for key, value in table.io.properties.items()}
        location = table.metadata_location
        if location:
            try:
                return table_from_metadata(
                    identifier, location, properties=properties, cache=self.cache
                )
            except UnsupportedTableError:
                raise
            except (StorageError, NotSupportedError):
                pass  # only the catalog may read it; what it sent along says the same
        data = table.metadata.model_dump_json().encode()
        path = location or f"metadata sent by catalog {self.name}"
        metadata = parse_metadata(data, path)
        reroot = (
            Reroot(metadata.location, metadata.location) if is_local(metadata.location) else None
        )
        return Table(identifier, metadata, path, Storage(properties, reroot, cache=self.cache))

    @contextmanager
    def _calling(self) -> Iterator[None]:
        with _translated(f"catalog {self.name}", self._properties):
            yield


@contextmanager
def _translated(what: str, properties: Mapping[str, Any]) -> Iterator[None]:
    """Whatever PyIceberg or the client below it raises, as a CatalogError without secrets."""
    from pydantic import ValidationError as MalformedReply
    from pyiceberg import exceptions

    try:
        yield
    except (exceptions.NotInstalledError, ImportError) as error:
        raise MissingExtraError(
            what, hint=f"PyIceberg lacks a package: {redact(str(error), properties)}"
        ) from error
    except MalformedReply as error:
        raise CorruptFileError(what, f"PyIceberg cannot read it: {error}") from error
    except Exception as error:
        if not _is_foreign(error):
            raise
        text = redact(str(error) or type(error).__name__, properties)
        raise CatalogError(f"{what}: {text}") from error


def _is_foreign(error: Exception) -> bool:
    """True for errors of PyIceberg, of the clients it uses, and of the operating system.

    PyIceberg's exceptions have no common base, nor have those of requests, SQLAlchemy, boto3,
    thrift and Google's client; a bug of icesql is none of them.
    """
    module = type(error).__module__.partition(".")[0]
    clients = ("pyiceberg", "requests", "urllib3", "sqlalchemy", "botocore", "boto3", "google",
               "thrift", "hive_metastore", "psycopg2", "tenacity")  # fmt: skip
    return module in clients or isinstance(error, OSError | ValueError)
