"""The requirements of Spark: PySpark, its imports, Java, and pinned settings."""

from __future__ import annotations

import importlib
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from icesql.engine.spark.jvm import java_binary
from icesql.engine.spark.releases import require_release
from icesql.errors import MissingExtraError

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
