"""The Spark session that queries run in, found or started, with all pinned that SQL means."""

from __future__ import annotations

import atexit
import importlib
import logging
import os
import shutil
import sys
import threading
import warnings
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from weakref import finalize

from icesql.config import available_memory
from icesql.engine.spark.errors import sentence, spark_exceptions
from icesql.engine.spark.jvm import (
    LOG_OPTION,
    end_workers,
    java_options,
    socket_folder,
    spark_defaults,
)
from icesql.engine.spark.releases import (
    Patience,
    channel_builder,
    connect_modules,
    context_module,
    require_release,
    session_beside,
)
from icesql.errors import MissingExtraError, OperationalError, ProgrammingError

if TYPE_CHECKING:
    from collections.abc import Mapping

LEAF_TASKS: Final = "spark.sql.leafNodeDefaultParallelism"
# What a query means must not depend on how somebody's session is configured.
PINNED: Final[dict[str, str]] = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.caseSensitive": "false",
    "spark.sql.timestampType": "TIMESTAMP_NTZ",
    "spark.sql.parser.escapedStringLiterals": "false",
    # ${env:HOME} in a text, a literal too, would be replaced by what it names on the driver.
    "spark.sql.variable.substitute": "false",
    "spark.sql.storeAssignmentPolicy": "ANSI",
    # Too many digits are an error, never cut off.
    "spark.sql.decimalOperations.allowPrecisionLoss": "false",
    # Filters pushed to files as java.sql.Date would lose the days that its calendar leaves out.
    "spark.sql.datetime.java8API.enabled": "true",
    "spark.sql.orderByOrdinal": "true",
    "spark.sql.groupByOrdinal": "true",
    "spark.sql.legacy.timeParserPolicy": "CORRECTED",
    "spark.sql.mapKeyDedupPolicy": "LAST_WIN",
    "spark.sql.parquet.fieldId.read.enabled": "true",
    "spark.sql.parquet.fieldId.read.ignoreMissing": "false",
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
    "spark.sql.execution.arrow.useLargeVarTypes": "false",
    # A row of a scan is a task: each gets a Spark task of its own.
    LEAF_TASKS: "100000",
}

# Where the text is in Spark's spelling, it means what it means to Spark 4 as it comes.
PINNED_FOR_TEXT: Final[dict[str, str]] = {
    **PINNED,
    "spark.sql.timestampType": "TIMESTAMP_LTZ",
    "spark.sql.decimalOperations.allowPrecisionLoss": "true",
    "spark.sql.mapKeyDedupPolicy": "EXCEPTION",
    "spark.sql.ansi.enforceReservedKeywords": "false",
    "spark.sql.ansi.doubleQuotedIdentifiers": "false",
    "spark.sql.parser.quotedRegexColumnNames": "false",
    "spark.sql.groupByAliases": "true",
    "spark.sql.crossJoin.enabled": "true",
    # No path in the place of a table.
    "spark.sql.runSQLOnFiles": "false",
    # A plan is told whole.
    "spark.sql.debug.maxToStringFields": "1000000",
    "spark.sql.maxPlanStringLength": "1000000000",
}

# Tries of a first call to a Connect server, 4 s in all.
_FIRST_RETRIES: Final = 4
# Tries of any later call and their longest pause in ms, 15 s in all: PySpark's own ten minutes look
# like a query that hangs.
_PATIENCE: Final = {"max_retries": 6, "max_backoff": 5_000}
# Errors come in the headers of an answer, of which gRPC reads 8 kB: less than an error with its
# values and paths may have, and of a longer one nothing is left.
_GRPC_OPTIONS: Final = {
    "grpc.max_metadata_size": 1 << 20,
    "grpc.absolute_max_metadata_size": 1 << 20,
}
_ZONE: Final = "spark.sql.session.timeZone"
_one_at_a_time: Final = threading.RLock()
_ENDED: Final = "the Spark session of this connection has ended; connect with another"


