"""MERGE INTO: update, delete and insert rows of a table by the rows of a source, in one commit."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from msgspec.structs import replace

from icesql.catalog.table import Catalog, Table
from icesql.commit.branches import Branch
from icesql.commit.file_changes import as_it_is
from icesql.engine.result_schema import ResultColumn, ResultType
from icesql.engine.run_time_filters import values_filter
from icesql.errors import (
    ColumnNotFoundError,
    CommitConflictError,
    ProgrammingError,
    UnsupportedSqlError,
    rows_changed,
    similar_names,
)
from icesql.frozen import Frozen
from icesql.iceberg import types as t
from icesql.iceberg.expressions.predicate import ALWAYS_FALSE, ALWAYS_TRUE, Predicate
from icesql.iceberg.schema import POS, Schema
from icesql.modify.column_types import result_fields
from icesql.modify.evolution import Evolution
from icesql.modify.insert import insert_evolution
from icesql.modify.merge.changes import MergedRows, all_matches
from icesql.modify.merge.relation import Part, Relation, RelationMaker, volatile_condition
from icesql.modify.merge.source import SourcePart, SourceRows, read_source
from icesql.modify.merge.values import unqualified
from icesql.modify.rows.commit import (
    ChangedRows,
    RowTarget,
    change_rows,
    check_row_names,
    check_same_columns,
    commit_files,
    files_of,
    row_target,
)
from icesql.modify.services import Modified, StatementServices
from icesql.modify.targets import find_named, find_target
from icesql.modify.tasks.run import Division, TaskRun, parts_for, planned_division
from icesql.query.run_time_filters import compare_alike
from icesql.query.views.expansion import quoted_name
from icesql.read.task import read_file
from icesql.scan.plan import TableScan
from icesql.scan.planner import plan_snapshot
from icesql.sql.parse import parse_expanded
from icesql.sql.statement import Write
from icesql.sql.writes.merge_reading import SOURCE
from icesql.sql.writes.merge_statement import Merge
from icesql.sql.writes.statements import Insert
from icesql.storage.new_files import Uncommitted, check_writable
from icesql.write.options import check_table
from icesql.write.written import Written

if TYPE_CHECKING:
    from icesql.engine.result import Result
    from icesql.modify.services import Narrow, Scans
    from icesql.sql.statement import Query


# ------------------------------------------------------------------ schema evolution
# MERGE WITH SCHEMA EVOLUTION adds the columns that clauses copy unchanged. Source: Spark
# ``MergeIntoTable.sourceSchemaForSchemaEvolution``.


Path = tuple[str, ...]


def merge_evolution(
    statement: Merge, schema: Schema, names: Sequence[str], columns: Sequence[ResultColumn]
) -> Evolution:
    """The evolution of the table by the source's ``columns``, which have these ``names``.

    UPDATE SET * and INSERT * add all columns of the source. An assignment adds the column, or the
    struct field, that it copies to the same path: ``SET x = s.x``. Other values add no column.
    """
    clauses = [each for each in statement.clauses if each.action in ("update", "insert")]
    given = [ResultColumn(name, each.type) for name, each in zip(names, columns, strict=True)]
    if any(each.star in ("all", "name") for each in clauses):
        return Evolution(given)
    wanted = {*_assigned(statement, schema)}
    kept = [(each.name, _kept(each.type, (each.name.lower(),), wanted)) for each in given]
    return Evolution([ResultColumn(name, type) for name, type in kept if type is not None])


def _assigned(statement: Merge, schema: Schema) -> Iterator[Path]:
    """The paths, in lower case, to which clauses copy the source's column at the same path."""
    taken = dict(statement.taken)
    for clause in statement.clauses:
        for number, each in enumerate(clause.values):
            path = taken.get(each.value) if each.value is not None else None
            if path is None:
                continue
            target = unqualified(each.path, schema, statement)
            if not target:  # VALUES without a list of columns
                target = tuple(field.name for field in schema.fields[number : number + 1])
            lower = tuple(name.lower() for name in path)
            if lower == tuple(name.lower() for name in target):
                yield lower


def _kept(type: ResultType, path: Path, wanted: Collection[Path]) -> ResultType | None:
    """The part of a type at the wanted paths or below; None if there is none."""
    if path in wanted:
        return type
    if type.kind != "struct":
        return None
    inner = [(name, _kept(child, (*path, name.lower()), wanted)) for name, child in type.children]
    kept = tuple((name, child) for name, child in inner if child is not None)
    return ResultType("struct", children=kept) if kept else None


