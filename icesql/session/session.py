"""The whole pipeline on one screen: statement → bound query → scan plans → result."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from msgspec import Struct
from msgspec.structs import replace

from icesql.access import Access
from icesql.catalog.search_path import forget
from icesql.config import Settings, check_folder
from icesql.context import QueryContext
from icesql.engine.engines import EngineChoice, Engines, choose_engine
from icesql.engine.static import StaticResult
from icesql.errors import (
    AccessDeniedError,
    CorruptFileError,
    InterfaceError,
    NotSupportedError,
    OperationalError,
    ProgrammingError,
    ScanLimitError,
    TableNotFoundError,
    UnsupportedSqlError,
    UnsupportedTableError,
    placing,
    similar_names,
)
from icesql.session.prepared import PreparedStatements, QueryText
from icesql.session.services import Services
from icesql.session.state import State
from icesql.sql.parser.row_count import RowCount, read_row_count
from icesql.stack import with_room
from icesql.storage.cache import BoundedCache
from icesql.storage.clean_errors import clean, spell_out
from icesql.storage.stores.cached import Blocks

if TYPE_CHECKING:
    from icesql.catalog.table import Catalog
    from icesql.engine.protocol import Result
    from icesql.modify.modified import Modified
    from icesql.query.bound import BoundQuery, KeyEdge
    from icesql.query.pushdown.same import MarkSame
    from icesql.query.views.stored import StoredViews
    from icesql.scan.plan import ScanPlan
    from icesql.scan.report import ScanReport
    from icesql.scan.table_scan import TableScan
    from icesql.session.prepared import PreparedStatement
    from icesql.sql.statement import (
        Copy,
        Created,
        CreateTable,
        Explain,
        MacroStatement,
        Query,
        SetSnapshotTime,
        Shown,
        Statement,
        Write,
    )

_CACHE_BYTES = 128 << 20
# Spellings in which the text itself is what the local engine reads.
_ENGINE_DIALECTS = ("", "icesql", "duckdb")

Readable: TypeAlias = "Statement | RowCount | QueryText"
Parameters = Sequence[Any] | Mapping[str, Any] | None


class Outcome(Struct, frozen=True):
    """Outcome of one statement: result (if it has rows), plans of its scans, notes.

    ``scans`` are the tables that it read, each at its snapshot. ``modified`` is what a statement
    that changes tables has done.
    """

    result: Result | None
    plans: tuple[ScanPlan, ...] = ()
    notes: tuple[str, ...] = ()
    bound: BoundQuery | None = None
    scans: tuple[TableScan, ...] = ()
    modified: Modified | None = None

    @property
    def reports(self) -> tuple[ScanReport, ...]:
        """One for each scan."""
        return tuple(each.report for each in self.plans)


class Session:
    """Settings, names and engines of one connection."""

    def __init__(
        self,
        open_catalog: Callable[[BoundedCache], Catalog | None],
        settings: Settings,
        *,
        access: Access | None = None,
        dialect: str | None = None,
        spark: Any = None,
        properties: Mapping[str, Any] | None = None,
    ) -> None:
        self._properties = dict(properties or {})
        self.dialect = dialect
        self._blocks = Blocks(settings)
        cache = BoundedCache(_CACHE_BYTES, self._blocks)
        self.state = State(open_catalog, cache, access or Access(), settings, self._properties)
        self.engines = Engines(spark)
        self._statements = PreparedStatements()
        self._closed, self._process = False, os.getpid()

    def drop_prepared(self) -> None:
        """Names may mean something else from now on."""
        # What another thread is binding meanwhile goes into the one before.
        self._statements = PreparedStatements()

    def forget(self) -> None:
        """Keep nothing of the statements before; see ``Settings.caches``."""
        self.drop_prepared()
        forget(self.state.names)
        self.engines.forget()
        self._blocks.forget()

    def check_open(self) -> None:
        """Raises InterfaceError once the session is closed, and in a process that was forked."""
        if self._closed:
            raise InterfaceError("the connection is closed")
        if not self.is_here:
            raise InterfaceError(
                f"the connection belongs to process {self._process}, of which this one is a fork; "
                "connect again here"
            )

    @property
    def closed(self) -> bool:
        """Whether ``close`` was called."""
        return self._closed

    @property
    def is_here(self) -> bool:
        """Whether this is the process that opened the session: no engine survives a fork."""
        return os.getpid() == self._process

    def without_secrets(self) -> AbstractContextManager[None]:
        """A block whose errors are as ``clean`` leaves them."""
        return _Cleaning(self)

    def clean(self, error: Exception) -> None:
        """Take every secret of this connection's catalogs and stores out of an error, in place.

        Control characters in its message are spelled out.
        """
        clean(error, self._secrets())
        spell_out(error)

    def _secrets(self) -> dict[str, Any]:
        sources = [self._properties, *self.state.names.storage_properties]
        return {str(number): each for number, each in enumerate(sources)}

    def read(self, sql: str, parameters: Parameters = None) -> list[Readable]:
        """The statements of a text, in order. Raises what ``parse`` raises."""
        if not self.is_engines_dialect:
            return [*self.parse(sql, parameters)]
        plain = parameters is None and not self.state.macros
        counted = read_row_count(sql) if plain else None
        if counted is not None:
            return [counted]
        prepared = self._statements.find(sql, parameters)
        if prepared is not None:
            return [QueryText(sql, parameters, prepared=prepared)]
        statements = self.parse(sql, parameters)
        if len(statements) == 1 and type(statements[0]).__name__ == "Query":
            return [QueryText(sql, parameters, cast("Query", statements[0]))]
        return [*statements]

    def parse(self, sql: str, parameters: Parameters = None) -> list[Statement]:
        """The statements of a text, read anew."""
        from icesql.sql.parse import parse

        access = self.state.access
        return parse(
            sql,
            dialect=self.dialect,
            parameters=parameters,
            files=access.files is not False,
            copies=access.copy_to is not False,
            macros=self.state.macros,
        )

    @property
    def is_engines_dialect(self) -> bool:
        """Whether the text is in the spelling that the local engine reads."""
        return (self.dialect or "").lower() in _ENGINE_DIALECTS

    def execute(self, statement: Readable, query: QueryContext) -> Outcome:
        """Run one statement, also where the caller's stack is nearly full."""
        try:
            return with_room(lambda: self._execute(statement, query))
        except RecursionError as error:
            raise OperationalError(
                "the statement is nested too deeply for the stack of this program; name its inner "
                "parts in a WITH clause, or call from less deep in recursion"
            ) from error

    def _execute(self, statement: Readable, query: QueryContext) -> Outcome:
        self._blocks.choose(query.settings)
        if not query.settings.caches:
            self.forget()
            if isinstance(statement, QueryText):
                statement = replace(statement, prepared=None)
        if isinstance(statement, RowCount) and (self.state.temporary or query.tables):
            (statement,) = self.parse(statement.text)
        if isinstance(statement, RowCount):
            from icesql.query.metadata_answers import answer_row_count

            answer = answer_row_count(statement, self.state.names, query)
            if answer is not None:
                scan, counted = answer
                result = StaticResult([("count_star()", "bigint")], [(counted,)])
                return Outcome(result, scans=(scan,))
            (statement,) = self.parse(statement.text)
        from icesql.sql import statement as kinds

        if self.state.access.service:
            _check_leaves_nothing(statement)
        match statement:
            case QueryText() | kinds.Query():
                return _queried(self, statement, query)
            case kinds.Explain():
                return self._explain(statement, query)
            case kinds.Copy():
                return _copy(statement, self, query)
            case kinds.CreateView() | kinds.CreateTable() | kinds.Drop():
                return _created(statement, self, query)
            case kinds.MacroStatement():
                return _changed_macros(statement, self)
            case kinds.Write():
                return _modified(statement, self, query)
            case kinds.SetSetting(name, value):
                _set(self, name, value)
                return Outcome(None)
            case kinds.ResetSetting(None):
                # Locked settings keep their defaults.
                self.state.settings = self.state.defaults
                return Outcome(None)
            case kinds.ResetSetting(str() as name):
                self.state.access.check_setting(name)
                self.state.settings = self.state.settings.with_default(name, self.state.defaults)
                return Outcome(None)
            case kinds.SetSnapshotTime():
                return _pin(statement, self, query)
            case kinds.SetVariable(name, value):
                self.state.variables.pop(name, None)
                if value is not None:
                    self.state.variables[name] = value
                return Outcome(None)
            case kinds.Prepare(name, sql):
                self.state.prepared[name] = sql
                return Outcome(None)
            case kinds.Deallocate(name):
                _deallocate(name, self.state.prepared)
                return Outcome(None)
            case kinds.Execute(name, values):
                text = _text_of(name, self.state.prepared)
                with placing(text):
                    (statement,) = self.read(text, values or None)
                    return self._execute(statement, query)
            case kinds.Use(parts):
                self.state.names.place = query.wait_for(lambda: self.state.names.find_place(parts))
                return Outcome(None)
            case _:
                told, notes = _shown(_answered(statement, self, query), self, query)
                return Outcome(told, notes=notes)

    def run(self, statement: Query, query: QueryContext) -> Outcome:
        """Bind a query and run it."""
        return self.run_bound(*self.bound(statement, query), query)

    def run_bound(self, statement: Query, bound: BoundQuery, query: QueryContext) -> Outcome:
        """Run a bound query; errors are at places of the texts that they are of."""
        with nullcontext() if statement.sources is None else statement.sources.placing():
            return self._run(statement, bound, query)

    def bound(
        self, statement: Query, query: QueryContext, *, told: bool = False
    ) -> tuple[Query, BoundQuery]:
        """The statement with the views that it reads in it, and bound. Runs nothing."""
        made = statement
        own = self.state.temporary or query.tables
        if own or any(each.shown is not None for each in statement.references):
            made = _with_views(statement, self, query, told=told)
        try:
            return _bound(made, self, query, told=told)
        except (TableNotFoundError, UnsupportedTableError):
            # What is no table may be a view of a catalog.
            found = _with_views(statement, self, query, told=told, stored=True)
            if [each.parts for each in found.references] == [
                each.parts for each in made.references
            ]:
                raise
        return _bound(found, self, query, told=told)

    def plan(self, bound: BoundQuery, query: QueryContext) -> tuple[ScanPlan, ...]:
        """What a query reads, within the limits."""
        return tuple(_plans_to_read(bound, query, None, self._statements)[0])

    def _run(
        self,
        statement: Query,
        bound: BoundQuery,
        query: QueryContext,
        prepared: PreparedStatement | None = None,
    ) -> Outcome:
        from icesql.query.metadata_answers import answer_from_metadata, with_counts

        answer = answer_from_metadata(bound, query) if bound.spark is None else None
        if answer is not None:
            columns = [(name, "bigint") for name in answer.names]
            answered = StaticResult(columns, [answer.row])
            return Outcome(answered, (), bound.notes, bound, bound.scans)
        from icesql.scan.limits import check_limits
        from icesql.scan.planner import plan

        bound = bound if bound.spark is not None else with_counts(bound)
        plans, found = _plans_to_read(bound, query, prepared, self._statements)
        notes = bound.notes + found
        choice = _choice(bound, plans, query)
        if choice.name == "spark" and statement.spark is not None and bound.spark is None:
            from icesql.query.bind import bind

            bound = bind(statement, self.state, query, on_spark=True, told=False)
            plans = [plan(scan, query) for scan in bound.scans]
            check_limits(plans, query.settings)
        elif bound.spark is not None:
            choice = replace(choice, name="spark")
        _send_reports(bound.scans, plans)
        notes += () if choice.reason is None else (choice.reason,)
        result: Result
        if prepared is not None and choice.name == "local":
            result = self.engines.local().execute(bound, plans, query, prepared.run)
        else:
            result = self.engines.named(choice.name).execute(bound, plans, query)
        if any(each.counted for each in plans):
            from icesql.engine.counted import CountedResult

            result = CountedResult(result, plans[0].counted)
        return Outcome(result, tuple(plans), notes, bound, bound.scans)

    def mark(self, query: QueryContext) -> MarkSame | None:
        """What compares a statement with the engine's own reading; see ``query.pushdown.same``."""
        if not self.is_engines_dialect:
            return None
        return lambda tree, text, start: self.engines.mark_same(tree, text, start, query)

    def _explain(self, statement: Explain, query: QueryContext) -> Outcome:
        from icesql.explain import engine_plan, explain, measure
        from icesql.query.bind import bind
        from icesql.query.metadata_answers import with_counts
        from icesql.scan.planner import plan

        started = time.perf_counter()
        explained, bound = self.bound(statement.query, query, told=True)
        bound = bound if bound.spark is not None else with_counts(bound)
        bind_seconds = time.perf_counter() - started
        plans = [plan(replace(scan, explain=True), query) for scan in bound.scans]
        choice, measured = _choice(bound, plans, query), None
        if choice.name == "spark" and explained.spark is not None and bound.spark is None:
            bound = bind(explained, self.state, query, on_spark=True)
            plans = [plan(replace(scan, explain=True), query) for scan in bound.scans]
        elif bound.spark is not None:
            choice = replace(choice, name="spark")
        keys = _keys(bound, plans)
        notes = bound.notes + _limit_notes(plans, keys, statement, query)
        if statement.analyze:
            plans = _narrowed(keys, plans, query)
            engine = self.engines.named(choice.name)
            measured = measure(engine, bound, plans, query, bind_seconds)
        if statement.format == "engine":
            result = engine_plan(self.engines.named(choice.name), bound, plans, query)
            return Outcome(result, tuple(plans), notes, scans=bound.scans)
        result = explain(bound, plans, query, statement, choice, keys, measured)
        return Outcome(result, tuple(plans), notes, scans=bound.scans)

    def close(self) -> None:
        """End open results, engines and catalogs, without waiting. Harmless when repeated."""
        closed, self._closed = self._closed, True
        if closed or not self.is_here:
            return
        self.engines.close()
        self.state.close()


