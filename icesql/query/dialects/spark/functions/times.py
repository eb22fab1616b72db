"""Dates and times: differences in whole units, addition, parts, truncation, Java's patterns."""

from __future__ import annotations

from typing import Any, Final

from sqlglot import exp

from icesql.query.dialects import types as t
from icesql.query.dialects.instant_calls import FIRST_INSTANT, MOVED
from icesql.query.dialects.spark.calls import DIALECT, Typed, converted
from icesql.query.dialects.spark.instants import first_instant, truncated
from icesql.query.dialects.templates import call, duckdb
from icesql.query.dialects.types import SqlType
from icesql.sql.positions import unsupported

_UNITS: Final = frozenset(
    {"YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND", "MILLISECOND"}
    | {"MICROSECOND"}
)
_MONTHS: Final = {"MONTH": 1, "QUARTER": 3, "YEAR": 12}
_ADDED: Final = {
    "YEAR": "to_years(CAST($2 AS INT))",
    "QUARTER": "to_months(CAST($2 * 3 AS INT))",
    "MONTH": "to_months(CAST($2 AS INT))",
    "WEEK": "to_days(CAST($2 * 7 AS INT))",
    "DAY": "to_days(CAST($2 AS INT))",
    "DAYOFYEAR": "to_days(CAST($2 AS INT))",
    "HOUR": "to_hours($2)",
    "MINUTE": "to_minutes($2)",
    "SECOND": "to_seconds($2)",
    "MILLISECOND": "to_milliseconds($2)",
    "MICROSECOND": "to_microseconds($2)",
}
_DATE_PARTS: Final = {
    **dict.fromkeys(("YEAR", "Y", "YEARS", "YR", "YRS"), ("year($1)", t.INT)),
    **dict.fromkeys(("QUARTER", "QTR"), ("CAST(quarter($1) AS INT)", t.INT)),
    **dict.fromkeys(("MONTH", "MON", "MONS", "MONTHS"), ("month($1)", t.INT)),
    **dict.fromkeys(("WEEK", "W", "WEEKS"), ("CAST(weekofyear($1) AS INT)", t.INT)),
    **dict.fromkeys(("DAY", "D", "DAYS"), ("day($1)", t.INT)),
    **dict.fromkeys(("DAYOFWEEK", "DOW"), ("CAST(dayofweek($1) + 1 AS INT)", t.INT)),
    **dict.fromkeys(("DAYOFWEEK_ISO", "DOW_ISO"), ("CAST(isodow($1) AS INT)", t.INT)),
    "DOY": ("CAST(dayofyear($1) AS INT)", t.INT),
    "YEAROFWEEK": ("CAST(isoyear($1) AS INT)", t.INT),
}
_TIME_PARTS: Final = {
    **dict.fromkeys(("HOUR", "H", "HOURS", "HR", "HRS"), ("CAST(hour($1) AS INT)", t.INT)),
    **dict.fromkeys(("MINUTE", "M", "MIN", "MINS", "MINUTES"), ("CAST(minute($1) AS INT)", t.INT)),
    **dict.fromkeys(
        ("SECOND", "S", "SEC", "SECONDS", "SECS"),
        ("CAST(microsecond($1) * CAST('0.000001' AS DECIMAL(6,6)) AS DECIMAL(8,6))",
         SqlType("decimal", 8, 6)),
    ),
}  # fmt: skip
_TRUNCATED: Final = {
    **dict.fromkeys(("YEAR", "YYYY", "YY"), "year"),
    "QUARTER": "quarter",
    **dict.fromkeys(("MONTH", "MON", "MM"), "month"),
    "WEEK": "week",
}
_TRUNCATED_TIMES: Final = {
    **_TRUNCATED,
    **dict.fromkeys(("DAY", "DD"), "day"),
    **{unit: unit.lower() for unit in ("HOUR", "MINUTE", "SECOND", "MILLISECOND", "MICROSECOND")},
}
_DAYS: Final = {
    name: at + 1
    for at, day in enumerate(
        ("MONDAY", "TUESDAY", "WEDNESDAY", "THURSDAY", "FRIDAY", "SATURDAY", "SUNDAY")
    )
    for name in (day, day[:3], day[:2])
}
# Java's pattern letters as DuckDB's strftime specifiers; other letters are refused.
_PATTERNS: Final = {
    "yyyy": "%Y", "y": "%Y", "yy": "%y", "MM": "%m", "M": "%-m", "MMM": "%b", "MMMM": "%B",
    "dd": "%d", "d": "%-d", "HH": "%H", "H": "%-H", "hh": "%I", "h": "%-I", "mm": "%M",
    "m": "%-M", "ss": "%S", "s": "%-S", "SSS": "%g", "SSSSSS": "%f", "a": "%p", "E": "%a",
    "EE": "%a", "EEE": "%a", "EEEE": "%A", "DDD": "%j", "D": "%-j",
}  # fmt: skip
# The pattern letters that DuckDB parses as strictly as Java.
_READ: Final = {
    "yyyy": ("%Y", r"[0-9]{4}"),
    "MM": ("%m", r"[0-9]{2}"),
    "dd": ("%d", r"[0-9]{2}"),
    "HH": ("%H", r"[0-9]{2}"),
    "mm": ("%M", r"[0-9]{2}"),
    "ss": ("%S", r"[0-9]{2}"),
    "M": ("%m", r"[0-9]{1,2}"),
    "d": ("%d", r"[0-9]{1,2}"),
    "H": ("%H", r"[0-9]{1,2}"),
    "SSS": ("%g", r"[0-9]{3}"),
    "SSSSSS": ("%f", r"[0-9]{6}"),
}


