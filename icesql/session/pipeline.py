"""The steps of a query: text → statement → views expanded → bound → planned → run by an engine."""

from __future__ import annotations

from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING, TypeAlias, cast

from msgspec.structs import replace

from icesql.engine.engines import EngineChoice, choose_engine
from icesql.engine.result import StaticResult
from icesql.errors import (
    AccessDeniedError,
    CorruptFileError,
    ScanLimitError,
    TableNotFoundError,
    UnsupportedSqlError,
    UnsupportedTableError,
    placing,
)
from icesql.session.outcome import Outcome, Parameters
from icesql.session.prepared import PreparedStatements, QueryText
from icesql.sql.parser.row_count import RowCount, read_row_count

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from icesql.context import QueryContext
    from icesql.engine.engines import Engines
    from icesql.engine.result import Result
    from icesql.query.bound import BoundQuery, KeyEdge
    from icesql.query.views.temporary import TemporaryTable
    from icesql.scan.plan import ScanPlan, TableScan
    from icesql.session.outcome import State
    from icesql.session.prepared import PreparedStatement
    from icesql.sql.statement import Explain, Query, Shown, Statement


# Plan the scans of a bound query, within the limits.


def plans_to_read(
    bound: BoundQuery,
    query: QueryContext,
    statements: PreparedStatements,
    prepared: PreparedStatement | None,
) -> tuple[list[ScanPlan], tuple[str, ...]]:
    """The plan of each scan, and notes on verification.

    A prepared query may already have its plans. Raises ScanLimitError, and with ``verify`` full
    the errors of verification.
    """
    from icesql.scan.plan import check_limits

    plans = statements.plan(prepared, bound.scans, query)
    edges = edges_of(bound, plans)
    check_limits(plans, query.settings, [each.source for each in edges])
    notes: tuple[str, ...] = ()
    if any(each.repeated for each in plans):
        from icesql.scan.plan import repeated_note

        notes = tuple(repeated_note(each) for each in plans if each.repeated)
    if query.settings.verify == "full":
        from icesql.read.verification import verify

        notes += verify(plans, query)
    return narrowed(edges, plans, query), notes


def edges_of(bound: BoundQuery, plans: Sequence[ScanPlan]) -> tuple[KeyEdge, ...]:
    """The edges whose source scans are read first, so that their keys limit other scans."""
    if not bound.edges:
        return ()
    from icesql.engine.run_time_filters import expected

    return expected(bound, plans)


def narrowed(
    edges: tuple[KeyEdge, ...], plans: list[ScanPlan], query: QueryContext
) -> list[ScanPlan]:
    """The plans after small scans were read and their keys have limited the others."""
    if not edges:
        return plans
    from icesql.engine.run_time_filters import narrowed as narrow
    from icesql.scan.plan import check_limits

    found = [*narrow(edges, plans, query)]
    check_limits(found, query.settings)
    return found


def limit_notes(
    plans: list[ScanPlan], edges: tuple[KeyEdge, ...], explain: Explain, query: QueryContext
) -> tuple[str, ...]:
    """Notes of EXPLAIN on limits that the query exceeds. Raises ScanLimitError if it is run."""
    from icesql.scan.plan import check_limits

    try:
        check_limits(plans, query.settings, [each.source for each in edges])
    except ScanLimitError as error:
        if explain.analyze or explain.format == "engine":
            raise
        return (f"not allowed to run: {error}",)
    if not edges or explain.analyze:
        return ()
    try:
        check_limits(plans, query.settings)
    except ScanLimitError as error:
        return (f"allowed to run only if run-time filters leave out files: {error}",)
    return ()


def send_reports(scans: Sequence[TableScan], plans: Sequence[ScanPlan]) -> None:
    """Send scan reports to the catalogs that accept them."""
    for scan, each in zip(scans, plans, strict=True):
        if scan.table.reports is not None and each.report.snapshot_id is not None:
            scan.table.reports.send(each.report.to_dict())


def engine_of(bound: BoundQuery, plans: Sequence[ScanPlan], query: QueryContext) -> EngineChoice:
    """The engine that runs the query. Raises UnsupportedSqlError if only the local engine can."""
    if not bound.about:
        return choose_engine(plans, query.settings)
    if bound.about == "SUMMARIZE" and query.settings.engine == "spark":
        raise UnsupportedSqlError("SUMMARIZE on the Spark engine", hint="SET engine = local")
    return EngineChoice("local")


# Dialects whose text the local engine can read unchanged.
_ENGINE_DIALECTS = ("", "icesql", "duckdb")
# Properties of a connection that probably reads an object store.
_OF_STORES = ("s3.", "gcs.", "adls.")

Readable: TypeAlias = "Statement | RowCount | QueryText"