@contextmanager
def without_warnings() -> Iterator[None]:
    """A block in which nobody is warned: PySpark has opinions about the pandas that it finds.

    One thread at a time: the filters of warnings, and the environment, belong to all of them.
    """
    with _one_at_a_time, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def require_pyspark() -> None:
    """Raises MissingExtraError without PySpark and the pandas that its Arrow exchange asks for, and
    NotSupportedError for a PySpark that is too old."""
    _require("PySpark", "pyspark", "pandas")
    require_release("the Spark engine")


def _require(what: str, *modules: str, hint: str = "") -> None:
    for module in modules:
        try:
            importlib.import_module(module)
        except ImportError as error:
            missing = "" if module == "pyspark" else f"{module} is missing"
            raise MissingExtraError(what, extra="spark", hint=hint or missing) from error


def require_java() -> None:
    """Raises MissingExtraError when no Java can be found to start Spark with."""
    home = os.environ.get("JAVA_HOME")
    if home and (Path(home) / "bin" / "java").exists():
        return
    if shutil.which("java") is None:
        raise MissingExtraError(
            "Java",
            hint="Spark needs Java 17 or 21: install it (for example the package "
            "openjdk-17-jre-headless) or set JAVA_HOME; engine = 'local' needs none",
        )


class SparkSessions:
    """Where Spark comes from: the user's session, a Connect server, or a master started here."""

    def __init__(self, chosen: Mapping[str, Any]) -> None:
        self._chosen = chosen
        self._root: Any = None
        self._started = False
        self._by_zone: dict[tuple[str, bool], Any] = {}
        self._lock = threading.Lock()
        self._told: set[str] = set()
        self._stale: deque[tuple[Any, tuple[str, ...]]] = deque()

    def drop_later(self, frame: Any, views: tuple[Any, tuple[str, ...]]) -> None:
        """Views of a DataFrame of Spark Connect are dropped once nothing is made of it any more."""
        finalize(frame._plan, self._stale.append, views).atexit = False

    def drop_stale(self) -> None:
        """Drop the views that no DataFrame reads: a finalizer may not speak to a server."""
        while self._stale:
            session, names = self._stale.popleft()
            try:
                for name in names:
                    session.catalog.dropTempView(name)
            except spark_exceptions():
                # The session has ended, and its views with it.
                continue

    def untold(self, note: str | None) -> tuple[str, ...]:
        """A note, if there is one, the first time that it is to be told."""
        with self._lock:
            if note is None or note in self._told:
                return ()
            self._told.add(note)
            return (note,)

    def session(self, timezone: str, *, for_text: bool = False) -> Any:
        """A session whose settings are those of icesql, in ``timezone``.

        ``for_text``: one in which Spark's own text means what it means in Spark.
        On a master it is one of its own beside the user's, so theirs keeps its settings. Raises
        MissingExtraError, ProgrammingError, OperationalError. A Spark that was started here and
        has ended is started again.
        """
        with self._lock:
            if self._root is not None and _has_ended(self._root):
                if self._chosen.get("session") is not None:
                    raise OperationalError(_ENDED)
                self._root = None
                self._by_zone.clear()
            if self._root is None:
                self._root = self._open()
            key = timezone, for_text
            if key not in self._by_zone:
                pinned = PINNED_FOR_TEXT if for_text else PINNED
                self._by_zone[key] = _pinned(self._root, {**pinned, _ZONE: timezone})
            return self._by_zone[key]

    def _open(self) -> Any:
        require_pyspark()
        given = [name for name in ("session", "master", "remote") if self._chosen.get(name)]
        if len(given) > 1:
            raise ProgrammingError(f"pass only one of {' and '.join(given)}")
        if self._chosen.get("session") is not None:
            return self._chosen["session"]
        if self._chosen.get("remote"):
            self._started = True
            return _connect(str(self._chosen["remote"]))
        master = self._chosen.get("master")
        hint = "the PySpark that is installed only speaks Spark Connect: remote=…"
        _require("a Spark to start", context_module(), hint=hint)
        # PySpark's context belongs to the process: two connections must not start or reset it.
        with _one_at_a_time:
            self._started = not _has_session()
            return _start(str(master) if master else None)

    def check(self) -> None:
        """Raises OperationalError when the session was stopped: PySpark then fails anyhow."""
        root = self._root
        if root is not None and _has_ended(root):
            raise OperationalError(_ENDED)

    def forget(self) -> None:
        """Drop cached sessions that the server has ended without PySpark noticing."""
        with self._lock:
            root, sessions = self._root, list(self._by_zone.values())
            if root is None:
                return
            if not is_connect(root):
                if self._started and not _has_ended(root):
                    _follow(root.sparkContext)
                return
            self._by_zone.clear()
            if self._started:
                self._root = None
                sessions.append(root)
            for session in sessions:
                if session is not root or self._started:
                    session.client.close()

    def close(self) -> None:
        """End the Connect sessions that were made here; a session of the user stays.

        A JVM is kept: starting one costs seconds, and the next connection wants it again.
        """
        with self._lock:
            root, self._root = self._root, None
            sessions = [each for each in self._by_zone.values() if each is not root]
            self._by_zone.clear()
            if root is None or not is_connect(root):
                return
            for session in sessions:
                # Its threads would keep the process from ending.
                session.client.close()
            if self._started:
                _impatient(root)
                root.stop()


