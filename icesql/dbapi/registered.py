"""Registers rows that the program holds under a name, for a connection or for one statement."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from types import ModuleType
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from icesql.dbapi.held_rows import as_arrow
from icesql.errors import ProgrammingError, TableNotFoundError, nearest
from icesql.query.views.temporary import SparkFrame, Temporary, TemporaryTable
from icesql.quoting import quoted

if TYPE_CHECKING:
    from icesql.dbapi.connection import Connection
    from icesql.session.session import Session


def register(connection: Connection, session: Session, name: str, rows: Any) -> None:
    """Register ``rows`` as ``name`` on a connection. Raises as ``as_arrow`` and as reading rows.

    Raises OperationalError if the copied bytes exceed ``memory_limit``.
    """
    made = session.state.temporary
    before = made.find((_checked(name),))
    table = _table(session, made, name, rows)
    made.keep(table)
    session.pipeline.drop_prepared()
    if isinstance(table, SparkFrame):
        return
    try:
        with connection.execute(f"SELECT * FROM {quoted(name)} LIMIT 0") as cursor:
            types = [column[1] for column in cursor.description or []]
    except BaseException:
        made.forget(name)
        if before is not None:
            made.keep(before)
        raise
    columns = tuple(
        (column, type_text, "")
        for (column, _, _), type_text in zip(table.columns, types, strict=True)
    )
    made.keep(replace(table, columns=columns))


def unregister(session: Session, name: str) -> None:
    """Undo ``register``. Raises ProgrammingError if no rows have the name."""
    made = session.state.temporary
    if not isinstance(made.find((name,)), TemporaryTable):
        hint = nearest(name, [each.name for each in made.all])
        raise ProgrammingError(f'nothing is registered as "{name}"{hint}')
    made.forget(name)
    session.pipeline.drop_prepared()


def name_rows(error: TableNotFoundError) -> None:
    """Add a hint about ``register`` if the calling code has a variable with the table's name.

    The variable's value is only tested for being None, callable or a module.
    """
    frame = sys._getframe(1)
    while frame.f_back and str(frame.f_globals.get("__name__")).partition(".")[0] == "icesql":
        frame = frame.f_back
    name = error.table
    value = frame.f_locals.get(name, frame.f_globals.get(name))
    if value is not None and not callable(value) and not isinstance(value, ModuleType):
        error.similar = ()
        error.hint = f'for the variable of the program: register("{name}", {name}) first'
        error.args = (error._message(),)


def tables_of(session: Session, tables: Mapping[str, Any]) -> dict[str, TemporaryTable]:
    """Tables for one statement by their names in lower case. Raises as ``as_arrow``."""
    made = Temporary()
    return {
        _checked(name).lower(): _table(session, made, name, rows) for name, rows in tables.items()
    }


def _table(session: Session, made: Temporary, name: str, rows: Any) -> TemporaryTable:
    if _is_of_spark(rows) and session.state.settings.engine != "local":
        from icesql.session.frames import spark_frame

        session.engines.spark().sessions.check_frame(rows, name)
        return spark_frame(name, rows)
    limit = session.state.settings.memory_limit
    names, data, size = as_arrow(rows, lambda copied: made.check_room(copied, limit, name))
    return TemporaryTable(name, tuple((column, "", "") for column in names), data, size)


def _is_of_spark(rows: Any) -> bool:
    """True for a DataFrame of PySpark, also of Spark Connect."""
    kind = type(rows)
    return kind.__module__.startswith("pyspark.sql.") and kind.__name__ == "DataFrame"


def _checked(name: str) -> str:
    if not isinstance(name, str) or not name or "\0" in name:
        raise ProgrammingError(f"{name!r} is no name for a table")
    return name