def constant(value: Typed, at: exp.Expr, what: str) -> str:
    """The text of a constant argument. Raises UnsupportedSqlError for other arguments."""
    if not isinstance(value.node, exp.Literal) or not value.node.is_string:
        raise unsupported(f"{what} that is no constant text in {DIALECT}", at)
    return value.node.name


def passed(unit: str, start: Typed, end: Typed, at: exp.Expr) -> Typed:
    """``timestampdiff``: the number of whole units from ``start`` to ``end``."""
    if unit not in _UNITS:
        raise unsupported(f"the unit {unit} in {DIALECT}", at)
    kind = t.NTZ if {start.type.kind, end.type.kind} <= {"timestamp_ntz"} else t.TIMESTAMP
    one, other = converted(start, kind, at), converted(end, kind, at)
    if unit in _MONTHS:
        return Typed(_months_passed(one, other, _MONTHS[unit]), t.BIGINT)
    # In local time, as Spark counts days.
    return Typed(
        duckdb(
            f"date_sub('{unit.lower()}', CAST($1 AS TIMESTAMP), CAST($2 AS TIMESTAMP))", one, other
        ),
        t.BIGINT,
    )


def _months_passed(start: exp.Expr, end: exp.Expr, months: int) -> exp.Expr:
    """The number of whole units of ``months`` months between two times, as in java.time."""
    first, last = "CAST($1 AS DATE)", "CAST($2 AS DATE)"
    earlier, later = "CAST($1 AS TIME)", "CAST($2 AS TIME)"
    day = (
        f"CASE WHEN {last} > {first} AND {later} < {earlier} THEN {last} - 1 "
        f"WHEN {last} < {first} AND {later} > {earlier} THEN {last} + 1 ELSE {last} END"
    )
    reached = duckdb(
        day,
        duckdb("CAST($1 AS TIMESTAMP)", start.copy()),
        duckdb("CAST($1 AS TIMESTAMP)", end),
    )
    count = (
        "((year($2) * 12 + month($2)) * 32 + day($2) - (year($1) * 12 + month($1)) * 32 - day($1))"
    )
    begun = duckdb("CAST(CAST($1 AS TIMESTAMP) AS DATE)", start)
    return duckdb(f"CAST({count} // 32 // {months} AS BIGINT)", begun, reached)


def moved(unit: str, amount: Typed, moment: Typed, at: exp.Expr) -> Typed:
    """``timestampadd``: ``moment`` plus ``amount`` units."""
    added = _ADDED.get(unit)
    if added is None or amount.type.kind not in t.INTEGRAL:
        raise unsupported(f"{unit} of {amount.type} added in {DIALECT}", at)
    kind = moment.type if moment.type.kind in ("timestamp", "timestamp_ntz") else t.TIMESTAMP
    start = converted(moment, kind, at)
    if kind.kind == "timestamp" and unit in _MONTHS:
        return Typed(call(MOVED, start, duckdb(added.replace("$2", "$1"), amount.node)), kind)
    return Typed(duckdb(f"$1 + {added}", start, amount.node), kind)