def _impatient(session: Any) -> None:
    """Let a session of a server that is gone end at once."""
    Patience(session).limit(1)


def is_connect(session: Any) -> bool:
    """Whether a session talks to a Spark Connect server."""
    return type(session).__module__.startswith("pyspark.sql.connect")


def _has_session() -> bool:
    from pyspark.sql import SparkSession

    _reset_dead_jvm()
    return SparkSession.getActiveSession() is not None


def _has_ended(session: Any) -> bool:
    """Whether a session on a master was stopped, or its JVM is gone."""
    if is_connect(session):
        return False
    context = session.sparkContext
    if context._jsc is None:
        return True
    process = getattr(context._gateway, "proc", None)
    return process is not None and process.poll() is not None


def _follow(context: Any) -> None:
    """Stop Python's context if Java's has stopped on its own, as it does when out of memory."""
    # Several connections hear of the same end.
    with _one_at_a_time:
        try:
            if context._jsc is not None and context._jsc.sc().isStopped():
                context.stop()
        except spark_exceptions():
            # The JVM is ending; the next use notices.
            return


def _reset_dead_jvm() -> None:
    """Reset PySpark's gateway after its JVM died, so that a new one can start."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    process = getattr(SparkContext._gateway, "proc", None)
    if process is None or process.poll() is None:
        return
    with without_warnings():
        # PySpark warns that it could not stop cleanly.
        context = SparkContext._active_spark_context
        if context is not None:
            context._jsc = None
            context.stop()
    SparkContext._gateway = SparkContext._jvm = None
    SparkSession._instantiatedSession = None


def _start(master: str | None) -> Any:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    _reset_dead_jvm()
    running = SparkContext._active_spark_context
    if running is None:
        require_java()
    elif master is not None and running.master != master:
        raise ProgrammingError(
            f"Spark already runs in this process with master {running.master}, not {master}; "
            "pass that session as spark=…, or stop it first"
        )
    builder = SparkSession.builder.appName("icesql")
    if running is None:
        master = master or "local[*]"
        builder = builder.master(master)
        for name, value in _defaults(master).items():
            builder = builder.config(name, value)
    with without_warnings(), _own_interpreter(master):
        try:
            session = builder.getOrCreate()
            if running is None:
                _silence()
                atexit.register(end_workers, session.sparkContext)
            return session
        except _starting_failures() as error:
            raise OperationalError(
                f"cannot start Spark with master {master}: {sentence(error)}"
            ) from error


def _silence() -> None:
    """PySpark writes each error, with the statement, to stderr; it is raised anyway."""
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL + 1)


def _starting_failures() -> tuple[type[BaseException], ...]:
    """What a Spark that cannot be had raises: PySpark's own, of the system, of a launcher that ends
    and of settings that contradict each other."""
    return (*spark_exceptions(), OSError, RuntimeError, ValueError)


@contextmanager
def _own_interpreter(master: str | None) -> Iterator[None]:
    """While the context starts, Python workers of a local master are this interpreter.

    They would be the ``python3`` of the PATH. What the user chose stays.
    """
    from pyspark import SparkConf

    chosen = "PYSPARK_PYTHON" in os.environ or SparkConf().contains("spark.pyspark.python")
    if chosen or master is None or not master.startswith("local"):
        yield
        return
    os.environ["PYSPARK_PYTHON"] = sys.executable
    try:
        yield
    finally:
        del os.environ["PYSPARK_PYTHON"]


def _defaults(master: str) -> dict[str, str]:
    from pyspark import SparkConf

    chosen = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        # Failures reach the caller as errors; their stack traces on stderr help nobody.
        "spark.log.level": "OFF",
        # How long a cancelled task may keep its Python worker busy: Spark's own 2 s are felt.
        "spark.python.task.killTimeout": "500ms",
    }
    if master.startswith("local"):
        chosen["spark.sql.shuffle.partitions"] = str(_cores(master))
        # The one JVM does all the work; Spark's own default of 1 GiB cannot broadcast a table.
        chosen["spark.driver.memory"] = f"{_heap_mebibytes()}m"
        if options := java_options():
            chosen["spark.driver.extraJavaOptions"] = options
        if LOG_OPTION in options:
            # Setting the level would only speak of it.
            del chosen["spark.log.level"]
        chosen["spark.driver.host"] = "127.0.0.1"
        chosen["spark.driver.bindAddress"] = "127.0.0.1"
        if folder := socket_folder():
            # Over TCP each Python task waits 40 ms for an acknowledgement that the system delays.
            chosen["spark.python.unix.domain.socket.enabled"] = "true"
            chosen["spark.python.unix.domain.socket.dir"] = folder
    conf, defaults = SparkConf(), spark_defaults()
    return {
        name: value
        for name, value in chosen.items()
        if not conf.contains(name) and name not in defaults
    }


def _heap_mebibytes() -> int:
    """A quarter of the memory that there is, from 1 to 8 GiB; workers need theirs too."""
    return min(max(1_024, available_memory() // 4 >> 20), 8_192)


def _cores(master: str) -> int:
    inside = master.partition("[")[2].rstrip("]").split(",")[0]
    return max(2, int(inside) if inside.isdigit() else os.cpu_count() or 1)


def _connect(remote: str) -> Any:
    with without_warnings():
        # PySpark ends the process of a program without a file, where one of these is missing.
        _require("Spark Connect", *connect_modules())
        import grpc

        try:
            from pyspark.sql.connect.session import SparkSession
        except ImportError as error:
            raise MissingExtraError("Spark Connect", extra="spark", hint=str(error)) from error
        session = None
        try:
            channel = channel_builder(remote, list(_GRPC_OPTIONS.items()))
            session = SparkSession.builder.channelBuilder(channel).create()
            # PySpark retries an unreachable server for ten minutes: limit the retries of the first
            # call, then restore the default.
            patience = Patience(session)
            patience.limit(_FIRST_RETRIES)
            session.conf.get("spark.sql.session.timeZone")
            patience.restore()
            _silence()
            return session
        except (*_starting_failures(), grpc.RpcError) as error:
            # Credentials follow the address.
            if session is not None:
                # PySpark would retry again when the process ends.
                Patience(session).limit(0)
            address = remote.partition("/;")[0]
            raise OperationalError(
                f"cannot connect to Spark at {address}: {sentence(error)}"
            ) from error


def _pinned(root: Any, settings: Mapping[str, str]) -> Any:
    session = root.newSession() if not is_connect(root) else _connect_session(root)
    for name, value in settings.items():
        session.conf.set(name, value)
    return session


def _connect_session(root: Any) -> Any:
    session = session_beside(root)
    if session is not root:
        Patience(session).limit(**_PATIENCE)
    return session
