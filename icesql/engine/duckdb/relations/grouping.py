"""Sort the files of a scan into groups by who reads them, from metadata alone.

duckdb             DuckDB's Parquet reader, pending the footer check
duckdb + deletes   the same, anti-joined with the delete relations
arrow              ``read/``
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct

from icesql.config import Settings
from icesql.engine.duckdb.relations.native import type_problem
from icesql.iceberg import metadata_columns
from icesql.iceberg.types import NestedField, is_floating
from icesql.scan.tasks.task import FileScanTask, ScanContext, distinct_deletes

DUCKDB: Final = "duckdb"
DUCKDB_WITH_DELETES: Final = "duckdb + deletes"
ARROW: Final = "arrow"

_PENDING: Final = "pending footer check"

# Metadata columns that DuckDB can give: constants of the file, the position in it, and the two that
# files may hold.
_DUCKDB_METADATA: Final = frozenset(
    column.field_id
    for column in (
        metadata_columns.FILE,
        metadata_columns.POS,
        metadata_columns.SPEC_ID,
        metadata_columns.SNAPSHOT_ID,
        *metadata_columns.LINEAGE,
    )
)
_STORED: Final = metadata_columns.LINEAGE_IDS


class FileGroup(Struct, frozen=True):
    """Files that are read the same way; ``reason`` says why ``read/`` reads them."""

    name: str
    tasks: tuple[FileScanTask, ...]
    reason: str = ""

    @property
    def label(self) -> str:
        """The reader as EXPLAIN prints it, before any footer is read."""
        return f"{self.name}: {self.reason}" if self.reason else f"{self.name}, {_PENDING}"


def group_files(
    files: Sequence[FileScanTask],
    context: ScanContext,
    settings: Settings,
    *,
    stores: bool = False,
) -> tuple[FileGroup, ...]:
    """The groups of a scan's files; every file is in exactly one. Touches no file.

    With ``stores`` DuckDB reads object stores, too.
    """
    grouped: dict[tuple[str, str], list[FileScanTask]] = {}
    for_all = _problem_of_scan(context, settings)
    of_keys = {} if for_all else _problems_of_keys(files, context)
    for task in files:
        if for_all is not None:
            key = ARROW, for_all
        elif problem := _problem_of_file(context, task, of_keys, stores=stores):
            key = ARROW, problem
        else:
            key = (DUCKDB_WITH_DELETES if task.deletes else DUCKDB), ""
        grouped.setdefault(key, []).append(task)
    return tuple(FileGroup(name, tuple(tasks), reason) for (name, reason), tasks in grouped.items())


def columns_to_read(
    context: ScanContext, tasks: Sequence[FileScanTask] = ()
) -> tuple[NestedField, ...]:
    """The columns of files a reader needs: projected ones and the keys of equality deletes."""
    projected = [
        column
        for column in context.projection.fields
        if column.field_id not in metadata_columns.METADATA_IDS or column.field_id in _STORED
    ]
    known = {column.field_id for column in projected}
    fields = context.file_schema.field_by_id
    for delete in distinct_deletes(tasks):
        for field_id in delete.equality_ids or ():
            if field_id not in known:
                known.add(field_id)
                projected.append(fields[field_id])
    return tuple(projected)


def _problem_of_scan(context: ScanContext, settings: Settings) -> str | None:
    if settings.local_reader == "arrow":
        return "local_reader = arrow"
    for column in context.projection.fields:
        if column.field_id in metadata_columns.METADATA_IDS:
            if column.field_id not in _DUCKDB_METADATA:
                return f"column {column.name} is computed row by row"
        elif problem := type_problem(column):
            return problem
    return None


def _problem_of_file(
    context: ScanContext,
    task: FileScanTask,
    of_keys: Mapping[tuple[int, ...], str],
    *,
    stores: bool,
) -> str | None:
    data_file = task.data_file
    if data_file.file_format != "PARQUET":
        return f"{data_file.file_format} data"
    if data_file.key_metadata is not None:
        return "the file is encrypted"
    if not stores and context.storage.local_path(data_file.path) is None:
        return "the file is in an object store"
    if not of_keys:
        return None
    ids = (tuple(delete.equality_ids or ()) for delete in task.deletes)
    return next((of_keys[each] for each in ids if each in of_keys), None)


def _problems_of_keys(
    files: Sequence[FileScanTask], context: ScanContext
) -> dict[tuple[int, ...], str]:
    """Why DuckDB cannot apply some equality deletes, by their equality ids."""
    sets = {tuple(delete.equality_ids or ()) for delete in distinct_deletes(files)}
    problems = ((ids, _problem_of_keys(context, ids)) for ids in sets)
    return {ids: problem for ids, problem in problems if problem}


def _problem_of_keys(context: ScanContext, field_ids: Sequence[int]) -> str | None:
    columns = {column.field_id: column for column in context.schema.fields}
    known = context.file_schema.field_by_id
    for field_id in field_ids:
        if field_id not in columns:
            return f"equality deletes by column {field_id}, which is not a top-level column"
        if known[field_id].type != columns[field_id].type:
            return f"equality deletes by column {columns[field_id].name}, whose type has changed"
        if is_floating(columns[field_id].type):
            return "equality deletes by floats, where -0.0 is not 0.0"
        if problem := type_problem(columns[field_id]):
            return problem
    return None