class _Cleaning:
    """A block whose errors a session cleans."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, Exception):
            self._session.clean(error)


def _queried(session: Session, statement: QueryText | Query, query: QueryContext) -> Outcome:
    """Run a query, once more where a file that was kept on disk proved to be corrupt."""

    def run() -> Outcome:
        if isinstance(statement, QueryText):
            return _run_text(session, statement, query)
        return session.run(statement, query)

    try:
        return run()
    except CorruptFileError as error:
        if not error.was_kept:
            raise
    return run()


def _run_text(session: Session, text: QueryText, query: QueryContext) -> Outcome:
    """Run a query whose text may be prepared."""
    prepared, statement = text.prepared, text.statement
    if prepared is not None:
        found = _looked_up(session, prepared, text.parameters, query)
        if found is not None:
            return found
        scans = prepared.query.current_scans(text.parameters, session.state.names, query)
        if scans is not None:
            bound = prepared.query.over(scans, text.parameters)
            return session._run(prepared.query.statement, bound, query, prepared)
    if statement is None:
        statement = cast("Query", session.parse(text.sql, text.parameters)[0])
    # What another thread makes meanwhile may have a name of this text.
    statements = session._statements
    expanded, bound = session.bound(statement, query)
    if expanded is statement and statement.sources is None:
        statements.note(text, statement, bound, query)
    return session.run_bound(expanded, bound, query)


def _looked_up(
    session: Session, prepared: PreparedStatement, values: Any, query: QueryContext
) -> Outcome | None:
    """The outcome of a text that the local engine answers from memory; None for all others."""
    if not (prepared.run.gives_few_rows and prepared.run.lookups):
        return None
    found = prepared.query.current_scans(values, session.state.names, query, cached=True)
    if found is None:
        return None
    from icesql.query.prepared_query import literals
    from icesql.scan.limits import check_limits

    scans, plans = found, session._statements.plan(prepared, found, query)
    check_limits(plans, query.settings)
    bound, local = prepared.query, session.engines.local()

    def whole() -> Result:
        return local.execute(bound.over(scans, values), plans, query, prepared.run)

    result = local.look_up(prepared.run, plans, literals(values), query, whole)
    if result is None:
        return None
    _send_reports(scans, plans)
    return Outcome(result, tuple(plans), (), replace(bound.bound, scans=scans), scans)


def _plans_to_read(
    bound: BoundQuery,
    query: QueryContext,
    prepared: PreparedStatement | None,
    statements: PreparedStatements,
) -> tuple[list[ScanPlan], tuple[str, ...]]:
    """What is to be read for each scan, within the limits, and notes of what was verified."""
    from icesql.scan.limits import check_limits

    plans = statements.plan(prepared, bound.scans, query)
    keys = _keys(bound, plans)
    check_limits(plans, query.settings, [each.source for each in keys])
    notes: tuple[str, ...] = ()
    if any(each.repeated for each in plans):
        from icesql.scan.repeated_files import repeated_note

        notes = tuple(repeated_note(each) for each in plans if each.repeated)
    if query.settings.verify == "full":
        from icesql.read.verification import verify

        notes += verify(plans, query)
    return _narrowed(keys, plans, query), notes


def _send_reports(scans: Sequence[TableScan], plans: Sequence[ScanPlan]) -> None:
    """Tell catalogs that want to know what is read."""
    for scan, each in zip(scans, plans, strict=True):
        if scan.table.reports is not None and each.report.snapshot_id is not None:
            scan.table.reports.send(each.report.to_dict())


def _keys(bound: BoundQuery, plans: list[ScanPlan]) -> tuple[KeyEdge, ...]:
    """Which scans are read first, for keys that limit others."""
    if not bound.edges:
        return ()
    from icesql.engine.run_time.narrowing import expected

    return expected(bound, plans)


def _narrowed(
    keys: tuple[KeyEdge, ...], plans: list[ScanPlan], query: QueryContext
) -> list[ScanPlan]:
    """The plans after what is small was read and its keys limit the others."""
    if not keys:
        return plans
    from icesql.engine.run_time.narrowing import narrowed
    from icesql.scan.limits import check_limits

    found = [*narrowed(keys, plans, query)]
    check_limits(found, query.settings)
    return found


def _limit_notes(
    plans: list[ScanPlan], keys: tuple[KeyEdge, ...], explain: Explain, query: QueryContext
) -> tuple[str, ...]:
    """What EXPLAIN tells of limits that the query exceeds. Raises ScanLimitError where it runs."""
    from icesql.scan.limits import check_limits

    try:
        check_limits(plans, query.settings, [each.source for each in keys])
    except ScanLimitError as error:
        if explain.analyze or explain.format == "engine":
            raise
        return (f"not allowed to run: {error}",)
    if not keys or explain.analyze:
        return ()
    try:
        check_limits(plans, query.settings)
    except ScanLimitError as error:
        return (f"allowed to run only if run-time filters leave out files: {error}",)
    return ()


def _answered(statement: Statement, session: Session, query: QueryContext) -> Any:
    """The statement with the versions that queries in it tell."""
    from icesql.sql.statement import asks_versions

    if not asks_versions(statement):
        return statement
    from icesql.query.travel.asked_versions import with_answers

    def two_rows(sql: str) -> list[tuple[Any, ...]]:
        with placing(sql):
            (asked,) = session.read(sql)
            result = session.execute(asked, query).result
        assert result is not None
        try:
            return result.fetch(2)
        finally:
            result.close()

    return with_answers(statement, two_rows, query)


def _check_leaves_nothing(statement: Readable) -> None:
    """Raise AccessDeniedError for what the next one's statements on a connection would find.

    One connection may serve many: a view of one would be a table of another, BEGIN of one would
    hold the changes of all.
    """
    from icesql.sql import statement as kinds
    from icesql.sql.writes.transactions import TransactionControl

    match statement:
        case kinds.CreateView() | kinds.CreateTable():
            what = f"CREATE TEMP {'VIEW' if isinstance(statement, kinds.CreateView) else 'TABLE'}"
        case kinds.MacroStatement():
            what = "CREATE and DROP MACRO"
        case kinds.SetVariable():
            what = "SET VARIABLE"
        case kinds.Prepare() | kinds.Deallocate():
            what = "PREPARE"
        case kinds.Use():
            what = "USE"
        case TransactionControl(verb="begin"):
            what = "BEGIN"
        case _:
            return
    raise AccessDeniedError(
        f"{what} would stay for whoever asks next; say all of it in one statement, such as WITH",
        argument="service",
    )


def _pin(statement: SetSnapshotTime, session: Session, query: QueryContext) -> Outcome:
    """SET SNAPSHOT TIME: the time is told now, not anew by each query."""
    from icesql.query.snapshot_selection import pinned_time

    session.state.access.check_setting("snapshot_time")
    text = pinned_time(_answered(statement, session, query).time, query)
    session.state.settings = session.state.settings.with_text("snapshot_time", text)
    note = f"SNAPSHOT TIME {text}: tables are read as they were then, until RESET SNAPSHOT TIME"
    return Outcome(None, notes=(note,))


def _set(session: Session, name: str, value: str) -> None:
    session.state.access.check_setting(name)
    changed = session.state.settings.with_text(name, value)
    if changed.temp_directory != session.state.settings.temp_directory:
        check_folder("temp_directory", changed.temp_directory)
    if changed.cache_directory not in (None, session.state.settings.cache_directory):
        check_folder("cache_directory", changed.cache_directory)
    session.state.settings = changed


def _changed_macros(statement: MacroStatement, session: Session) -> Outcome:
    from icesql.sql.macros.macro import changed

    session.state.macros = changed(session.state.macros, statement)
    session.drop_prepared()
    return Outcome(None)


def _deallocate(name: str | None, prepared: dict[str, str]) -> None:
    """Forget one prepared statement, or all. Raises ProgrammingError for a name without one."""
    for each in [name] if name is not None else list(prepared):
        _text_of(each, prepared)
        del prepared[each]


def _text_of(name: str, prepared: Mapping[str, str]) -> str:
    """The text of a prepared statement. Raises ProgrammingError for a name without one."""
    if name not in prepared:
        near = similar_names(name, prepared)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise ProgrammingError(f'no statement is prepared as "{name}"{hint}')
    return prepared[name]


def _copy(statement: Copy, session: Session, query: QueryContext) -> Outcome:
    from icesql.engine.writing import write
    from icesql.storage.output_file import OutputFile

    allowed = session.state.access.copy_to
    with OutputFile(statement.path, overwrite=statement.overwrite, allowed=allowed) as file:
        outcome = session.run(statement.query, query)
        result = outcome.result
        assert result is not None
        try:
            count = write(result, session.engines, statement.format, file, query)
        finally:
            result.close()
    notes = (*outcome.notes, *result.notes)
    counted = StaticResult([("Count", "bigint")], [(count,)])
    return Outcome(counted, outcome.plans, notes, scans=outcome.scans)


def _modified(statement: Write, session: Session, query: QueryContext) -> Outcome:
    """A statement that changes tables: one row tells what it has done to rows."""
    from icesql.sql.writes.transactions import TransactionControl

    if isinstance(statement, TransactionControl):
        from icesql.modify.transactions import control

        return modified_outcome(control(statement.verb, session.state, query))
    if session.state.temporary:
        from icesql.query.views.create import drop_of

        dropped = drop_of(statement, session.state.temporary)
        if dropped is not None:
            return _created(dropped, session, query)
    from icesql.modify.run import modify

    return modified_outcome(modify(statement, Services(session, query)))


def modified_outcome(done: Modified) -> Outcome:
    """The outcome of a statement that changes tables."""
    notes = (done.note,) if done.note else ()
    if done.rows is None:
        return Outcome(done.answer, notes=notes, modified=done)
    kinds = [(name, "bigint") for name in ("rows", "files", "bytes", "snapshot_id")]
    row = (done.rows, done.files, done.bytes, None if done.pending else done.snapshot_id)
    return Outcome(StaticResult(kinds, [row]), notes=notes, modified=done)


def insert_many(
    session: Session, sql: str, sets: Iterable[Parameters], query: QueryContext
) -> Outcome:
    """One INSERT with several sets of values: the rows of all of them in one commit."""
    from icesql.modify.insert import insert_many as insert
    from icesql.modify.present import check_present
    from icesql.modify.run import check_writes
    from icesql.modify.transactions import as_pending, begin_by_itself
    from icesql.sql.parse import first_tokens
    from icesql.sql.writes.statements import Insert

    if [each.text.upper() for each in first_tokens(sql, session.dialect)[:1]] != ["INSERT"]:
        raise NotSupportedError("executemany() takes one INSERT")
    check_writes(session.state.access)
    check_present(query.settings)
    begin_by_itself(session.state)

    def statements() -> Iterator[Insert]:
        for values in sets:
            read = session.parse(sql, values)
            if len(read) != 1 or not isinstance(read[0], Insert):
                raise NotSupportedError("executemany() takes one INSERT")
            yield read[0]

    done = insert(statements(), Services(session, query))
    return modified_outcome(as_pending(done, session.state))


def _created(statement: Created, session: Session, query: QueryContext) -> Outcome:
    """CREATE or DROP of a temporary view or table; a DROP may be of a view of a catalog."""
    from icesql.sql.statement import Drop
    from icesql.sql.writes.statements import TableName
    from icesql.sql.writes.views import DropStoredView

    if isinstance(statement, Drop) and statement.kind == "VIEW":
        made = session.state.temporary
        if made.find((statement.name,)) is None:
            name = TableName((statement.name,), statement.offset)
            stored = session.state.names.catalog and session.state.names.open_view(name.parts)
            if stored:
                return _modified(DropStoredView(name, statement.if_exists), session, query)
    from icesql.query.views.create import create
    from icesql.query.views.temporary import TemporaryTable

    def describe(read: Query) -> list[str]:
        bound = session.bound(read, query)[1]
        if bound.spark is not None or bound.about:
            return []
        return [name for name, _ in _columns_of(read, session, query)]

    def materialize(table: CreateTable) -> TemporaryTable:
        from icesql.engine.temporary import keep_rows

        result, limit = session.run(table.query, query).result, query.settings.memory_limit
        assert result is not None
        columns, data = keep_rows(
            result,
            table.columns,
            lambda size: session.state.temporary.check_room(size, limit, table.name),
        )
        return TemporaryTable(table.name, columns, data, data.nbytes)

    count = create(
        statement,
        session.state.temporary,
        session.state.names.place,
        session.dialect,
        describe,
        materialize,
    )
    session.drop_prepared()
    if count is None:
        return Outcome(None)
    return Outcome(StaticResult([("Count", "bigint")], [(count,)]))


def _bound(
    statement: Query, session: Session, query: QueryContext, *, told: bool
) -> tuple[Query, BoundQuery]:
    from icesql.query.bind import bind

    statement = _answered(statement, session, query)
    on_spark = _is_for_spark(statement, query)
    # What DuckDB computes has to be what the text means.
    asks = session.is_engines_dialect and query.settings.engine != "spark"
    ask = session.engines.ask if asks else None
    # Where the tree is what runs, it means the same everywhere.
    mark = None if statement.user_text is None else session.mark(query)
    with nullcontext() if statement.sources is None else statement.sources.placing():
        bound = bind(statement, session.state, query, mark, on_spark=on_spark, told=told, ask=ask)
    return statement, bound


def _with_views(
    statement: Query, session: Session, query: QueryContext, *, told: bool, stored: bool = False
) -> Query:
    """The statement with what the session made, and what only an engine can tell, in its text.

    ``stored``: with the views of catalogs, too.
    """
    from icesql.query.views.create import named, with_temporary
    from icesql.query.views.temporary import TemporaryTable
    from icesql.sql import statement as kinds

    def rows(shown: Shown | Query) -> TemporaryTable | None:
        from icesql.engine.temporary import keep_rows

        if isinstance(shown, kinds.Query):
            # EXPLAIN tells of the columns, and computes none of their values.
            asked = replace(shown, about="DESCRIBE") if told else shown
            result = session.run(asked, query).result
            assert result is not None
        elif (isinstance(shown, kinds.ShowSession) and shown.what == "PROCEDURES") or (
            isinstance(shown, kinds.Describe | kinds.ShowOfTable)
            and (stored or named(shown, session.state.temporary) is not None)
        ):
            result, _ = _shown(shown, session, query)
        else:
            return None
        columns, data = keep_rows(result, (), lambda size: None)
        return TemporaryTable("", columns, data, data.nbytes)

    find = _stored_views(session, query).find if stored else None
    files = session.state.access.files is not False
    return with_temporary(
        statement,
        session.state.temporary,
        session.dialect,
        rows,
        find,
        tables=query.tables,
        files=files,
    )


def _stored_views(session: Session, query: QueryContext) -> StoredViews:
    from icesql.query.views.stored import StoredViews

    return StoredViews(
        session.state, session.dialect, query, lambda read: _columns_of(read, session, query)
    )


def _columns_of(read: Query, session: Session, query: QueryContext) -> list[tuple[str, str]]:
    """Names and the engine's types of the columns of a query."""
    result = session.run(replace(read, about="DESCRIBE"), query).result
    assert result is not None
    return [(str(row[0]), str(row[1])) for row in result.fetch(None)]


