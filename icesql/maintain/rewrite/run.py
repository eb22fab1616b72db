"""Carry out a rewrite: run its tasks, commit finished groups, remove files of failed ones.

Source: Java ``RewriteDataFilesSparkAction`` and ``RewriteDataFilesCommitManager``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing

from icesql.catalog.table import Catalog, Table
from icesql.commit.conflicts import Since
from icesql.commit.file_changes import CommitResult, file_key
from icesql.commit.rows import commit_rewrite
from icesql.context import Progress, QueryContext
from icesql.errors import (
    CommitConflictError,
    Error,
    InternalError,
    OperationalError,
    QueryCancelledError,
)
from icesql.frozen import Frozen
from icesql.iceberg.manifest.data_file import DataFile, FileContent
from icesql.iceberg.manifest.manifest import ManifestContent
from icesql.iceberg.metadata.snapshot import Snapshot
from icesql.maintain.others import CARRIED_ROWS, FollowedGroups, NewDeletes, Origins
from icesql.maintain.rewrite.plan import FileGroup, RewritePlan
from icesql.maintain.rewrite.task import RewriteTask, tasks_of
from icesql.scan.deletes.delete_index import DeleteIndex
from icesql.scan.deletes.vectors import rows_of_vector
from icesql.scan.manifest_reader import ManifestReader
from icesql.storage.new_files import Uncommitted
from icesql.work.run import Runner, Work, files_of_tasks, run_here
from icesql.write.written import Written

# ------------------------------------------------------------------ dangling delete files
# The option remove-dangling-deletes. Source: Java ``RemoveDanglingDeletesSparkAction``, which uses
# sequence numbers and partitions.


def dangling_deletes(table: Table, snapshot: Snapshot, query: QueryContext) -> list[DataFile]:
    """The live delete files and vectors of a snapshot that apply to no live data file.

    Ignores the bounds of delete files. Reads all manifests.
    """
    reader = ManifestReader(table, query)
    listed = reader.manifests_of(snapshot)
    deletes = [*reader.deletes(listed)]
    if not deletes:
        return []
    data = (
        entries.data_file(index) for entries, index in reader.live(listed, ManifestContent.DATA)
    )
    index = DeleteIndex.of(table, deletes, compare_bounds=False)
    # Files share tuples of many deletes. Each tuple is held, so that its id is not reused.
    applied = {id(each): each for each in map(index.deletes_of, data)}
    needed = {file_key(delete) for each in applied.values() for delete in each}
    return [each for each in deletes if file_key(each) not in needed]


# ------------------------------------------------------------------ run


class Rewritten(Frozen):
    """The outcome of a rewrite. ``failures`` has the reasons why groups were not rewritten.

    ``carried_rows`` rows were deleted by others meanwhile, and also in the new files.
    """

    table: Table
    rewritten_data_files_count: int
    added_data_files_count: int
    rewritten_bytes_count: int
    failed_data_files_count: int
    removed_delete_files_count: int
    snapshot_ids: tuple[int, ...]
    failures: tuple[str, ...]
    added_bytes: int
    carried_rows: int


def rewrite(
    catalog: Catalog,
    plan: RewritePlan,
    query: QueryContext,
    *,
    run: Runner[RewriteTask] = run_here,
) -> Rewritten:
    """Rewrite the groups of a plan, in one commit, or in several with partial progress.

    In one commit, a failed group ends the rewrite, and nothing is changed. With partial progress
    only its own files are not rewritten. Rows that others delete meanwhile are deleted in the new
    files; groups for which that is impossible are left out (``meanwhile``). Raises what tasks and
    commits raise, and CommitConflictError if no group of a commit can be kept.
    """
    with files_of_tasks(plan.table.metadata, plan.table.storage) as new:
        work = _Rewrite(catalog, plan, query, new)
        if not plan.groups:
            return work.done()
        with closing(work.origins), closing(run(work.of_tasks())) as results:
            for task, made in results:
                work.take(task, made)
                query.check()
            work.finish()
    return work.done()


class _Rewrite:
    def __init__(
        self,
        catalog: Catalog,
        plan: RewritePlan,
        query: QueryContext,
        new: Uncommitted,
    ) -> None:
        self._catalog, self._plan, self._query = catalog, plan, query
        self._new, self._table = new, plan.table
        self._options = plan.request.options
        self._groups = plan.groups  # each at its number
        self._open: dict[int, int] = {}  # tasks of each group that have not ended
        self._written: dict[int, dict[int, Written]] = {}  # by group, then by number of the task
        self._failed: dict[int, str] = {}
        self._ready: list[int] = []
        self._committed: list[tuple[int, ...]] = []
        self._failed_commits = 0
        self._ended = self._bytes = 0
        self._removed_deletes = self._added = self._added_bytes = self._carried_rows = 0
        self._snapshots: list[int] = []
        self._own: dict[int, int | None] = {}  # own snapshots with their parents
        self.origins = Origins(query.settings.temp_directory)

    def of_tasks(self) -> Work[RewriteTask]:
        """The tasks of all groups, in the order of work."""

        def tasks(_: int) -> Iterator[RewriteTask]:
            number = 0
            for group in self._plan.groups:
                found = tasks_of(self._plan, group, number, self._new.mark)
                number += len(found)
                self._open[group.number] = len(found)
                yield from found

        most = self._options.max_concurrent_file_group_rewrites
        return Work(tasks, self._plan.table.metadata, self._new, self._query, most)

    def take(self, task: RewriteTask, made: Written | Exception) -> None:
        """Process the result of a task."""
        number = task.group
        self._open[number] -= 1
        if isinstance(made, Exception):
            ends_all = isinstance(made, QueryCancelledError) or not isinstance(made, Error)
            if not self._options.partial_progress_enabled or ends_all:
                raise made
            self._failed.setdefault(number, str(made))
        else:
            # Register its files first, so that they are removed on an error.
            self._new.take(made.paths)
            self._written.setdefault(number, {})[task.number] = self.origins.take(made)
        if self._open[number]:
            return
        self._ended += 1
        if number not in self._failed:
            try:
                rows = sum(each.rows for each in self._written[number].values())
                check_rows(self._groups[number], rows, self._table)
            except InternalError as error:
                if not self._options.partial_progress_enabled:
                    raise
                self._failed[number] = str(error)
        if number in self._failed:
            files = self._files(number)
            self.origins.forget(files)
            self._new.remove(each.path for each in files)
            return
        self._ready.append(number)
        self._bytes += sum(each.bytes for each in self._written[number].values())
        self._query.report(
            Progress("rewriting file groups", self._ended, len(self._groups), self._bytes)
        )
        if self._options.partial_progress_enabled:
            at_once = -(-len(self._groups) // self._options.partial_progress_max_commits)
            if len(self._ready) >= at_once:
                self._commit()

    def finish(self) -> None:
        """Commit the remaining groups. Raises OperationalError if too many commits failed."""
        if self._ready:
            self._commit()
        most = self._options.partial_progress_max_failed_commits
        if self._options.remove_dangling_deletes and self._snapshots:
            self._remove_dangling()
        if self._failed_commits > most:
            raise OperationalError(
                f"{self._failed_commits} commits of the rewrite failed, more than "
                f"partial-progress.max-failed-commits {most}; {len(self._committed)} were made. "
                f"The last said: {[*self._failed.values()][-1]}"
            )

    def _commit(self) -> None:
        numbers, self._ready = self._ready, []
        numbers.sort()
        groups = [self._groups[each] for each in numbers]
        files = {each: self._files(each) for each in numbers}
        added = [file for some in files.values() for file in some]
        removed = [task.data_file for group in groups for task in group.files]
        vectors = vectors_of(groups)
        deletes = NewDeletes(self._new)
        followed = FollowedGroups(
            self._plan, groups, files, self.origins, self._own, self._query, deletes
        )
        assert self._plan.start is not None
        # The commit removes the files, unless the table has or may have them.
        self._new.hand_over(each.path for each in added)
        try:
            done = commit_rewrite(
                self._catalog,
                self._plan.table,  # has the start snapshot, which others may have expired
                added=added,
                removed=(*removed, *vectors),
                start_id=self._plan.start.snapshot_id,
                keeps_age=self._options.use_starting_sequence_number,
                branch=self._plan.request.branch,
                query=self._query,
                meanwhile=followed,
            )
        except CommitConflictError as error:
            if not self._options.partial_progress_enabled:
                raise
            self._failed_commits += 1
            self._failed |= dict.fromkeys(numbers, str(error))
        else:
            self._table = done.table
            self._note(done, groups, followed, files)
        self.origins.forget(added)

    def _files(self, number: int) -> list[DataFile]:
        """The new files of a group, in the order of its tasks."""
        found = sorted(self._written.pop(number, {}).items())
        return [file for _, written in found for file in written.files]

    def _note(
        self,
        done: CommitResult,
        groups: Sequence[FileGroup],
        followed: FollowedGroups,
        new: Mapping[int, Sequence[DataFile]],
    ) -> None:
        """Count the results of a commit. Groups that it left out failed; their files are gone."""
        assert done.snapshot_id is not None  # it removes files
        self._snapshots.append(done.snapshot_id)
        snapshot = done.table.metadata.snapshot(done.snapshot_id)
        if snapshot is not None:
            self._own[snapshot.snapshot_id] = snapshot.parent_snapshot_id
        left_out = followed.left_out
        if followed.was_left_out and snapshot is not None:
            # The committed attempt may not be the last one.
            since = Since(snapshot.parent_snapshot_id, done.table, snapshot, self._query)
            left_out = {
                each.number: followed.left_out.get(each.number, "another commit was first")
                for each in groups
                if since.key_of(each.files[0].data_file.path) not in since.gone
            }
        self._failed |= left_out
        committed = [each for each in groups if each.number not in left_out]
        files = [file for each in committed for file in new[each.number]]
        self._added += len(files)
        self._added_bytes += sum(each.file_size_in_bytes for each in files)
        self._removed_deletes += len(vectors_of(committed))
        self._carried_rows += int(done.summary.get(CARRIED_ROWS, 0))
        self._committed.append(tuple(each.number for each in committed))

    def _remove_dangling(self) -> None:
        """Remove delete files that apply to no data file, in a separate commit."""
        ref = self._table.metadata.refs.get(self._plan.request.branch)
        if ref is None:
            return  # the table was replaced, or the branch dropped, since the last commit
        head = ref.snapshot_id
        snapshot = self._table.metadata.snapshots[head]
        useless = dangling_deletes(self._table, snapshot, self._query)
        done = commit_rewrite(
            self._catalog,
            self._table,
            added=(),
            removed=useless,
            start_id=head,
            branch=self._plan.request.branch,
            query=self._query,
        )
        self._table = done.table
        if done.snapshot_id is not None:
            self._snapshots.append(done.snapshot_id)
            self._removed_deletes += len(useless)

    def done(self) -> Rewritten:
        """The outcome so far."""
        groups = [self._groups[n] for numbers in self._committed for n in numbers]
        return Rewritten(
            self._table,
            sum(len(each.files) for each in groups),
            self._added,
            sum(each.bytes for each in groups),
            sum(len(self._groups[each].files) for each in self._failed),
            self._removed_deletes,
            (*self._snapshots,),
            tuple(dict.fromkeys(self._failed.values())),
            self._added_bytes,
            self._carried_rows,
        )


def vectors_of(groups: Sequence[FileGroup]) -> list[DataFile]:
    """The deletion vectors of the groups' files, which are removed with the files."""
    return [
        delete
        for group in groups
        for task in group.files
        for delete in task.deletes
        if delete.is_deletion_vector
    ]