def definitions_of(statement: Write, services: StatementServices) -> list[str]:
    """The ALTER TABLE statements that make the same changes, in their order. Changes nothing.

    Reads only the metadata of tables. Raises what the statement would raise about its columns.
    """
    assert isinstance(statement, Insert | Merge)
    _, table, _ = find_named(statement.table, services)
    schema = table.metadata.schema
    query = statement.query if isinstance(statement, Insert) else statement.source
    columns = services.columns_of(query)
    evolution: Evolution | None
    if isinstance(statement, Insert):
        evolution = insert_evolution(statement, table, columns)
    else:
        names = [each.name for each in columns]
        evolution = merge_evolution(statement, schema, names, columns)
    assert evolution is not None
    evolution.updates(table.metadata)
    name = ".".join(quoted_name(each, "") for each in table.identifier)
    return [f"{each.sql(name)};" for each in evolution.growth(schema)]


# ------------------------------------------------------------------ filter by the join keys


_KEYS: Final = 8


def matching_filter(statement: Merge, schema: Schema, source: SourceRows) -> Predicate:
    """A filter that every row of the table satisfies that matches a row of the source."""
    found: Predicate = ALWAYS_TRUE
    for key in statement.keys[:_KEYS]:
        for own, other in ((key.one, key.other), (key.other, key.one)):
            field = _of_table(own, statement, schema, source)
            index = _of_source(other, statement, schema, source)
            if field is None or index is None:
                continue
            try:
                (given,) = result_fields((source.columns[index],))
            except UnsupportedSqlError:
                continue
            if not compare_alike(field, given):
                continue
            found &= values_filter(source.values(index), field)
            break
    return found


def table_columns(statement: Merge, schema: Schema, source: SourceRows) -> list[t.NestedField]:
    """The columns of the table that ON or USING compares with the source."""
    found: list[t.NestedField] = []
    for key in statement.keys:
        for own in (key.one, key.other):
            field = _of_table(own, statement, schema, source)
            if field is not None and field not in found:
                found.append(field)
                break
    return found


def _bare(word: str) -> str:
    return word.strip('"`').lower()


def _of_table(
    name: tuple[str, str], statement: Merge, schema: Schema, source: SourceRows
) -> t.NestedField | None:
    qualifier, column = name
    if qualifier and qualifier.lower() != _bare(statement.target_name):
        return None
    elsewhere = {each.lower() for each in source.names}
    if not qualifier and not statement.uses_columns and column.lower() in elsewhere:
        return None
    return schema.find_column(column)


def _of_source(
    name: tuple[str, str], statement: Merge, schema: Schema, source: SourceRows
) -> int | None:
    qualifier, column = name
    if qualifier and qualifier.lower() != _bare(statement.source_name):
        return None
    if not qualifier and not statement.uses_columns and schema.find_column(column) is not None:
        return None
    places = [n for n, each in enumerate(source.names) if each.lower() == column.lower()]
    return places[0] if len(places) == 1 else None


# ------------------------------------------------------------------ the statement


def merge(statement: Merge, services: StatementServices) -> Modified:
    """Join the source with the table, and change the rows that the clauses take.

    The result counts the rows that were inserted, updated and deleted. Raises
    ProgrammingError for two source rows that change one row of the table, ColumnNotFoundError,
    TypeMismatchError, DataError and IntegrityError for values that do not fit, and
    CommitConflictError where another writer changed or added rows that may match meanwhile; then no
    file is left and the table is unchanged.
    """
    return _Merge(statement, services).run()


class Place(Frozen):
    """The target of a MERGE, and the tables that were read before it."""

    catalog: Catalog
    table: Table
    branch: Branch
    read_before: Scans