def _shown(
    statement: Statement, session: Session, query: QueryContext
) -> tuple[Result, tuple[str, ...]]:
    """The rows and notes that answer a SHOW or DESCRIBE."""
    from icesql.query.show import show
    from icesql.sql.statement import Describe, ShowOfTable, ShowSession

    if isinstance(statement, ShowSession) and statement.what == "PROCEDURES":
        from icesql.maintain.procedures.shown import shown_procedures

        return StaticResult(*shown_procedures(statement.like)), ()
    if session.state.temporary and isinstance(statement, Describe | ShowOfTable):
        from icesql.query.views.create import named, whole
        from icesql.query.views.shown import shown
        from icesql.query.views.temporary import TemporaryTable

        made = named(statement, session.state.temporary)
        if isinstance(made, TemporaryTable):
            known = [(name, engine or kind) for name, kind, engine in made.columns]
            return StaticResult(*shown(statement, made, known)), ()
        if made is not None:
            found = _columns_of(whole(made.name, session.dialect), session, query)
            return StaticResult(*shown(statement, made, found)), ()
    try:
        columns, rows, notes = query.wait_for(lambda: show(statement, session.state, query))
    except (TableNotFoundError, UnsupportedTableError):
        if not isinstance(statement, Describe | ShowOfTable) or statement.reference.path:
            raise
        parts = statement.reference.parts
        held = query.wait_for(lambda: session.state.names.open_view(parts))
        if held is None:
            raise
        from icesql.query.views.shown import shown_stored

        return StaticResult(*shown_stored(statement, held[0], session.dialect)), ()
    return StaticResult(columns, rows), notes


def _choice(bound: BoundQuery, plans: Sequence[ScanPlan], query: QueryContext) -> EngineChoice:
    """Where the query runs. Raises UnsupportedSqlError for what only the local engine has."""
    if not bound.about:
        return choose_engine(plans, query.settings)
    if bound.about == "SUMMARIZE" and query.settings.engine == "spark":
        raise UnsupportedSqlError("SUMMARIZE on the Spark engine", hint="SET engine = local")
    return EngineChoice("local")


def _is_for_spark(statement: Query, query: QueryContext) -> bool:
    """Whether a statement in Spark's spelling is bound as Spark runs it, before it is planned.

    With ``auto`` only one that the local engine cannot run: the bytes to read choose later.
    """
    if statement.spark is None or statement.about or query.settings.engine == "local":
        return False
    return query.settings.engine == "spark" or statement.refused is not None
