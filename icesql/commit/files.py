"""The changes that a commit makes to the files of a branch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import TypedDict

from msgspec import field

from icesql.commit.schema_change import SchemaChange
from icesql.commit.snapshots.branches import Branch
from icesql.frozen import Frozen
from icesql.iceberg.manifest.data_file import DataFile, FileContent
from icesql.iceberg.metadata.table_metadata import MAIN


class FileChanges(Frozen, dict=True):
    """Data files and delete files to add to a branch and to remove from it.

    ``operation`` is the snapshot's operation: append, overwrite, delete or replace.
    ``sequence_number`` is the data sequence number that rewritten data keeps; None for new rows.
    ``delete_ages`` are the sequence numbers, by path, of added delete files that rewrite old
    deletes. ``borrowed``: the files to add are part of the table already, so a failed commit keeps
    them. ``rows`` is the change in the number of live rows as the statement counted it; None if it
    did not count. ``deletes_read``: removed position delete files were read, and the added delete
    files contain their positions in live data files. ``converted`` are the paths of removed
    equality delete files whose deletes the added files contain as positions, and of position delete
    files without a position in a live data file. ``schema`` adds columns in the same commit, even
    without files.
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
        return _once(data_of(self.added))

    @cached_property
    def added_deletes(self) -> tuple[DataFile, ...]:
        """The delete files and vectors to add."""
        return _once(each for each in self.added if each.content is not FileContent.DATA)

    @cached_property
    def removed_keys(self) -> frozenset[FileKey]:
        """The keys of the files to remove."""
        return frozenset(map(file_key, self.removed))

    @property
    def has_no_files(self) -> bool:
        """True if no file is added or removed."""
        return not self.added and not self.removed


class ChangeOptions(TypedDict, total=False):
    """The fields of ``FileChanges`` that are those of the statement, with the same meaning."""

    branch: Branch
    rows: int | None
    schema: SchemaChange | None


# The path; for a deletion vector also its offset and size in the Puffin file.
FileKey = tuple[str, int | None, int | None]


def file_key(file: DataFile) -> FileKey:
    """The key that identifies a file in a table."""
    if file.is_deletion_vector:
        return file.path, file.content_offset, file.content_size_in_bytes
    return file.path, None, None


def data_of(files: Iterable[DataFile]) -> tuple[DataFile, ...]:
    """The data files among these files."""
    return tuple(each for each in files if each.content is FileContent.DATA)


def _once(files: Iterable[DataFile]) -> tuple[DataFile, ...]:
    found: dict[FileKey, DataFile] = {}
    for each in files:
        found.setdefault(file_key(each), each)
    return tuple(found.values())
