"""Differences between PySpark's releases from 3.5 on: only this file depends on the release.

If a release lacks a required feature, connecting raises an error that names it.
"""

from __future__ import annotations

import atexit
from inspect import signature
from typing import TYPE_CHECKING, Any, Final

from icesql.errors import NotSupportedError, UnsupportedSqlError

if TYPE_CHECKING:
    import pyarrow as pa

OLDEST: Final = (3, 5)
# The release that added Python data sources, of which format("icesql") is one.
OLDEST_WITH_SOURCES: Final = (4, 0)
OLDEST_WITH_FILTERS: Final = (4, 1)
OLDEST_WITH_STREAM_WRITERS: Final = (4, 1)
# Features that icesql's SQL shares with Spark, and that older releases lack.
WITH_LISTAGG: Final = (4, 0)
WITH_FILTERED_WINDOWS: Final = (4, 2)
WITH_RECURSION: Final = (4, 1)
_COMPRESSING: Final = (4, 1)
# For Spark Connect: older releases have the method, but it is not implemented.
_WITH_NEW_SESSIONS: Final = (4, 1)
_PYTHON_OF_TASKS: Final = "spark.sql.execution.pyspark.python"


def _release() -> tuple[int, ...]:
    import pyspark

    return tuple(int(each) for each in str(pyspark.__version__).split(".")[:2] if each.isdigit())


def require_release(what: str, oldest: tuple[int, int] = OLDEST) -> None:
    """Raise NotSupportedError if PySpark is older than ``what`` needs."""
    import pyspark

    if _release() < oldest:
        needed = ".".join(map(str, oldest))
        raise NotSupportedError(
            f"{what} needs PySpark {needed} or newer, not {pyspark.__version__}: "
            f"pip install 'pyspark>={needed}'"
        )


def context_module() -> str:
    """The module of SparkContext, in a PySpark that can start Spark."""
    return "pyspark.core.context" if _release() >= (4, 0) else "pyspark.context"


def connect_modules() -> tuple[str, ...]:
    """The modules that importing Spark Connect needs."""
    compression = ("zstandard",) if _release() >= _COMPRESSING else ()
    return ("grpc", "grpc_status", "google.rpc", *compression)


# ---------------------------------------------------------------------------- rows


def frame_of_rows(session: Any, rows: pa.Table, schema: str) -> Any:
    """A DataFrame of Arrow rows, which have the types of the DDL ``schema``."""
    if _release() >= (4, 0):
        return session.createDataFrame(rows, schema)
    if hasattr(session, "_jsparkSession"):
        return _frame_in_java(session, rows, schema)
    from pyspark.sql.connect.dataframe import DataFrame
    from pyspark.sql.connect.plan import LocalRelation

    # The server of Spark Connect refuses data without a batch.
    data = rows if rows.num_rows else None
    return DataFrame.withPlan(LocalRelation(data, schema=schema), session)


def _frame_in_java(session: Any, rows: pa.Table, schema: str) -> Any:
    """A DataFrame of Arrow rows as in PySpark 4; ``createDataFrame`` of 3.5 accepts none."""
    from pyspark.sql.dataframe import DataFrame
    from pyspark.sql.pandas.serializers import ArrowStreamSerializer
    from pyspark.sql.types import _parse_datatype_string

    java = session.sparkContext._jvm
    made = session.sparkContext._serialize_to_jvm(
        rows.to_batches(),
        ArrowStreamSerializer(),
        java.PythonSQLUtils.readArrowStreamFromFile,
        java.ArrowIteratorServer,
    )
    described = _parse_datatype_string(schema).json()
    return DataFrame(java.PythonSQLUtils.toDataFrame(made, described, session._jsparkSession),
                     session)  # fmt: skip


