"""CALL: find the procedure, check its arguments, plan it, and run the plan or show it."""

from __future__ import annotations

from contextlib import closing
from typing import Any, Final

from msgspec.structs import replace

from icesql.config import time_zone
from icesql.engine.static import StaticResult
from icesql.errors import ProgrammingError, UnsupportedSqlError, nearest
from icesql.modify.modified import Modified, check_present
from icesql.modify.procedures.arguments import bind, hinted
from icesql.modify.procedures.call import Call
from icesql.modify.procedures.procedure import Procedure, find_procedure, procedure_names
from icesql.modify.services import StatementServices
from icesql.sql.statement import Query
from icesql.sql.writes.procedures.call import (
    CallArgument,
    CallProcedure,
    MapValue,
    Value,
)
from icesql.sql.writes.statements import TableName

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
