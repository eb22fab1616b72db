"""Data frames: results for pandas and Polars, with types that they lack; queries for Spark."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast

from icesql.dbapi.connection import Connection, connect
from icesql.errors import DataError, ProgrammingError

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow as pa

    from icesql.engine.result_schema import ResultColumn
    from icesql.session.outcome import Parameters


def data_frame(table: pa.Table, columns: Sequence[ResultColumn]) -> pandas.DataFrame:
    """The rows of ``table``, whose columns are ``columns``, as a pandas DataFrame.

    A hugeint (the sum of integers) is int64 if all values fit, else a column of int objects.
    Raises DataError for values that pandas cannot represent.
    """
    import pandas
    import pyarrow as pa

    objects: dict[int, list[Any]] = {}
    table = _with_short_sums(table, columns)
    for place, column in enumerate(columns):
        values = table.column(place)
        if column.type.kind == "hugeint" and values.type != pa.int64():
            objects[place] = [None if v is None else int(v) for v in values.to_pylist()]
        elif column.type.has("union"):
            objects[place] = values.to_pylist()
        else:
            continue
        table = table.set_column(place, column.name, pa.nulls(len(values)))
    try:
        frame = table.to_pandas()
    except (OverflowError, ValueError, pa.ArrowException) as error:
        raise _no_equal("pandas", error) from error
    for place, values in objects.items():
        frame.isetitem(place, pandas.Series(values, dtype=object, index=frame.index))
    return frame


def _with_short_sums(table: pa.Table, columns: Sequence[ResultColumn]) -> pa.Table:
    """The table, with the columns of type hugeint as int64 if all of their values fit."""
    import pyarrow as pa

    for place, column in enumerate(columns):
        if column.type.kind == "hugeint":
            with suppress(pa.ArrowInvalid):
                values = table.column(place).cast(pa.int64())
                table = table.set_column(place, column.name, values)
    return table


def _no_equal(library: str, error: Exception) -> DataError:
    text = f"a value has no equal in {library} ({error})"
    return DataError(f"{text}; CAST it to VARCHAR or read it through arrow()")


def polars_frame(table: pa.Table, columns: Sequence[ResultColumn]) -> polars.DataFrame:
    """The rows of ``table``, whose columns are ``columns``, as a DataFrame of Polars.

    A hugeint (the sum of integers) is Int64 if all values fit, else Decimal(38, 0).
    Raises DataError for values that Polars cannot represent.
    """
    import polars

    try:
        return cast("polars.DataFrame", polars.from_arrow(_with_short_sums(table, columns)))
    except Exception as error:  # Polars' errors have no common base class
        raise _no_equal("Polars", error) from error


# ------------------------------------------------------------------ frames of Spark


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
    from icesql.engine.spark.sessions import session_cache

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
    from icesql.engine.spark.sessions import static_frame

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
