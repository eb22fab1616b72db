"""Equality deletes become position deletes, or vectors in version 3; data files stay as they are.

The rows that equality deletes take of each data file are found by reading its key columns once. A
delete file goes only if every live data file to which it applies was looked at, in the base of the
attempt that commits: an older file that came since, or that ``where`` leaves out, keeps its deletes
alive. What is known afterwards is what is live: the next run looks at what is left.
Source: Iceberg spec, "Scan Planning" and "Row-level Deletes".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from icesql.catalog.table import Catalog, Table
from icesql.commit.files import FileKey, file_key
from icesql.commit.rows import RewrittenFiles, commit_rewrite
from icesql.context import Progress, QueryContext
from icesql.engine.duckdb.tasks.rows import one_engine
from icesql.errors import InternalError, UnsupportedTableError
from icesql.iceberg.expressions.predicate import ALWAYS_TRUE, Predicate
from icesql.iceberg.manifest.data_file import DataFile, FileContent
from icesql.iceberg.manifest.manifest import ManifestContent
from icesql.iceberg.metadata.snapshot import Snapshot
from icesql.iceberg.metadata.table_metadata import MAIN
from icesql.iceberg.metadata_columns import POS, SNAPSHOT_ID
from icesql.iceberg.schema import Schema
from icesql.maintain.new_deletes import NewDeletes
from icesql.maintain.others import Others, equality_deletes, positions_within
from icesql.maintain.rewrite.plan import branch_head
from icesql.maintain.rewrite.task import numbered_file, read_live_rows
from icesql.read.deletes.positions import PositionDeletes
from icesql.scan.deletes.delete_index import DeleteIndex
from icesql.scan.manifest_reader import ManifestReader
from icesql.scan.planner import plan
from icesql.scan.spec_scan import typed_specs
from icesql.scan.table_scan import TableScan
from icesql.scan.tasks.task import CombinedScanTask, FileScanTask, ScanContext
from icesql.storage.new_file import check_writable
from icesql.write.deletion_vectors import as_bitmap

if TYPE_CHECKING:
    from pyroaring import BitMap64

# In the summary of a conversion: so many delete files were looked up.
CONVERTED: Final = "converted-equality-deletes"
# Rows of files that are read together: a bit of each is kept meanwhile.
_ROWS_AT_ONCE: Final = 1 << 26


class ConversionPlan(Struct, frozen=True):
    """The files of a branch's head that equality deletes apply to.

    ``looked_at`` are the keys of all data files that the condition asks for. ``start`` is None for
    an empty branch.
    """

    table: Table
    branch: str
    start: Snapshot | None
    context: ScanContext
    tasks: tuple[FileScanTask, ...] = ()
    looked_at: frozenset[str] = frozenset()

    @property
    def deletes(self) -> tuple[DataFile, ...]:
        """The equality deletes, each once."""
        found = {file_key(each): each for task in self.tasks for each in equality_deletes(task)}
        return tuple(found.values())


class Converted(Struct, frozen=True):
    """What a conversion has done: delete files by content, and the rows that they are about."""

    table: Table
    removed: int = 0
    added: int = 0
    rows: int = 0
    left: int = 0
    snapshot_id: int | None = None


def plan_conversion(
    table: Table, query: QueryContext, *, branch: str = MAIN, row_filter: Predicate = ALWAYS_TRUE
) -> ConversionPlan:
    """The files that may hold a row of ``row_filter``, which names fields of the current schema.

    Raises ProgrammingError for a branch that does not exist, UnsupportedTableError for a data file
    that does not say how many rows it has, or says more than half of ``memory_limit`` in bytes.
    """
    check_writable(table.storage)
    start = branch_head(table.metadata, branch)
    schema = table.metadata.schema
    # A plan by the catalog has no sequence numbers.
    scan = TableScan(
        replace(table, planning=None), start, schema, schema, row_filter, all_deletes=True
    )
    found = plan(scan, query)
    files = [replace(each, residual=ALWAYS_TRUE) for each in found.files]
    tasks = tuple(each for each in files if equality_deletes(each))
    for each in tasks:
        # A byte for each row is kept while a file is read, and metadata may say anything.
        if not 0 <= each.data_file.record_count <= query.settings.memory_limit // 2:
            raise UnsupportedTableError(
                f"converting deletes of a file of {each.data_file.record_count:,} rows",
                table=table.name,
                path=each.data_file.path,
            )
    key_of = table.storage.same_file_key
    looked_at = frozenset(key_of(each.data_file.path) for each in files)
    context = replace(found.context, projection=Schema((SNAPSHOT_ID, POS)))
    return ConversionPlan(table, branch, start, context, tasks, looked_at)


def convert(
    catalog: Catalog,
    planned: ConversionPlan,
    query: QueryContext,
    *,
    summary: Mapping[str, str],
) -> Converted:
    """Carry a plan out, in one commit. Rows are the same before and after.

    Raises what reading, writing and committing do: CommitConflictError where a delete of one of
    the files was taken back meanwhile.
    """
    if planned.start is None:
        return Converted(planned.table)
    work = _Conversion(planned, query)
    try:
        work.read()
        done = commit_rewrite(
            catalog,
            planned.table,
            added=(),
            removed=planned.deletes,
            start_id=planned.start.snapshot_id,
            branch=planned.branch,
            summary={**summary, CONVERTED: str(len(planned.deletes))},
            query=query,
            meanwhile=work,
        )
    finally:
        work.remove_unused()
    if done.snapshot_id is None:
        return Converted(done.table, left=work.left)
    return Converted(done.table, work.removed, work.added, work.rows, work.left, done.snapshot_id)


class _Conversion:
    """The rows that equality deletes take, and what each attempt to commit makes of them."""

    def __init__(self, planned: ConversionPlan, query: QueryContext) -> None:
        self._plan, self._query = planned, query
        self._key_of = planned.table.storage.same_file_key
        self._taken: dict[int, BitMap64] = {}
        self._new = NewDeletes(planned.table.storage)
        self.removed = self.added = self.rows = self.left = 0

    # ------------------------------------------------------------------ reading

    def read(self) -> None:
        """Find the rows of each file that equality deletes take, and positions do not."""
        with one_engine():
            for first, tasks in self._parts():
                self._query.report(Progress("looking deletes up", first, len(self._plan.tasks)))
                self._read(first, tasks)

    def _parts(self) -> Iterator[tuple[int, list[FileScanTask]]]:
        """The files, some at once, each time with the number of the first."""
        first, part, rows = 0, list[FileScanTask](), 0
        for number, each in enumerate(self._plan.tasks):
            if part and rows + each.data_file.record_count > _ROWS_AT_ONCE:
                yield first, part
                first, part, rows = number, [], 0
            part.append(each)
            rows += each.data_file.record_count
        if part:
            yield first, part

    def _read(self, first: int, tasks: Sequence[FileScanTask]) -> None:
        gone = [np.ones(each.data_file.record_count, bool) for each in tasks]
        numbered = tuple(numbered_file(number, each) for number, each in enumerate(tasks))
        scan = CombinedScanTask(numbered, self._plan.context)
        for batch in read_live_rows(scan, self._query):
            self._query.check()
            numbers, positions = (each.to_numpy() for each in batch.columns)
            for number in np.unique(numbers).tolist():
                mine = positions[numbers == number]
                if int(mine.max()) >= len(gone[number]):
                    raise InternalError(
                        f"{tasks[number].data_file.path} has row {int(mine.max()):,}, and its "
                        f"metadata says {len(gone[number]):,} rows; nothing was committed"
                    )
                gone[number][mine] = False
        positions_of = PositionDeletes(self._plan.context, tasks, self._query)
        for number, each in enumerate(tasks):
            known = positions_within(positions_of.positions(each), each.data_file)
            gone[number][known] = False
            taken = np.flatnonzero(gone[number])
            if len(taken):
                self._taken[first + number] = as_bitmap(taken)

    # ------------------------------------------------------------------ committing

    def __call__(self, base: Table, head: Snapshot | None) -> RewrittenFiles:
        """The deletes to add and to remove. Raises CommitConflictError."""
        assert self._plan.start is not None
        others = Others(self._plan.start, base, head, self._query)
        tasks = {
            number: each for number, each in enumerate(self._plan.tasks) if not others.is_gone(each)
        }
        for each in tasks.values():
            if any(file_key(delete) in others.removed_deletes for delete in equality_deletes(each)):
                others.refuse(f"equality deletes of {each.data_file.path} were removed")
        added: list[DataFile] = []
        removed: list[DataFile] = []
        rows = 0
        is_vector = base.metadata.format_version > 2
        for number, each in tasks.items():
            positions = others.deleted_positions({number: each}, self._plan.context)[number]
            if len(positions.taken_back):
                others.refuse(f"deletes of {each.data_file.path} were taken back")
            if number not in self._taken:
                continue
            taken = np.setdiff1d(
                np.fromiter(self._taken[number], np.int64), positions.after, assume_unique=True
            )
            if not len(taken):
                continue
            rows += len(taken)
            if is_vector:
                taken = np.union1d(taken, positions.after)
                removed += [x for x in others.positions_of(each) if x.is_deletion_vector]
            added.append(self._new.of(base, each.data_file, taken))
        useless, self.left = self._useless(base, head, others)
        self.removed, self.added, self.rows = len(useless), len(added), rows
        self._new.hand_over(added)
        paths = frozenset(each.path for each in useless)
        return RewrittenFiles(tuple(added), (*removed, *useless), converted=paths, rows=None)

    def _useless(
        self, base: Table, head: Snapshot | None, others: Others
    ) -> tuple[list[DataFile], int]:
        """The equality deletes that need not stay, and how many do."""
        if head is None:
            return [], 0
        metadata = base.metadata
        specs = typed_specs(metadata)
        reader = ManifestReader(base.storage, self._query, base.name)
        listed = [each for each in reader.manifests_of(head) if each.has_live_files]
        found: dict[ManifestContent, list[DataFile]] = {each: [] for each in ManifestContent}
        for manifest, entries in reader.entries_of(
            listed, lambda each: specs[each.partition_spec_id]
        ):
            live = [index for index, alive in enumerate(entries.live) if alive]
            found[manifest.content] += [entries.data_file(index) for index in live]
        equality = [
            each
            for each in found[ManifestContent.DELETES]
            if each.content is FileContent.EQUALITY_DELETES
        ]
        index = DeleteIndex(equality, metadata.specs, metadata.file_schema, self._key_of)
        needed: set[FileKey] = {
            file_key(each) for each in equality if file_key(each) in others.added_deletes
        }
        for file in found[ManifestContent.DATA]:
            if self._key_of(file.path) not in self._plan.looked_at:
                needed.update(map(file_key, index.deletes_of(file)))
        useless = [each for each in equality if file_key(each) not in needed]
        return useless, len(equality) - len(useless)

    def remove_unused(self) -> None:
        """Remove delete files that no attempt got to hand over."""
        self._new.remove_unused()
