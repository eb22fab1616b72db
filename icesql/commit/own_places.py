"""Where maintenance may delete files of a table: paths in its metadata are not trusted."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, Literal

from msgspec import Struct

from icesql.catalog.table import Catalog, Table, table_folder
from icesql.errors import ProgrammingError
from icesql.storage.roots import Roots

Class = Literal["own", "named", "elsewhere"]

_MOST_LISTED: Final = 100


class OwnPlaces(Struct, frozen=True):
    """The table's location as its catalog gives it, and the folders that the caller names.

    ``everything``: the caller takes whatever the metadata names. A folder that only the metadata
    names, such as ``write.data.path``, is no place of the table: whoever wrote the table may have
    named anybody's.
    """

    own: Roots
    named: Roots
    everything: bool = False

    @classmethod
    def of(
        cls, catalog: Catalog, table: Table, named: Iterable[str] = (), *, everything: bool = False
    ) -> OwnPlaces:
        """The places of a table. Raises ProgrammingError for a name that is no folder or prefix."""
        return cls(own_root(catalog, table), named_roots(named), everything)

    def class_of(self, path: str) -> Class:
        """Below the table's location, below what the caller named, or elsewhere."""
        if self.own.hold_for_removal(path):
            return "own"
        return "named" if self.named.hold_for_removal(path) else "elsewhere"

    def hold(self, path: str) -> bool:
        """Whether a file may be deleted; links are followed at this moment."""
        return self.everything or self.class_of(path) != "elsewhere"

    def lack(self, path: str) -> bool:
        """The opposite of ``hold``."""
        return not self.hold(path)

    @property
    def text(self) -> str:
        """The places for people."""
        return ", ".join((*self.own.texts, *self.named.texts))


def own_root(catalog: Catalog, table: Table) -> Roots:
    """The folder that a catalog gives a table.

    A REST catalog sends the location; the others name the metadata file, and the location in it is
    its writer's word.
    """
    rest = catalog.kind == "rest"
    folder = table.metadata.location if rest else table_folder(table.metadata_location)
    try:
        return Roots.of([] if folder == "/" else [folder])
    except ValueError:  # a scheme alone
        return Roots.of([])


def named_roots(folders: Iterable[str]) -> Roots:
    """The folders and prefixes that a caller names. Raises ProgrammingError."""
    try:
        found = Roots.of(folders)
    except ValueError as error:
        raise ProgrammingError(f"delete_below: {error}") from error
    if any("/" in place for place in found.local):
        raise ProgrammingError("delete_below: / is no folder of a table")
    return found


def folders_of(setting: str | None) -> list[str]:
    """The folders of the setting ``delete_below``, which has commas between them."""
    return [each.strip() for each in (setting or "").split(",") if each.strip()]


def kept_note(paths: Sequence[str], places: OwnPlaces, *options: str) -> str:
    """That files were kept because they lie elsewhere, which ones, and what takes them.

    "" where there are none. ``options`` are what the statement itself could have said.
    """
    if not paths:
        return ""
    count = len(paths)
    listed = ", ".join(paths[:_MOST_LISTED])
    more = f" and {count - _MOST_LISTED:,} more" if count > _MOST_LISTED else ""
    ways = " or ".join((*options, "SET delete_below = 'folder'"))
    return (
        f"{count:,} file{'s' * (count != 1)} outside of "
        f"{places.text or 'the location of the table'} stayed, whoever they belong to: "
        f"{listed}{more}; if such a folder is the table's, say so with {ways}"
    )
