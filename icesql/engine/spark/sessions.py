"""The Spark sessions that run queries: local ones, of a Connect server, or of a user.

All settings that SQL needs are pinned in them.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final
from weakref import finalize

from icesql.engine.spark.errors import sentence, spark_exceptions
from icesql.engine.spark.releases import (
    Patience,
    channel_builder,
    connect_modules,
    context_module,
    end_client,
    frame_of_rows,
    in_session,
    keep_silent_at_exit,
    release_session,
    session_beside,
)
from icesql.engine.spark.start_up import (
    BROADCAST_LIMIT,
    BROADCAST_LIMIT_OF_RUN,
    PINNED,
    PINNED_FOR_TEXT,
    TIME_ZONE,
    follow,
    has_ended,
    one_at_a_time,
    require,
    require_pyspark,
    silence,
    start,
    starting_failures,
    without_warnings,
)
from icesql.engine.spark.types import spark_type
from icesql.engine.spark.worker import pack
from icesql.errors import MissingExtraError, OperationalError, ProgrammingError
from icesql.quoting import spark_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import pyarrow as pa

    from icesql.scan.plan import TableScan


# ------------------------------------------------------------------ sessions of a server


# Retries of the first call to a Connect server, 4 s in all.
_FIRST_RETRIES: Final = 4
# Retries of any later call and their longest pause in ms, 15 s in all: PySpark's own ten minutes
# look like a query that hangs.
_PATIENCE: Final = {"max_retries": 6, "max_backoff": 5_000}
# Errors come in the headers of a response. By default gRPC reads 8 kB of them, which may be less
# than an error with its values and paths, and it drops a longer one completely.
_GRPC_OPTIONS: Final = {
    "grpc.max_metadata_size": 1 << 20,
    "grpc.absolute_max_metadata_size": 1 << 20,
}
# How long to wait until a server has released its sessions.
_LEAVING_SECONDS: Final = 2.0


def is_connect(session: Any) -> bool:
    """True if a session belongs to a Spark Connect server."""
    return type(session).__module__.startswith("pyspark.sql.connect")


def connect(remote: str, opened: list[Any]) -> Any:
    """A session of the Spark Connect server at an address; ``opened`` has it before its first call.

    Raises MissingExtraError, and OperationalError if no server responds within seconds.
    """
    with without_warnings():
        # If one of these is missing, PySpark ends the process of a program that has no file.
        require("Spark Connect", *connect_modules())
        import grpc

        try:
            from pyspark.sql.connect.session import SparkSession
        except ImportError as error:
            raise MissingExtraError("Spark Connect", extra="spark", hint=str(error)) from error
        session = None
        try:
            channel = channel_builder(remote, list(_GRPC_OPTIONS.items()))
            session = SparkSession.builder.channelBuilder(channel).create()
            keep_silent_at_exit(session)
            opened.append(session)
            Patience(session).limit(_FIRST_RETRIES)
            session.conf.get(TIME_ZONE)
            Patience(session).limit(**_PATIENCE)
            silence()
            return session
        except (*starting_failures(), grpc.RpcError) as error:
            if session is not None:
                leave([session], gone=True)
                opened.remove(session)
            # Credentials come after the address.
            address = remote.partition("/;")[0]
            raise OperationalError(
                f"cannot connect to Spark at {address}: {sentence(error)}"
            ) from error


def beside(root: Any, opened: list[Any]) -> Any:
    """Another session on the same server, which is added to ``opened``; see ``session_beside``."""
    patience = Patience(root)
    patience.limit(**_PATIENCE)
    try:
        session = session_beside(root)
    finally:
        patience.restore()
    if session is not root:
        keep_silent_at_exit(session)
        opened.append(session)
        Patience(session).limit(**_PATIENCE)
    return session


def leave(sessions: Sequence[Any], *, gone: bool = False) -> None:
    """End sessions that were opened here, within seconds, whatever their server does.

    ``gone``: the server does not respond, and receives no request. All channels are closed when
    this returns: a channel that is open when the interpreter ends may block the exit, because
    gRPC's threads are stopped while they hold its locks.
    """
    for session in sessions:
        Patience(session).limit(0)
    releasing = threading.Thread(
        target=_release, args=(tuple(sessions),), name="icesql-leaving", daemon=True
    )
    if sessions and not gone:
        releasing.start()
        releasing.join(_LEAVING_SECONDS)
    for session in sessions:
        end_client(session)
    if releasing.ident is not None:
        releasing.join(_LEAVING_SECONDS)


def _release(sessions: Sequence[Any]) -> None:
    """Let the server release the sessions, with their resources."""
    for session in sessions:
        with suppress(*spark_exceptions(), ValueError):  # a channel may be closed by now
            release_session(session)


# ------------------------------------------------------------------ sessions of queries


# How long ``close`` waits for a thread that opens a session.
_BUSY_SECONDS: Final = 2.0
_ENDED: Final = "the Spark session of this connection has ended; connect with another"


class SparkSessions:
    """The source of Spark: the user's session, a Connect server, or a master started here."""

    def __init__(self, chosen: Mapping[str, Any]) -> None:
        self._chosen = chosen
        self._root: Any = None
        self._by_zone: dict[tuple[str, bool], Any] = {}
        # The sessions on a Connect server that icesql opened.
        self._opened: list[Any] = []
        self._lock = threading.Lock()
        self._noted: set[str] = set()
        self._stale: deque[tuple[Any, tuple[str, ...]]] = deque()

    def drop_later(self, frame: Any, views: tuple[Any, tuple[str, ...]]) -> None:
        """Drop the views of a Spark Connect DataFrame when no DataFrame depends on it any more."""
        finalize(frame._plan, self._stale.append, views).atexit = False

    def drop_stale(self) -> None:
        """Drop the views that no DataFrame reads: a finalizer must not call a server."""
        while self._stale:
            drop_views(*self._stale.popleft())

    def first_note(self, note: str | None) -> tuple[str, ...]:
        """The note, if it has not been returned before."""
        with self._lock:
            if note is None or note in self._noted:
                return ()
            self._noted.add(note)
            return (note,)

    def session(self, timezone: str, *, for_text: bool = False) -> Any:
        """A session with icesql's settings, in ``timezone``.

        ``for_text``: Spark's own text has its meaning in Spark. On a master it is a new session, so
        the user's session keeps its settings. A Spark that was started here and has ended is
        started again. Raises MissingExtraError, ProgrammingError, OperationalError.
        """
        with self._lock:
            root = self._running()
            key = timezone, for_text
            if key not in self._by_zone:
                pinned = PINNED_FOR_TEXT if for_text else PINNED
                self._by_zone[key] = self._pinned(root, {**pinned, TIME_ZONE: timezone})
            return self._by_zone[key]

    def check_frame(self, frame: Any, name: str) -> None:
        """Raise ProgrammingError for a DataFrame that this Spark cannot read."""
        with self._lock:
            root = self._running()
        if is_connect(frame):
            raise ProgrammingError(
                f"{name} is a DataFrame of Spark Connect, whose rows SQL of icesql does not reach; "
                'write it with df.write.format("icesql") and name the table'
            )
        if is_connect(root) or frame.sparkSession.sparkContext is not root.sparkContext:
            raise ProgrammingError(
                f"{name} is a DataFrame of another Spark than this connection's; "
                'connect(engine="spark", spark=df.sparkSession) and register it there'
            )

    def temporary_view(self, name: str) -> Any:
        """A temporary view of the user's session as a DataFrame; None if there is none.

        Starts no Spark: without one in this process there is no view.
        """
        chosen = self._chosen.get("session")
        if self._chosen.get("remote") or is_connect(chosen):
            return None
        if chosen is None and not _is_started():
            return None
        with self._lock:
            root = self._running()
        try:
            found = root.catalog.getTable(spark_name(name))
        except spark_exceptions():
            return None
        return root.table(spark_name(name)) if found.isTemporary else None

    def _running(self) -> Any:
        """The session that was chosen or is started here. Call it with the lock."""
        if self._root is not None and _is_over(self._root):
            if self._chosen.get("session") is not None:
                raise OperationalError(_ENDED)
            self._root = None
            self._by_zone.clear()
        if self._root is None:
            self._root = self._open()
        return self._root

    def _pinned(self, root: Any, settings: Mapping[str, str]) -> Any:
        # The user's limit; it also applies if the server does not give icesql its own session.
        known = (root.conf.get(name, None) for name in (BROADCAST_LIMIT_OF_RUN, BROADCAST_LIMIT))
        limit = next(filter(None, known), "10m")
        session = beside(root, self._opened) if is_connect(root) else root.newSession()
        for name, value in {**settings, BROADCAST_LIMIT_OF_RUN: limit}.items():
            session.conf.set(name, value)
        return session

    def _open(self) -> Any:
        require_pyspark()
        given = [name for name in ("session", "master", "remote") if self._chosen.get(name)]
        if len(given) > 1:
            raise ProgrammingError(f"pass only one of {' and '.join(given)}")
        if self._chosen.get("session") is not None:
            return self._chosen["session"]
        if self._chosen.get("remote"):
            return connect(str(self._chosen["remote"]), self._opened)
        master = self._chosen.get("master")
        hint = "the PySpark that is installed only speaks Spark Connect: remote=…"
        require("a Spark to start", context_module(), hint=hint)
        # All connections share the process's PySpark context: one at a time starts or resets it.
        with one_at_a_time:
            return start(str(master) if master else None)

    def check(self) -> None:
        """Raise OperationalError if the session was stopped: PySpark would fail anyway."""
        root = self._root
        if root is not None and _is_over(root):
            raise OperationalError(_ENDED)

    def forget(self) -> None:
        """Drop cached sessions that the server has ended without PySpark noticing."""
        with self._lock:
            root, opened = self._root, self._opened
            if root is None:
                return
            own = self._chosen.get("session") is None
            if not is_connect(root):
                if own and not has_ended(root):
                    follow(root.sparkContext)
                return
            self._opened = []
            self._by_zone.clear()
            if own:
                self._root = None
        leave(opened, gone=True)

    def close(self) -> None:
        """End the Connect sessions that were opened here; a session of the user stays open.

        A JVM is kept: starting one takes seconds, and the next connection needs it again. A server
        that does not respond delays this by a few seconds at most.
        """
        if not self._lock.acquire(timeout=_BUSY_SECONDS):
            # A thread holds the lock while it waits for the server; closing the channel ends it.
            leave(tuple(self._opened), gone=True)
            if not self._lock.acquire(timeout=_BUSY_SECONDS):
                return
        try:
            self._root, opened = None, self._opened
            self._opened = []
            self._by_zone.clear()
        finally:
            self._lock.release()
        leave(opened)


