"""Translate Spark's errors into icesql's; a worker's error is restored without a Java trace."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import unquote

from icesql.engine.spark.releases import error_condition
from icesql.engine.spark.worker import decode_error
from icesql.errors import (
    CorruptFileError,
    DataError,
    Error,
    OperationalError,
    ProgrammingError,
    QueryCancelledError,
    StorageError,
    UnsupportedSqlError,
)

# Conditions of Spark's ANSI mode for which the local engine raises DataError, too.
_DATA = re.compile(
    r"\b(ARITHMETIC_OVERFLOW|CAST_INVALID_INPUT|CAST_OVERFLOW|DIVIDE_BY_ZERO|DATETIME_OVERFLOW|"
    r"NUMERIC_VALUE_OUT_OF_RANGE|INVALID_PARAMETER_VALUE|CANNOT_PARSE_TIMESTAMP|INVALID_FRACTION|"
    r"DATETIME_FIELD_OUT_OF_BOUNDS|SCALAR_SUBQUERY_TOO_MANY_ROWS|INVALID_REGEXP_REPLACE)"
)
_FILE = re.compile(
    r"while reading file (\S+?)\.?\s|Path does not exist: (\S+?)\.?\s|"
    # From Spark 3.5.
    r"SparkFileNotFoundException: File (\S+) does not exist"
)
# Exception classes that do not indicate a damaged file.
_UNREACHABLE = re.compile(r"FileNotFound|Access|Permission|Connect|Socket|UnknownHost|S3|Timeout")
_CAUSE = re.compile(
    r"^(?:Caused by|.*\bexecutor \w+\)|(?>.*most recent failure).*?\)): ([\w.$]+): (.+)"
)
_MEMORY: Final = (
    (
        "maxResultSize",
        "raise spark.driver.maxResultSize, or SET split_target_size to a smaller number",
    ),
    (
        "build and broadcast|larger than 8|_BROADCAST_|broadcast the table",
        "raise spark.driver.memory before Spark starts (it is the memory of a local master), or "
        "set spark.sql.autoBroadcastJoinThreshold to -1",
    ),
    (
        r"Python worker exited|\bMemoryError",
        "a Python worker was ended, mostly for want of memory: give the machine more, or "
        "spark.executor.memoryOverhead, or SET split_target_size to a smaller number",
    ),
    (
        r"OutOfMemoryError|Java heap space|GC overhead|acquire \d+ bytes|UNABLE_TO_ACQUIRE_MEMORY|"
        r"BufferHolder|exit code 52|exit code 137",
        "raise spark.driver.memory before Spark starts (spark.executor.memory on a cluster), or "
        "read fewer columns and rows",
    ),
)
MISSING: Final = (
    ": it is missing in the Python of a worker; install icesql there, or name a Python that has it "
    "in PYSPARK_PYTHON"
)
# Messages about Spark itself, matched at the beginning of a text.
_GONE = re.compile(
    r"SparkContext was shut down|stopped SparkContext|Error while (sending|receiving)|"
    r"Answer from Java side is empty|failed to connect to all addresses|StatusCode.UNAVAILABLE|"
    r"[Rr]etries.exceeded|RETRIES_EXCEEDED|INVALID_HANDLE|SESSION_(NOT_FOUND|CLOSED|CHANGED)|"
    r"Socket closed|closed channel"
)


def spark_exceptions() -> tuple[type[BaseException], ...]:
    """The exceptions of PySpark, py4j and Spark Connect."""
    from pyspark.errors import PySparkException

    try:
        from py4j.protocol import Py4JError
    except ImportError:
        # A PySpark with only Spark Connect has no JVM in this environment.
        return (PySparkException, ConnectionError, EOFError)
    return (PySparkException, Py4JError, ConnectionError, EOFError)


def is_gone(error: BaseException) -> bool:
    """True if Spark itself, or its session, has ended and will not respond any more."""
    if isinstance(error, ConnectionError | EOFError):
        return True
    # Messages with a condition are about a statement; the rest of their text quotes data.
    said = error_condition(error) or _text(error).partition("Traceback")[0][:500]
    return bool(_GONE.search(said))


def sentence(error: BaseException) -> str:
    """The reason in an error of Spark, in one sentence."""
    return _brief(_text(error))


def has_crossed(error: BaseException, mark: str) -> bool:
    """True if this error contains one that a worker of the query with ``mark`` raised."""
    return decode_error(_text(error), mark) is not None


def translate(
    error: BaseException,
    mark: str,
    *,
    cancelled: bool,
    planning: bool = False,
    of_text: bool = False,
) -> Error:
    """The icesql error for an exception that Spark raised.

    Only the text after ``mark``, which is unique to the query, is trusted. ``planning``: Spark
    was only analysing the statement, which the local engine has accepted; if Spark refuses it,
    the statement is not supported on Spark. ``of_text``: Spark runs the user's own text, and may
    refuse any part of it.
    """
    if cancelled:
        return QueryCancelledError("the query was cancelled")
    text = _text(error)
    raised = decode_error(text, mark)
    if raised is not None:
        return raised
    condition, brief = error_condition(error), _brief(text)
    if condition is not None and _DATA.search(condition):
        # The rest of such a message quotes data, which must not be interpreted.
        return DataError(brief)
    for words, advice in _MEMORY:
        if re.search(words, text):
            return OperationalError(f"Spark ran out of memory: {brief}; {advice}")
    if is_gone(error):
        return OperationalError(
            f"Spark has ended or does not answer ({brief}); it was stopped, killed or ran "
            "out of memory: run the query again where icesql started Spark, else connect again"
        )
    in_file = _file_error(text)
    if in_file is not None:
        return in_file
    if condition is None and _DATA.search(text[:2000]):
        return DataError(brief)
    if condition == "UNSUPPORTED_DATA_TYPE_FOR_ARROW_CONVERSION":
        # For example, intervals with months.
        return UnsupportedSqlError(
            f"a result of this type on Spark ({brief})", hint="run it with engine = 'local'"
        )
    # A failure of Python in a worker is not about the statement.
    of_python = "Traceback (most recent call last)" in text
    if planning and condition is not None and not of_python:
        return UnsupportedSqlError(
            f"this statement on Spark ({brief})", hint="run it with engine = 'local'"
        )
    if "OPERATION_CANCELED" in text or ("cancelled" in text and "Job" in text):
        return QueryCancelledError("the query was cancelled")
    of_text = of_text and not of_python
    if of_text and condition is not None and not condition.startswith("INTERNAL_ERROR"):
        return refusal_of_text(error)
    if brief.startswith("ModuleNotFoundError"):
        brief += MISSING
    return OperationalError(f"Spark failed: {brief}")


def refusal_of_text(error: BaseException) -> Error:
    """The error for a condition that Spark reports about the user's own text or its values."""
    said = re.sub(r"^\[[\w.]+\] ", "", " ".join(_text(error).partition("SQLSTATE")[0].split()))
    said = said[:400].strip()
    state = str(getattr(error, "getSqlState", lambda: "")())
    if state.startswith("0A"):
        return UnsupportedSqlError(f"this on Spark ({said})")
    return (DataError if state.startswith("22") else ProgrammingError)(said)


