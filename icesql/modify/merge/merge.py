"""MERGE INTO: rows of a source change, join or leave a table, in one commit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from msgspec.structs import replace

from icesql.errors import (
    ColumnNotFoundError,
    ProgrammingError,
    UnsupportedSqlError,
    similar_names,
)
from icesql.iceberg.expressions.predicate import ALWAYS_TRUE, Predicate
from icesql.iceberg.metadata_columns import POS
from icesql.modify.merge.changes import MergeChanges
from icesql.modify.merge.keys import matching_filter, table_columns
from icesql.modify.merge.relation import Relation, merge_relation
from icesql.modify.merge.source import SourceRows, read_source
from icesql.modify.merge.values import OfTable
from icesql.modify.modified import Modified, Work
from icesql.modify.rows.changes import NewRows
from icesql.modify.rows.commit import change_rows
from icesql.modify.rows.stored_variants import StoredVariants, has_variants
from icesql.modify.rows.target import RowTarget, check_same_columns, row_target
from icesql.modify.targets import find_target
from icesql.read.task import read_file
from icesql.scan.planner import plan
from icesql.scan.table_scan import TableScan
from icesql.sql.parse import parse_expanded
from icesql.sql.writes.merge.read import SOURCE
from icesql.sql.writes.merge.statement import Merge
from icesql.storage.new_file import check_writable
from icesql.write.options import check_table
from icesql.write.parquet_schema import stored_fields

if TYPE_CHECKING:
    from icesql.catalog.table import Catalog
    from icesql.commit.snapshots.branches import Branch
    from icesql.engine.protocol import Result
    from icesql.sql.statement import Query


def merge(statement: Merge, work: Work) -> Modified:
    """Join the source with the table, and change the rows that the clauses take.

    The rows of the answer are those that were inserted, updated and deleted. Raises
    ProgrammingError for two source rows that change one row of the table, ColumnNotFoundError,
    TypeMismatchError, DataError and IntegrityError for values that do not fit, and
    CommitConflictError where others changed or added rows that may match meanwhile; then no file
    is left and the table is as it was.
    """
    if work.query.settings.engine == "spark":
        raise UnsupportedSqlError("MERGE on the Spark engine", hint="SET engine = local")
    return _Merge(statement, work).run()


class _Merge:
    def __init__(self, statement: Merge, work: Work) -> None:
        self._statement, self._work = statement, work

    def run(self) -> Modified:
        statement, work = self._statement, self._work
        catalog, table, branch = find_target(statement.table, work)
        check_table(table.metadata)
        check_writable(table.storage)
        with statement.source_text.placing():
            result, read_before = work.ask_scanned(statement.source)
            source = read_source(result, SOURCE, work.query)
        self._check_names(source)
        if all(each.action == "nothing" for each in statement.clauses):
            return Modified(0)
        self._schema = table.metadata.schema
        self._lineage = table.metadata.format_version > 2
        relation = merge_relation(
            statement, self._schema, source, work.dialect, lineage=self._lineage
        )
        with relation.text.placing():
            result, scans = self._ask(relation, source)
            try:
                target = self._target(catalog, branch, scans, read_before)
                check_same_columns(target.table, table)
                return self._change(relation, target, source, result)
            finally:
                result.close()

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

    def _ask(self, relation: Relation, source: SourceRows) -> tuple[Result, tuple[TableScan, ...]]:
        statement, work = self._statement, self._work
        query: Query = parse_expanded(
            relation.text.text,
            dialect=work.dialect or None,
            given=statement.given,
            shown={},
            files=work.names.access.files is not False,
        )
        wanted: Predicate = ALWAYS_TRUE
        if not relation.keeps_all:
            wanted = matching_filter(statement, self._schema, source)

        def narrow(scans: tuple[TableScan, ...]) -> tuple[TableScan, ...]:
            if wanted is ALWAYS_TRUE or not work.query.settings.prune:
                return scans
            own = self._own(scans)
            return tuple(
                replace(each, row_filter=each.row_filter & wanted) if each is own else each
                for each in scans
            )

        return work.ask_with(query, {SOURCE: source.table}, narrow)

    def _own(self, scans: tuple[TableScan, ...]) -> TableScan:
        """The scan that finds the rows: it is the first, unless views stand before it."""
        for each in scans:
            if POS in each.projection.fields:
                return each
        raise AssertionError("MERGE asks for positions")

    def _target(
        self,
        catalog: Catalog,
        branch: Branch,
        scans: tuple[TableScan, ...],
        read_before: tuple[TableScan, ...],
    ) -> RowTarget:
        """What is changed, as it was read. Another reading of the table has a say in all rows."""
        scan = self._own(scans)
        others = [
            each
            for each in (*scans, *read_before)
            if each is not scan and each.table.identifier == scan.table.identifier
        ]
        for each in others:
            if each.table.metadata_location != scan.table.metadata_location:
                raise ProgrammingError(
                    f"{scan.table.name} changed while it was read; run the statement again"
                )
        return row_target(catalog, scan, command="merge", branch=branch, alone=not others)

    def _change(
        self, relation: Relation, target: RowTarget, source: SourceRows, result: Result
    ) -> Modified:
        zone = str(self._work.query.settings.timezone)

        def refuse(path: str, position: int) -> None:
            raise ProgrammingError(self._repeated(target, source, path, position))

        variants = {
            relation.places[OfTable(each.name)]: each
            for each in self._schema.fields
            if OfTable(each.name) in relation.places and has_variants(each)
        }
        changes = MergeChanges(
            relation,
            self._schema,
            source,
            zone,
            lineage=self._lineage,
            refuse=refuse,
            stored=StoredVariants(target.table, target.snapshot, variants, self._work.query),
        )
        reader = result.arrow_reader()
        changes.check(reader.schema)
        done = change_rows(
            target, changes.batches(reader), self._work, new=self._new_rows(), once=False
        )
        return done.modified(done.gone + changes.inserted)

    def _new_rows(self) -> NewRows:
        """The rows that come are in the table's Parquet schema, with ``_row_id`` behind in v3."""
        sources: list[int | None] = []
        count = 0
        for field in self._schema.fields:
            stored = bool(stored_fields((field,)))
            sources.append(count if stored else None)
            count += stored
        return NewRows(tuple(sources), row_id=count if self._lineage else None)

    def _repeated(self, target: RowTarget, source: SourceRows, path: str, position: int) -> str:
        """What is wrong with a row that several source rows match, which its keys tell."""
        keys = table_columns(self._statement, self._schema, source)
        shown = self._values(target, path, position, keys) if keys else ""
        what = f"the row with {shown}" if shown else f"row {position:,} of {path}"
        return (
            f"several rows of the source match {what} in {target.table.name}, and a row is changed "
            "once; keep one source row for each key (SELECT DISTINCT, or QUALIFY row_number() "
            "OVER (PARTITION BY key ORDER BY …) = 1), or make ON more exact; nothing was changed"
        )

    def _values(self, target: RowTarget, path: str, position: int, keys: list[Any]) -> str:
        """The keys of one row, read from its file."""
        schema = target.metadata.schema
        projection = replace(schema, fields=(*keys, POS))
        planned = plan(
            TableScan(target.table, target.snapshot, schema, projection), self._work.query
        )
        for task in planned.files:
            if task.data_file.path != path:
                continue
            for batch in read_file(task, planned.context, self._work.query):
                found = batch.filter(pc.equal(batch.column(len(keys)), pa.scalar(position)))
                if found.num_rows:
                    return ", ".join(
                        f"{key.name} = {found.column(index)[0].as_py()!r:.60}"
                        for index, key in enumerate(keys)
                    )
        return ""
