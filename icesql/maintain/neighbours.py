"""Find other tables of a catalog with files in a folder, which cleaning must not delete."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import partial

from icesql.catalog.table import Catalog, Table
from icesql.commit.purge import metadata_files
from icesql.context import QueryContext
from icesql.errors import (
    Error,
    NotSupportedError,
    QueryCancelledError,
    TableNotFoundError,
)
from icesql.maintain.referenced import Prefixes, Referenced, referenced_paths
from icesql.storage.listing import ListedFile
from icesql.storage.open import is_local, local_spellings
from icesql.write.locations import PLACES


def refuse_neighbours(
    catalog: Catalog,
    table: Table,
    folder: str,
    files: Sequence[ListedFile],
    query: QueryContext,
    *,
    only_look: bool,
) -> None:
    """Raise NotSupportedError if another table of the catalog has files below ``folder``.

    Checked are its location, write paths and metadata, and, unless ``only_look``, whether its
    manifests name one of ``files``. A table that cannot be read counts as having some. Tables of
    other catalogs are not known.
    """
    inside = _Folder(folder)
    for identifier in catalog.tables():
        if identifier == table.identifier:
            continue
        query.check()
        try:
            other = query.wait_for(partial(catalog.load, identifier))
            found = next((path for path in _places(other) if inside.may_hold(path)), None)
            if found is None and not only_look:
                named = Referenced(other.storage, Prefixes(), referenced_paths(other, query))
                found = next((each.shown for each in files if named.holds(each)), None)
        except TableNotFoundError:
            continue  # dropped meanwhile
        except QueryCancelledError:
            raise
        except Error as error:
            raise NotSupportedError(
                f"not supported: removing orphans in {folder} while nobody can tell whether "
                f"{'.'.join(identifier)} has files there: {error}; mend or drop that table first"
            ) from error
        if found is not None:
            raise NotSupportedError(
                f"not supported: removing orphans in {folder}, where {other.name} has files, too: "
                f"{found}; give a folder of {table.name} alone as location"
            )


def _places(table: Table) -> Iterator[str]:
    metadata = table.metadata
    yield metadata.location
    yield table.metadata_location
    yield from (metadata.properties[each] for each in PLACES if each in metadata.properties)
    yield from metadata_files(table)


class _Folder:
    """A folder, and whether a path may be below it by any of its interpretations."""

    def __init__(self, folder: str) -> None:
        self._names = _names(folder)
        places = local_spellings(folder) if is_local(folder) else []
        self._places = [os.path.realpath(each) for each in places]

    def may_hold(self, path: str) -> bool:
        """True if the path may be below the folder, or be the folder itself."""
        if _names(path)[: len(self._names)] == self._names:
            return True
        if not self._places or not is_local(path) or "\0" in path:
            return False
        found = [os.path.realpath(each) for each in local_spellings(path)]
        return any(
            one == each or one.startswith(each.rstrip("/") + "/")
            for one in found
            for each in self._places
        )


def _names(path: str) -> tuple[str, ...]:
    scheme, authority, inner = Prefixes().of(path)
    return (scheme, authority, *filter(None, inner.split("/")))
