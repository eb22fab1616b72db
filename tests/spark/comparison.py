"""Compare the answers of two engines."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import icesql

SAME, REFUSED, BOTH_FAIL, DIFFERENT = "same", "refused on Spark", "both fail", "different"


@contextmanager
def both(connect: Any, tables: dict[str, Any], **options: Any) -> Iterator[tuple[Any, Any]]:
    """A connection of the local engine and one of Spark, with tables by their metadata paths."""
    with icesql.connect(**options) as local, connect(**options) as spark:
        for name, path in tables.items():
            for each in (local, spark):
                each.register_table(name, path)
        yield local, spark


def same(one: Any, other: Any) -> bool:
    """Equality with floats within 1e-9; NaN equals NaN, and an int differs from a float."""
    if isinstance(one, float) and isinstance(other, float):
        return (
            (math.isnan(one) and math.isnan(other))
            or one == other
            or math.isclose(one, other, rel_tol=1e-9)
        )
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return list(one) == list(other) and all(same(one[k], other[k]) for k in one)
    return type(one) is type(other) and one == other


def answer(connection: Any, sql: str) -> Any:
    """Columns and rows, or the error."""
    try:
        cursor = connection.execute(sql)
        return [column[:2] for column in cursor.description], cursor.fetchall()
    except icesql.Error as error:
        return error


def compared(local: Any, spark: Any, sql: str) -> tuple[str, str]:
    """How the engines agree on a statement, and a description of any difference.

    A refusal by Spark, by name, agrees with everything. Two errors must have the same class.
    """
    wanted = answer(local, sql)
    found = answer(spark, sql)
    if isinstance(found, icesql.UnsupportedSqlError):
        return REFUSED, str(found)
    if isinstance(wanted, icesql.Error) and isinstance(found, icesql.Error):
        return BOTH_FAIL, f"local {wanted!r:.200}, spark {found!r:.200}"
    if isinstance(wanted, icesql.Error) or isinstance(found, icesql.Error):
        return DIFFERENT, f"local {wanted!r:.600}\n    spark {found!r:.600}"
    if wanted[0] != found[0]:
        return DIFFERENT, f"columns: local {wanted[0]}\n    spark {found[0]}"
    if not same(wanted[1], found[1]):
        pairs = zip(wanted[1], found[1], strict=False)
        unlike = [pair for pair in pairs if not same(*pair)][:3]
        return DIFFERENT, f"(local, spark) {unlike or (len(wanted[1]), len(found[1]))}"
    return SAME, ""