class _Merge:
    def __init__(self, statement: Merge, services: StatementServices) -> None:
        self._statement, self._services = statement, services

    def run(self) -> Modified:
        statement, services = self._statement, self._services
        catalog, table, branch = find_target(statement.table, services)
        if statement.evolves:
            table = as_it_is(catalog, table)
        check_table(table.metadata)
        check_writable(table.storage)
        with Uncommitted(table.storage) as new:
            with statement.source_text.placing():
                result, read_before = self._source()
                source = read_source(result, SOURCE, services.query, table, new)
            try:
                return self._merged(source, Place(catalog, table, branch, read_before))
            except ProgrammingError as error:
                raise (volatile_condition(error) or error) from error.__cause__

    def _merged(self, source: SourceRows, place: Place) -> Modified:
        statement, services, table = self._statement, self._services, place.table
        self._check_names(source)
        if all(each.action == "nothing" for each in statement.clauses):
            return Modified(0)
        check_row_names(table)
        self._read = table.metadata.schema
        self._evolution = None
        if statement.evolves:
            self._evolution = merge_evolution(statement, self._read, source.names, source.columns)
            table = self._evolution.planned(table, services.query)[0]
        self._schema = table.metadata.schema
        self._lineage = table.metadata.format_version > 2
        if services.query.settings.engine != "local":
            done = self._in_tasks(source, place)
            if done is not None:
                return done
        relation = self._relation(source, "all")
        with relation.text.placing():
            result, scans = self._ask(relation, source)
            with closing(result):
                target = self._target(place, scans)
                return self._change(relation, target, source, result)

    def _source(self) -> tuple[Result, Scans]:
        """Run the source on the configured engine, or locally if that engine cannot run it."""
        try:
            return self._services.run(self._statement.source)
        except UnsupportedSqlError as error:
            if self._services.query.settings.engine == "local":
                raise
            refused = error

        def here(scans: Scans) -> Scans:
            if any(each.frame is not None for each in scans):
                raise refused
            return scans

        return self._services.run_here(self._statement.source, {}, here)

    def _relation(self, source: SourceRows, part: Part) -> Relation:
        maker = RelationMaker(
            self._statement,
            self._schema,
            source,
            self._services.dialect,
            lineage=self._lineage,
            part=part,
            read=self._read,
        )
        return maker.made()

    def _check_names(self, source: SourceRows) -> None:
        known = {each.lower() for each in source.names}
        for name, offset in self._statement.used:
            if name.lower() not in known:
                raise ColumnNotFoundError(
                    name,
                    table=self._statement.source_name.strip('"`'),
                    similar=similar_names(name, source.names),
                    offset=offset,
                )

    def _query(self, relation: Relation) -> Query:
        services = self._services
        return parse_expanded(
            relation.text.text,
            dialect=services.dialect or None,
            given=self._statement.given,
            shown={},
            files=services.state.access.files is not False,
        )

    def _ask(self, relation: Relation, source: SourceRows) -> tuple[Result, Scans]:
        narrow = self._narrow(relation, source)
        return self._services.run_here(self._query(relation), {SOURCE: source.table}, narrow)

    def _narrow(self, relation: Relation, source: SourceRows) -> Narrow:
        """Limit the scan of the table by the keys of the source."""
        statement, services = self._statement, self._services
        wanted: Predicate = ALWAYS_TRUE
        if not relation.keeps_all:
            wanted = matching_filter(statement, self._read, source)

        def narrow(scans: Scans) -> Scans:
            if wanted is ALWAYS_TRUE or not services.query.settings.prune:
                return scans
            return self._filtered(scans, wanted)

        return narrow

    def _filtered(self, scans: Scans, wanted: Predicate) -> Scans:
        own = self._own(scans)
        return tuple(
            replace(each, row_filter=each.row_filter & wanted) if each is own else each
            for each in scans
        )

    def _own(self, scans: Scans) -> TableScan:
        """The scan that finds the target's rows. Usually the first; views come before it."""
        return next(each for each in scans if POS in each.projection.fields)

    def _target(self, place: Place, scans: Scans) -> RowTarget:
        """The target as it was read; with another scan of the table any row may conflict."""
        scan = self._own(scans)
        others = [
            each
            for each in (*scans, *place.read_before)
            if each is not scan and each.table.identifier == scan.table.identifier
        ]
        for each in others:
            if each.table.metadata_location != scan.table.metadata_location:
                raise rows_changed(
                    f"{scan.table.name} changed while it was read; run the statement again"
                )
        check_same_columns(scan.table, place.table)
        target = row_target(
            place.catalog, scan, command="merge", branch=place.branch, alone=not others
        )
        if self._evolution is None:
            return target
        found = target.table
        if found.metadata_location == place.table.metadata_location:
            found = place.table  # others may have deleted the metadata file of ``found`` by now
        table, change = self._evolution.planned(found, self._services.query)
        if table.metadata.schema.fields != self._schema.fields:
            raise CommitConflictError(
                f"the columns of {table.name} changed meanwhile; nothing was changed, run the "
                "statement again"
            )
        return replace(target, table=table, schema=change)

    def _change(
        self, relation: Relation, target: RowTarget, source: SourceRows, result: Result
    ) -> Modified:
        reader, query = result.arrow_reader(), self._services.query
        changes = self._rows(relation, source).begin(
            reader.schema, (source.table,), files_of(target, query), query
        )
        with self._naming_rows(target, source):
            done = change_rows(
                target, changes.batches(reader), self._services, new=changes.new, once=False
            )
        return self._modified(done, done.written.gone + changes.inserted, target)

    def _modified(self, done: ChangedRows, rows: int, target: RowTarget) -> Modified:
        made = done.modified(rows)
        if self._evolution is None:
            return made
        note = self._evolution.note(self._read, target.branch)
        return replace(made, note=note, evolved=target.schema is not None)

    # ------------------------------------------------------------------ in Spark's tasks

    def _in_tasks(self, source: SourceRows, place: Place) -> Modified | None:
        """Run the statement in Spark's tasks; None where it runs on this machine.

        Tasks that insert start after all others have reported which source rows match.
        """
        services, relation = self._services, self._relation(source, "table")
        size = source.table.size if relation.shows_matches else 0
        with relation.text.placing():
            division = planned_division(
                self._query(relation),
                services,
                {SOURCE: source.table},
                self._narrow(relation, source),
                lambda scans: scans.index(self._own(scans)),
                besides=size,
            )
        if division is None:
            return None
        target = self._target(place, division.bound.scans)
        # Both are planned before a task runs, so that other tables are read at one moment.
        insertion = self._insertion(source) if size else None
        changed = inserted = Written()
        with TaskRun(target, services, source.sent) as run:
            if division.files:
                with relation.text.placing(), self._naming_rows(target, source):
                    changed = run.change(division, self._rows(relation, source))
            if insertion is not None:
                own, divided = insertion
                # Each task has reported the source rows that match its files.
                gone = all_matches(changed.notes)

                def parts(slots: int, few: bool) -> list[SourcePart]:
                    left = source.table.data.num_rows - len(gone)
                    bytes_left = size * left // source.table.data.num_rows
                    return source.parts(gone, parts_for(bytes_left, slots, few=few))

                with own.text.placing():
                    inserted = run.insert(divided, self._rows(own, source), parts)
        done = commit_files(target, Written.of((changed, inserted)), services)
        return self._modified(done, done.written.gone + inserted.rows, target)

    @contextmanager
    def _naming_rows(self, target: RowTarget, source: SourceRows) -> Iterator[None]:
        """Name a row of the table that matches twice by its keys."""
        try:
            yield
        except ProgrammingError as error:
            path, position = map(error.__dict__.get, ("data_file", "row_position"))
            if not isinstance(path, str) or not isinstance(position, int):
                raise
            raise ProgrammingError(self._repeated(target, source, path, position)) from error

    def _insertion(self, source: SourceRows) -> tuple[Relation, Division]:
        """The query that turns source rows that match nothing into new rows."""
        relation = self._relation(source, "source")
        with relation.text.placing():
            bound, plans = self._services.plan_here(
                self._query(relation),
                {SOURCE: source.table},
                lambda scans: self._filtered(scans, ALWAYS_FALSE),
            )
        return relation, Division(bound, plans, bound.scans.index(self._own(bound.scans)))

    def _rows(self, relation: Relation, source: SourceRows) -> MergedRows:
        return MergedRows(
            relation,
            self._schema,
            source.columns,
            source.row,
            self._lineage,
        )

    def _repeated(self, target: RowTarget, source: SourceRows, path: str, position: int) -> str:
        """The error message for a row that several source rows match, with the row's keys."""
        keys = table_columns(self._statement, self._schema, source)
        shown = self._values(target, path, position, keys) if keys else ""
        what = f"the row with {shown}" if shown else f"row {position:,} of {path}"
        return (
            f"several rows of the source match {what} in {target.table.name}, and a row is changed "
            "once; keep one source row for each key (SELECT DISTINCT, or QUALIFY row_number() "
            "OVER (PARTITION BY key ORDER BY …) = 1), or make ON more exact; nothing was changed"
        )

    def _values(self, target: RowTarget, path: str, position: int, keys: list[Any]) -> str:
        """The keys of one row, read from its file, as text."""
        query = self._services.query
        projection = Schema((*keys, POS))
        planned = plan_snapshot(target.table, target.snapshot, query, projection=projection)
        for task in planned.files:
            if task.data_file.path != path:
                continue
            for batch in read_file(task, planned.context, query):
                found = batch.filter(pc.equal(batch.column(len(keys)), pa.scalar(position)))
                if found.num_rows:
                    return ", ".join(
                        f"{key.name} = {found.column(index)[0].as_py()!r:.60}"
                        for index, key in enumerate(keys)
                    )
        return ""
