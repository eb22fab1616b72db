"""Directories for DuckDB's allow-list."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from icesql.engine.duckdb.relations import grouping
from icesql.engine.duckdb.relations.grouping import FileGroup
from icesql.scan.tasks.task import distinct_deletes

if TYPE_CHECKING:
    from icesql.scan.plan import ScanPlan


def folders_read(plan: ScanPlan, groups: Sequence[FileGroup]) -> set[str]:
    """The folders DuckDB must be able to read: the table's, and those of files beside it."""
    if all(group.name == grouping.ARROW for group in groups):
        return set()
    storage = plan.context.storage
    table = os.path.dirname(os.path.dirname(storage.location(plan.scan.table.metadata_location)))
    folders = {table} if len(table) > 1 else set()
    for group in groups:
        if group.name != grouping.ARROW:
            for path in _paths(group):
                location = storage.local_path(path)
                if location is None:  # deletes in an object store: DuckDB does not read them
                    continue
                folder = os.path.dirname(location)
                if not any(folder == known or folder.startswith(known + "/") for known in folders):
                    folders.add(folder)
    return folders


def _paths(group: FileGroup) -> Iterator[str]:
    """The data and equality delete files of a group."""
    yield from (delete.path for delete in distinct_deletes(group.tasks) if delete.equality_ids)
    yield from (task.data_file.path for task in group.tasks)
