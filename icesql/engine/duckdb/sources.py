"""DuckDB's resources for one query: its cursor, the folders it may read, its tables' SQL."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakSet

from msgspec import Struct

from icesql.engine.duckdb.relations import grouping
from icesql.engine.duckdb.relations.grouping import FileGroup, group_files
from icesql.engine.duckdb.relations.opened_files import STORE_FOLDER, OpenedFiles
from icesql.engine.duckdb.relations.relation import (
    file_relation,
    register_tables,
    registered_sql,
    union_all,
)
from icesql.engine.duckdb.relations.relation_builder import RelationBuilder
from icesql.errors import StorageError
from icesql.scan.tasks import distinct_deletes

if TYPE_CHECKING:
    import pyarrow as pa

    from icesql.context import QueryContext
    from icesql.engine.duckdb.arrow_stream import ArrowStream
    from icesql.engine.duckdb.instance import Instance, InstancePool
    from icesql.engine.duckdb.prepared_run import KnownScan, PreparedRun
    from icesql.engine.duckdb.relations.footer import FileFacts, FooterCache
    from icesql.engine.duckdb.relations.kept_relations import KeptLease
    from icesql.engine.duckdb.relations.relation import Relation
    from icesql.engine.duckdb.store_files import QueryFiles
    from icesql.engine.engines import Sink
    from icesql.query.bound import BoundQuery
    from icesql.scan.plan import ScanPlan
    from icesql.storage.open import Storage


# The relation of a scan, facts about its files by location, and the groups of the files.
_Scan = tuple["Relation", Mapping[str, "FileFacts"], tuple[str, ...]]


class Sources:
    """The tables of one query.

    Reading them sets ``parameters`` of their SQL, ``groups`` as in ``Result``, and the
    ``instance`` whose cursor ``open_query`` holds.
    """

    def __init__(
        self,
        bound: BoundQuery,
        plans: Sequence[ScanPlan],
        query: QueryContext,
        pool: InstancePool,
        footers: FooterCache,
        open_query: OpenQuery,
        prepared: PreparedRun | None,
    ) -> None:
        self._bound, self._plans, self._query = bound, tuple(plans), query
        self._pool, self._footers, self._open = pool, footers, open_query
        self._prepared = prepared
        self.instance: Instance | None = None
        self.parameters: dict[str, Any] = {}
        self.groups: tuple[str, ...] = ()

    def planned(self, *, arrow_only: bool) -> Callable[[], Mapping[str, str]]:
        """A function that returns the SQL by table, to be called in the query's own thread.

        ``read/`` reads every file if ``arrow_only``.
        """
        if self._prepared is not None and not arrow_only:
            known = self._prepared.known_scans(self._plans)
            if known is not None:
                own = [scan.folders for scan in known]
                return lambda: self._read(own, self._again(known), are_fresh=False)
        groups = [self._groups(plan, arrow_only=arrow_only) for plan in self._plans]
        folders = [folders_read(plan, own) for plan, own in zip(self._plans, groups, strict=True)]
        return lambda: self._read(folders, self._first_time(folders, groups), are_fresh=True)

    def _groups(self, plan: ScanPlan, *, arrow_only: bool) -> tuple[FileGroup, ...]:
        if plan.rows_read is not None:
            return ()
        if not arrow_only:
            return group_files(plan.files, plan.context, self._query.settings, stores=True)
        reason = "DuckDB could not read the files"
        return (FileGroup(grouping.ARROW, plan.files, reason),) if plan.files else ()

    def _read(
        self, folders: Iterable[Set[str]], scans: Iterator[_Scan], *, are_fresh: bool
    ) -> Mapping[str, str]:
        """The SQL by table; ``scans`` begin after the cursor of the query exists."""
        wanted = set[str]().union(*folders, *(files.folders for files in self._bound.files))
        self.instance, cursor = self._pool.cursor(wanted, self._query.settings)
        self._open.begin(self.instance, cursor)
        sources = register_tables(cursor, self._bound.temporary)
        of_all: dict[str, FileFacts] = {}
        self.groups = ()
        for index, (found, facts, groups) in enumerate(scans):
            of_all |= facts
            self.groups += groups
            sources[f"__scan_{index}"] = registered_sql(cursor, found)
            self.parameters.update(found.parameters)
        self._keep_footers(of_all, are_fresh=are_fresh)
        return {**sources, **self._files()}

    def _first_time(
        self, folders: Sequence[set[str]], groups: Sequence[tuple[FileGroup, ...]]
    ) -> Iterator[_Scan]:
        prepared, arguments = self._prepared, self._bound.tree.args
        # Any few rows answer a query with a LIMIT and without ORDER BY.
        reads_all = arguments.get("limit") is None or arguments.get("order") is not None
        opened = OpenedFiles(self._query, self._open.begin_files, reads_all=reads_all)
        # A query that is not prepared reads its files only once.
        kept = None if prepared is None else self._open.begin_kept()
        for index, (plan, own) in enumerate(zip(self._plans, groups, strict=True)):
            builder = RelationBuilder(
                self._open.cursor, self._footers, self._query, self._open.streams, opened, kept
            )
            confirmed = builder.confirm(plan.context, own, plan.scan.limit)
            found = builder.of_plan(index, plan, own, confirmed)
            if prepared is not None:
                prepared.note_scan(
                    index, plan, folders[index], confirmed, builder.plain, builder.facts
                )
            used = tuple(group.name for group in confirmed for _ in group.tasks)
            if plan.rows_read is not None:
                used = (grouping.ARROW,) * len(plan.files)
            yield found, builder.facts, used

    def _again(self, known: Sequence[KnownScan]) -> Iterator[_Scan]:
        cursor, kept = self._open.cursor, self._open.begin_kept()
        for plan, scan in zip(self._plans, known, strict=True):
            parts = [kept.relation(cursor, part, tasks, plan.context) for part, tasks in scan.parts]
            yield union_all(parts), scan.facts, (grouping.DUCKDB,) * len(plan.files)

    def _keep_footers(self, facts: Mapping[str, FileFacts], *, are_fresh: bool) -> None:
        """Let DuckDB keep the footers of files, if possible; see ``KeptFooters.admit``."""
        assert self.instance is not None
        kept = self.instance.footers
        if kept is not None and not kept.admit(self._open.cursor, facts, are_fresh=are_fresh):
            self._pool.discard(self.instance)

    def _files(self) -> Mapping[str, str]:
        sources = {}
        for files in self._bound.files:
            for each in files.locations:
                if not os.path.isfile(each):  # opening a pipe would wait for a writer
                    raise StorageError(each, "the file was replaced while the statement ran")
            found = file_relation(files)
            sources[files.name] = found.sql
            self.parameters.update(found.parameters)
        return sources


# Directories for DuckDB's allow-list.


def folders_read(plan: ScanPlan, groups: Sequence[FileGroup]) -> set[str]:
    """The folders that DuckDB must be able to read: the table's, and those of other files."""
    paths = [path for group in groups if group.name != grouping.ARROW for path in _paths(group)]
    if not paths:
        return set()
    storage = plan.context.storage
    folders: set[str] = set()
    try:
        metadata = storage.local_path(plan.scan.table.metadata_location)
    except StorageError:
        metadata = None  # a commit has removed it: only the folders of the files are needed
    if metadata is not None and len(table := os.path.dirname(os.path.dirname(metadata))) > 1:
        folders.add(table)
    for path in paths:
        location = storage.local_path(path)
        if location is None:
            folders |= folders_of_store(storage, path)
            continue
        folder = os.path.dirname(location)
        if not any(folder == known or folder.startswith(known + "/") for known in folders):
            folders.add(folder)
    return folders


