"""CALL: finds the procedure, and runs its plan or shows it; the call that a procedure gets."""

from __future__ import annotations

import re
from contextlib import closing
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from icesql.commit.deletion import folders_of
from icesql.config import time_zone
from icesql.engine.result import StaticResult
from icesql.errors import (
    AccessDeniedError,
    Error,
    ProgrammingError,
    SnapshotNotFoundError,
    UnsupportedSqlError,
    nearest,
)
from icesql.frozen import Frozen
from icesql.iceberg.expressions.predicate import ALWAYS_TRUE, Predicate
from icesql.iceberg.metadata.table_metadata import MAIN
from icesql.modify.procedures.procedure import (
    Procedure,
    bind,
    find_procedure,
    hinted,
    procedure_names,
    unfit,
)
from icesql.modify.services import Modified, StatementServices, check_present
from icesql.modify.targets import find_named, with_branch
from icesql.quoting import quoted, spark_name
from icesql.sql.lexer import SPARK_NAMES
from icesql.sql.statement import Query
from icesql.sql.writes.procedure_calls import (
    CallArgument,
    CallProcedure,
    MapValue,
    Value,
)
from icesql.sql.writes.statements import TableName
from icesql.storage.new_files import check_writable
from icesql.storage.roots import Roots

if TYPE_CHECKING:
    from icesql.catalog.table import Catalog, Table
    from icesql.context import QueryContext
    from icesql.engine.engines import EngineChoice
    from icesql.iceberg.metadata.snapshot import Snapshot
    from icesql.maintain.referenced import CountRows
    from icesql.work.run import Runner


class Call(Frozen):
    """The checked arguments of a CALL, see ``bind``, and the services that resolve its names.

    ``catalog`` is the name before ``system``, "" if there is none. ``explain``: nothing may be
    changed, and the whole plan is shown. ``now_ms`` is when the statement began; ``head`` is the
    snapshot that its branch must be at, None for any.
    """

    procedure: Procedure
    values: dict[str, Any]
    offsets: dict[str, int | None]
    services: StatementServices
    now_ms: int
    catalog: str = ""
    explain: bool = False
    head: int | None = None

    def __getitem__(self, name: str) -> Any:
        return self.values[name]

    def wrong(self, name: str, problem: str) -> ProgrammingError:
        """The error for a value that the procedure cannot take."""
        return unfit(self.procedure, f"{name} {problem}", self.offsets.get(name))

    @property
    def query(self) -> QueryContext:
        """The context of the statement."""
        return self.services.query

    def table_name(self) -> TableName:
        """The table that the CALL names, in its catalog."""
        name: TableName = self["table"]
        named = self.catalog and name.parts[0].lower() != self.catalog.lower()
        return TableName((self.catalog, *name.parts), name.offset) if named else name

    def target(self) -> tuple[Catalog, Table]:
        """The catalog, and the table freshly loaded.

        Raises TableNotFoundError, UnsupportedTableError, ProgrammingError for a branch.
        """
        catalog, table, branch = self.branch_target()
        if branch != MAIN:
            raise self.wrong("table", f"names the branch {branch!r}; it takes a table")
        return catalog, table

    def branch_target(self) -> tuple[Catalog, Table, str]:
        """As ``target``, with the branch: ``t.branch_x`` is branch x of t; main if none is named.

        The settings of write-audit-publish do not apply to procedures. For a copy of a table, only
        EXPLAIN is allowed.
        """
        catalog, table, branch = find_named(self.table_name(), self.services)
        if self.procedure.changes and not self.explain:
            check_writable(table.storage)
        return catalog, table, branch or MAIN

    def source(self) -> Table:
        """The table to read, by its name or, if the argument has a slash, by its path.

        Raises as ``target`` does, and AccessDeniedError for a path.
        """
        given = self["table"]
        if isinstance(given, TableName):
            return find_named(self.table_name(), self.services)[1]
        names, query = self.services.state.names, self.query
        name = given.rstrip("/").rpartition("/")[2] or given
        return query.wait_for(lambda: names.open_table((name,), given))

    def named_branch(self) -> tuple[Catalog, Table, str]:
        """As ``branch_target``, but the argument ``branch`` may also name the branch."""
        catalog, table, branch = self.branch_target()
        named: str | None = self["branch"]
        if named is None:
            return catalog, table, branch
        if branch not in (MAIN, named):
            raise self.wrong("branch", f"is {named!r}, and table names {branch!r}")
        return catalog, table, named

    def snapshot_of(self, table: Table) -> Snapshot | None:
        """The snapshot that ``snapshot_id`` names, else the current one; None if there is none.

        Raises SnapshotNotFoundError.
        """
        wanted: int | None = self["snapshot_id"]
        if wanted is None:
            return table.metadata.current_snapshot
        found = table.metadata.snapshot(wanted)
        if found is None:
            raise SnapshotNotFoundError(f"snapshot {wanted}", table=table.name)
        return found

    def runner(self, size: int) -> Runner[Any]:
        """The runner for tasks that read ``size`` bytes: local or Spark, by the setting engine."""
        from icesql.work.run import run_here, run_in_spark

        if not size or self._engine(size).name != "spark":
            return run_here
        return run_in_spark(self.services.engines.spark())

    def engine_note(self, size: int) -> str:
        """EXPLAIN's note on the engine that ``runner`` chooses; "" if nothing is read."""
        from icesql.engine.engines import engine_note

        return engine_note(self._engine(size)) if size else ""

    def _engine(self, size: int) -> EngineChoice:
        from icesql.engine.engines import engine_for

        return engine_for(size, self.query.settings)


