"""Build the relations of a scan's groups: check footers, apply deletes, open Arrow streams."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from icesql.context import QueryContext
from icesql.engine.duckdb.arrow_stream import ArrowStream, TaskStream
from icesql.engine.duckdb.errors import is_fatal
from icesql.engine.duckdb.relations import grouping
from icesql.engine.duckdb.relations.footer import FileFacts, Footer, FooterCache
from icesql.engine.duckdb.relations.grouping import FileGroup, by_footer, footer_problem
from icesql.engine.duckdb.relations.opened_files import OpenedFiles, local_files, locations
from icesql.engine.duckdb.relations.relation import (
    PlainFiles,
    Relation,
    empty_relation,
    stream_relation,
    union_all,
)
from icesql.iceberg.manifest.data_file import DataFile
from icesql.iceberg.schema import POS, Schema
from icesql.iceberg.types import NestedField
from icesql.scan.file_identity import count_problem

if TYPE_CHECKING:
    from icesql.engine.duckdb.prepared_run import Part
    from icesql.engine.duckdb.relations.kept_relations import KeptLease
    from icesql.read.deletes.equality_keys import EqualityGroup
    from icesql.scan.changes import ChangePlan
    from icesql.scan.plan import ScanPlan
    from icesql.scan.tasks import FileScanTask, ScanContext

# Scans by ``read/`` of up to this many bytes are read at once, so that DuckDB knows their size.
SMALL_SCAN_BYTES: Final = 64 << 20


class RelationBuilder:
    """Builds the relations of one query's scans, in the worker thread of that query.

    It adds every Arrow source to ``streams``, whose owner stops them. ``opened`` opens files of
    object stores, if DuckDB reads any. ``kept`` holds small scans in memory. ``facts`` are those
    about files that DuckDB reads, by location; ``plain`` the relations without Arrow sources, with
    their files.
    """

    def __init__(
        self,
        cursor: Any,
        footers: FooterCache,
        query: QueryContext,
        streams: list[ArrowStream],
        opened: OpenedFiles | None = None,
        kept: KeptLease | None = None,
    ) -> None:
        self._cursor, self._footers, self._query = cursor, footers, query
        self._streams, self._opened, self._kept = streams, opened or local_files(), kept
        self.facts: dict[str, FileFacts] = {}
        self.plain: list[Part] = []

    def confirm(
        self, context: ScanContext, groups: Sequence[FileGroup], limit: int | None = None
    ) -> list[FileGroup]:
        """The groups after the footer check; files that fail it move to the arrow group.

        On the way it requests the ranges that DuckDB will read of large files in stores, unless one
        file alone has ``limit`` rows, which suffice.
        """
        ahead = limit is None or _file_of(groups, limit) is None
        confirmed: list[FileGroup] = []
        moved: dict[str, list[FileScanTask]] = {}
        for group in groups:
            if group.name == grouping.ARROW:
                moved.setdefault(group.reason, []).extend(group.tasks)
                continue
            problems = self._footer_problems(context, group, ahead=ahead)
            kept: list[FileScanTask] = []
            for task, problem in zip(group.tasks, problems, strict=True):
                (moved.setdefault(problem, []) if problem else kept).append(task)
            if kept:
                confirmed.append(FileGroup(group.name, tuple(kept)))
        confirmed.extend(
            FileGroup(grouping.ARROW, tuple(tasks), reason) for reason, tasks in moved.items()
        )
        return confirmed

    def _footer_problems(
        self, context: ScanContext, group: FileGroup, *, ahead: bool
    ) -> list[str | None]:
        storage = context.storage
        self._opened.fetch(context, group.tasks)
        keys = [
            (storage.location(task.data_file.path), task.data_file.file_size_in_bytes)
            for task in group.tasks
        ]
        columns = grouping.columns_to_read(context, group.tasks)
        if ahead:
            self._opened.read_ahead(context, group.tasks, columns)
        if not self._load_footers(keys, columns):
            return ["a footer could not be read"] * len(keys)
        verdicts: dict[tuple[int, int], tuple[str | None, Footer]] = {}
        problems: list[str | None] = []
        for key, task in zip(keys, group.tasks, strict=True):
            facts = self._footers.facts(*key)
            if problem := _contradiction(facts, task.data_file, context):
                problems.append(problem)
                continue
            assert facts is not None
            self.facts[key[0]] = facts
            memo = id(facts.footer), task.spec_id
            if memo not in verdicts:
                sources = _identity_sources(context, task.spec_id)
                problem = footer_problem(facts.footer, columns, sources)
                verdicts[memo] = problem, facts.footer
            problems.append(verdicts[memo][0])
        return problems

    def _load_footers(
        self, keys: Sequence[tuple[str, int]], columns: Sequence[NestedField]
    ) -> bool:
        """Cache the footers of files (location, length) and count the pages of columns.

        Returns False if DuckDB cannot read a schema.
        """
        import duckdb

        field_ids = [column.field_id for column in columns]
        try:
            self._footers.load(self._cursor, keys, field_ids, self._opened)
        except (duckdb.Error, UnicodeDecodeError) as error:
            if is_fatal(error) or self._query.cancel.is_set():
                raise
            # Some file is corrupt: ``read/`` reports which one, and why.
            return False
        return True

    def _is_duckdb_group(self, group: EqualityGroup) -> bool:
        """True if DuckDB's Parquet reader reads all keys of a group exactly.

        Also False for files that ``read/`` would refuse, so that it raises its error.
        """
        keys = []
        for file in group.files:
            location = group.context.storage.local_path(file.path)
            if (
                location is None
                or file.file_format.upper() != "PARQUET"
                or file.key_metadata is not None
            ):
                return False
            keys.append((location, file.file_size_in_bytes))
        columns = [key.column for key in group.columns]
        if any(key.steps for key in group.columns) or not self._load_footers(keys, columns):
            return False
        footers: dict[int, Footer] = {}
        for key, file in zip(keys, group.files, strict=True):
            facts = self._footers.facts(*key)
            if facts is None or _contradiction(facts, file, group.context):
                return False
            self.facts[key[0]] = facts
            footers[id(facts.footer)] = facts.footer
        return all(
            not footer_problem(footer, columns, frozenset())
            and all(column.field_id in (footer.by_id or {}) for column in columns)
            for footer in footers.values()
        )

    def of_plan(
        self,
        index: int,
        plan: ScanPlan,
        groups: Sequence[FileGroup],
        confirmed: Sequence[FileGroup],
    ) -> Relation:
        """The rows of a plan: of a table, a metadata table, or changes."""
        if plan.metadata is not None:
            from icesql.read.metadata_table import metadata_table

            table = metadata_table(plan.metadata, plan.context, self._query)
            return stream_relation(plan.metadata.schema, f"__stream_{index}", table)
        if plan.rows_read is not None:
            return stream_relation(plan.scan.projection, f"__stream_{index}", plan.rows_read)
        if plan.changes is not None:
            return self.changes(index, plan, plan.changes, groups)
        relation = self.relation(index, plan.context, confirmed, plan.scan.limit)
        if not plan.constants:
            return relation
        from icesql.engine.duckdb.relations.relation import constant_rows

        constants = constant_rows(index, plan.scan.projection, plan.constants, plan.constant_counts)
        return union_all([relation, constants]) if plan.files else constants

    def relation(
        self,
        index: int,
        context: ScanContext,
        groups: Sequence[FileGroup],
        limit: int | None = None,
    ) -> Relation:
        """The live rows of confirmed groups; ``index`` distinguishes the names of several scans.

        If any ``limit`` rows suffice, the relation may have only these.
        """
        relations: list[Relation] = []
        if limit is not None and (enough := _file_of(groups, limit)) is not None:
            # DuckDB's threads would begin as many row groups as there are threads.
            return self.rows(context, enough, f"s{index}", 0, limit)
        streamed = [task for g in groups if g.name == grouping.ARROW for task in g.tasks]
        for number, group in enumerate(groups):
            if group.name == grouping.DUCKDB:
                relations.extend(self._parquet(context, group.tasks, f"s{index}_{number}"))
            elif group.name == grouping.DUCKDB_WITH_DELETES:
                relations.append(self._without_deleted(context, group, f"s{index}_{number}"))
        if streamed:
            relations.append(self._stream(index, context, streamed))
        return union_all(relations) if relations else empty_relation(context.projection)

    def changes(
        self, index: int, plan: ScanPlan, found: ChangePlan, groups: Sequence[FileGroup]
    ) -> Relation:
        """The relation of the row changes in a range; ``groups`` are those of all files."""
        from icesql.engine.duckdb.relations.changes import changes_relation

        reasons = {id(task): group for group in groups for task in group.tasks}
        numbers = count((index + 1) << 16)

        def read(context: ScanContext, tasks: Sequence[FileScanTask]) -> Relation:
            if all(reasons[id(task)].name == grouping.ARROW for task in tasks):
                own = [FileGroup(grouping.ARROW, tuple(tasks), reasons[id(tasks[0])].reason)]
            else:
                settings = self._query.settings
                own = list(grouping.group_files(tasks, context, settings, stores=True))
            return self.relation(next(numbers), context, self.confirm(context, own))

        return changes_relation(found, plan.scan.projection, plan.context, read, str(index))

    def _parquet(
        self, context: ScanContext, tasks: Sequence[FileScanTask], prefix: str
    ) -> Iterator[Relation]:
        columns = grouping.columns_to_read(context)
        for number, (members, names) in enumerate(self._named(context, tasks, columns)):
            found = PlainFiles(
                context, members, f"{prefix}_{number}", columns, names, self._opened
            ).select()
            if self._kept is not None:
                self.plain.append((found, tuple(members)))
                found = self._kept.relation(self._cursor, found, members, context)
            yield found

    def _named(
        self,
        context: ScanContext,
        tasks: Sequence[FileScanTask],
        columns: Sequence[NestedField],
    ) -> Sequence[tuple[Sequence[FileScanTask], Mapping[int, str] | None]]:
        """The tasks by footer with their stored names; together without names if ids are used."""
        lengths = [task.data_file.file_size_in_bytes for task in tasks]
        facts = map(self._footers.facts, locations(tasks, context), lengths)
        footers = [None if each is None else each.footer for each in facts]
        return by_footer(tasks, footers, columns) or [(tasks, None)]

    def rows(
        self, context: ScanContext, task: FileScanTask, prefix: str, first: int, end: int
    ) -> Relation:
        """Rows ``first`` to ``end`` (exclusive) of a file that DuckDB reads."""
        columns = grouping.columns_to_read(context)
        ((_, names),) = self._named(context, (task,), columns)
        return PlainFiles(context, (task,), prefix, columns, names, self._opened).select(
            f" WHERE f.file_row_number >= {first} AND f.file_row_number < {end}"
        )

    def _without_deleted(self, context: ScanContext, group: FileGroup, prefix: str) -> Relation:
        from icesql.engine.duckdb.relations.deletes import live_rows
        from icesql.read.ahead import ReadAhead
        from icesql.read.deletes.scan_deletes import DeleteRelations

        tasks = group.tasks
        columns = grouping.columns_to_read(context, tasks)
        # By field ids DuckDB would not know how many rows join, and might hash them, not the keys.
        named = self._named(context, tasks, columns)
        names = named[0][1] if len(named) == 1 else None
        files = PlainFiles(context, tasks, prefix, columns, names, self._opened)
        # The data files are local here; delete files of a store are fetched together.
        ahead = ReadAhead(tasks, context, self._query)
        self._opened.at_end(ahead.close)
        relation = live_rows(
            files, DeleteRelations(context, tasks, self._query), self._is_duckdb_group
        )
        self._streams.extend(
            source for source in relation.registered.values() if isinstance(source, ArrowStream)
        )
        return relation

    def _stream(self, index: int, context: ScanContext, tasks: list[FileScanTask]) -> Relation:
        projection = context.projection
        if not projection.fields:
            context = replace(context, projection=Schema((POS,)))
        stream = TaskStream(tasks, context, self._query)
        self._streams.append(stream)
        small = sum(task.data_file.file_size_in_bytes for task in tasks) <= SMALL_SCAN_BYTES
        return stream_relation(projection, f"__stream_{index}", stream.table() if small else stream)


def _file_of(groups: Sequence[FileGroup], rows: int) -> FileScanTask | None:
    """A file without deletes that DuckDB reads and that has at least ``rows`` rows."""
    plain = (task for group in groups if group.name == grouping.DUCKDB for task in group.tasks)
    return next((task for task in plain if task.data_file.record_count >= rows > 0), None)


def _contradiction(facts: FileFacts | None, file: DataFile, context: ScanContext) -> str | None:
    """Why DuckDB must not read a file that ``read/`` may refuse; None if it may read it."""
    if facts is None:
        return "the footer could not be read"
    if facts.problem:
        return facts.problem
    if facts.counts is not None and (other := facts.counts.other_file(file, context.file_schema)):
        return other
    return count_problem(file, facts.rows)


def _identity_sources(context: ScanContext, spec_id: int) -> frozenset[int]:
    spec = context.specs.get(spec_id)
    return frozenset(
        source
        for each in (spec.fields if spec else ())
        if each.transform.lower() == "identity"
        for source in each.source_ids
    )
