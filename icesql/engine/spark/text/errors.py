"""Spark's errors about a text, at their places in the user's SQL."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from icesql.engine.spark.errors import is_gone, refusal_of_text, sentence, spark_exceptions
from icesql.engine.spark.releases import error_condition
from icesql.errors import Error, SqlSyntaxError, UnsupportedSqlError

_PLACE: Final = re.compile(r"line (\d+),? pos (\d+)")


@contextmanager
def placed(sql: str, original: Callable[[int], int]) -> Iterator[None]:
    """A block in which Spark reads ``sql``; ``original`` says where a place was in the user's."""
    try:
        yield
    except spark_exceptions() as error:
        found = _of_text(error, sql, original)
        if found is None:
            raise
        raise found from error


def _of_text(error: Any, sql: str, original: Callable[[int], int]) -> Error | None:
    """The error for what Spark refuses when it only reads; None for what went wrong besides."""
    name = error_condition(error)
    if name is None or is_gone(error):
        return None
    place = _PLACE.search(str(error))
    offset = None
    if place is not None:
        lines = sql.split("\n")
        before = sum(len(each) + 1 for each in lines[: int(place[1]) - 1])
        offset = original(before + int(place[2]))
    if name.startswith("PARSE_SYNTAX_ERROR") or "ParseException" in type(error).__name__:
        said = re.sub(r"^\[[\w.]+\] ", "", sentence(error))
        return SqlSyntaxError(said, offset=offset)
    found = refusal_of_text(error)
    if isinstance(found, UnsupportedSqlError):
        found.offset = offset
    return found