def table_of(frame: Any) -> pa.Table:
    """All rows of a DataFrame, as ``DataFrame.toArrow`` returns them."""
    import pyarrow as pa

    if hasattr(frame, "toArrow"):
        return frame.toArrow()
    if hasattr(frame, "_collect_as_arrow"):
        schema = arrow_schema(frame.schema)
        batches = frame._collect_as_arrow()
        return (
            pa.Table.from_batches(batches).cast(schema)
            if batches
            else pa.Table.from_batches([], schema)
        )
    return received(frame, frame.sparkSession.client.to_table)[0]


def received(frame: Any, method: Any) -> Any:
    """Call a method of a Spark Connect client with the plan of a DataFrame."""
    plan = frame._plan.to_proto(frame.sparkSession.client)
    taken = len(signature(method).parameters)
    return method(plan) if taken == 1 else method(plan, frame._plan.observations)


def arrow_schema(schema: Any) -> pa.Schema:
    """The Arrow schema in which PySpark returns the rows of a StructType; instants are in UTC."""
    from pyspark.sql.pandas.types import to_arrow_schema

    # PySpark 4.1 has another parameter, whose default is UTC.
    given = {"timezone": "UTC"} if "timezone" in signature(to_arrow_schema).parameters else {}
    return to_arrow_schema(schema, **given)


def java_settings(session: Any) -> Any:
    """The settings of a session on a master, as a map of Java."""
    settings = session._jsparkSession.conf()
    if _release() >= (4, 0):
        return settings.getAllAsJava()
    convert = session.sparkContext._jvm.scala.collection.JavaConverters.mapAsJavaMapConverter
    return convert(settings.getAll()).asJava()


def in_session(frame: Any, session: Any) -> Any:
    """The rows of a DataFrame in another session on the same master, under their own settings.

    Spark keeps the settings under which rows were planned for the tasks that compute them. Spark
    does not optimise across the two sessions, and the first session's semantics stay.
    """
    rows = frame._jdf.queryExecution().toRdd()
    made = session._jsparkSession.internalCreateDataFrame(rows, frame._jdf.schema(), False)
    return type(frame)(made, session)


def rebalanced(frame: Any, keys: list[Any]) -> Any:
    """A DataFrame that is repartitioned by columns, as by the hint REBALANCE."""
    if _release() >= (4, 0):
        return frame.hint("rebalance", *keys)
    # The hint of PySpark 3.5 accepts no columns, and that of its JVM only expressions.
    columns = frame.sparkSession.sparkContext._jvm.PythonUtils.toSeq(
        [key._jc.expr() for key in keys]
    )
    return type(frame)(frame._jdf.hint("rebalance", columns), frame.sparkSession)


def local_socket(address: tuple[Any, Any]) -> tuple[Any, Any]:
    """The file of a socket to which a JVM writes, and another object to close."""
    try:
        from pyspark.util import _create_local_socket
    except ImportError:
        from pyspark.rdd import _create_local_socket
    made = _create_local_socket(address)
    # PySpark 4.1 returns only the file, which closes its socket.
    return made if isinstance(made, tuple) else (made, made)


def reads_widened_columns() -> bool:
    """True if Spark's Parquet reader reads int as bigint and float as double: 3.5 fails."""
    return _release() >= (4, 0)


def check_sql(construct: str, oldest: tuple[int, int]) -> None:
    """Raise UnsupportedSqlError if Spark is older than ``construct`` needs."""
    if _release() < oldest:
        needed = ".".join(map(str, oldest))
        hint = f"it needs PySpark {needed} or newer; run it with engine = 'local'"
        raise UnsupportedSqlError(f"{construct} on Spark", hint=hint)


def has_listagg() -> bool:
    """True if Spark has the aggregate LISTAGG."""
    return _release() >= WITH_LISTAGG


def is_corr_total() -> bool:
    """True if CORR of a constant has a value: before 4.3, ANSI mode divides by zero."""
    return _release() >= (4, 3)


# ---------------------------------------------------------------------------- jobs


def cancel_jobs(java: Any, group: str) -> None:
    """Cancel the jobs of a group in Java's SparkContext, and future ones if Spark can."""
    context = java.sc()
    if _release() >= (4, 0):
        context.cancelJobGroupAndFutureJobs(group)
    else:
        context.cancelJobGroup(group)


