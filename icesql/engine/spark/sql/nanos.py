"""Compare and cast nanosecond times, which Spark has as whole nanoseconds since 1970.

Compared with another time, both become such numbers, of 38 digits, so that nothing is rounded and
no year is out of range. A time without a zone is in the session's zone if the other has a zone.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from sqlglot import exp

from icesql.engine.spark.sql.kinds import kind, literal_text, refuse, spelled, string
from icesql.engine.spark.sql.texts import time_of_text
from icesql.engine.spark.sql.zones import instant_of_local, micros_of_naive

_ZERO: Final = exp.Literal.number(0)
NANOS: Final = frozenset({"timestamp_ns", "timestamptz_ns"})
_ZONED: Final = frozenset({"timestamptz", "timestamptz_ns"})
# Text with digits below a microsecond: the text before them, the digits, the offset.
_FINE: Final = re.compile(r"(.*:\d\d[.,]\d{6})(\d{1,3})(?!\d)(.*)", re.DOTALL)


def compare(operands: Sequence[exp.Expr], timezone: str) -> bool:
    """Convert the operands of a comparison to one type; False, unchanged, without nanoseconds.

    Raises UnsupportedSqlError for types that are not times.
    """
    kinds = [kind(each) for each in operands]
    if not NANOS.intersection(kinds):
        return False
    if len({*kinds} - {"null"}) > 1:
        zone = timezone if _ZONED.intersection(kinds) else None
        for each, found in zip(operands, kinds, strict=True):
            if found != "null":
                each.replace(_key(each, zone))
    return True


def nanoseconds(node: exp.Cast, word: str, timezone: str) -> exp.Expr:
    """CAST to a nanosecond time."""
    zoned = str(node.to.args.get("kind") or "").upper() == "TIMESTAMPTZ_NS"
    key = _key(node.this, timezone if zoned else None)
    return spelled(f"{word}({{0}} AS BIGINT)", key, like=node)


def micros(node: exp.Expr) -> exp.Expr:
    """The microsecond that contains a nanosecond time, as one of Spark's own times."""
    number = spelled(
        "CAST(FLOOR(CAST({0} AS DECIMAL(19,0)) / 1000) AS BIGINT)", node, like="BIGINT"
    )
    if kind(node) == "timestamptz_ns":
        return spelled("TIMESTAMP_MICROS({0})", number, like="TIMESTAMPTZ")
    return spelled(
        "(TIMESTAMP_NTZ '1970-01-01 00:00:00' + MAKE_DT_INTERVAL(0, 0, 0,"
        " CAST({0} / CAST(1000000 AS DECIMAL(7,0)) AS DECIMAL(18,6))))",
        number,
        like="TIMESTAMP",
    )


def _key(node: exp.Expr, zone: str | None) -> exp.Expr:
    """Nanoseconds since 1970; a naive time is in ``zone``, or counts as UTC."""
    found = kind(node)
    if found == "timestamptz_ns" or (found == "timestamp_ns" and zone in (None, "UTC")):
        return spelled("CAST({0} AS DECIMAL(38,0))", node, like="HUGEINT")
    match found:
        case "timestamp_ns":
            return _scaled(micros(node), zone, spelled("PMOD({0}, 1000L)", node))
        case "date":
            midnight = spelled("CAST({0} AS TIMESTAMP_NTZ)", node, like="TIMESTAMP")
            return _scaled(midnight, zone)
        case "timestamp" | "timestamptz":
            return _scaled(node, zone)
        case "text":
            return _of_text(node, zone)
        case _:
            raise refuse(f"a comparison of a time in nanoseconds with a {found}", "CAST it")


def _of_text(node: exp.Expr, zone: str | None) -> exp.Expr:
    text = literal_text(node)
    if text is None:
        raise refuse("a comparison of a time in nanoseconds with text", "CAST the text")
    fine = _FINE.fullmatch(text)
    rest = fine[2].ljust(3, "0") if fine else "0"
    target = "timestamp" if zone is None else "timestamptz"
    to = exp.DataType.build(target.upper(), dialect="duckdb")
    whole = exp.Cast(this=string(fine[1] + fine[3] if fine else text), to=to)
    whole.type = to
    moment = time_of_text(whole.this, whole, "CAST", target)
    return _scaled(moment, zone, exp.Literal.number(int(rest)))


def _scaled(moment: exp.Expr, zone: str | None, rest: exp.Expr = _ZERO) -> exp.Expr:
    """Nanoseconds of a time in microseconds, plus ``rest`` below its microsecond."""
    if zone is None:
        number = micros_of_naive(moment)
    else:
        if kind(moment) != "timestamptz":
            moment = instant_of_local(moment, zone)
        number = spelled("UNIX_MICROS({0})", moment, like="BIGINT")
    return spelled(
        "CAST(CAST({0} AS DECIMAL(19,0)) * 1000BD + {1} AS DECIMAL(38,0))",
        number,
        rest,
        like="HUGEINT",
    )