class Pipeline:
    """Parses the texts of a session, and runs its queries."""

    def __init__(self, state: State, engines: Engines, dialect: str | None) -> None:
        self.state, self.engines, self.dialect = state, engines, dialect
        self.prepared = PreparedStatements()

    def drop_prepared(self) -> None:
        """Drop all prepared statements, because names may have another meaning now."""
        # A statement that another thread is binding is added to the old object.
        self.prepared = PreparedStatements()

    # Text → statement

    def read(self, sql: str, parameters: Parameters = None) -> list[Readable]:
        """The statements of a text, in order. Raises the errors of ``parse``."""
        if (self.dialect or "").lower() not in _ENGINE_DIALECTS:
            return [*self.parse(sql, parameters)]
        plain = parameters is None and not self.state.macros
        counted = read_row_count(sql) if plain else None
        if counted is not None:
            return [counted]
        prepared = self.prepared.find(sql, parameters)
        if prepared is not None:
            return [QueryText(sql, parameters, prepared=prepared)]
        statements = self.parse(sql, parameters)
        if len(statements) == 1 and type(statements[0]).__name__ == "Query":
            return [QueryText(sql, parameters, cast("Query", statements[0]))]
        return [*statements]

    def parse(self, sql: str, parameters: Parameters = None) -> list[Statement]:
        """Parse the statements of a text, without prepared ones."""
        from icesql.sql.parse import parse

        access = self.state.access
        try:
            return parse(
                sql,
                dialect=self.dialect,
                parameters=parameters,
                files=access.files is not False,
                copies=access.copy_to is not False,
                macros=self.state.macros,
            )
        except UnsupportedSqlError as error:
            if access.service and error.of_files:
                argument = "copy_to" if "copy_to" in error.hint else "files"
                raise AccessDeniedError(error.construct, argument=argument) from None
            if access.service and "iceberg_scan(" in error.hint:
                raise UnsupportedSqlError(error.construct, position=error.position) from None
            raise

    # Statement → outcome

    def execute(self, statement: RowCount | QueryText | Query, query: QueryContext) -> Outcome:
        """Run a query; run it again if a file cached on disk was corrupt."""
        if isinstance(statement, RowCount):
            outcome = self._count_rows(statement, query)
            if outcome is not None:
                return outcome
            statement = cast("Query", self.parse(statement.text)[0])
        try:
            return self._execute(statement, query)
        except CorruptFileError as error:
            if not error.was_kept:
                raise
        return self._execute(statement, query)

    def _count_rows(self, statement: RowCount, query: QueryContext) -> Outcome | None:
        """The outcome of ``SELECT count(*)`` from metadata; None if an engine is needed."""
        if self.state.temporary or query.tables:
            return None
        from icesql.query.metadata_answers import answer_row_count

        answer = answer_row_count(statement, self.state.names, query)
        if answer is None:
            return None
        scan, counted = answer
        return Outcome(StaticResult([("count_star()", "bigint")], [(counted,)]), scans=(scan,))

    def _execute(self, statement: QueryText | Query, query: QueryContext) -> Outcome:
        if isinstance(statement, QueryText):
            return self._run_text(statement, query)
        return self.run(statement, query)

    def _run_text(self, text: QueryText, query: QueryContext) -> Outcome:
        """Run a query whose text may be prepared."""
        prepared, statement = text.prepared, text.statement
        if prepared is not None and query.settings.caches:
            scans = prepared.query.current_scans(text.parameters, self.state.names, query)
            if scans is not None:
                bound = prepared.query.over(scans, text.parameters)
                return self._run(prepared.query.statement, bound, query, prepared)
        if statement is None:
            statement = cast("Query", self.parse(text.sql, text.parameters)[0])
        names_a_store = any(name.startswith(_OF_STORES) for name in self.state.names.given)
        if names_a_store and query.settings.engine != "spark":
            query.meanwhile = load_modules
        # If another thread drops prepared statements meanwhile, this one goes to the old object.
        statements = self.prepared
        expanded, bound = self.bind(statement, query)
        if expanded is statement and statement.sources is None and query.settings.caches:
            prepared = statements.note(text, statement, bound, query)
            return self._run(statement, bound, query, prepared)
        return self.run_bound(expanded, bound, query)

    def run(self, statement: Query, query: QueryContext) -> Outcome:
        """Bind and run a query."""
        return self.run_bound(*self.bind(statement, query), query)

    def run_bound(self, statement: Query, bound: BoundQuery, query: QueryContext) -> Outcome:
        """Run a bound query; offsets in errors refer to the texts from which it was made."""
        with statement.placing():
            return self._run(statement, bound, query)

    def plan(self, bound: BoundQuery, query: QueryContext) -> tuple[ScanPlan, ...]:
        """The scan plans of a query, within the limits. Raises as ``plans_to_read``."""
        return tuple(plans_to_read(bound, query, self.prepared, None)[0])

    def columns_of(self, read: Query, query: QueryContext) -> list[tuple[str, str]]:
        """Names and engine types of the columns of a query."""
        result = self.run(replace(read, about="DESCRIBE"), query).rows
        return [(str(row[0]), str(row[1])) for row in result.fetch(None)]

    def bind(self, statement: Query, query: QueryContext) -> tuple[Query, BoundQuery]:
        """The statement with its views expanded, and bound.

        Runs only queries whose values become part of the statement, such as those of a PIVOT
        without a list.
        """
        if statement.only_text and query.settings.engine != "spark":
            from icesql.sql.show import UNREAD

            if UNREAD in statement.text:
                return self._bind_pivots(statement, query)
        return self._bind_views(statement, query)

    def _bind_views(self, statement: Query, query: QueryContext) -> tuple[Query, BoundQuery]:
        expanded = statement
        makes = self.state.temporary or query.tables
        if makes or any(each.shown is not None for each in statement.references):
            expanded = self._with_views(statement, query)
        try:
            return self._bind(expanded, query)
        except (TableNotFoundError, UnsupportedTableError):
            # An unknown table may be a view of a catalog, or of the user's SparkSession.
            stored = self._with_views(statement, query, stored=True)
            if [(each.parts, each.shown) for each in stored.references] == [
                (each.parts, each.shown) for each in expanded.references
            ]:
                raise
        return self._bind(stored, query)

    def _bind_pivots(self, statement: Query, query: QueryContext) -> tuple[Query, BoundQuery]:
        """Like ``bind``, with the values of each PIVOT, read from the same versions of tables."""
        from icesql.query.first_queries import with_pivot_values

        def first_rows(probe: Query, most: int) -> list[tuple[Any, ...]]:
            with closing(self.run(probe, query).rows) as result:
                return result.fetch(most)

        outer, query.opened = query.opened, {} if query.opened is None else query.opened
        try:
            files = self.state.access.files is not False
            known = with_pivot_values(statement, first_rows, files=files)
            return self._bind_views(known, query)
        finally:
            query.opened = outer

    def _bind(self, statement: Query, query: QueryContext) -> tuple[Query, BoundQuery]:
        from icesql.query.bind import bind

        statement = self.with_versions(statement, query)
        on_spark = _is_for_spark(statement, query)
        with statement.placing():
            bound = bind(
                statement,
                self.state,
                query,
                on_spark=on_spark,
            )
        return statement, bound

    def _run(
        self,
        statement: Query,
        bound: BoundQuery,
        query: QueryContext,
        prepared: PreparedStatement | None = None,
    ) -> Outcome:
        from icesql.query.metadata_answers import answer_from_metadata

        answer = answer_from_metadata(bound, query) if bound.spark is None else None
        if answer is not None:
            names, count = answer
            columns = [(name, "bigint") for name in names]
            answered = StaticResult(columns, [(count,) * len(names)])
            return Outcome(answered, (), bound.notes, bound, bound.scans)
        stored = [
            (table.storage, table.metadata.location)
            for scan in bound.scans
            if (table := scan.table).is_in_store
        ]
        if stored and query.settings.engine == "local":
            query.meanwhile = lambda: self.engines.local().get_ready(stored, query)
        plans, notes = plans_to_read(bound, query, self.prepared, prepared)
        query.meanwhile = None
        notes = bound.notes + notes
        local = plans
        bound, plans, choice = self.chosen(statement, bound, plans, query)
        if plans is not local:
            from icesql.scan.plan import check_limits

            check_limits(plans, query.settings)
        send_reports(bound.scans, plans)
        notes += () if choice.reason is None else (choice.reason,)
        result: Result
        if prepared is not None and choice.name == "local":
            result = self.engines.local().execute(bound, plans, query, prepared.run)
        else:
            result = self.engines.named(choice.name).execute(bound, plans, query)
        if any(each.counted for each in plans):
            from icesql.engine.result import CountedResult

            result = CountedResult(result, plans[0].counted)
        return Outcome(result, tuple(plans), notes, bound, bound.scans)

    def chosen(
        self,
        statement: Query,
        bound: BoundQuery,
        plans: list[ScanPlan],
        query: QueryContext,
    ) -> tuple[BoundQuery, list[ScanPlan], EngineChoice]:
        """The engine of a query, and the query as this engine runs it, with its plans."""
        choice = engine_of(bound, plans, query)
        if bound.spark is not None:
            return bound, plans, replace(choice, name="spark")
        if choice.name != "spark" or statement.spark is None:
            return bound, plans, choice
        from icesql.query.bind import bind
        from icesql.scan.planner import plan

        bound = bind(statement, self.state, query, on_spark=True)
        scans = [replace(each, explain=statement.for_explain) for each in bound.scans]
        return bound, [plan(each, query) for each in scans], choice

    # Other parts of a statement: version queries, views, SHOW

    def with_versions(self, statement: Statement, query: QueryContext) -> Any:
        """The statement with the results of its version queries."""
        from icesql.sql.statement import queries_versions

        if not queries_versions(statement):
            return statement
        from icesql.query.first_queries import with_answers

        def two_rows(sql: str) -> list[tuple[Any, ...]]:
            with placing(sql):
                (read,) = self.read(sql)
                outcome = self.execute(cast("QueryText", read), query)
            with closing(outcome.rows) as result:
                return result.fetch(2)

        return with_answers(statement, two_rows)

    def _with_views(self, statement: Query, query: QueryContext, *, stored: bool = False) -> Query:
        """The statement with temporary views and tables, and with rows that need an engine.

        ``stored``: also with the views of catalogs, and with those of the user's SparkSession.
        """
        from icesql.query.views.statements import with_temporary

        find = others = None
        if stored:
            from icesql.query.views.stored import StoredViews

            find = StoredViews(
                self.state, self.dialect, query, lambda read: self.columns_of(read, query)
            ).find
        if stored and query.settings.engine != "local":
            from icesql.session.frames import spark_view

            others = partial(spark_view, state=self.state, engines=self.engines, query=query)
        return with_temporary(
            statement,
            self.state.temporary,
            self.dialect,
            lambda shown: self._rows_of(
                shown, query, for_explain=statement.for_explain, stored=stored
            ),
            find,
            others,
            tables=query.tables,
            files=self.state.access.files is not False,
        )

    def _rows_of(
        self, shown: Shown | Query, query: QueryContext, *, for_explain: bool, stored: bool
    ) -> TemporaryTable | None:
        """The rows of a statement in FROM; None if it is answered without an engine."""
        from icesql.engine.result import keep_rows
        from icesql.query.views.statements import named
        from icesql.query.views.temporary import TemporaryTable
        from icesql.sql import statement as kinds

        if isinstance(shown, kinds.Query):
            # EXPLAIN only needs the columns, so their values are not computed.
            described = replace(shown, about="DESCRIBE") if for_explain else shown
            result = self.run(described, query).rows
        elif shown.what == "PROCEDURES" or (
            shown.reference is not None
            and (stored or named(shown, self.state.temporary) is not None)
        ):
            result, _ = self.show(shown, query)
        else:
            return None
        columns, data = keep_rows(result, (), lambda size: None)
        return TemporaryTable("", columns, data, data.nbytes)

    def show(self, statement: Shown, query: QueryContext) -> tuple[Result, tuple[str, ...]]:
        """The rows and notes that answer a SHOW or DESCRIBE."""
        from icesql.query.show import columns_of, show

        if statement.what == "PROCEDURES":
            from icesql.modify.procedures.procedure import list_procedures

            return StaticResult(*list_procedures(statement.like)), ()
        if self.state.temporary:
            from icesql.query.views.expansion import whole
            from icesql.query.views.statements import named, shown
            from icesql.query.views.temporary import TemporaryTable

            temporary = named(statement, self.state.temporary)
            if isinstance(temporary, TemporaryTable):
                columns = [(name, engine or kind) for name, kind, engine in temporary.columns]
            elif temporary is not None:
                columns = self.columns_of(whole(temporary.name, self.dialect), query)
            if temporary is not None:
                rows = shown(statement, temporary, columns)
                return StaticResult(columns_of(statement), rows), ()
        try:
            answer = query.wait_for(lambda: show(statement, self.state, query))
        except (TableNotFoundError, UnsupportedTableError):
            reference = statement.reference
            if reference is None or reference.path:
                raise
            parts = reference.parts
            view = query.wait_for(lambda: self.state.names.open_view(parts))
            if view is None:
                raise
            from icesql.query.views.statements import shown_stored

            rows = shown_stored(statement, view[0], self.dialect)
            return StaticResult(columns_of(statement), rows), ()
        return StaticResult(answer[0], answer[1]), answer[2]


def _is_for_spark(statement: Query, query: QueryContext) -> bool:
    """Whether a statement in Spark's dialect is bound for Spark before it is planned.

    With ``auto`` only if the local engine cannot run it; otherwise the bytes to read decide later.
    """
    if statement.spark is None or statement.about or query.settings.engine == "local":
        return False
    return query.settings.engine == "spark" or statement.refused is not None


# ------------------------------------------------------------------ modules loaded early


def load_modules() -> None:
    """Preload modules that most queries of an object store need after the metadata."""
    import icesql.engine.duckdb.store_files
    import icesql.query.prepared_query
    import icesql.query.pushdown.predicate
    import icesql.scan.pruning.metrics_evaluator
    import icesql.storage.stores.files
    import icesql.storage.stores.pool

    icesql.engine.duckdb.store_files.load_library()
