"""Tables that were dropped: the files that they have left behind."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from icesql.catalog.current_metadata import find_current_metadata
from icesql.catalog.table import Catalog
from icesql.catalog.writes.change import TableChange
from icesql.errors import DataError, NotSupportedError, ProgrammingError, StorageError
from icesql.storage.open import Storage


def no_file(catalog: Catalog, identifier: Sequence[str], name: str) -> ProgrammingError:
    """The error for a table to bring back without its file, with the CALL that does it."""
    file = _left_behind(catalog, identifier)
    quoted = [each.replace("'", "''") for each in (name, file or "FILE")]
    text = "CALL system.register_table('{}', '{}') brings the table back; ".format(*quoted)
    if file is None:
        text += (
            "FILE is the newest ….metadata.json in its folder metadata, which DROP TABLE has named"
        )
    else:
        text += "that is the newest metadata where such a table lies"
    return ProgrammingError(f"which metadata file {name} had is not recorded: {text}")


def _left_behind(catalog: Catalog, identifier: Sequence[str]) -> str | None:
    """The newest metadata file where CREATE would put a table; None where it is not known.

    Raises CatalogError where there is a table of the name, or no such namespace.
    """
    if catalog.kind == "rest":  # its server would have to make a table to say where
        return None
    name = identifier[-1]
    with suppress(DataError, NotSupportedError, StorageError):
        place = catalog.place_new(identifier, TableChange((), (), Storage(), 0))
        # Beside files that are there, a new table gets a suffix.
        folder, is_taken, _ = place.location.rpartition(f"/{name}-")
        if is_taken:
            found = find_current_metadata(f"{folder}/{name}/metadata", place.storage)
            others = map(catalog.load, catalog.tables(identifier[:-1]))
            if found not in {each.metadata_location for each in others}:  # of one that was renamed
                return found
    return None
