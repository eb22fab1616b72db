"""Random conditions: a file with a matching row must never be left out.

    python tests/campaigns random_conditions [--histories 20] [--first 0] [--length 1000]

Two tables of many small files, one of them partitioned by the values themselves, hold what makes
pruning go wrong: NULL, NaN, both zeros, infinities, the ends of types, hours that clocks repeat,
years of three digits, texts that differ in case or are longer than a bound. DuckDB evaluates each
condition over the same rows in a table of its own and says which files hold rows that match; icesql
finds the rows of these files and of no others. A history is two new tables and so many conditions.
Ends with code 1 where files differ.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import icesql
from tests.campaigns.grammar import Grammar
from tests.campaigns.histories.command import run, world
from tests.campaigns.histories.spelling import sql_type
from tests.tables import read_cases
from tests.writer.fields import fields
from tests.writer.partition_values import apply
from tests.writer.table import TableWriter

FILES, ROWS = 30, 6
ZONES = ("UTC", "Europe/Berlin", "America/New_York")
FIELDS = fields(
    "i int, l long, c decimal(9, 2), f double, r float, e date, t timestamp, z timestamptz, "
    "s string, b boolean, k int, w string, g date"
)
KINDS = {each["name"]: each["type"] for each in FIELDS}
SQL_TYPES = {name: sql_type(kind) for name, kind in KINDS.items()}
_HELD = read_cases(__file__, "random_conditions.tsv", 1)
_MOMENTS = [datetime.fromisoformat(value) for kind, value in _HELD if kind == "moment"]
_TEXTS = [value for kind, value in _HELD if kind == "text"]


@dataclass
class Values:
    """The values of columns: similar within a file, so that bounds are useful."""

    chance: random.Random

    def file(self, constant: bool) -> list[dict[str, Any]]:
        """The rows of one file; ``constant``: the partition columns hold one value."""
        pick = self.chance
        drawn = {name: self.column(name) for name in KINDS}
        for name in "kwg":
            value = None if pick.random() < 0.15 else drawn[name][0]
            if constant or pick.random() < 0.5:
                drawn[name] = [value] * ROWS
        for name in sorted(set(KINDS) - set("kwg")):
            if pick.random() < 0.3:
                at = pick.randrange(ROWS)
                drawn[name][at] = None
            if pick.random() < 0.05:
                drawn[name] = [None] * ROWS
            elif pick.random() < 0.15:
                drawn[name] = [drawn[name][0]] * ROWS
        return [{name: drawn[name][at] for name in KINDS} for at in range(ROWS)]

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


class Texts(Grammar):
    """Random texts by ``conditions.txt``; ``values`` has values of each column."""

    def __init__(self, chance: random.Random, values: dict[str, list[Any]]) -> None:
        super().__init__(chance, Path(__file__).with_name("conditions.txt"))
        self.values = values

    def _column(self, letters: str) -> str:
        return self.chance.choice(letters)

    def _value(self, letters: str) -> str:
        """A value of a column, or a neighbouring one, as a literal."""
        return literal(self.chance.choice(self.values[self.chance.choice(letters)]), self.chance)

    def _with_number(self, symbol: str) -> str:
        return self.text("form_of_number").replace("@", self.text(symbol))

    def _known(self, length: str = "30") -> str:
        """A moment that files contain."""
        return str(self.chance.choice(_MOMENTS))[: int(length)]

    def _known_start(self) -> str:
        return self._known(self._one("4", "7", "10", "19"))

    def _formatted(self, how: str) -> str:
        """A time as text, compared with such a text."""
        form = self._one("%Y-%m", "%Y%m%d", "%Y-%m-%d %H:%M", "%m-%d", "%d.%m.%Y", "%Y")
        known = self.chance.choice(_MOMENTS).strftime(form)
        text = f"strftime({self.text('moment')}, '{form}')"
        return f"{text} LIKE '{known}%'" if how == "like" else f"{text} {self.text('op')} '{known}'"

    def _text(self) -> str:
        text = self.chance.choice(_TEXTS).replace("'", "''")
        return self.chance.choice((text, text, text.lower(), text.upper()))

    def _start(self, case: str = "strip") -> str:
        """A prefix of the texts."""
        found = self.chance.choice(_TEXTS)[: self.chance.randint(0, 4)]
        return str(getattr(found, case)()) if case != "strip" else found

    def _plain(self) -> str:
        found = (each for each in self._start() if each.isalnum() and each.isascii())
        return "".join(found) or "a"


def literal(value: Any, chance: random.Random) -> str:
    """A value, or a neighbouring one, in SQL."""
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


# ------------------------------------------------------------ querying


class Campaign:
    """Two tables, and DuckDB's own tables of the same rows."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.chance, self.found, self.wrong = random.Random(seed), Counter[str](), list[str]()
        self.rows_of: dict[str, list[list[Any]]] = {}
        self.values: dict[str, list[Any]] = {name: [] for name in KINDS}
        self.connection = icesql.connect()
        for table in ("plain", "parted"):
            self.write(folder / table, table)
        self.fill("UTC")

    def fill(self, zone: str) -> None:
        """A DuckDB with the same rows; after some errors it has to be created anew."""
        import duckdb

        self.duckdb = duckdb.connect(config={"threads": 1})
        named = ", ".join(f"{name} {kind}" for name, kind in SQL_TYPES.items())
        for table, rows in self.rows_of.items():
            self.duckdb.execute(f"CREATE TABLE {table} ({named}, file VARCHAR)")
            places = ", ".join("?" * (len(KINDS) + 1))
            self.duckdb.executemany(f"INSERT INTO {table} VALUES ({places})", rows)
        self.duckdb.execute(f"SET TimeZone = '{zone}'")

    def write(self, folder: Path, table: str) -> None:
        parted = table == "parted"
        spec = [
            {"source-id": at, "field-id": 999 + at, "name": name, "transform": "identity"}
            for at, name in enumerate(KINDS, start=1)
            if parted and name in "kwg"
        ]
        writer = TableWriter(folder, FIELDS, spec)
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

    def close(self) -> None:
        """End the connection."""
        self.connection.close()

    def ask(self, count: int) -> None:
        """Run ``count`` conditions, each on one table in one time zone."""
        texts = Texts(self.chance, self.values)
        for number in range(count):
            if number % 50 == 0:
                zone = self.chance.choice(ZONES)
                self.duckdb.execute(f"SET TimeZone = '{zone}'")
                self.connection.execute(f"SET timezone = '{zone}'")
            self.ask_one(texts.text("condition"), zone)

    def ask_one(self, condition: str, zone: str) -> None:
        import duckdb

        self.found["questions"] += 1
        table = self.chance.choice(("plain", "parted"))
        try:
            needed = {
                path
                for (path,) in self.duckdb.execute(
                    f"SELECT DISTINCT file FROM {table} WHERE {condition}"
                ).fetchall()
            }
        except duckdb.Error as error:
            self.found["refused"] += 1
            if isinstance(error, duckdb.FatalException):
                self.fill(zone)
            return
        try:
            cursor = self.connection.execute(
                f"SELECT DISTINCT _file FROM {table} WHERE {condition}"
            )
            found = {path for (path,) in cursor.fetchall()}
        except icesql.Error:
            self.found["refused"] += 1
            return
        kept = sum(each.result_data_files for each in cursor.scan_reports)
        self.found.update(asked=1, needed=len(needed), kept=kept, live=FILES)
        if found != needed:
            lost, more = len(needed - found), len(found - needed)
            self.wrong.append(f"{zone}, {table}: {condition}: {lost} files lost, {more} more")


main = partial(run, partial(world, Campaign), histories=20, length=1000)