def _file_error(text: str) -> Error | None:
    """The error if Spark's own reader failed on a file, else None."""
    found = _FILE.search(text + "\n")
    if found is None:
        return None
    path = re.sub(r"^file:/+", "/", unquote(found[1] or found[2] or found[3]))
    kind, problem = _deepest(text)
    if "FILE_NOT_EXIST" in text or found[1] is None:
        return StorageError(path, "no such file")
    if _UNREACHABLE.search(kind) or "Too many open files" in problem:
        return StorageError(path, problem)
    return CorruptFileError(path, problem)


def _text(error: BaseException) -> str:
    """The message; py4j fetches that of a Java error from the JVM, which may have ended."""
    try:
        return str(error)
    except spark_exceptions():
        return "Answer from Java side is empty, of what went wrong there"


def _deepest(text: str) -> tuple[str, str]:
    """Class and message of the deepest cause in a Java stack trace."""
    found = "", text.strip()
    for line in text.splitlines():
        cause = _CAUSE.match(line.strip())
        if cause is not None:
            found = cause[1].rsplit(".", 1)[-1], cause[2]
    return found[0], _sentence(found[1])


def _brief(text: str) -> str:
    """The sentence of a Spark message, without plan, stack trace and SQLSTATE."""
    lines = [each.strip() for each in text.splitlines() if each.strip()]
    if not lines:
        return "it gave no reason"
    if "Traceback (most recent call last)" in text:
        # A traceback of Python in a worker: its last line has the error.
        after = text.rpartition("Traceback (most recent call last)")[2].splitlines()[1:]
        named = [each for each in after if re.match(r"\w[\w.]*(Error|Exception|Interrupt)\b", each)]
        if named:
            return _sentence(named[-1])
    details = re.search(r'^\s*details = "(.+)"', text, re.MULTILINE)
    if details is not None and text.lstrip().startswith("<"):
        # An error of gRPC.
        return _sentence(details[1])
    kind, cause = _deepest(text)
    if kind:
        return _sentence(cause if kind.endswith("Exception") else f"{kind}: {cause}")
    if lines[0].startswith("An error occurred while calling") and len(lines) > 1:
        return _sentence(re.sub(r"^: ?(?:[\w.$]+: )?", "", lines[1]))
    return _sentence(lines[0])


def _sentence(text: str) -> str:
    line = next((each.strip() for each in text.splitlines() if each.strip()), text)
    line = re.sub(r"^\([\w.$]+\) ", "", line)
    return re.sub(r"(?<!\s)\s*+SQLSTATE: \w+.*$", "", line)[:400]