_PLACE: Final = re.compile(r" (?:at|\(at|\()? ?line \d+, column \d+\)?")


def files_condition(call: Call) -> Predicate:
    """Turn the condition into a predicate on files; always true if there is none.

    It is bound to the table as SELECT would bind it. Raises ProgrammingError for a text that is not
    a condition on this table alone, and for one that cannot select files.
    """
    text: str | None = call["where"]
    if text is None:
        return ALWAYS_TRUE
    name = call.table_name()
    # The text is read in the dialect of the connection, where double quotes may be a string's.
    quote = spark_name if call.services.dialect.lower() in SPARK_NAMES else quoted
    parts = ".".join(map(quote, with_branch(name.parts)[0]))
    try:
        scans = call.services.scans_of_condition(f"SELECT 1 FROM {parts} WHERE {text}")
    except Error as error:
        # Positions refer to the generated SELECT, which the user does not see.
        said = str(error).partition("\n")[0]
        raise call.wrong("where", f"{text!r} cannot be used: {_PLACE.sub('', said)}") from error
    if len(scans) != 1:
        raise call.wrong("where", "reads other tables; it can only be about this one")
    found = scans[0].row_filter
    if found is ALWAYS_TRUE and text.strip().lower() not in ("true", "1 = 1", "1=1"):
        raise call.wrong(
            "where",
            f"{text!r} says nothing about files; compare columns with constants, or leave it out",
        )
    return found


def folders_below(call: Call) -> tuple[str, ...]:
    """The folders outside of the table's own that the argument, or else the setting, allows."""
    given: tuple[str, ...] | None = call["delete_below"]
    return tuple(folders_of(call.query.settings.delete_below)) if given is None else given


def at_once_of(call: Call) -> int | None:
    """How many files to delete at once, at most 64; None leaves the choice to the store."""
    count: int | None = call["max_concurrent_deletes"]
    if count is not None and count < 1:
        raise call.wrong("max_concurrent_deletes", "is less than 1")
    return None if count is None else min(count, 64)


def moment(milliseconds: int) -> str:
    """An instant in UTC."""
    moment = datetime.fromtimestamp(milliseconds / 1000, UTC)
    return moment.isoformat(sep=" ", timespec="milliseconds")


# Procedures that copy tables to another place.


def row_counter(call: Call) -> CountRows:
    """A function that counts the live rows of a table at a snapshot."""
    from icesql.modify.rows.delete_update import rows_at

    query = call.query
    return lambda table, snapshot: rows_at(replace(table, planning=None), snapshot, query)


def check_path(call: Call, path: str) -> None:
    """Raise AccessDeniedError for a path that SQL may not name."""
    by_path = call.services.state.access.tables_by_path
    if by_path is False or (isinstance(by_path, Roots) and not by_path.hold(path)):
        raise AccessDeniedError("SQL names no such paths", argument="tables_by_path")


def check_place(call: Call, location: str) -> Roots | None:
    """The roots that a location given in SQL must be below, or None; raises AccessDeniedError."""
    from icesql.maintain.relocation.target import target_location

    access = call.services.state.access
    if access.service or access.confine is True:
        argument = "service" if access.service else "confine"
        raise AccessDeniedError("SQL cannot copy tables to another place", argument=argument)
    place = target_location(location)
    check_path(call, place)
    if not isinstance(access.confine, Roots):
        return None
    if not access.confine.hold(place):
        raise AccessDeniedError("SQL names no such paths", argument="confine")
    return access.confine


