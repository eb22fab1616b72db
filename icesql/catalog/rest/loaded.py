"""What a catalog sends for a table, and the Table that it becomes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec import Struct, field

from icesql.catalog.table import Table, confining_roots
from icesql.errors import CorruptFileError, UnsupportedTableError
from icesql.iceberg.metadata.table_metadata import parse_metadata
from icesql.storage.cache import BoundedCache
from icesql.storage.credentials import redact_urls
from icesql.storage.open import Storage
from icesql.storage.reroot import Reroot, is_local
from icesql.storage.roots import Roots

# Properties of a catalog that are not for its storage.
_NOT_OF_STORAGE: Final = frozenset(
    {"uri", "warehouse", "type", "prefix", "token", "credential", "scope", "name", "auth", "ssl"}
)


class StorageCredential(Struct, frozen=True):
    """Properties for the locations that begin with ``prefix``."""

    prefix: str
    config: dict[str, str] = field(default_factory=dict)


class LoadedTable(Struct, frozen=True, rename="kebab"):
    """The answer to a request for a table; ``metadata`` is its JSON as sent."""

    metadata: msgspec.Raw
    metadata_location: str | None = None
    config: dict[str, str] = field(default_factory=dict)
    storage_credentials: list[StorageCredential] = field(default_factory=list)
    read_restrictions: Any = None

    @property
    def location(self) -> str:
        """The folder of the table. Raises ValidationError where the metadata has none."""
        return msgspec.json.decode(self.metadata, type=_Located).location


class _Located(Struct, frozen=True):
    location: str


def table_of(
    identifier: Sequence[str],
    loaded: LoadedTable,
    properties: Mapping[str, Any],
    cache: BoundedCache | None,
    confine: bool | Roots,
) -> Table:
    """The table of an answer, with the storage properties that came along.

    Raises CorruptFileError for metadata that does not parse; UnsupportedTableError where the
    catalog restricts what may be read, or demands to plan the scans itself.
    """
    name = ".".join(identifier)
    path = loaded.metadata_location or f"metadata sent for {name}"
    if loaded.read_restrictions:
        raise UnsupportedTableError(
            "read restrictions of the catalog (row filters or masks)", table=name
        )
    if loaded.config.get("scan-planning-mode", "client").lower() in ("server", "catalog"):
        raise UnsupportedTableError("planning of scans by the catalog itself", table=name)
    if not bytes(loaded.metadata):
        raise CorruptFileError(path, "no metadata")
    metadata = parse_metadata(bytes(loaded.metadata), redact_urls(path))
    # Without a file the folder that the catalog names is the table's own.
    roots = confining_roots(confine, loaded.metadata_location or f"{metadata.location}/metadata/x")
    reroot = None
    if is_local(metadata.location):
        reroot = Reroot(metadata.location, metadata.location, confine=roots)
    found = storage_properties(loaded, properties, metadata.location)
    storage = Storage(found, reroot, cache=cache, confine=roots)
    return Table(tuple(identifier), metadata, path, storage)


def storage_properties(
    loaded: LoadedTable, properties: Mapping[str, Any], location: str | None = None
) -> dict[str, str]:
    """The catalog's storage properties, the table's on them, its vended credentials on both.

    Of several credentials the one with the longest prefix of ``location`` counts; of a single
    one the prefix is taken for granted.
    """
    found = {
        key: str(value)
        for key, value in properties.items()
        if key not in _NOT_OF_STORAGE and not isinstance(value, Mapping)
    }
    found |= loaded.config
    place = location or loaded.location
    vended = [each for each in loaded.storage_credentials if _begins(place, each.prefix)]
    if not vended and len(loaded.storage_credentials) == 1:
        vended = loaded.storage_credentials
    if vended:
        found |= max(vended, key=lambda each: len(each.prefix)).config
    return found


def _begins(location: str, prefix: str) -> bool:
    return _plain(location).startswith(_plain(prefix))


def _plain(location: str) -> str:
    """s3a and s3n are s3 by other names."""
    for scheme in ("s3a://", "s3n://"):
        if location.startswith(scheme):
            return "s3://" + location.removeprefix(scheme)
    return location
