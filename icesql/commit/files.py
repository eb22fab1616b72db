"""The changes that a commit makes to the files of a branch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property

from msgspec import Struct, field

from icesql.commit.schema_change import SchemaChange
from icesql.commit.snapshots.branches import Branch
from icesql.iceberg.manifest.data_file import DataFile, FileContent
from icesql.iceberg.metadata.table_metadata import MAIN


class FileChanges(Struct, frozen=True, dict=True):
    """Files to add to a branch and to remove from it, data and deletes alike.

    ``operation`` is the name that consumers act on: append, overwrite, delete or replace.
    ``sequence_number`` is the data sequence number that rewritten data keeps, None for new rows.
    ``delete_ages`` are those of new delete files by their paths, where they are not new deletes.
    Files to add that are ``borrowed`` are part of the table already: a failed commit leaves them.
    ``rows`` is by how many the live rows change, as the statement counted them; None where it did
    not. ``deletes_read``: removed position delete files were read, and those to add have what they
    told of live data files. ``converted`` are the paths of removed equality deletes of which the
    same is true, by position, and of position delete files that name no row of one. ``schema`` are
    columns that come in the same commit, also where no file does.
    """

    operation: str
    added: tuple[DataFile, ...] = ()
    removed: tuple[DataFile, ...] = ()
    branch: Branch = MAIN
    summary: Mapping[str, str] = field(default_factory=dict)
    sequence_number: int | None = None
    borrowed: bool = False
    delete_ages: Mapping[str, int] = field(default_factory=dict)
    rows: int | None = None
    deletes_read: bool = False
    converted: frozenset[str] = frozenset()
    schema: SchemaChange | None = None

    @cached_property
    def added_data(self) -> tuple[DataFile, ...]:
        """The data files to add, each path once."""
        return _once(each for each in self.added if each.content is FileContent.DATA)

    @cached_property
    def added_deletes(self) -> tuple[DataFile, ...]:
        """The delete files and vectors to add."""
        return _once(each for each in self.added if each.content is not FileContent.DATA)

    @cached_property
    def removed_keys(self) -> frozenset[FileKey]:
        """The keys of the files to remove."""
        return frozenset(map(file_key, self.removed))

    @property
    def is_empty(self) -> bool:
        """Whether nothing is added, removed or changed."""
        return self.has_no_files and self.schema is None

    @property
    def has_no_files(self) -> bool:
        """Whether no file is added or removed."""
        return not self.added and not self.removed


# The path; of a deletion vector also its place in the Puffin.
FileKey = tuple[str, int | None, int | None]


def file_key(file: DataFile) -> FileKey:
    """The key that identifies a file in a table."""
    if file.is_deletion_vector:
        return file.path, file.content_offset, file.content_size_in_bytes
    return file.path, None, None


def _once(files: Iterable[DataFile]) -> tuple[DataFile, ...]:
    found: dict[FileKey, DataFile] = {}
    for each in files:
        found.setdefault(file_key(each), each)
    return tuple(found.values())
