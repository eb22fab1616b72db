"""Random conditions: a file that holds a matching row is never left out.

    python tests/campaigns/random_conditions.py [how many] [seed]

Two tables of many small files, one of them partitioned by the values themselves, hold what makes
pruning go wrong: NULL, NaN, both zeros, infinities, the ends of types, hours that clocks repeat,
years of three digits, texts that differ in case or are longer than a bound. DuckDB evaluates each
condition over the same rows in a table of its own and says which files are needed; the plan has to
keep them. One condition in ten is run as well, with pruning on and off. Ends with code 1 where a
needed file was left out or rows differ.
"""

from __future__ import annotations

import random
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import icesql
from icesql.context import QueryContext
from icesql.scan.planner import plan
from icesql.sql.parse import parse
from tests.writer.partition_values import apply
from tests.writer.table import TableWriter

FILES, ROWS = 30, 6
ZONES = ("UTC", "Europe/Berlin", "America/New_York")
KINDS = {
    "i": "int", "l": "long", "c": "decimal(9, 2)", "f": "double", "r": "float", "e": "date",
    "t": "timestamp", "z": "timestamptz", "s": "string", "b": "boolean", "k": "int", "w": "string",
    "g": "date",
}  # fmt: skip
SQL_TYPES = {
    "i": "INTEGER", "l": "BIGINT", "c": "DECIMAL(9,2)", "f": "DOUBLE", "r": "FLOAT", "e": "DATE",
    "t": "TIMESTAMP", "z": "TIMESTAMPTZ", "s": "VARCHAR", "b": "BOOLEAN", "k": "INTEGER",
    "w": "VARCHAR", "g": "DATE",
}  # fmt: skip
_MOMENTS = [
    datetime.fromisoformat(text)
    for text in (
        "0950-05-05 10:00:00", "1899-12-31 23:59:59", "1969-12-31 23:59:59.999999",
        "1970-01-01 00:00:00", "2020-01-31 08:00:00", "2020-02-28 10:00:00", "2020-02-29 23:59:59",
        "2020-03-29 00:30:00", "2020-03-29 01:30:00", "2020-10-24 22:30:00", "2020-10-25 00:30:00",
        "2020-10-25 01:30:00", "2020-11-01 05:30:00", "2020-11-01 06:30:00", "2020-12-31 23:30:00",
        "2021-01-01 00:30:00", "2021-05-17 12:34:56.789", "2021-12-27 00:00:00",
        "2024-02-29 12:00:00",
    )
]  # fmt: skip
_TEXTS = [
    "", " ", "a", "A", "ab", "aB", "Ab", "abc", "abd", "abcdefghijklmnopq", "abcdefghijklmnopz", "b",
    "b%", "a_c", "a*c", "kelvin", "\u212aelvin", "Kelvin", "ISLE", "\u0131sle", "\u0130sle", "\u017fea",
    "Sea", "2020-02-29", "2020-2-9", "2021-01-01", "10", "9", "é", "ébc", "\U0001f600x", "~", "null",
]  # fmt: skip


