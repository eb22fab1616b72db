"""The commit of files that are there already, and how their paths are spelled."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from icesql.commit.snapshot_operation import SnapshotOperation
from icesql.errors import CommitConflictError
from icesql.iceberg.manifest.data_file import DataFile
from icesql.iceberg.metadata.changes.updates import SetProperties, Update
from icesql.iceberg.metadata.name_mapping import PROPERTY
from icesql.storage.open import is_local, local_spellings, split_path

if TYPE_CHECKING:
    from icesql.catalog.table import Table


class AddFiles(SnapshotOperation):
    """The files, and the name mapping by which they are read where the table had none."""

    def updates(self, base: Table, attempt: int, now_ms: int) -> Sequence[Update]:
        """See ``SnapshotOperation``. Raises CommitConflictError where the mapping was changed."""
        from icesql.maintain.importing.parquet import mapping_of, name_mapping_json

        added = super().updates(base, attempt, now_ms)
        found = self.found
        mapping = base.metadata.name_mapping
        if mapping is None and found.metadata.name_mapping is None:
            text = name_mapping_json(found.metadata.schema)
            return SetProperties({PROPERTY: text}), *added
        if mapping is None or not mapping.holds(mapping_of(found)):
            raise CommitConflictError(
                f"the property {PROPERTY} of {base.name}, which says what columns the files have, "
                "was changed meanwhile; nothing was added, run the statement again"
            )
        return added


class Spelling(Struct, frozen=True):
    """How the table spells paths of this machine: ``file:/a`` or ``/a``."""

    location: str

    def of(self, file: DataFile) -> DataFile:
        """The file by a path that readers on other machines' defaults understand."""
        from msgspec.structs import replace

        is_uri = split_path(self.location)[0] == "file"
        if not is_local(file.path):
            return file
        place = local_spellings(file.path)[0]
        return replace(file, path=f"file:{place}" if is_uri else place)