def check_rows(group: FileGroup, rows: int, table: Table) -> None:
    """Raise InternalError if metadata contradicts this number of live rows in a group.

    Reads vectors if their recorded cardinalities, which may be too large, do not explain it.
    """
    if any(task.data_file.record_count < 0 for task in group.files):
        return
    least, most = _live_rows(group, lambda vector, _: vector.record_count)
    if not least <= rows <= most:
        least, most = _live_rows(
            group, lambda vector, of: rows_of_vector(vector, of, table.storage, table.name)
        )
    if not least <= rows <= most:
        expected = f"{most:,}" if least == most else f"{least:,} to {most:,}"
        raise InternalError(
            f"a rewrite of {len(group.files)} files gave {rows:,} rows where their metadata says "
            f"{expected}; nothing of it was committed"
        )


def _live_rows(group: FileGroup, of_vector: Callable[[DataFile, int], int]) -> tuple[int, int]:
    """The smallest and largest possible number of live rows of a group."""
    most = least = sum(task.data_file.record_count for task in group.files)
    for task in group.files:
        of_file = task.data_file.record_count
        deletes = task.deletes
        if any(each.content is FileContent.EQUALITY_DELETES for each in deletes):
            least -= of_file
        elif len(deletes) == 1 and deletes[0].is_deletion_vector:
            gone = of_vector(deletes[0], of_file)
            least, most = least - min(of_file, gone), most - gone
        else:
            least -= min(of_file, sum(each.record_count for each in deletes))
    return least, most