@dataclass
class Values:
    """What the columns hold: close together within a file, so that bounds say something."""

    chance: random.Random
    made: dict[str, list[Any]] = field(default_factory=dict)

    def file(self, constant: bool) -> list[dict[str, Any]]:
        """The rows of one file; ``constant``: the partition columns hold one value."""
        pick = self.chance
        columns = {name: self.column(name) for name in KINDS}
        for name in "kwg":
            value = None if pick.random() < 0.15 else columns[name][0]
            if constant or pick.random() < 0.5:
                columns[name] = [value] * ROWS
        for name in set(KINDS) - set("kwg"):
            if pick.random() < 0.3:
                at = pick.randrange(ROWS)
                columns[name][at] = None
            if pick.random() < 0.05:
                columns[name] = [None] * ROWS
            elif pick.random() < 0.15:
                columns[name] = [columns[name][0]] * ROWS
        return [{name: columns[name][at] for name in KINDS} for at in range(ROWS)]

    def column(self, name: str) -> list[Any]:
        pick = self.chance
        match name:
            case "i" | "k":
                start = pick.choice((-(2**31), -10, 0, 3, 100, 2**31 - 20, pick.randint(-999, 999)))
                return [min(start + pick.randint(0, 9), 2**31 - 1) for _ in range(ROWS)]
            case "l":
                start = pick.choice((-(2**63), -5, 0, 2**53, 2**63 - 20, 1_600_000_000_000))
                return [min(start + pick.randint(0, 9), 2**63 - 1) for _ in range(ROWS)]
            case "c":
                start = pick.choice((-9_999_999_99, -100, 0, 50, 12345, 9_999_999_00))
                return [Decimal(start + pick.randint(0, 90)).scaleb(-2) for _ in range(ROWS)]
            case "f" | "r":
                start = pick.choice((-1e30, -2.0, -0.0, 0.0, 0.5, 7.25, 1e6, 2.0**53))
                rare = (float("nan"), float("inf"), float("-inf"), -0.0)
                found = [start + pick.randint(0, 9) / 4 for _ in range(ROWS)]
                if pick.random() < 0.25:
                    found[pick.randrange(ROWS)] = pick.choice(rare)
                return [_single(each) for each in found] if name == "r" else found
            case "e" | "g":
                start = pick.choice(_MOMENTS).date()
                return [start + timedelta(days=pick.randint(0, 9)) for _ in range(ROWS)]
            case "t" | "z":
                start = pick.choice(_MOMENTS)
                step = pick.choice((60, 3600, 86400))
                found = [start + timedelta(seconds=step * pick.randint(0, 9)) for _ in range(ROWS)]
                return [each.replace(tzinfo=UTC) for each in found] if name == "z" else found
            case "b":
                return [pick.random() < 0.5 for _ in range(ROWS)]
            case _:
                texts = sorted(_TEXTS)
                start = pick.randrange(len(texts))
                return [texts[min(start + pick.randint(0, 4), len(texts) - 1)] for _ in range(ROWS)]


def _single(value: float) -> float:
    import struct

    return float(struct.unpack("<f", struct.pack("<f", value))[0])


