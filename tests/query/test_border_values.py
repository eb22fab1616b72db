"""Whatever is pushed, answered from metadata or read once gives what a scan of all rows gives.

One table of border values, most of its files of one value: conditions and aggregates in every
spelling are asked of it with pruning on, without it, through the other reader, and of DuckDB over
the same rows.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, Final

import duckdb
import pytest

import icesql

_TYPES: Final = {
    "k": "INTEGER", "p": "INTEGER", "b": "BOOLEAN", "i": "INTEGER", "l": "BIGINT", "r": "FLOAT",
    "f": "DOUBLE", "c": "DECIMAL(9, 2)", "d": "DECIMAL(38, 10)", "s": "VARCHAR", "e": "DATE",
    "t": "TIMESTAMP", "z": "TIMESTAMPTZ", "m": "TIME", "o": "STRUCT(f DOUBLE, r FLOAT, s VARCHAR)",
}  # fmt: skip
_LONG: Final = "a" * 16
# Of each column what a file holds: one value, or two.
_VALUES: Final[dict[str, tuple[str, ...]]] = {
    "b": ("true", "false", "NULL"),
    "i": ("-2147483648", "2147483647", "0", "16777217", "NULL"),
    "l": ("-9223372036854775808", "9223372036854775807", "9007199254740993", "16777217", "NULL"),
    "r": ("'nan'::FLOAT", "'-inf'::FLOAT", "-0.0::FLOAT", "0.0::FLOAT", "16777216::FLOAT",
          "0.1::FLOAT", "NULL"),
    "f": ("'nan'::DOUBLE", "'inf'::DOUBLE", "-0.0::DOUBLE", "0.0::DOUBLE",
          "9007199254740992::DOUBLE", "1.1::DOUBLE", "NULL"),
    "c": ("-9999999.99", "9999999.99", "0.10", "1.00", "NULL"),
    "d": ("-9999999999999999999999999999.9999999968", "9999999999999999999999999999.9999999999",
          "0.1000000000", "0.1000000001", "NULL"),
    "s": ("''", f"'{_LONG}'", f"'{_LONG}b'", "'a'", "'A'", "chr(1114111)", "NULL"),
    "e": ("DATE '0001-01-01'", "DATE '9999-12-31'", "DATE '2024-01-31'", "DATE '1969-12-31'",
          "NULL"),
    "t": ("TIMESTAMP '0001-01-01'", "TIMESTAMP '2024-01-31 08:00:00'",
          "TIMESTAMP '2024-10-27 02:30:00'", "TIMESTAMP '9999-12-31 23:59:59.999999'", "NULL"),
    "z": ("TIMESTAMPTZ '2024-01-31 08:00:00+00'", "TIMESTAMPTZ '2024-01-31 07:00:00+00'",
          "TIMESTAMPTZ '2024-10-27 00:30:00+00'", "TIMESTAMPTZ '2024-10-27 01:30:00+00'", "NULL"),
    "m": ("TIME '00:00:00'", "TIME '23:59:59.999999'", "TIME '08:00:00'", "NULL"),
    "o": ("{'f': 1.0, 'r': 1.0, 's': 'a'}", "{'f': 'nan', 'r': 'nan', 's': NULL}",
          "{'f': -0.0, 'r': 'inf', 's': ''}", "NULL"),
}  # fmt: skip
_FILES: Final = 14
# Of the queries that the tables below make, in each test.
_ASKED: Final = 60
# What columns are compared with; each with all of one line.
_CONSTANTS: Final = {
    ("b",): ("true", "false"),
    ("i", "l"): ("0", "16777217", "16777216::FLOAT", "9007199254740993::DOUBLE", "2147483647.5",
                 "9223372036854775807", "-2147483648", "'16777217'", "1e300"),
    ("r", "f", "o.f", "o.r"): (
        "0", "-0.0", "0.1", "0.1::FLOAT", "1.1::DOUBLE", "'nan'", "'inf'::DOUBLE", "'-inf'::FLOAT",
        "9007199254740992.0::FLOAT", "16777217", "9007199254740993",
    ),
    ("c", "d"): ("0.1", "0.10::FLOAT", "0.1::DOUBLE", "9999999.99::FLOAT",
                 "-9999999999999999999999999999.9999999968", "-1e28", "1e0",
                 "CAST(-9999999999999999999999999999.9999999968 AS FLOAT)", "0.10000000000000000555"),
    ("s", "o.s"): ("''", "'a'", "'A'", f"'{_LONG}'", f"'{_LONG}b'", "chr(1114111)"),
    ("e", "t", "z"): (
        "DATE '2024-01-31'", "TIMESTAMP '2024-01-31 08:00:00'", "TIMESTAMP '2024-10-27 02:30:00'",
        "TIMESTAMPTZ '2024-01-31 08:00:00+00'", "'2024-01-31'", "TIMESTAMP '0001-01-01'",
        "DATE '9999-12-31'",
    ),
    ("m",): ("TIME '08:00:00'", "'23:59:59.999999'"),
}  # fmt: skip
_COMPARED: Final = (
    "{x} = {a}", "{x} <> {a}", "{x} < {a}", "{x} <= {a}", "{x} > {a}", "{x} >= {a}", "{a} < {x}",
    "NOT ({x} <= {a})", "{x} IS DISTINCT FROM {a}", "{x} IS NOT DISTINCT FROM {a}",
    "{x} IN ({a}, NULL)", "{x} NOT IN ({a}, NULL)", "{x} IN [{a}]", "{x} NOT IN [NULL, {a}]",
    "NOT ({x} IN [{a}, NULL])", "{x} = ANY([{a}])", "{x} <> ALL([{a}])",
    "list_contains([{a}, NULL], {x})", "NOT list_contains([NULL, {a}], {x})",
)  # fmt: skip
_OF_TWO: Final = (
    "{x} BETWEEN {a} AND {b}", "{x} NOT BETWEEN {a} AND {b}", "{x} IN ({a}, {b})",
    "{x} NOT IN ({a}, {b})", "{x} IN [{a}, {b}]", "{x} NOT IN [{a}, {b}]", "{x} = ANY([{a}, {b}])",
    "{a} BETWEEN {x} AND {b}", "{x} BETWEEN {a} AND coalesce({x}, {b})",
)  # fmt: skip
_ALONE: Final = ("{x} IS NULL", "{x} IS NOT NULL", "{x} = {x}", "TRY_CAST({x} AS VARCHAR) > ''")
_AGGREGATES: Final = (
    "max({x})", "min({x})", "max({x}, 2)", "min({x}, 3)", "max(DISTINCT {x})", "count({x})",
    "count(DISTINCT {x})", "count(*)", "count({x}, k)", "max({x}) FILTER (WHERE k > 9)",
    "count(*) FILTER ({x} IS NULL)", "count({x}) FILTER (WHERE p = 1)", "max({x} ORDER BY k)",
    "arg_max({x}, k)", "arg_min({x}, k, 2)", "max_by({x}, k)", "max({x}) IS NULL",
    "first({x} ORDER BY k)", "last({x} ORDER BY k)", "any_value(p ORDER BY k)", "bool_and({x} IS NULL)",
    "bool_or(k > 100)", "approx_count_distinct(p)", "quantile_disc({x}, 0.5)", "count_if(k > 3)",
    "list(k ORDER BY k)", "sum(k)", "avg(p)", "max((SELECT max(k) FROM n))", "min({x}), count(*)",
    "max(TRY_CAST({x} AS VARCHAR))", "coalesce(max({x}), min({x}))"
)  # fmt: skip
_SHAPES: Final = (
    "SELECT {call} FROM n",
    "SELECT {call} FROM n WHERE p >= 1",
    "SELECT {call} FROM n WHERE {x} IS NOT NULL",
    "SELECT p, {call} FROM n GROUP BY p ORDER BY p",
    "SELECT {x}, {call} FROM n GROUP BY {x} ORDER BY ALL",
    "SELECT p FROM n GROUP BY p HAVING count({x}) > 1 ORDER BY p",
)


class _Both:
    """The table of icesql, and one of DuckDB with the same rows."""

    def __init__(self, warehouse: str) -> None:
        self.ours = icesql.connect(warehouse=warehouse, settings={"threads": "1"})
        self.theirs = duckdb.connect(config={"threads": 1})
        self.ours.execute("CREATE SCHEMA w")
        self.ours.execute("USE w")
        columns = ", ".join(f"{name} {kind}" for name, kind in _TYPES.items())
        self.ours.execute(f"CREATE TABLE n ({columns}) PARTITIONED BY (p)")
        self.theirs.execute(f"CREATE TABLE n ({columns})")
        for number in range(_FILES):
            rows = [self._row(number, each) for each in range(2)]
            for one in (self.ours, self.theirs):
                one.execute(f"INSERT INTO n VALUES {', '.join(rows)}")

    @staticmethod
    def _row(file: int, row: int) -> str:
        found = [str(2 * file + row), str(file % 3)]
        for place, (name, kind) in enumerate(list(_TYPES.items())[2:]):
            values = _VALUES[name]
            step = row if (file + place) % 3 == 0 else 0  # two of three files hold one value
            found.append(f"CAST({values[(file + place + step) % len(values)]} AS {kind})")
        return f"({', '.join(found)})"

    def set_zone(self, zone: str) -> None:
        self.ours.execute(f"SET timezone = '{zone}'")
        self.theirs.execute(f"SET TimeZone = '{zone}'")

    def ask(self, sql: str) -> list[str] | None:
        """The rows as icesql gives them; None where both refuse the query."""
        try:
            return _alike(self.ours.execute(sql).fetchall())
        except icesql.Error:
            return None

    def expected(self, sql: str) -> list[str] | None:
        """The rows as DuckDB gives them."""
        try:
            return _alike(self.theirs.execute(sql).fetchall())
        except duckdb.Error:
            return None

    def differ(self, queries: list[str]) -> list[str]:
        """What is not the same in all of the ways, of queries that DuckDB answers."""
        found: list[str] = []
        queries = random.Random(22).sample(queries, min(len(queries), _ASKED))
        expected = {sql: rows for sql in queries if (rows := self.expected(sql)) is not None}
        assert len(expected) > len(queries) / 2
        for setting, back in (("prune = on", ""), ("prune = off", "prune = on")):
            self.ours.execute(f"SET {setting}")
            for reader in ("auto", "arrow"):
                self.ours.execute(f"SET local_reader = {reader}")
                asked = expected if (setting, reader) == ("prune = on", "auto") else _few(expected)
                found += [
                    f"{setting}, {reader}: {sql}: {rows} instead of {expected[sql]}"
                    for sql in asked
                    if (rows := self.ask(sql)) != expected[sql]
                ]
            if back:
                self.ours.execute(f"SET {back}")
        self.ours.execute("SET local_reader = auto")
        return found


def _alike(rows: list[Any]) -> list[str]:
    """Rows in one order: instants of one zone; which of two equal zeros comes is not said."""

    def plain(value: Any) -> Any:
        match value:
            case list() | tuple():
                return [plain(each) for each in value]
            case dict():
                return {key: plain(each) for key, each in value.items()}
            case datetime() if value.tzinfo is not None:
                return value.astimezone(UTC).isoformat()
            case float():
                return value + 0.0
            case _:
                return value

    return sorted(repr(plain(row)) for row in rows)


def _few(queries: dict[str, Any]) -> list[str]:
    """Some of many: what reads all rows takes longer, and differs for all alike."""
    return list(queries)[:: max(1, len(queries) // 15)]


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[_Both]:
    made = _Both(str(tmp_path_factory.mktemp("border")))
    yield made
    made.ours.close()


def _conditions(columns: tuple[str, ...], constants: tuple[str, ...]) -> Iterator[str]:
    for x in columns:
        yield from (form.format(x=x) for form in _ALONE)
        for form, a in itertools.product(_COMPARED, constants):
            yield form.format(x=x, a=a)
        pairs = list(itertools.permutations(constants, 2))
        for place, form in enumerate(_OF_TWO):
            yield from (form.format(x=x, a=a, b=b) for a, b in pairs[place % 3 :: 3])


@pytest.mark.parametrize("columns", _CONSTANTS, ids=lambda each: " ".join(each))
def test_conditions_keep_every_row(both: _Both, columns: tuple[str, ...]) -> None:
    zones = ("Europe/Berlin", "Pacific/Kiritimati") if "z" in columns else ("UTC",)
    for zone in zones:
        both.set_zone(zone)
        conditions = _conditions(columns, _CONSTANTS[columns])
        differing = both.differ([f"SELECT k FROM n WHERE {each}" for each in conditions])
        assert not differing, zone
    both.set_zone("UTC")


@pytest.mark.parametrize("column", list(_VALUES))
def test_aggregates_see_every_row(both: _Both, column: str) -> None:
    names = [f"o.{each}" for each in "frs"] if column == "o" else [column]
    queries = [
        shape.format(call=call.format(x=name), x=name)
        for name, shape, call in itertools.product(names, _SHAPES, _AGGREGATES)
    ]
    assert not both.differ(list(dict.fromkeys(queries)))
