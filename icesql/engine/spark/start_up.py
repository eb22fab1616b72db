"""Start Spark in this process: check what it requires, start it on a master, and notice its end."""

from __future__ import annotations

import atexit
import importlib
import logging
import os
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from icesql.config import available_memory
from icesql.engine.spark.errors import sentence, spark_exceptions
from icesql.engine.spark.jvm import (
    LOG_OPTION,
    end_workers,
    java_binary,
    java_options,
    socket_folder,
    spark_defaults,
)
from icesql.engine.spark.releases import require_release
from icesql.engine.spark.task_memory import local_slots
from icesql.errors import MissingExtraError, OperationalError, ProgrammingError

# ------------------------------------------------------------------ requirements


# Pinned settings: the meaning of SQL must not depend on the settings of a session.

LEAF_TASKS: Final = "spark.sql.leafNodeDefaultParallelism"
BROADCAST_LIMIT: Final = "spark.sql.autoBroadcastJoinThreshold"
# The limit for join sides that have already run, whose size is known.
BROADCAST_LIMIT_OF_RUN: Final = "spark.sql.adaptive.autoBroadcastJoinThreshold"


def _settings(text: str) -> dict[str, str]:
    """The settings of a text in the form of Spark's own ``spark-defaults.conf``."""
    rows = (line.split() for line in text.splitlines())
    return {row[0]: row[1] for row in rows if row and not row[0].startswith("#")}


PINNED: Final = _settings(
    """
    spark.sql.ansi.enabled                          true
    spark.sql.caseSensitive                         false
    spark.sql.timestampType                         TIMESTAMP_NTZ
    spark.sql.parser.escapedStringLiterals          false
    # Else ${env:HOME} in a text, even in a literal, is replaced by its value on the driver.
    spark.sql.variable.substitute                   false
    spark.sql.storeAssignmentPolicy                 ANSI
    # A result with too many digits is an error, and is never truncated.
    spark.sql.decimalOperations.allowPrecisionLoss  false
    # Filters with java.sql.Date would lose rows at the days that its calendar omits.
    spark.sql.datetime.java8API.enabled             true
    spark.sql.orderByOrdinal                        true
    spark.sql.groupByOrdinal                        true
    spark.sql.legacy.timeParserPolicy               CORRECTED
    spark.sql.mapKeyDedupPolicy                     LAST_WIN
    spark.sql.parquet.fieldId.read.enabled          true
    spark.sql.parquet.fieldId.read.ignoreMissing    false
    spark.sql.files.ignoreCorruptFiles              false
    spark.sql.files.ignoreMissingFiles              false
    spark.sql.execution.arrow.maxRecordsPerBatch    65536
    spark.sql.execution.arrow.useLargeVarTypes      false
    # Each row of a scan is a task, so each row gets a Spark task of its own.
    spark.sql.leafNodeDefaultParallelism            100000
    # Above this size PySpark would send all rows as one partition.
    spark.sql.execution.arrow.localRelationThreshold  2147483647
    # Spark estimates a scan of icesql by the size of its list of tasks, and would broadcast it:
    # scans that are small according to metadata get a hint instead.
    spark.sql.autoBroadcastJoinThreshold            -1
    """
)

# The user's text in Spark's dialect has its meaning in Spark 4 with default settings.
PINNED_FOR_TEXT: Final = PINNED | _settings(
    """
    spark.sql.timestampType                         TIMESTAMP_LTZ
    spark.sql.decimalOperations.allowPrecisionLoss  true
    spark.sql.mapKeyDedupPolicy                     EXCEPTION
    spark.sql.ansi.enforceReservedKeywords          false
    spark.sql.ansi.doubleQuotedIdentifiers          false
    spark.sql.parser.quotedRegexColumnNames         false
    spark.sql.groupByAliases                        true
    spark.sql.crossJoin.enabled                     true
    # A path is not a table.
    spark.sql.runSQLOnFiles                         false
    # The text of a plan is not truncated.
    spark.sql.debug.maxToStringFields               1000000
    spark.sql.maxPlanStringLength                   1000000000
    """
)