def error_condition(error: BaseException) -> str | None:
    """Spark's error condition, such as DIVIDE_BY_ZERO; None if the error has none."""
    for name in ("getCondition", "getErrorClass"):
        getter: Any = getattr(error, name, None)
        if getter is not None:
            found: str | None = getter()
            return found
    return None


# ---------------------------------------------------------------------------- data sources


def register_source(session: Any, source: type) -> None:
    """Register a Python data source in a session; it replaces one of the same name.

    Spark looks for the earlier source in the thread's active session, not in the one that
    registers, so the session is made the active one. It stays active if the thread had no active
    session, since a write also looks there.
    """
    java = getattr(session, "_jsparkSession", None)
    if java is None:
        # A server of Spark Connect activates the session of each request.
        session.dataSource.register(source)
        return
    sessions = session.sparkContext._jvm.SparkSession
    before = sessions.getActiveSession()
    sessions.setActiveSession(java)
    try:
        session.dataSource.register(source)
    finally:
        if before.isDefined():
            sessions.setActiveSession(before.get())


# ---------------------------------------------------------------------------- Spark Connect


class Patience:
    """The number of retries of a Spark Connect client; ``restore`` resets it."""

    def __init__(self, session: Any) -> None:
        self._client = session.client
        before = getattr(self._client, "get_retry_policies", None)
        self._before = dict(self._client._retry_policy) if before is None else before()

    def limit(self, max_retries: int, **more: Any) -> None:
        """Allow at most ``max_retries`` retries, with the pauses of PySpark's DefaultPolicy."""
        if isinstance(self._before, dict):
            self._client._retry_policy.update(max_retries=max_retries, **more)
            return
        from pyspark.sql.connect.client.retries import DefaultPolicy

        self._client.set_retry_policies([DefaultPolicy(max_retries=max_retries, **more)])

    def restore(self) -> None:
        """Restore the retry policy from before."""
        if isinstance(self._before, dict):
            self._client._retry_policy.update(self._before)
        else:
            self._client.set_retry_policies(self._before)


def keep_silent_at_exit(session: Any) -> None:
    """Make icesql's own client send nothing to its server when the interpreter ends.

    PySpark cleans a cache of models there, which icesql does not use. A server that is gone would
    delay the exit, and the exit function would keep the client alive until then.
    """
    for name in ("_on_exit", "_cleanup_ml_cache", "_cleanup_ml"):
        if (registered := getattr(session.client, name, None)) is not None:
            atexit.unregister(registered)


def release_session(session: Any) -> None:
    """Release a session on the server; PySpark 3.5 cannot."""
    release = getattr(session.client, "release_session", None)
    if release is not None:
        release()


def end_client(session: Any) -> None:
    """Close the channel of a session now; requests that use it fail."""
    client = session.client
    client._channel.close()
    # Closing a client waits for release requests, which cannot succeed now.
    getattr(client, "_release_futures", set()).clear()
    if session is type(session)._default_session:
        session.release_session_on_close = False
        session.stop()
    else:
        # Stopping it would end a local server, which the user may be using.
        client.close()


def channel_builder(remote: str, options: list[tuple[str, Any]]) -> Any:
    """The builder of the channel to a Spark Connect server."""
    try:
        from pyspark.sql.connect.client import DefaultChannelBuilder as Builder
    except ImportError:
        from pyspark.sql.connect.client import ChannelBuilder as Builder
    return Builder(remote, options)


def session_beside(session: Any) -> Any:
    """Another session on the same server; the same one if its address contains the session id.

    A session with a Python of its own for tasks is cloned: the archive with that Python was only
    sent to this session.
    """
    if _release() >= _WITH_NEW_SESSIONS:
        names = ["newSession", "cloneSession"]
        if session.conf.get(_PYTHON_OF_TASKS, None):
            names.reverse()
        for name in names:
            make = getattr(session, name, None)
            if make is not None:
                return make()
    channel = session.client._builder
    return session if channel.session_id is not None else type(session)(connection=channel)
