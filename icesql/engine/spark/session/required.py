"""The needs of Spark: PySpark, its imports, Java, and the settings that SQL's meaning wants."""

from __future__ import annotations

import importlib
import os
import shutil
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from icesql.engine.spark.releases import require_release
from icesql.errors import MissingExtraError

# Settings of Spark that are pinned: what SQL means must not depend on somebody's session.

LEAF_TASKS: Final = "spark.sql.leafNodeDefaultParallelism"
BROADCAST_LIMIT: Final = "spark.sql.autoBroadcastJoinThreshold"
# Of sides that have run, whose size is known.
BROADCAST_LIMIT_OF_RUN: Final = "spark.sql.adaptive.autoBroadcastJoinThreshold"
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
    # Above it PySpark would send all rows as one partition.
    "spark.sql.execution.arrow.localRelationThreshold": str(2**31 - 1),
    # Spark takes any scan of icesql's tasks to be as small as the list of these tasks, and would
    # broadcast it: what is small is known from metadata, and gets a hint.
    BROADCAST_LIMIT: "-1",
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

TIME_ZONE: Final = "spark.sql.session.timeZone"


one_at_a_time: Final = threading.RLock()


@contextmanager
def without_warnings() -> Iterator[None]:
    """A block in which nobody is warned: PySpark has opinions about the pandas that it finds.

    One thread at a time: the filters of warnings, and the environment, belong to all of them.
    """
    with one_at_a_time, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def require_pyspark() -> None:
    """Raises MissingExtraError without PySpark and the pandas that its Arrow exchange asks for, and
    NotSupportedError for a PySpark that is too old."""
    require("PySpark", "pyspark", "pandas")
    require_release("the Spark engine")


def require(what: str, *modules: str, hint: str = "") -> None:
    """Raises MissingExtraError where one of the modules that ``what`` needs is missing."""
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