class Conditions:
    """Random conditions of the columns, of types that meet; ``values`` are known of each."""

    def __init__(self, chance: random.Random, values: dict[str, list[Any]]) -> None:
        self.chance, self.values = chance, values

    def condition(self, depth: int = 2) -> str:
        pick = self.chance
        if depth and pick.random() < 0.35:
            word = pick.choice(("AND", "OR"))
            return f"({self.condition(depth - 1)} {word} {self.condition(depth - 1)})"
        if depth and pick.random() < 0.12:
            return f"NOT ({self.condition(depth - 1)})"
        kind = pick.choice(("number", "number", "time", "time", "text", "text", "any"))
        match kind:
            case "number":
                return self.compared(self.number(2), lambda: self.number(0, free=True))
            case "time":
                return pick.choice((self.of_time, self.of_time, self.of_parts))()
            case "text":
                return self.of_text()
            case _:
                return self.of_any()

    def simple(self) -> str:
        """A condition of one column, for the inside of others."""
        name = self.column("ilcfretzsgkw")
        if self.chance.random() < 0.1:
            return f"{name} IS NULL"
        return f"{name} {self.chance.choice(('=', '<', '>=', '<>'))} {self.value(name)}"

    def compared(self, left: str, right: Any) -> str:
        pick = self.chance
        kind = pick.random()
        if kind < 0.7:
            operation = pick.choice(("=", "<>", "<", "<=", ">", ">="))
            sides = (left, right())
            one, two = sides if pick.random() < 0.85 else sides[::-1]
            return f"{one} {operation} {two}"
        if kind < 0.8:
            return f"{left} {pick.choice(('', 'NOT '))}BETWEEN {right()} AND {right()}"
        if kind < 0.9:
            items = ", ".join(right() for _ in range(pick.randint(1, 3)))
            return f"{left} {pick.choice(('', 'NOT '))}IN ({items})"
        return f"{left} IS {pick.choice(('', 'NOT '))}DISTINCT FROM {right()}"

    def column(self, names: str) -> str:
        return self.chance.choice(names)

    def value(self, name: str) -> str:
        """A value of a column or one beside it, as a literal."""
        value = self.chance.choice(self.values[name])
        return literal(value, self.chance)

    def number(self, depth: int, *, free: bool = False) -> str:
        pick = self.chance
        if free or (depth < 2 and pick.random() < 0.25):
            known = self.value(self.column("ilcfk"))
            small = str(pick.choice((0, 1, -1, 2, 3, 10, 205, 0.5, 1.1, -2.5, 1e3)))
            constant = pick.choice((known, small, f"length('{'x' * pick.randint(0, 4)}')"))
            if pick.random() < 0.2:
                return f"{pick.choice(('abs', 'floor', 'greatest'))}({constant})"
            return constant
        column = self.column("ilcfrk")
        if depth == 0 or pick.random() < 0.25:
            return column
        inner = self.number(depth - 1)
        small = pick.choice(("1", "2", "10", "-3", "0.5", "1.1", "0", "2.0::DOUBLE"))
        forms = (
            f"({inner} + {small})", f"({inner} - {small})", f"({small} - {inner})", f"({inner} * {small})",
            f"({inner} / {small})", f"({inner} // {small})", f"({inner} % 7)", f"abs({inner})",
            f"(-{inner})", f"round({inner})", f"round({inner}, 1)", f"floor({inner})", f"ceil({inner})",
            f"trunc({inner})", f"sign({inner})", f"coalesce({inner}, {small})", f"ifnull({inner}, 0)",
            f"nullif({inner}, {small})", f"greatest({inner}, {small})", f"least({inner}, {small})",
            f"greatest({inner}, {column})", f"CAST({inner} AS DOUBLE)", f"CAST({inner} AS DECIMAL(18,1))",
            f"TRY_CAST({inner} AS INTEGER)", f"CAST({inner} AS FLOAT)", f"({inner} + {column})",
            f"CASE WHEN {self.simple()} THEN {inner} ELSE {small} END",
            f"CASE WHEN {self.simple()} THEN 1 WHEN {self.simple()} THEN 2 END",
            f"if({self.simple()}, {column}, 0)", f"({inner} - {column})", f"({inner} * {column})",
        )  # fmt: skip
        return pick.choice(forms)

    def moment(self, *, free: bool = False) -> str:
        """A date or time of the clock or an instant."""
        pick = self.chance
        name = self.column("etzg")
        if free:
            known = self.value(name)
            text = str(pick.choice(_MOMENTS))
            return pick.choice((
                known, known, f"'{text}'", f"DATE '{text[:10]}'", f"TIMESTAMP '{text}'",
                f"TIMESTAMPTZ '{text}+02'", f"make_date(2020, {pick.randint(1, 12)}, 1)",
                f"strptime('{text[:10]}', '%Y-%m-%d')", f"to_timestamp({pick.randint(0, 2**31)})",
                f"TIMESTAMP '{text}' AT TIME ZONE 'Europe/Berlin'", "now()", "current_date",
                f"DATE '{text[:10]}' + {pick.randint(-40, 40)}",
            ))  # fmt: skip
        unit = pick.choice(("year", "quarter", "month", "week", "day", "hour", "minute"))
        zone = pick.choice(("UTC", "Europe/Berlin", "America/New_York"))
        length = pick.choice(("1 day", "1 hour", "1 month", "7 days", "90 minutes", "1 year"))
        forms = (
            name, name, f"CAST({name} AS DATE)", f"{name}::TIMESTAMP", f"{name}::TIMESTAMPTZ",
            f"date_trunc('{unit}', {name})", f"date_trunc('{unit}', {name}::DATE)", f"last_day({name})",
            f"time_bucket(INTERVAL '{length}', {name})", f"({name} + INTERVAL '{length}')",
            f"({name} - INTERVAL '{length}')", f"date_add({name}, INTERVAL {pick.randint(1, 40)} DAY)",
            f"(t AT TIME ZONE '{zone}')", f"(z AT TIME ZONE '{zone}')",
            f"(z AT TIME ZONE '{zone}')::DATE", f"coalesce({name}, {name})", "(e + 1)", "(g - 30)",
            f"CASE WHEN {self.simple()} THEN {name} END", "to_timestamp(f)", "to_timestamp(i)",
            "epoch_ms(l)", "make_timestamp(l)", "make_date(2020, k, 1)", f"greatest({name}, {name})",
            f"date_trunc('{unit}', {name} + INTERVAL '2 hours')",
        )  # fmt: skip
        return pick.choice(forms)

    def of_time(self) -> str:
        return self.compared(self.moment(), lambda: self.moment(free=True))

    def of_parts(self) -> str:
        """Numbers and texts made of times."""
        pick = self.chance
        moment = self.moment()
        part = pick.choice(("year", "month", "day", "hour", "quarter", "week", "dow", "doy", "isodow",
                            "epoch", "decade", "century", "isoyear", "yearweek", "minute"))  # fmt: skip
        known = pick.choice(_MOMENTS)
        number = pick.choice((1, 2, 3, 5, 12, 28, 200, 1970, 2019, 2020, 2021, 202010, 1583971200))
        unit = pick.choice(("year", "month", "week", "day", "hour", "minute"))
        other = f"TIMESTAMP '{pick.choice(_MOMENTS)}'"
        form = pick.choice(("%Y-%m", "%Y%m%d", "%Y-%m-%d %H:%M", "%m-%d", "%d.%m.%Y", "%Y"))
        numbers = (
            f"{pick.choice(('year', 'month', 'day', 'quarter', 'dayofyear', 'week', 'hour'))}({moment})",
            f"extract({part} FROM {moment})", f"date_part('{part}', {moment})", f"epoch({moment})",
            f"epoch_ms({moment})", f"date_diff('{unit}', {moment}, {other})",
            f"date_diff('{unit}', {other}, {moment})", f"date_sub('{unit}', {moment}, {other})",
            f"(DATE '{known.date()}' - e)", "(e - g)", f"year({moment}) * 100 + month({moment})",
        )  # fmt: skip
        texts = (
            (f"strftime({moment}, '{form}')", known.strftime(form)),
            (f"CAST({moment} AS VARCHAR)", str(known)[: pick.choice((4, 7, 10, 19))]),
            (f"monthname({moment})", pick.choice(("May", "March", "October", "December"))),
            (f"dayname({moment})", pick.choice(("Sunday", "Monday"))),
        )
        if pick.random() < 0.65:
            return self.compared(pick.choice(numbers), lambda: str(number))
        if pick.random() < 0.15:
            operation, days = pick.choice("<>"), pick.randint(-500, 500)
            return f"({other} - {moment}) {operation} INTERVAL {abs(days)} DAY"
        text, literal_ = pick.choice(texts)
        if pick.random() < 0.3:
            return f"{text} LIKE '{literal_}%'"
        return self.compared(text, lambda: f"'{literal_}'")

    def of_text(self) -> str:
        pick = self.chance
        name = self.column("ssw")
        text = pick.choice(_TEXTS).replace("'", "''")
        start = text[: pick.randint(0, 4)]
        plain = "".join(each for each in start if each.isalnum() and each.isascii()) or "a"
        made = (
            name, f"lower({name})", f"upper({name})", f"left({name}, {pick.randint(1, 4)})",
            f"substr({name}, 1, {pick.randint(1, 4)})", f"{name}[1]", f"{name}[1:{pick.randint(1, 3)}]",
            f"{name} || 'c'", f"'a' || {name}", f"concat({name}, 'c')", f"trim({name})",
            f"coalesce({name}, 'ab')", f"nullif({name}, 'a')", f"replace({name}, 'a', 'b')",
            f"reverse({name})", f"CASE WHEN {self.simple()} THEN {name} ELSE 'a' END",
            f"greatest({name}, 'ab')", f"left(lower({name}), 2)",
        )  # fmt: skip
        conditions = (
            lambda: (
                f"{name} {pick.choice(('', 'NOT '))}LIKE '{start}{pick.choice(('%', '_', '', '%c'))}'"
            ),
            lambda: (
                f"{name} {pick.choice(('', 'NOT '))}ILIKE '{start}{pick.choice(('%', '_', ''))}'"
            ),
            lambda: f"lower({name}) LIKE '{start.lower()}%'",
            lambda: f"upper({name}) LIKE '{start.upper()}%'",
            lambda: f"{name} GLOB '{plain}{pick.choice(('*', '?', '', '[a-z]*'))}'",
            lambda: (
                f"regexp_matches({name}, '{pick.choice(('^', ''))}{plain}{pick.choice(REGEX_ENDS)}')"
            ),
            lambda: f"{name} ~ '{pick.choice(('^', ''))}{plain}{pick.choice(REGEX_ENDS)}'",
            lambda: f"{name} SIMILAR TO '{plain}{pick.choice(REGEX_ENDS)}'",
            lambda: f"starts_with({name}, '{start}')",
            lambda: f"NOT starts_with(lower({name}), '{start}')",
            lambda: f"position('{start}' IN {name}) = 1",
            lambda: f"instr({name}, '{start}') {pick.choice(('=', '>'))} {pick.choice((0, 1))}",
            lambda: f"contains({name}, '{start}')",
            lambda: f"length({name}) {pick.choice(('=', '<', '>'))} {pick.randint(0, 6)}",
            lambda: f"TRY_CAST({name} AS {pick.choice(('DATE', 'INTEGER'))}) IS NOT NULL",
            lambda: f"{name} COLLATE NOCASE = '{text}'",
        )
        if pick.random() < 0.5:
            folded = pick.choice((text, text.lower(), text.upper(), start))
            return self.compared(pick.choice(made), lambda: f"'{folded}'")
        return pick.choice(conditions)()

    def of_any(self) -> str:
        pick = self.chance
        name = self.column("ilcfretzsbkwg")
        first, second = self.value("i"), self.value("k")
        decimal, double, moment = self.value("c"), self.value("f"), self.value("t")
        forms = (
            f"i IN [{first}, NULL]", f"k NOT IN [NULL, {second}]", "NOT (s IN ['ab', NULL])",
            f"c IN [{decimal}, 0.10000000000000000555]", f"c NOT IN [{decimal}]",
            f"c = {decimal}::FLOAT", f"c < CAST({decimal} AS FLOAT)", f"l >= {first}::FLOAT",
            f"f = {double}::FLOAT", "f <> 9007199254740992.0::FLOAT", f"r <= {double}::FLOAT",
            f"c BETWEEN {decimal} AND {double}", f"l BETWEEN {first} AND f", f"f BETWEEN {decimal} AND 1e3",
            f"i NOT BETWEEN {first} AND c", f"t BETWEEN {moment} AND z", f"z = ANY([{moment}])",
            f"z IN [{moment}]", f"e = ANY([{moment}])", f"t <> ALL([{moment}])", f"f = ANY([{double}])",
            "s = ANY(['ab', 'a'])", f"c = ANY([{decimal}, 1.5])", f"list_contains([{moment}, NULL], z)",
            f"{name} IS NULL", f"{name} IS NOT NULL", "b", "NOT b", "b = true", "b <> false",
            "b IS TRUE", "b IS NOT TRUE", "b IS FALSE", "b IS NOT FALSE", "isnan(f)", "NOT isnan(r)",
            f"({self.simple()}) = true", f"({self.simple()}) IS TRUE", "true", "NULL",
            f"({self.simple()}) = false", f"({self.simple()}) IS FALSE",
            f"(i, k) {pick.choice(('=', '<', '<=', '>', '>=', '<>'))} ({first}, {second})",
            f"(i, k) = ({first}, NULL)", f"(k, i) {pick.choice(('<', '>'))} (NULL, {first})",
            f"(i, k) IN (({first}, {second}), (0, 0))", f"i = ANY([{first}, {second}])",
            f"list_contains([{first}, {second}, NULL], i)", f"NOT list_contains([{first}, NULL], i)",
            f"k IN ({first}, NULL)", f"k NOT IN ({second}, NULL)", "i < k", "i = k", "e < g", "s = w",
            "l > f", "t < e", "t = z", f"{name} = {name}", "f IN (0.0, 1.5)", "f = 'NaN'", "f > 'NaN'",
            "f >= 'inf'::DOUBLE", "r < 'inf'::FLOAT", "-f < 2", "f <> 'NaN'::DOUBLE", "1 / f > 0",
            f"CASE k WHEN {second} THEN true ELSE i > {first} END", f"i BETWEEN k AND {first}",
            "greatest(f, 0) > 1", "least(f, 0.5) < 1", "least(r, 100) > 50", "coalesce(f, 'NaN') > 1",
            f"{first} BETWEEN k AND i", f"CASE WHEN b THEN i > {first} END",
        )  # fmt: skip
        return pick.choice(forms)


