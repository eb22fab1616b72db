"""Spark's errors as icesql's: what a worker raised comes back as itself, not as a Java trace."""

from __future__ import annotations

import base64
import binascii
import pickle
import re
from typing import Any

from icesql.engine.spark.worker import ERROR_MARK
from icesql.errors import (
    DataError,
    Error,
    InternalError,
    OperationalError,
    QueryCancelledError,
    UnsupportedSqlError,
)

_CROSSED = re.compile(re.escape(ERROR_MARK) + r"([A-Za-z0-9+/=]+);")
# Conditions of Spark's ANSI mode that the local engine calls errors of the data too.
_DATA = re.compile(
    r"\b(ARITHMETIC_OVERFLOW|CAST_INVALID_INPUT|CAST_OVERFLOW|DIVIDE_BY_ZERO|DATETIME_OVERFLOW|"
    r"NUMERIC_VALUE_OUT_OF_RANGE|INVALID_PARAMETER_VALUE|CANNOT_PARSE_TIMESTAMP|INVALID_FRACTION|"
    r"DATETIME_FIELD_OUT_OF_BOUNDS|SCALAR_SUBQUERY_TOO_MANY_ROWS|INVALID_REGEXP_REPLACE)"
)


def spark_exceptions() -> tuple[type[BaseException], ...]:
    """What PySpark, py4j and Spark Connect raise."""
    from pyspark.errors import PySparkException

    try:
        from py4j.protocol import Py4JError
    except ImportError:
        # A PySpark that only speaks Spark Connect has no Java at its side.
        return (PySparkException, ConnectionError, EOFError)
    return (PySparkException, Py4JError, ConnectionError, EOFError)


def translate(error: BaseException, *, cancelled: bool, planning: bool = False) -> Error:
    """The icesql error for something that Spark raised.

    ``planning`` says that Spark was only asked to understand the statement, which the local
    engine already has: what it does not take is then not supported there.
    """
    text = str(error)
    if cancelled:
        return QueryCancelledError("the query was cancelled")
    crossed = _crossed(text)
    if crossed is not None:
        return crossed
    condition = _condition(error)
    brief = _brief(text)
    if _DATA.search(condition or text[:2000]):
        return DataError(brief)
    if planning and condition is not None:
        return UnsupportedSqlError(
            f"this statement on Spark ({brief})", hint="run it with engine = 'local'"
        )
    if "cancelled" in text and ("Job" in text or "OPERATION_CANCELED" in text):
        return QueryCancelledError("the query was cancelled")
    return OperationalError(f"Spark failed: {brief}")


def _crossed(text: str) -> Error | None:
    found = _CROSSED.search(text)
    if found is None:
        return None
    try:
        error = pickle.loads(base64.b64decode(found[1]))
    except (binascii.Error, pickle.UnpicklingError, EOFError, AttributeError, ImportError):
        return None
    return error if isinstance(error, Error) else InternalError(str(error))


def _condition(error: BaseException) -> str | None:
    getter: Any = getattr(error, "getCondition", None)
    return getter() if getter is not None else None


def _brief(text: str) -> str:
    """The sentence of a Spark message, without plan, stack trace and SQLSTATE."""
    line = next((each.strip() for each in text.splitlines() if each.strip()), text)
    found = re.search(r"Caused by: (?:\S+: )?(.+)", text)
    if found and "SparkException" in line:
        line = found[1]
    return re.sub(r"\s*SQLSTATE: \w+.*$", "", line)[:400]