TIME_ZONE: Final = "spark.sql.session.timeZone"


one_at_a_time: Final = threading.RLock()


@contextmanager
def without_warnings() -> Iterator[None]:
    """A block without warnings, such as PySpark's about the installed pandas.

    One thread at a time: warning filters and the environment are shared by all threads.
    """
    with one_at_a_time, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def require_pyspark() -> None:
    """Raise MissingExtraError without PySpark and the pandas that its Arrow exchange needs, and
    NotSupportedError for a PySpark that is too old."""
    require("PySpark", "pyspark", "pandas")
    require_release("the Spark engine")


def require(what: str, *modules: str, hint: str = "") -> None:
    """Raise MissingExtraError if a module that ``what`` needs is missing."""
    for module in modules:
        try:
            importlib.import_module(module)
        except ImportError as error:
            missing = "" if module == "pyspark" else f"{module} is missing"
            raise MissingExtraError(what, extra="spark", hint=hint or missing) from error


def require_java() -> None:
    """Raise MissingExtraError if there is no Java to start Spark with."""
    if java_binary() is None:
        raise MissingExtraError(
            "Java",
            hint="Spark needs Java 17 or 21: install it (for example the package "
            "openjdk-17-jre-headless) or set JAVA_HOME; engine = 'local' needs none",
        )


# ------------------------------------------------------------------ start and end


def has_ended(session: Any) -> bool:
    """True if a session on a master was stopped, or its JVM has ended."""
    context = session.sparkContext
    if context._jsc is None:
        return True
    process = getattr(context._gateway, "proc", None)
    return process is not None and process.poll() is not None


def follow(context: Any) -> None:
    """Stop Python's context if Java's has stopped on its own, as when it is out of memory."""
    # Several connections may notice the same end.
    with one_at_a_time:
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


def start(master: str | None) -> Any:
    """The session of this process's Spark, which is started on a master if there is none.

    None means the running master, else ``local[*]``. Raises MissingExtraError without Java,
    ProgrammingError if Spark already runs on another master, OperationalError.
    """
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
                silence()
                atexit.register(end_workers, session.sparkContext)
            return session
        except starting_failures() as error:
            raise OperationalError(
                f"cannot start Spark with master {master}: {sentence(error)}"
            ) from error


def silence() -> None:
    """Stop PySpark from writing each error, with the statement, to stderr; it raises it anyway."""
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL + 1)


def starting_failures() -> tuple[type[BaseException], ...]:
    """Exceptions when Spark cannot start: PySpark's, the system's, those of a launcher that ends
    and of conflicting settings."""
    return (*spark_exceptions(), OSError, RuntimeError, ValueError)


@contextmanager
def _own_interpreter(master: str | None) -> Iterator[None]:
    """While the context starts, make this interpreter the Python of a local master's workers.

    By default they would run ``python3`` from the PATH. A user's choice stays.
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
        # Failures reach the caller as errors; stack traces on stderr would not help.
        "spark.log.level": "OFF",
        # How long a cancelled task may keep its Python worker busy: Spark's 2 s are noticeable.
        "spark.python.task.killTimeout": "500ms",
    }
    if master.startswith("local"):
        chosen["spark.sql.shuffle.partitions"] = str(max(2, local_slots(master)))
        # This JVM does all the work; Spark's default of 1 GiB cannot broadcast a table.
        chosen["spark.driver.memory"] = f"{_heap_mebibytes()}m"
        if options := java_options():
            chosen["spark.driver.extraJavaOptions"] = options
        if LOG_OPTION in options:
            # Setting the level would itself write a message.
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
    """A quarter of the available memory, from 1 to 8 GiB; workers need memory, too."""
    return min(max(1_024, available_memory() // 4 >> 20), 8_192)