def date_part(given: list[Typed], gives: SqlType, at: exp.Expr, queries: Any) -> Typed:
    """``date_part(unit, value)`` and EXTRACT."""
    unit = constant(given[0], at, "a part").upper()
    value = given[1]
    if value.type.kind == "string":
        value = Typed(converted(value, t.TIMESTAMP, at), t.TIMESTAMP)
    if unit in _TIME_PARTS and value.type.kind == "date":
        value = Typed(converted(value, t.TIMESTAMP, at), t.TIMESTAMP)
    found = _DATE_PARTS.get(unit) or _TIME_PARTS.get(unit)
    if found is None or value.type.kind not in t.MOMENTS:
        raise unsupported(f"the part {unit} of {value.type} in {DIALECT}", at)
    text, kind = found
    return Typed(duckdb(text, value.node, exact=not text.startswith(("year", "month"))), kind)


def trunc(given: list[Typed], gives: SqlType, at: exp.Expr, queries: Any) -> Typed:
    """``trunc(date, unit)``; NULL for a unit unknown to Spark."""
    unit = _TRUNCATED.get(constant(given[1], at, "a unit").upper())
    if unit is None:
        return Typed(duckdb("CASE WHEN false THEN $1 END", given[0].node), t.DATE)
    return Typed(
        duckdb(f"CAST(date_trunc('{unit}', $1) AS DATE)", given[0].node, exact=False), t.DATE
    )


def date_trunc(given: list[Typed], gives: SqlType, at: exp.Expr, queries: Any) -> Typed:
    """``date_trunc(unit, moment)``; NULL for a unit unknown to Spark."""
    unit = _TRUNCATED_TIMES.get(constant(given[0], at, "a unit").upper())
    if unit is None:
        return Typed(duckdb("CASE WHEN false THEN $1 END", given[1].node), gives)
    return Typed(truncated(unit, given[1].node), gives)


def next_day(given: list[Typed], gives: SqlType, at: exp.Expr, queries: Any) -> Typed:
    """The first date after the given one with this day of the week."""
    day = _DAYS.get(constant(given[1], at, "a day of the week").upper().strip())
    if day is None:
        raise unsupported(f"this day of the week in {DIALECT}", at, "write 'Mon'")
    text = f"$1 + CAST(1 + ({day} - 1 - isodow($1) + 14) % 7 AS INT)"
    return Typed(duckdb(text, given[0].node), t.DATE)


def months_between(given: list[Typed], gives: SqlType, at: exp.Expr, queries: Any) -> Typed:
    """Months between two times; the remaining days count as fractions of 31 days."""
    one, other = (_time_of_day(each, at) for each in given[:2])
    rounded = True
    if len(given) == 3:
        if not isinstance(given[2].node, exp.Boolean):
            raise unsupported(f"months_between() with a flag that is no constant in {DIALECT}", at)
        rounded = bool(given[2].node.this)
    day, base = "struct_extract($1, 'day')", "struct_extract($2, 'day')"
    passed = "struct_extract($1, 'passed') - struct_extract($2, 'passed')"
    whole = f"(year({day}) - year({base})) * 12 + month({day}) - month({base})"
    seconds = f"(day({day}) - day({base})) * 86400 + {passed}"
    exact = f"{whole} + CAST({seconds} AS DOUBLE) / 2678400"
    if rounded:
        exact = f"round({exact}, 8)"
    text = (
        f"CASE WHEN day({day}) = day({base}) OR ({day} = last_day({day}) "
        f"AND {base} = last_day({base})) THEN CAST({whole} AS DOUBLE) ELSE {exact} END"
    )
    return Typed(duckdb(text, one, other), t.DOUBLE)


def _time_of_day(value: Typed, at: exp.Expr) -> exp.Expr:
    """The date of a time in the session's zone, and the whole seconds since that day began."""
    instant = converted(value, t.TIMESTAMP, at)
    return duckdb(
        "CASE WHEN $1 IS NOT NULL THEN {'day': CAST(CAST($1 AS TIMESTAMP) AS DATE), "
        "'passed': (epoch_us($1) - epoch_us("
        f"{FIRST_INSTANT}(CAST(CAST($1 AS TIMESTAMP) AS DATE)))) // 1000000}} END",
        instant,
    )