REGEX_ENDS = ("", ".*", "c*", "b?c", "b+", "{2}", "|b", "[a-c]", "$", "(b|c).*", r"\d")


def literal(value: Any, chance: random.Random) -> str:
    """A value, or one beside it, in SQL."""
    match value:
        case None:
            return "NULL"
        case bool():
            return str(value).lower()
        case int():
            return str(value + chance.choice((0, 0, 1, -1)))
        case Decimal():
            return str(value + chance.choice((Decimal(0), Decimal("0.01"), Decimal("-0.005"))))
        case float():
            return f"'{value}'::DOUBLE" if value != value or abs(value) > 1e15 else repr(value)
        case datetime():
            moved = value + chance.choice((0, 1, -1)) * timedelta(hours=1)
            kind = "TIMESTAMP" if moved.tzinfo is None else "TIMESTAMPTZ"
            return f"{kind} '{moved.isoformat(' ')}'"
        case date():
            return f"DATE '{value + timedelta(days=chance.choice((0, 1, -1)))}'"
        case _:
            return "'" + str(value).replace("'", "''") + "'"


# ------------------------------------------------------------ asking


@dataclass
class Findings:
    """What came of the conditions."""

    asked: int = 0
    refused: int = 0
    needed: int = 0
    kept: int = 0
    live: int = 0
    wrong: list[str] = field(default_factory=list)