def folders_of_store(storage: Storage, path: str) -> set[str]:
    """The file system of stores, and the folder of local copies of small files, if any."""
    shelf = storage.remote_files().shelf(storage.location(path))
    return {STORE_FOLDER} if shelf is None else {STORE_FOLDER, shelf.folder}


def _paths(group: FileGroup) -> Iterator[str]:
    """The data and equality delete files of a group."""
    yield from (delete.path for delete in distinct_deletes(group.tasks) if delete.equality_ids)
    yield from (task.data_file.path for task in group.tasks)


# The resources of DuckDB that a query holds while it runs.


class OpenQuery:
    """A DuckDB cursor, the streams that it scans and the reader of its rows.

    It does not refer to the result: the thread that releases it must not keep the result alive.
    """

    def __init__(self) -> None:
        self.cursor: Any = None
        self.streams: list[ArrowStream] = []
        self.reader: Iterator[pa.RecordBatch] = iter(())
        self.files: QueryFiles | None = None
        self.kept: KeptLease | None = None
        self.sink: Sink | None = None
        self._instance: Instance | None = None
        keep_in_forks(self)

    def begin(self, instance: Instance, cursor: Any) -> None:
        """Hold a cursor of ``instance``."""
        self.cursor, self._instance = cursor, instance

    def begin_files(self) -> QueryFiles:
        """An empty set of object-store files for the query."""
        assert self._instance is not None
        self.files = self._instance.begin_files()
        return self.files

    def begin_kept(self) -> KeptLease:
        """A lease on the tables in memory that the query reads."""
        assert self._instance is not None
        self.kept = self._instance.begin_kept()
        return self.kept

    def interrupt(self) -> None:
        """Stop the cursor's work, from any thread; has no effect on an idle cursor."""
        import duckdb

        for stream in list(self.streams):
            stream.stop()
        files = self.files
        if files is not None:
            files.stop()
        cursor = self.cursor
        if cursor is not None:
            try:
                cursor.interrupt()
            except duckdb.Error:
                return  # it has just been closed

    def release(self) -> None:
        """Release all resources. Call it in the thread that uses the cursor."""
        self.interrupt()
        cursor, instance, reader = self.cursor, self._instance, self.reader
        files, self.files = self.files, None
        kept, self.kept = self.kept, None
        self.cursor, self._instance, self.reader, self.streams = None, None, iter(()), []
        if cursor is not None and instance is not None:
            # DuckDB waits for the reader's input, so it must end before the reader is deleted.
            instance.release(cursor)
        if kept is not None:
            kept.close()
        if files is not None:
            files.close()
        del reader


# Leave DuckDB's open objects alone in a forked process.
#
# DuckDB's threads do not exist in the child: its destructors would crash there or wait for ever.

_OPEN: Final[WeakSet[Any]] = WeakSet()


class _Immortal(Struct, gc=False):
    """Refers to itself, and the garbage collector does not track it: it is never destroyed.

    A variable of a module is not enough: the interpreter clears those when it ends.
    """

    owners: list[Any]
    itself: _Immortal | None = None


def keep_in_forks(owner: Any) -> None:
    """In a fork of this process, never collect ``owner`` or anything that it refers to."""
    _OPEN.add(owner)


def _keep() -> None:
    if _OPEN:
        kept = _Immortal(list(_OPEN))
        kept.itself = kept
        _OPEN.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_keep)