def pieces(pattern: str, at: exp.Expr) -> list[tuple[bool, str]]:
    """Split a Java pattern into letters (True) and plain text (False)."""
    found: list[tuple[bool, str]] = []
    index = 0
    while index < len(pattern):
        letter = pattern[index]
        if letter == "'":
            end = pattern.find("'", index + 1)
            if end < 0:
                raise unsupported(f"the pattern '{pattern}' in {DIALECT}", at)
            found.append((False, pattern[index + 1 : end] or "'"))
            index = end + 1
        elif letter.isascii() and letter.isalpha():
            end = index
            while end < len(pattern) and pattern[end] == letter:
                end += 1
            found.append((True, pattern[index:end]))
            index = end
        elif letter in "[]{}#":
            raise unsupported(f"the pattern '{pattern}' in {DIALECT}", at)
        else:
            found.append((False, letter))
            index += 1
    return found


def date_format(given: list[Typed], gives: SqlType, at: exp.Expr, queries: Any) -> Typed:
    """Format a time with a Java pattern."""
    pattern = constant(given[1], at, "a pattern")
    out = []
    for is_letters, text in pieces(pattern, at):
        if is_letters and text not in _PATTERNS:
            raise unsupported(f"{text} in the pattern '{pattern}' in {DIALECT}", at)
        out.append(_PATTERNS[text] if is_letters else text.replace("%", "%%"))
    local = converted(given[0], t.NTZ, at)
    made = duckdb(
        "CASE WHEN year($1) BETWEEN 1000 AND 9999 THEN strftime($1, $2) WHEN $1 IS NOT NULL "
        "THEN error('a year of other than four digits in date_format()') END",
        local,
        exp.Literal.string("".join(out)),
    )
    return Typed(made, t.STRING)


def _read(value: exp.Expr, pattern: str, at: exp.Expr) -> exp.Expr:
    """Parse a text with a Java pattern as a timestamp without zone."""
    out, regular = [], []
    letters = [text for is_letters, text in pieces(pattern, at) if is_letters]
    if (
        len(set(letters)) != len(letters)
        or not {"yyyy", "M", "MM"} & set(letters)
        or "yyyy" not in letters
    ):
        raise unsupported(f"reading the pattern '{pattern}' in {DIALECT}", at)
    for is_letters, text in pieces(pattern, at):
        if not is_letters:
            out.append(text.replace("%", "%%"))
            regular.append("".join(f"\\{c}" if not c.isalnum() and c != " " else c for c in text))
        elif text in _READ:
            word, shape = _READ[text]
            out.append(word)
            regular.append(shape)
        else:
            raise unsupported(f"{text} in the pattern '{pattern}' in {DIALECT}", at)
    return duckdb(
        "CASE WHEN $1 IS NULL THEN NULL WHEN regexp_full_match($1, $2) THEN strptime($1, $3) "
        "ELSE error('the text ''' || $1 || ''' is not of the pattern ' || $4) END",
        value,
        exp.Literal.string("".join(regular)),
        exp.Literal.string("".join(out)),
        exp.Literal.string(pattern),
    )


def to_date(given: list[Typed], gives: SqlType, at: exp.Expr, queries: Any) -> Typed:
    """Parse a date with a Java pattern."""
    made = _read(given[0].node, constant(given[1], at, "a pattern"), at)
    return Typed(duckdb("CAST($1 AS DATE)", made), t.DATE)


def to_timestamp(given: list[Typed], gives: SqlType, at: exp.Expr, queries: Any) -> Typed:
    """Parse a time with a Java pattern as an instant in the session's zone."""
    made = _read(given[0].node, constant(given[1], at, "a pattern"), at)
    return Typed(first_instant(made), t.TIMESTAMP)


def unix_of_text(given: list[Typed], gives: SqlType, at: exp.Expr, queries: Any) -> Typed:
    """Parse a time with a Java pattern as seconds since 1970."""
    pattern = constant(given[1], at, "a pattern") if len(given) == 2 else "yyyy-MM-dd HH:mm:ss"
    made = _read(given[0].node, pattern, at)
    text = "CAST(floor(epoch_us($1) / 1000000) AS BIGINT)"
    return Typed(duckdb(text, first_instant(made)), t.BIGINT)


def from_unixtime(given: list[Typed], gives: SqlType, at: exp.Expr, queries: Any) -> Typed:
    """Format seconds since 1970 as text in the session's zone."""
    moment = Typed(duckdb("make_timestamptz($1 * 1000000)", given[0].node), t.TIMESTAMP)
    pattern = (
        given[1] if len(given) == 2 else Typed(exp.Literal.string("yyyy-MM-dd HH:mm:ss"), t.STRING)
    )
    return date_format([moment, pattern], gives, at, queries)
