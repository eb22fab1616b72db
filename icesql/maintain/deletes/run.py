"""Rewrite deletes as position deletes or vectors; data files stay as they are.

Tasks write the deletes of each data file as soon as they have found its rows; this module decides
at each attempt to commit which of them are used. An equality delete file is removed only if every
live data file to which it applies was looked at, in the base of that attempt: an older file that
was added since, or that ``where`` excludes, keeps the delete file. The table keeps no other record
of a conversion: the next run looks at the equality deletes that are left. Position delete files
name their rows, and are removed unless another commit removed them first; the deletes with which
that commit replaced them must include the same rows.
Source: Iceberg spec, "Scan Planning" and "Row-level Deletes"; Java
``RewritePositionDeleteFilesSparkAction``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from typing import Final

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from icesql.catalog.table import Catalog, Table
from icesql.commit.file_changes import FileChanges, FileKey, file_key
from icesql.commit.rows import commit_rewrite
from icesql.context import Progress, QueryContext
from icesql.errors import InternalError
from icesql.frozen import Frozen
from icesql.iceberg.manifest.data_file import DataFile, FileContent
from icesql.iceberg.manifest.manifest import ManifestContent
from icesql.iceberg.metadata.snapshot import Snapshot
from icesql.maintain.deletes.plan import DeletesPlan
from icesql.maintain.deletes.task import DeletesTask, found_by, tasks_of
from icesql.maintain.others import NewDeletes, Others, equality_deletes
from icesql.read.deletes.scan_deletes import PositionDeletes
from icesql.scan.deletes.delete_index import DeleteIndex
from icesql.scan.deletes.vectors import Positions
from icesql.scan.manifest_reader import ManifestReader
from icesql.scan.tasks import FileScanTask, pack
from icesql.storage.new_files import Uncommitted
from icesql.work.run import Runner, Work, files_of_tasks, run_here

# The summary's count of equality delete files that a conversion looked up.
CONVERTED: Final = "converted-equality-deletes"
# Rows of files with concurrent deletes whose positions are compared at a time.
_ROWS_AT_ONCE: Final = 1 << 24


class Converted(Frozen):
    """The delete files that a conversion replaced and wrote, and the rows that they delete.

    ``left`` equality delete files stay, since they may apply to data files that were not looked at.
    """

    table: Table
    replaced: tuple[DataFile, ...] = ()
    written: tuple[DataFile, ...] = ()
    rows: int = 0
    left: int = 0
    snapshot_id: int | None = None

    @property
    def removed(self) -> int:
        """The number of removed delete files."""
        return len(self.replaced)

    @property
    def added(self) -> int:
        """The number of added delete files and vectors."""
        return len(self.written)


def convert(
    catalog: Catalog,
    planned: DeletesPlan,
    query: QueryContext,
    *,
    run: Runner[DeletesTask] = run_here,
) -> Converted:
    """Carry out a plan, in one commit. The table's rows are the same before and after.

    Raises what reading, writing and committing raise, and CommitConflictError if a delete of one of
    the files was undone meanwhile.
    """
    if planned.start is None:
        return Converted(planned.table)
    table = planned.table
    with files_of_tasks(table.metadata, table.storage) as new:
        work = _Conversion(planned, query, new, NewDeletes(new))
        work.find(run)
        done = commit_rewrite(
            catalog,
            table,
            added=(),
            removed=planned.deletes,
            start_id=planned.start.snapshot_id,
            branch=planned.branch,
            query=query,
            meanwhile=work,
        )
    if done.snapshot_id is None:
        return Converted(done.table, left=work.left)
    return Converted(
        done.table, work.replaced, work.written, work.rows, work.left, done.snapshot_id
    )


class _Conversion(Struct):
    """The deletes that tasks wrote, and their use in each attempt to commit."""

    plan: DeletesPlan
    query: QueryContext
    new: Uncommitted
    again: NewDeletes
    found: dict[int, tuple[DataFile, int]] = {}
    replaced: tuple[DataFile, ...] = ()
    written: tuple[DataFile, ...] = ()
    rows: int = 0
    left: int = 0

    @property
    def version(self) -> int:
        """The format version with which tasks wrote the deletes."""
        return self.plan.table.metadata.format_version

    def find(self, run: Runner[DeletesTask]) -> None:
        """Let tasks find the deleted rows of each file, and write deletes for them."""
        if not self.plan.tasks:
            return
        plan, query, files = self.plan, self.query, 0
        work = Work(
            lambda slots: tasks_of(plan, self.new.mark, query, slots),
            plan.table.metadata,
            self.new,
            query,
        )
        what = "looking deletes up" if plan.keys else "rewriting"
        with closing(run(work)) as results:
            for task, made in results:
                if isinstance(made, Exception):
                    raise made
                # Register its files first, so that they are removed on an error.
                self.new.take(made.paths)
                self.found |= found_by(task, made)
                files += len(task.files)
                query.report(Progress(what, files, len(plan.tasks)))
                query.check()
        if files != len(self.plan.tasks):
            raise InternalError(
                f"tasks read {files:,} of {len(self.plan.tasks):,} data files; nothing was "
                "committed"
            )

    # ------------------------------------------------------------------ committing

    def __call__(self, base: Table, head: Snapshot | None) -> FileChanges:
        """The deletes to add and to remove. Raises CommitConflictError."""
        assert self.plan.start is not None
        others = Others(self.plan.start, base, head, self.query)
        made = self._by_keys(base, head, others) if self.plan.keys else self._by_files(others)
        self.replaced = tuple(
            each for each in made.removed if each.path in made.converted or not self.plan.keys
        )
        self.written = made.added
        self.new.hand_over(each.path for each in made.added)
        return made

    def _by_keys(self, base: Table, head: Snapshot | None, others: Others) -> FileChanges:
        """Replace equality deletes by the positions of the rows that they delete."""
        added: list[DataFile] = []
        removed: list[DataFile] = []
        rows = 0
        touched: dict[int, FileScanTask] = {}
        for number, task in enumerate(self.plan.tasks):
            if others.is_gone(task):
                continue
            if others.removed_deletes and any(
                file_key(delete) in others.removed_deletes for delete in equality_deletes(task)
            ):
                others.refuse(f"equality deletes of {task.data_file.path} were removed")
            if base.metadata.format_version != self.version or others.touch(task):
                touched[number] = task
            elif number in self.found:
                delete, count = self.found[number]
                added.append(delete)
                rows += count
                removed += [each for each in task.deletes if each.is_deletion_vector]
        for number, task, after in self._deleted(touched, others):
            if number not in self.found:
                continue
            own = replace(task, deletes=(self.found[number][0],))
            found = PositionDeletes(self.plan.context, (own,), self.query).positions(own)
            if found is None:
                continue
            taken = np.setdiff1d(found, after, assume_unique=True)
            if not len(taken):
                continue
            rows += len(taken)
            if base.metadata.format_version > 2:
                taken = np.union1d(taken, after)
                removed += [each for each in others.positions_of(task) if each.is_deletion_vector]
            added.append(self.again.of(base, task.data_file, taken))
        useless, self.left = self._useless(base, head, others)
        self.rows = rows
        paths = frozenset(each.path for each in useless)
        summary = {CONVERTED: str(len(self.plan.deletes))}
        return FileChanges(
            "replace", (*added,), (*removed, *useless), summary=summary, converted=paths
        )

    def _by_files(self, others: Others) -> FileChanges:
        """Replace position delete files by new files or vectors, for the same rows."""
        gone = others.removed_deletes
        removed = tuple(each for each in self.plan.which if file_key(each) not in gone)
        if not removed:
            return FileChanges("replace", rows=0)
        version, added = others.base.metadata.format_version, dict[str, DataFile]()
        ages: dict[str, int] = {}
        touched: dict[int, FileScanTask] = {}
        for number, task in enumerate(self.plan.tasks):
            if others.is_gone(task):
                continue
            lost = [each for each in task.deletes if file_key(each) in gone]
            of_vector = version > 2 and (version != self.version or others.touch(task))
            if lost or of_vector:
                touched[number] = task
            if number in self.found and not of_vector and len(lost) < len(task.deletes):
                # The new file has rows of other data files, or of deletes that still exist.
                made, _ = self.found[number]
                added[made.path], ages[made.path] = made, self.plan.ages[number]
        for _, task, after in self._deleted(touched, others):
            live = others.positions_of(task)
            # Readers of a vector ignore other position deletes: it must include all positions.
            has_vector = any(each.is_deletion_vector for each in live)
            if version > 2 and not has_vector and len(after):
                made = self.again.of(others.base, task.data_file, after)
                added[made.path] = made
        of_none = frozenset(
            delete.path
            for number, task in enumerate(self.plan.tasks)
            if number not in self.found
            for delete in task.deletes
        )
        return FileChanges(
            "replace", (*added.values(),), removed, converted=of_none, delete_ages=ages,
            deletes_read=True,
        )  # fmt: skip

    def _deleted(
        self, touched: Mapping[int, FileScanTask], others: Others
    ) -> Iterator[tuple[int, FileScanTask, Positions]]:
        """The positions that are deleted now, for files whose deletes other commits changed.

        Raises CommitConflictError if another commit undid deletes.
        """
        for part in pack(touched.items(), _ROWS_AT_ONCE, _rows, lookback=1):
            tasks = dict(part)
            found = others.deleted_positions(tasks, self.plan.context)
            for number, deleted in found.items():
                if len(deleted.taken_back):
                    path = tasks[number].data_file.path
                    others.refuse(f"deletes of {path} were taken back")
                yield number, tasks[number], deleted.after

    def _useless(
        self, base: Table, head: Snapshot | None, others: Others
    ) -> tuple[list[DataFile], int]:
        """The equality deletes that can be removed, and the number of the others."""
        if head is None:
            return [], 0
        reader = ManifestReader(base, self.query)
        listed = reader.manifests_of(head)
        equality = [*reader.deletes(listed, FileContent.EQUALITY_DELETES)]
        index_of = DeleteIndex.of(base, equality)
        needed: set[FileKey] = {
            file_key(each) for each in equality if file_key(each) in others.added_deletes
        }
        # Not looked at yet; a file that was removed and added again counts as new.
        key_of = self.plan.table.storage.same_file_key
        looked_at = set(self.plan.looked_at)
        looked_at -= {
            key_of(each.data_file.path) for each in self.plan.tasks if others.is_gone(each)
        }
        found: set[str] = set()
        for entries, index in reader.live(listed, ManifestContent.DATA):
            key = key_of(entries.path[index])
            if key not in looked_at:
                needed.update(map(file_key, index_of.deletes_of(entries.data_file(index))))
            elif key in found:
                others.refuse(f"{entries.path[index]} was added a second time")
            else:
                found.add(key)
        useless = [each for each in equality if file_key(each) not in needed]
        return useless, len(equality) - len(useless)


def _rows(task: tuple[int, FileScanTask]) -> int:
    return task[1].data_file.record_count
