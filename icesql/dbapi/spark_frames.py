"""SQL with time travel as a DataFrame of the user's SparkSession."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from icesql.dbapi.connection import Connection, connect
from icesql.errors import ProgrammingError

if TYPE_CHECKING:
    from icesql.session.outcome import Parameters


def sql(session: Any, query: str, parameters: Parameters = None, **options: Any) -> Any:
    """A query with time travel as a DataFrame of Spark, which runs it when rows are requested.

    ``session`` is a SparkSession; ``options`` are those of ``connect`` (``warehouse``, ``catalog``,
    ``dialect``, ``timezone``, …), by default those passed to ``register_spark``. The tables are
    looked up and planned now: the DataFrame keeps their snapshots. Its columns have the types of
    ``format("icesql")``. It can be joined with DataFrames of the session, except through Spark
    Connect, where it belongs to a separate session. It is read-only.

    Raises as ``Connection.execute``, and ProgrammingError for a statement that is not a query.
    Later errors are raised by Spark.
    """
    from icesql.engine.spark.user_sessions import session_cache

    cache = session_cache(session)
    options = options or dict(cache.get("connect", {}))
    connections = cache.setdefault("connections", {})
    key = repr(sorted(options.items()))
    connection = connections.get(key)
    if connection is None or connection.closed:
        chosen = {"read_only": True, **options, "engine": "spark", "spark": session}
        connection = connect(**chosen)
        connection._session.engines.spark().for_frames = True
        connections[key] = connection
    _check(connection, query, parameters)
    return _frame(session, connection, query, parameters)


def _check(connection: Connection, query: str, parameters: Parameters) -> None:
    """Raise ProgrammingError for statements that would affect later queries of the session."""
    from icesql.sql import statement as kinds
    from icesql.sql.statement import TransactionControl

    connection._session.check_open()
    for each in connection._session.parse(query, parameters):
        # Statements that change tables pass here, and fail when run, with a more specific error.
        kept = isinstance(each, kinds.Query | kinds.Explain | kinds.Shown | kinds.Write)
        if not kept or isinstance(each, TransactionControl):
            raise ProgrammingError(
                "this statement has no rows: icesql.sql() takes a query, and settings as options"
            )


def _frame(session: Any, connection: Connection, query: str, parameters: Parameters) -> Any:
    from icesql.engine.spark.engine import SparkResult
    from icesql.engine.spark.user_sessions import static_frame

    cursor = connection.execute(query, parameters)
    try:
        result = cursor._result
        if result is None:
            raise ProgrammingError("this statement has no rows: icesql.sql() takes a query")
        if isinstance(result, SparkResult):
            return result.data_frame(session)
        # Results from metadata, SHOW and EXPLAIN: the rows are already in this process.
        return static_frame(session, cursor.arrow())
    finally:
        cursor.close()