# ------------------------------------------------------------------ CALL


_SYSTEM: Final = "system"
# Spark's procedures that icesql does not have, each with the reason.
_REFUSED: Final = {
    "snapshot": "it reads the files of a Hive table, and icesql opens no Hive tables; "
    "add_files adds the Parquet files of a folder to a table",
    "migrate": "it turns a Hive table into an Iceberg table, and icesql opens no Hive tables; "
    "add_files adds the Parquet files of a folder to a table",
    "create_changelog_view": "SELECT * FROM t CHANGES … gives the same rows",
    "unregister_table": "DROP TABLE t takes it out of the catalog and leaves its files",
}
# DuckDB's extension has functions with this prefix, without a schema.
_DUCKDB: Final = "iceberg_"
_EXPLAINED: Final = (
    ("action", "varchar"), ("kind", "varchar"), ("name", "varchar"), ("bytes", "bigint"),
    ("records", "bigint"), ("reason", "varchar"),
)  # fmt: skip


def call(statement: CallProcedure, services: StatementServices) -> Modified:
    """Run a procedure, or show its plan; the result's ``answer`` has the rows.

    Raises ProgrammingError for an unknown procedure or invalid arguments, UnsupportedSqlError for
    a procedure of Spark's that icesql does not have, and what the procedure raises.
    """
    procedure = _procedure(statement)
    if procedure.changes and not statement.explain:
        check_present(services.query.settings)
    services.query.commit_seconds = None
    now_ms = int(services.query.now.timestamp() * 1000)
    zone = time_zone(services.query.settings.timezone)
    given = [replace(each, value=_value(each.value, services)) for each in statement.arguments]
    values, offsets = bind(procedure, _with_whole_names(given), zone=zone, now_ms=now_ms)
    catalog = statement.name[0] if len(statement.name) > 2 else ""
    more = services, now_ms, catalog, statement.explain, statement.head
    plan = procedure.plan(Call(procedure, values, offsets, *more))
    if statement.explain:
        rows = [
            (each.action, each.what, each.name, each.bytes, each.records, each.reason)
            for each in plan.steps
        ]
        return Modified(note=plan.summary, answer=StaticResult(_EXPLAINED, rows))
    done = plan.run()
    answer = StaticResult(procedure.columns, done.rows)
    return Modified(note=done.note, snapshot_id=done.snapshot_id, answer=answer)


def _with_whole_names(given: list[CallArgument]) -> list[CallArgument]:
    """The arguments with Trino's pair schema_name and table_name replaced by ``table``."""
    parts = {each.name.lower(): each for each in given}
    schema, table = parts.get("schema_name"), parts.get("table_name")
    if schema is None or table is None or "table" in parts:
        return given
    if not (isinstance(schema.value, str) and isinstance(table.value, str)):
        return given
    name = TableName((schema.value, table.value), table.offset)
    rest = [each for each in given if each is not schema and each is not table]
    return [*rest, CallArgument("table", name, table.offset)]


def _procedure(statement: CallProcedure) -> Procedure:
    *place, last = statement.name
    name = last.lower()
    if not place and name.startswith(_DUCKDB):
        name = name.removeprefix(_DUCKDB)
    if place and (place[-1].lower() != _SYSTEM or len(place) > 2):
        hint = "; procedures are called as CALL system.name(…) or CALL catalog.system.name(…)"
        raise _missing(statement, hint)
    if name in _REFUSED:
        raise UnsupportedSqlError(
            f"CALL {_SYSTEM}.{name}", hint=_REFUSED[name], offset=statement.offset
        )
    names = procedure_names()
    if name not in names:
        form = f"; did you mean {_SYSTEM}.{{}}?"
        hint = nearest(name, names, "; SHOW PROCEDURES lists them", form)
        raise _missing(statement, hint)
    return find_procedure(name)


def _missing(statement: CallProcedure, hint: str) -> ProgrammingError:
    return hinted(f"there is no procedure {'.'.join(statement.name)}", hint, statement.offset)


def _value(value: Value, services: StatementServices) -> Any:
    """The value as a Python object."""
    match value:
        case list():
            return [_value(each, services) for each in value]
        case MapValue(entries):
            pairs = [(_value(key, services), _value(each, services)) for key, each in entries]
            if any(isinstance(key, list | dict) for key, _ in pairs):
                raise ProgrammingError("the keys of a map are lists or maps; CALL takes texts")
            return dict(pairs)
        case Query():
            with closing(services.run(value)[0]) as result:
                return result.fetch(1)[0][0]
        case _:
            return value
