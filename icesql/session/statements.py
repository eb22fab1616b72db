"""The handlers of statements in a session: one function for each kind, in ``HANDLERS``."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, nullcontext
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from icesql.config import check_folder
from icesql.engine.result import StaticResult
from icesql.errors import AccessDeniedError, NotSupportedError, ProgrammingError, nearest, placing
from icesql.session.outcome import Outcome, Parameters
from icesql.session.pipeline import edges_of, limit_notes, narrowed
from icesql.session.prepared import QueryText
from icesql.sql import statement as kinds
from icesql.sql.parser.row_count import RowCount

if TYPE_CHECKING:
    from collections.abc import Mapping

    from icesql.context import QueryContext
    from icesql.engine.result import Result
    from icesql.engine.result_schema import ResultColumn
    from icesql.modify.services import ChangedState, Narrow, Scans
    from icesql.query.bound import BoundQuery
    from icesql.query.views.temporary import TemporaryTable
    from icesql.scan.plan import ScanPlan
    from icesql.session.pipeline import Pipeline
    from icesql.session.session import Session
    from icesql.sql.statement import Query


# Called with a session, a statement of its kind, and the context of the statement.
Handler = Callable[["Session", Any, "QueryContext"], Outcome]


def handler_of(statement: object) -> Handler:
    """The handler of a statement. Raises KeyError for other values."""
    return next(HANDLERS[kind] for kind in type(statement).__mro__ if kind in HANDLERS)


def query_rows(
    session: Session, statement: RowCount | QueryText | kinds.Query, query: QueryContext
) -> Outcome:
    """SELECT and the other statements that return rows of tables."""
    return session.pipeline.execute(statement, query)


def explain(session: Session, statement: kinds.Explain, query: QueryContext) -> Outcome:
    """EXPLAIN: how a query is planned; with ANALYZE, also how it ran."""
    from icesql.explain.report import engine_plan, measure
    from icesql.explain.report import explain as explained
    from icesql.scan.planner import plan

    # The source of a MERGE is a text with its own offsets.
    composed = getattr(statement.write, "source_text", None)
    with nullcontext() if composed is None else composed.placing():
        started = time.perf_counter()
        read, bound = session.pipeline.bind(replace(statement.query, for_explain=True), query)
        bind_seconds = time.perf_counter() - started
        plans = [plan(replace(scan, explain=True), query) for scan in bound.scans]
        bound, plans, choice = session.pipeline.chosen(read, bound, plans, query)
        measured = None
        edges = edges_of(bound, plans)
        notes = bound.notes + limit_notes(plans, edges, statement, query)
        if statement.analyze:
            plans = narrowed(edges, plans, query)
            engine = session.engines.named(choice.name)
            measured = measure(engine, bound, plans, query, bind_seconds)
        if statement.format == "engine":
            result = engine_plan(session.engines.named(choice.name), bound, plans, query)
        else:
            result = explained(bound, plans, query, statement, choice, edges, measured)
        if statement.write is not None:
            from icesql.modify.merge.merge import definitions_of

            ddl = definitions_of(statement.write, Services(session.pipeline, query))
            result = StaticResult(
                [("plan", "varchar")], [*((each,) for each in ddl), *result.fetch(None)]
            )
        return Outcome(result, tuple(plans), notes, scans=bound.scans)


def show(session: Session, statement: kinds.Shown, query: QueryContext) -> Outcome:
    """SHOW and DESCRIBE."""
    rows, notes = session.pipeline.show(session.pipeline.with_versions(statement, query), query)
    return Outcome(rows, notes=notes)


def copy(session: Session, statement: kinds.Copy, query: QueryContext) -> Outcome:
    """COPY … TO: write the rows of a query to a file."""
    from icesql.engine.writing import write
    from icesql.storage.new_files import OutputFile

    allowed = session.state.access.copy_to
    with OutputFile(statement.path, overwrite=statement.overwrite, allowed=allowed) as file:
        outcome = session.pipeline.run(statement.query, query)
        with closing(outcome.rows) as result:
            count = write(result, session.engines, statement.format, file, query)
    notes = (*outcome.notes, *result.notes)
    counted = StaticResult([("Count", "bigint")], [(count,)])
    return Outcome(counted, outcome.plans, notes, scans=outcome.scans)


def change_table(session: Session, statement: kinds.Write, query: QueryContext) -> Outcome:
    """A statement that changes tables; the result is one row with counts if it changes rows."""
    if session.state.temporary:
        from icesql.query.views.statements import drop_of

        dropped = drop_of(statement, session.state.temporary)
        if dropped is not None:
            return create_temporary(session, dropped, query)
    from icesql.modify.run import modify

    return Outcome.of_change(modify(statement, Services(session.pipeline, query)))


def insert_many(
    session: Session, sql: str, sets: Iterable[Parameters], query: QueryContext
) -> Outcome:
    """One INSERT with several sets of values: all rows in one commit."""
    from icesql.modify.insert import insert_many as insert
    from icesql.modify.run import as_pending, begin_by_itself, check_writes
    from icesql.modify.services import check_present
    from icesql.sql.parse import first_tokens
    from icesql.sql.writes.statements import Insert

    if [each.word for each in first_tokens(sql, session.dialect)[:1]] != ["INSERT"]:
        raise NotSupportedError("executemany() takes one INSERT")
    check_writes(session.state.access)
    check_present(query.settings)
    begin_by_itself(session.state)
    query.evaluate = session.engines.evaluate

    def statements() -> Iterator[Insert]:
        for values in sets:
            read = session.pipeline.parse(sql, values)
            if len(read) != 1 or not isinstance(read[0], Insert):
                raise NotSupportedError("executemany() takes one INSERT")
            yield read[0]

    done = insert(statements(), Services(session.pipeline, query))
    return Outcome.of_change(as_pending(done, session.state))


def control_transaction(
    session: Session, statement: kinds.TransactionControl, query: QueryContext
) -> Outcome:
    """BEGIN, COMMIT and ROLLBACK."""
    from icesql.modify.run import control

    return Outcome.of_change(control(statement.verb, session.state, query))


def create_temporary(session: Session, statement: kinds.Created, query: QueryContext) -> Outcome:
    """CREATE or DROP of a temporary view or table; DROP VIEW also for a view of a catalog."""
    from icesql.sql.writes.create import DropStoredView
    from icesql.sql.writes.statements import TableName

    state, pipeline = session.state, session.pipeline
    if isinstance(statement, kinds.Drop) and statement.kind == "VIEW":
        name = TableName((statement.name,), statement.offset)
        is_temporary = state.temporary.find(name.parts) is not None
        if not is_temporary and state.names.catalog and state.names.open_view(name.parts):
            return change_table(session, DropStoredView(name, statement.if_exists), query)
    from icesql.query.views.statements import create
    from icesql.query.views.temporary import TemporaryTable

    def describe(read: kinds.Query) -> list[str]:
        bound = pipeline.bind(read, query)[1]
        if bound.spark is not None or bound.about:
            return []
        return [name for name, _ in pipeline.columns_of(read, query)]

    def materialize(table: kinds.CreateTemporary) -> TemporaryTable:
        from icesql.engine.result import keep_rows

        result, limit = pipeline.run(table.query, query).rows, query.settings.memory_limit
        columns, data = keep_rows(
            result,
            table.columns,
            lambda size: state.temporary.check_room(size, limit, table.name),
        )
        return TemporaryTable(table.name, columns, data, data.nbytes)

    place = state.names.place
    count = create(statement, state.temporary, place, session.dialect, describe, materialize)
    pipeline.drop_prepared()
    if count is None:
        return Outcome()
    return Outcome(StaticResult([("Count", "bigint")], [(count,)]))


def change_macros(
    session: Session, statement: kinds.MacroStatement, query: QueryContext
) -> Outcome:
    """CREATE and DROP MACRO."""
    from icesql.sql.macro import changed

    session.state.macros = changed(session.state.macros, statement)
    session.pipeline.drop_prepared()
    return Outcome()


def set_setting(session: Session, statement: kinds.SetSetting, query: QueryContext) -> Outcome:
    """SET."""
    session.state.access.check_setting(statement.name)
    before = session.state.settings
    changed = before.with_text(statement.name, statement.value)
    if changed.temp_directory != before.temp_directory:
        check_folder("temp_directory", changed.temp_directory)
    if changed.cache_directory not in (None, before.cache_directory):
        check_folder("cache_directory", changed.cache_directory)
    session.state.settings = changed
    return Outcome()


def reset_setting(session: Session, statement: kinds.ResetSetting, query: QueryContext) -> Outcome:
    """RESET, of one setting or of all."""
    state = session.state
    if statement.name is None:
        # Locked settings keep their defaults.
        state.settings = state.defaults
    else:
        state.access.check_setting(statement.name)
        state.settings = state.settings.with_default(statement.name, state.defaults)
    return Outcome()


def set_snapshot_time(
    session: Session, statement: kinds.SetSnapshotTime, query: QueryContext
) -> Outcome:
    """SET SNAPSHOT TIME: the time is evaluated now, not by each query."""
    from icesql.query.snapshot_selection import pinned_time

    state = session.state
    state.access.check_setting("snapshot_time")
    text = pinned_time(session.pipeline.with_versions(statement, query).time, query)
    state.settings = state.settings.with_text("snapshot_time", text)
    note = f"SNAPSHOT TIME {text}: tables are read as they were then, until RESET SNAPSHOT TIME"
    return Outcome(notes=(note,))


def set_variable(session: Session, statement: kinds.SetVariable, query: QueryContext) -> Outcome:
    """SET and RESET VARIABLE."""
    session.state.variables.pop(statement.name, None)
    if statement.value is not None:
        session.state.variables[statement.name] = statement.value
    return Outcome()


def use(session: Session, statement: kinds.Use, query: QueryContext) -> Outcome:
    """USE: set the catalog and namespace in which names are resolved."""
    names = session.state.names
    names.place = query.wait_for(lambda: names.find_place(statement.parts))
    return Outcome()


def prepare(session: Session, statement: kinds.Prepare, query: QueryContext) -> Outcome:
    """PREPARE: store a text under a name."""
    session.state.prepared[statement.name] = statement.sql
    return Outcome()


def execute_prepared(session: Session, statement: kinds.Execute, query: QueryContext) -> Outcome:
    """EXECUTE: run a stored text. Raises ProgrammingError for an unknown name."""
    text = _prepared_text(statement.name, session.state.prepared)
    with placing(text):
        (read,) = session.pipeline.read(text, statement.values or None)
        return session.run_by_kind(read, query)


def deallocate(session: Session, statement: kinds.Deallocate, query: QueryContext) -> Outcome:
    """DEALLOCATE, of one name or of all. Raises ProgrammingError for an unknown name."""
    prepared = session.state.prepared
    for name in [statement.name] if statement.name is not None else list(prepared):
        _prepared_text(name, prepared)
        del prepared[name]
    return Outcome()


def _prepared_text(name: str, prepared: Mapping[str, str]) -> str:
    if name not in prepared:
        raise ProgrammingError(f'no statement is prepared as "{name}"{nearest(name, prepared)}')
    return prepared[name]


def check_leaves_nothing(statement: object) -> None:
    """Raise AccessDeniedError for statements that leave session state on a shared connection.

    A connection may serve many users: one user's view would hide another's table, and one user's
    BEGIN would hold back the changes of all.
    """
    match statement:
        case kinds.CreateTemporary(kind=kind):
            what = f"CREATE TEMP {kind}"
        case kinds.MacroStatement():
            what = "CREATE and DROP MACRO"
        case kinds.SetVariable():
            what = "SET VARIABLE"
        case kinds.Prepare() | kinds.Deallocate():
            what = "PREPARE"
        case kinds.Use():
            what = "USE"
        case kinds.TransactionControl(verb="begin"):
            what = "BEGIN"
        case _:
            return
    raise AccessDeniedError(
        f"{what} would stay for whoever asks next; say all of it in one statement, such as WITH",
        argument="service",
    )


# Statements without an entry have the handler of their base class.
HANDLERS: Final[Mapping[type, Handler]] = {
    RowCount: query_rows,
    QueryText: query_rows,
    kinds.Query: query_rows,
    kinds.Explain: explain,
    kinds.Shown: show,
    kinds.Copy: copy,
    kinds.Write: change_table,
    kinds.TransactionControl: control_transaction,
    kinds.CreateTemporary: create_temporary,
    kinds.Drop: create_temporary,
    kinds.MacroStatement: change_macros,
    kinds.SetSetting: set_setting,
    kinds.ResetSetting: reset_setting,
    kinds.SetSnapshotTime: set_snapshot_time,
    kinds.SetVariable: set_variable,
    kinds.Use: use,
    kinds.Prepare: prepare,
    kinds.Execute: execute_prepared,
    kinds.Deallocate: deallocate,
}


# ------------------------------------------------------------------ services for changes


# The clauses of a query that consists only of a condition.
_OF_CONDITION: Final = frozenset({"expressions", "from_", "where"})


class Services:
    """``modify.services.StatementServices`` for one statement."""

    def __init__(self, pipeline: Pipeline, query: QueryContext) -> None:
        self._pipeline, self.query = pipeline, query
        self.state: ChangedState = pipeline.state
        self.dialect, self.engines = pipeline.dialect or "", pipeline.engines

    def run(self, read: Query) -> tuple[Result, Scans]:
        """The rows of a query, and its scans, in the order of its text."""
        outcome = self._pipeline.run(read, self.query)
        return outcome.rows, outcome.scans

    def run_here(
        self, read: Query, tables: Mapping[str, TemporaryTable], narrow: Narrow
    ) -> tuple[Result, Scans]:
        """The same on the local engine, with additional tables by name in lower case."""
        statement, bound, query = self._here(read, tables, narrow)
        outcome = self._pipeline.run_bound(statement, bound, query)
        return outcome.rows, outcome.scans

    def plan_here(
        self, read: Query, tables: Mapping[str, TemporaryTable], narrow: Narrow
    ) -> tuple[BoundQuery, tuple[ScanPlan, ...]]:
        """The query that ``run_here`` would run, and its plans. Runs nothing."""
        statement, bound, query = self._here(read, tables, narrow)
        with statement.placing():
            return bound, self._pipeline.plan(bound, query)

    def columns_of(self, read: Query) -> tuple[ResultColumn, ...]:
        """The result columns of a query, from metadata of its tables: no file is opened."""
        statement, bound = self._pipeline.bind(replace(read, for_explain=True), self.query)
        bound = replace(bound, scans=tuple(replace(each, limit=0) for each in bound.scans))
        with closing(self._pipeline.run_bound(statement, bound, self.query).rows) as result:
            return result.columns

    def scans_of(self, read: Query) -> Scans:
        """The scans of a query. Runs nothing."""
        return self._pipeline.bind(read, self.query)[1].scans

    def scans_of_condition(self, text: str) -> Scans:
        """The scans of ``SELECT … FROM … WHERE …``. Runs nothing.

        Raises ProgrammingError for a text with anything more than that.
        """
        from icesql.query.pushdown.select_forms import has_only
        from icesql.sql.statement import Query

        read = self._pipeline.parse(text)
        match read:
            case [Query(tree=tree) as condition] if has_only(tree, _OF_CONDITION):
                return self.scans_of(condition)
        raise ProgrammingError("it is more than a condition")

    def _here(
        self, read: Query, tables: Mapping[str, TemporaryTable], narrow: Narrow
    ) -> tuple[Query, BoundQuery, QueryContext]:
        # Only the local engine reads tables in memory, also with ``auto``.
        settings = replace(self.query.settings, engine="local")
        query = replace(self.query, tables={**self.query.tables, **tables}, settings=settings)
        statement, bound = self._pipeline.bind(read, query)
        return statement, replace(bound, scans=narrow(bound.scans)), query
