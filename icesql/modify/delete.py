"""DELETE and TRUNCATE: the rows are found by a query, and their files replaced or given deletes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from msgspec.structs import replace

from icesql.commit.delete_where import commit_delete_where
from icesql.commit.rows import commit_overwrite, commit_row_delta
from icesql.commit.validation.validation import Isolation
from icesql.errors import CommitConflictError, UnsupportedSqlError, UnsupportedTableError, shifted
from icesql.iceberg.expressions.predicate import ALWAYS_TRUE
from icesql.iceberg.manifest.data_file import DataFile
from icesql.iceberg.metadata.table_metadata import TableMetadata
from icesql.iceberg.metadata_columns import LAST_UPDATED_SEQUENCE_NUMBER, POS, ROW_ID
from icesql.iceberg.schema import Schema
from icesql.modify.engine_name import SUMMARY
from icesql.modify.insert import find_target
from icesql.modify.modified import Modified, Work
from icesql.read.task import read_file
from icesql.scan.planner import plan
from icesql.scan.table_scan import TableScan
from icesql.sql.writes.statements import Delete
from icesql.storage.new_file import check_writable, remove_file
from icesql.write.position_deletes import write_position_deletes
from icesql.write.write_task import WriteResult, write_task, write_task_for

if TYPE_CHECKING:
    from icesql.catalog.table import Catalog
    from icesql.engine.protocol import Result
    from icesql.scan.tasks.task import FileScanTask, ScanContext

Positions = npt.NDArray[np.int64]


def delete(statement: Delete, work: Work) -> Modified:
    """Remove the rows for which the condition is true, or all of them.

    Raises CommitConflictError where others changed these files, or added rows that may match,
    since the query read the table; then nothing is changed.
    """
    catalog, table, branch = find_target(statement.table, work)
    if statement.rows is None:
        return _delete_all(catalog, table.identifier, branch, work)
    if branch != "main":
        raise UnsupportedSqlError("DELETE from a branch", offset=statement.table.offset)
    with shifted(statement.shift):
        result, scans = work.ask_scanned(statement.rows)
        try:
            positions = _positions(result)
        finally:
            result.close()
    if not positions:
        return Modified(0)
    # The table as the query read it: what came since is for the commit to find.
    return _Deletion(catalog, scans, positions, work).commit()


def _delete_all(catalog: Catalog, identifier: tuple[str, ...], branch: str, work: Work) -> Modified:
    table = catalog.load(identifier)
    check_writable(table.storage)
    ref = table.metadata.refs.get(branch)
    done = commit_delete_where(
        catalog,
        table,
        ALWAYS_TRUE,
        start_id=None if ref is None else ref.snapshot_id,
        branch=branch,
        summary=SUMMARY,
        query=work.query,
    )
    return Modified(int(done.summary.get("deleted-records", 0)), snapshot_id=done.snapshot_id)


def _positions(result: Result) -> dict[str, Positions]:
    """The places of the rows by their files."""
    found: dict[str, list[Positions]] = {}
    for batch in result.arrow_reader():
        files = batch.column(0).dictionary_encode()
        places = batch.column(1).to_numpy(zero_copy_only=False)
        codes = files.indices.to_numpy(zero_copy_only=False)
        for code, path in enumerate(files.dictionary.to_pylist()):
            found.setdefault(path, []).append(places[codes == code])
    return {path: np.concatenate(parts) for path, parts in found.items()}


class _Deletion:
    """The rows of one DELETE, with the snapshot that they were found in."""

    def __init__(
        self,
        catalog: Catalog,
        scans: tuple[TableScan, ...],
        positions: Mapping[str, Positions],
        work: Work,
    ) -> None:
        self._catalog, self._positions, self._work = catalog, positions, work
        scan = scans[0]
        self._table = scan.table
        self._snapshot = scan.snapshot
        # With other tables in the condition its own part alone says too little.
        self._filter = scan.row_filter if len(scans) == 1 else ALWAYS_TRUE
        self._count = sum(len(each) for each in positions.values())

    @property
    def _metadata(self) -> TableMetadata:
        return self._table.metadata

    def commit(self) -> Modified:
        check_writable(self._table.storage)
        mode = self._metadata.properties.get("write.delete.mode", "copy-on-write").lower()
        if mode == "merge-on-read" and self._metadata.format_version == 2:
            return self._by_delete_files()
        return self._by_new_files()

    @property
    def _isolation(self) -> Isolation:
        text = self._metadata.properties.get("write.delete.isolation-level", "serializable").lower()
        if text not in ("serializable", "snapshot"):
            raise UnsupportedTableError(f"the table property write.delete.isolation-level = {text}")
        return cast("Isolation", text)

    @property
    def _start_id(self) -> int | None:
        return None if self._snapshot is None else self._snapshot.snapshot_id

    def _tasks(self, projection: Schema) -> tuple[list[FileScanTask], ScanContext]:
        """The files of the rows as that snapshot has them, in order."""
        scan = TableScan(self._table, self._snapshot, self._metadata.schema, projection)
        planned = plan(scan, self._work.query)
        found = [each for each in planned.files if each.data_file.path in self._positions]
        if len(found) != len(self._positions):
            raise CommitConflictError("the table changed while it was read; run the DELETE again")
        return found, planned.context

    def _by_delete_files(self) -> Modified:
        """Merge-on-read in v2: a position delete file for each file."""
        tasks, _ = self._tasks(self._metadata.schema)
        deletes: list[DataFile] = []
        try:
            for task in tasks:
                self._work.query.check()
                deletes.append(
                    write_position_deletes(
                        self._metadata,
                        self._table.storage,
                        task.data_file,
                        self._positions[task.data_file.path].tolist(),
                    )
                )
        except BaseException:
            for each in deletes:
                remove_file(self._table.storage, each.path)
            raise
        done = commit_row_delta(
            self._catalog,
            self._table,
            deletes=deletes,
            referenced=[task.data_file.path for task in tasks],
            start_id=self._start_id,
            command="delete",
            row_filter=self._filter,
            isolation=self._isolation,
            summary=SUMMARY,
            query=self._work.query,
        )
        size = sum(each.file_size_in_bytes for each in deletes)
        return Modified(self._count, len(deletes), size, done.snapshot_id)

    def _by_new_files(self) -> Modified:
        """Copy-on-write: the rows that stay go to new files, with their row ids in v3."""
        lineage = (ROW_ID, LAST_UPDATED_SEQUENCE_NUMBER)
        columns = self._metadata.schema.fields
        if self._metadata.format_version >= 3:
            columns = (*columns, *lineage)
        stored = replace(self._metadata.schema, fields=columns)
        tasks, context = self._tasks(replace(stored, fields=(*columns, POS)))
        task = write_task_for(
            self._metadata, self._table.storage, tuple(range(len(columns))), schema=stored
        )
        written: WriteResult = write_task(task, self._kept(tasks, context), self._work.query)
        removed = [each.data_file for each in tasks]
        removed += [d for each in tasks for d in each.deletes if d.is_deletion_vector]
        done = commit_overwrite(
            self._catalog,
            self._table,
            added=written.files,
            removed=removed,
            start_id=self._start_id,
            row_filter=self._filter,
            isolation=self._isolation,
            summary=SUMMARY,
            query=self._work.query,
        )
        return Modified(self._count, len(written.files), written.bytes, done.snapshot_id)

    def _kept(self, tasks: list[FileScanTask], context: ScanContext) -> Iterator[pa.RecordBatch]:
        for task in tasks:
            gone = self._positions[task.data_file.path]
            for batch in read_file(task, context, self._work.query):
                places = batch.column(batch.num_columns - 1).to_numpy(zero_copy_only=False)
                kept = batch.filter(pa.array(~np.isin(places, gone)))
                if kept.num_rows:
                    yield kept