class Campaign:
    """Two tables, and DuckDB's own tables of the same rows."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.chance = random.Random(seed)
        self.rows_of: dict[str, list[list[Any]]] = {}
        self.values: dict[str, list[Any]] = {name: [] for name in KINDS}
        self.connection = icesql.connect()
        for table in ("plain", "parted"):
            self.write(folder / table, table)
        self.fill("UTC")

    def fill(self, zone: str) -> None:
        """A DuckDB of the same rows; some errors leave one that cannot be used."""
        import duckdb

        self.duckdb = duckdb.connect(config={"threads": 1})
        columns = ", ".join(f"{name} {kind}" for name, kind in SQL_TYPES.items())
        for table, rows in self.rows_of.items():
            self.duckdb.execute(f"CREATE TABLE {table} ({columns}, file VARCHAR)")
            places = ", ".join("?" * (len(KINDS) + 1))
            self.duckdb.executemany(f"INSERT INTO {table} VALUES ({places})", rows)
        self.duckdb.execute(f"SET TimeZone = '{zone}'")

    def write(self, folder: Path, table: str) -> None:
        fields = [
            {"id": at, "name": name, "required": False, "type": kind}
            for at, (name, kind) in enumerate(KINDS.items(), start=1)
        ]
        parted = table == "parted"
        spec = [
            {"source-id": at, "field-id": 999 + at, "name": name, "transform": "identity"}
            for at, name in enumerate(KINDS, start=1)
            if parted and name in "kwg"
        ]
        writer = TableWriter(folder, fields, spec)
        maker = Values(self.chance)
        self.rows_of[table] = []
        files = []
        for number in range(FILES):
            rows = maker.file(parted)
            partition = [apply("identity", KINDS[name], rows[0][name]) for name in "kwg" if parted]
            stats = not parted or number % 2 == 0
            files.append(writer.data_file(rows, partition=partition, stats=stats))
            path = files[-1].record["file_path"]
            self.rows_of[table] += [[*row.values(), path] for row in rows]
            for name, known in self.values.items():
                known += [row[name] for row in rows]
        writer.commit(files)
        self.connection.register_table(table, str(writer.metadata_path))

    def ask(self, count: int) -> Findings:
        """``count`` conditions, each of one table in one time zone."""
        found = Findings()
        conditions = Conditions(self.chance, self.values)
        for number in range(count):
            if number % 50 == 0:
                zone = self.chance.choice(ZONES)
                self.duckdb.execute(f"SET TimeZone = '{zone}'")
                self.connection.execute(f"SET timezone = '{zone}'")
            self.ask_one(conditions.condition(), number % 10 == 0, zone, found)
        return found

    def ask_one(self, condition: str, runs: bool, zone: str, found: Findings) -> None:
        import duckdb

        table = self.chance.choice(("plain", "parted"))
        try:
            needed = {
                path
                for (path,) in self.duckdb.execute(
                    f"SELECT DISTINCT file FROM {table} WHERE {condition}"
                ).fetchall()
            }
        except duckdb.Error as error:
            found.refused += 1
            if isinstance(error, duckdb.FatalException):
                self.fill(zone)
            return
        sql = f"SELECT i FROM {table} WHERE {condition}"
        try:
            kept = self.files(sql)
        except icesql.Error:
            found.refused += 1
            return
        found.asked += 1
        found.needed, found.kept = found.needed + len(needed), found.kept + len(kept)
        found.live += FILES
        if needed - kept:
            found.wrong.append(f"{zone}, {table}: {condition}: {len(needed - kept)} files lost")
        elif runs:
            rows = self.rows(sql, "off")
            # An error of a row in a file that is left out is no row that is lost.
            if rows is not None and self.rows(sql, "on") != rows:
                found.wrong.append(f"{zone}, {table}: {condition}: other rows")

    def files(self, sql: str) -> set[str]:
        session = self.connection._session
        query = QueryContext.begin(session.state.settings)
        (statement,) = parse(sql)
        _, bound = session.pipeline.bind(statement, query)
        return {task.data_file.path for task in plan(bound.scans[0], query).files}

    def rows(self, sql: str, prune: str) -> list[str] | None:
        """The rows, None where the engine raises."""
        self.connection.execute(f"SET prune = {prune}")
        try:
            return sorted(map(repr, self.connection.execute(sql).fetchall()))
        except icesql.Error:
            return None
        finally:
            self.connection.execute("SET prune = on")


def run(count: int, seed: int) -> Iterator[Findings]:
    """The findings of ``count`` conditions, over new tables after each thousand."""
    while count > 0:
        with tempfile.TemporaryDirectory() as folder:
            campaign = Campaign(Path(folder), seed)
            yield campaign.ask(min(count, 1_000))
            campaign.connection.close()
        count, seed = count - 1_000, seed + 1


def main(arguments: list[str]) -> int:
    """Ask, and print what was lost and how much was pruned."""
    count = int(arguments[0]) if arguments else 20_000
    seed = int(arguments[1]) if len(arguments) > 1 else 1
    asked = wrong = needed = kept = live = refused = 0
    for found in run(count, seed):
        asked, wrong, refused = (
            asked + found.asked,
            wrong + len(found.wrong),
            refused + found.refused,
        )
        needed, kept, live = needed + found.needed, kept + found.kept, live + found.live
        print(*found.wrong, sep="\n", flush=True)
        print(f"{asked} asked, {refused} that DuckDB refuses, {wrong} wrong; of {live} files "
              f"{needed} needed, {kept} kept", flush=True)  # fmt: skip
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
