"""Settings of Spark that are pinned: what SQL means must not depend on somebody's session."""

from __future__ import annotations

from typing import Final

LEAF_TASKS: Final = "spark.sql.leafNodeDefaultParallelism"
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

TIME_ZONE: Final = "spark.sql.session.timeZone"
