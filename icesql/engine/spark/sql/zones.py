"""Local times and instants in Spark's spelling, exact in any session zone."""

from __future__ import annotations

from sqlglot import exp

from icesql.engine.spark.sql.kinds import kind, refuse, spelled, string


def at_time_zone(node: exp.AtTimeZone, timezone: str) -> exp.Expr:
    """``naive AT TIME ZONE z`` is an instant, ``instant AT TIME ZONE z`` a naive time."""
    zone = node.args["zone"]
    match kind(node.this):
        case "timestamptz":
            naive = utc_of_instant(node.this, timezone)
            return spelled("CONVERT_TIMEZONE('UTC', {1}, {0})", naive, zone, like="TIMESTAMP")
        case "timestamp" | "date" | "text":
            return instant_of_local(node.this, timezone, zone)
        case _:
            raise refuse("AT TIME ZONE of an expression of unknown type")


def instant_of_local(node: exp.Expr, timezone: str, zone: exp.Expr | None = None) -> exp.Expr:
    """The instant of a local time in ``zone``, by default in the session's; the later one if clocks
    are set back there.
    """
    zone = string(timezone) if zone is None else zone
    naive = spelled("CAST({0} AS TIMESTAMP_NTZ)", node, like="TIMESTAMP")
    first = spelled("CONVERT_TIMEZONE({1}, 'UTC', {0})", naive, zone, like="TIMESTAMP")
    chosen = spelled(
        "IF(CONVERT_TIMEZONE('UTC', {1}, {2} + INTERVAL '1' HOUR) = {0},"
        " {2} + INTERVAL '1' HOUR, {2})",
        naive,
        zone,
        first,
        like="TIMESTAMP",
    )
    return instant_of_utc(chosen, timezone)


def utc_of_instant(node: exp.Expr, timezone: str) -> exp.Expr:
    """The naive time in UTC of an instant, exact in any session zone."""
    if timezone == "UTC":
        return spelled("CAST({0} AS TIMESTAMP_NTZ)", node, like="TIMESTAMP")
    return spelled(
        "(TIMESTAMP_NTZ '1970-01-01 00:00:00' + "
        "MAKE_DT_INTERVAL(0, 0, 0, CAST(UNIX_MICROS({0}) / CAST(1000000 AS DECIMAL(7,0))"
        " AS DECIMAL(18,6))))",
        node,
        like="TIMESTAMP",
    )


def instant_of_utc(node: exp.Expr, timezone: str) -> exp.Expr:
    """The instant of a naive time in UTC, exact in any session zone."""
    if timezone == "UTC":
        return spelled("CAST({0} AS TIMESTAMP_LTZ)", node, like="TIMESTAMPTZ")
    return spelled("TIMESTAMP_MICROS({0})", micros_of_naive(node), like="TIMESTAMPTZ")


def micros_of_naive(node: exp.Expr) -> exp.Expr:
    """Microseconds since 1970 of a naive time as UTC, independent of the session zone."""
    return spelled(
        "(CAST(DATEDIFF(CAST({0} AS DATE), DATE '1970-01-01') AS BIGINT) * 86400000000L"
        " + HOUR({0}) * 3600000000L + MINUTE({0}) * 60000000L"
        " + CAST(EXTRACT(SECOND FROM {0}) * 1000000 AS BIGINT))",
        node,
        like="BIGINT",
    )