def drop_views(session: Any, names: Iterable[str]) -> None:
    """Remove temporary views; has no effect if their Spark has ended, and they with it."""
    with suppress(*spark_exceptions()):
        for name in names:
            session.catalog.dropTempView(name)


def _is_started() -> bool:
    """True if this process has a Spark, whichever thread started it."""
    try:
        from pyspark import SparkContext
    except ImportError:
        return False
    return SparkContext._active_spark_context is not None


def _is_over(session: Any) -> bool:
    """True if a session on a master has ended; the end of one on a server shows only in use."""
    return not is_connect(session) and has_ended(session)


# ------------------------------------------------------------------ sessions of users


_NAME: Final = "_icesql"


def session_cache(session: Any) -> dict[str, Any]:
    """The dictionary that icesql keeps for a session; it ends with the session."""
    # A weak key would not work: the values refer to the session.
    cache: dict[str, Any] = vars(session).setdefault(_NAME, {})
    return cache


def static_frame(session: Any, rows: pa.Table) -> Any:
    """A DataFrame of a session with these rows, in PySpark's types for Arrow's."""
    from pyspark.sql.pandas.types import from_arrow_type

    kinds = [from_arrow_type(each.type, prefer_timestamp_ntz=True) for each in rows.schema]
    names = [f"c{place}" for place in range(len(kinds))]
    ddl = ", ".join(
        f"{spark_name(name)} {kind.simpleString()}" for name, kind in zip(names, kinds, strict=True)
    )
    with without_warnings():
        return frame_of_rows(session, rows.rename_columns(names), ddl).toDF(*rows.column_names)


def in_tasks(session: Any, rows: Iterable[Any], function: Callable[..., Any], schema: str) -> Any:
    """A DataFrame of what ``function`` makes of ``rows``, each of them packed in its own task."""
    import pyarrow as pa

    table = pa.table({"packed": pa.array(list(map(pack, rows)), pa.binary())})
    with without_warnings():
        return frame_of_rows(session, table, "packed BINARY").mapInArrow(function, schema)


def frame_of_scan(scan: TableScan, session: Any) -> Any:
    """The projected columns of a scan's DataFrame, in icesql's ``session``.

    Spark plans and computes the DataFrame under the settings of the user's session, once for each
    call of this function: what was computed for an earlier statement is not used again.
    """
    from pyspark.sql.functions import col, lit

    named = scan.frame.toDF(*(each.name for each in scan.schema.fields))
    columns = [
        col(spark_name(each.name)).cast(spark_type(each.type)).alias(each.name)
        for each in scan.projection.fields
    ]
    return in_session(named.select(*(columns or [lit(None).cast("INT").alias("none")])), session)
