"""Directories for DuckDB's allow-list."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from icesql.engine.duckdb.relations import grouping
from icesql.engine.duckdb.relations.grouping import FileGroup
from icesql.engine.duckdb.relations.opened_files import STORE_FOLDER
from icesql.errors import StorageError
from icesql.scan.tasks.task import distinct_deletes

if TYPE_CHECKING:
    from icesql.scan.plan import ScanPlan
    from icesql.storage.open import Storage


def folders_read(plan: ScanPlan, groups: Sequence[FileGroup]) -> set[str]:
    """The folders DuckDB must be able to read: the table's, and those of files beside it."""
    if all(group.name == grouping.ARROW for group in groups):
        return set()
    storage = plan.context.storage
    folders: set[str] = set()
    try:
        metadata = storage.local_path(plan.scan.table.metadata_location)
    except StorageError:
        metadata = None  # removed by a commit since: its folder is not needed, the files' are
    if metadata is not None and len(table := os.path.dirname(os.path.dirname(metadata))) > 1:
        folders.add(table)
    for group in groups:
        if group.name != grouping.ARROW:
            for path in _paths(group):
                location = storage.local_path(path)
                if location is None:
                    folders |= folders_of_store(storage, path)
                    continue
                folder = os.path.dirname(location)
                if not any(folder == known or folder.startswith(known + "/") for known in folders):
                    folders.add(folder)
    return folders


def folders_of_store(storage: Storage, path: str) -> set[str]:
    """Where copies of small files are, and the file system that gives the others."""
    shelf = storage.remote_files().shelf(storage.location(path))
    return {STORE_FOLDER} if shelf is None else {STORE_FOLDER, shelf.folder}


def _paths(group: FileGroup) -> Iterator[str]:
    """The data and equality delete files of a group."""
    yield from (delete.path for delete in distinct_deletes(group.tasks) if delete.equality_ids)
    yield from (task.data_file.path for task in group.tasks)
