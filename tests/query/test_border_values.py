"""Pushdown, answers from metadata and shared reads give the same rows as a full scan.

One table of border values, most of its files with one value: conditions and aggregates in every
form are run with pruning, without it, with the other reader, and in DuckDB over the same rows.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from typing import Any, Final

import duckdb
import pytest

import icesql
from tests.campaigns.asked_again import alike
from tests.tables import read_table

_FILES: Final = 14
# The number of queries drawn in each test from those that the tables below define.
_ASKED: Final = 25
_ROWS: Final = read_table(__file__, "border_values.tsv")
_TYPES: Final = {of: text for kind, of, text in _ROWS if kind == "type"}


def _texts(kind: str, columns: str = "") -> list[str]:
    return [text for each, of, text in _ROWS if (each, of) == (kind, columns)]


def _columns(kind: str) -> list[str]:
    return list(dict.fromkeys(of for each, of, _ in _ROWS if each == kind))


class _Both:
    """The table in icesql, and one in DuckDB with the same rows."""

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
            values = _texts("value", name)
            step = row if (file + place) % 3 == 0 else 0  # two of three files have one value
            found.append(f"CAST({values[(file + place + step) % len(values)]} AS {kind})")
        return f"({', '.join(found)})"

    def set_zone(self, zone: str) -> None:
        self.ours.execute(f"SET timezone = '{zone}'")
        self.theirs.execute(f"SET TimeZone = '{zone}'")

    def ask(self, sql: str) -> list[str] | None:
        """The rows of icesql, None for an error."""
        try:
            return alike(self.ours.execute(sql).fetchall())
        except icesql.Error:
            return None

    def expected(self, sql: str) -> list[str] | None:
        """The rows of DuckDB, None for an error."""
        try:
            return alike(self.theirs.execute(sql).fetchall())
        except duckdb.Error:
            return None

    def differ(self, queries: list[str]) -> list[str]:
        """The differences in any of these ways, for queries that DuckDB can run."""
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


def _few(queries: dict[str, Any]) -> list[str]:
    """A sample of the queries, for the runs that read all rows, which are slower."""
    return list(queries)[:: max(1, len(queries) // 8)]


@pytest.fixture(scope="module")
def both(tmp_path_factory) -> Iterator[_Both]:
    made = _Both(str(tmp_path_factory.mktemp("border")))
    yield made
    made.ours.close()


def _conditions(columns: str) -> Iterator[str]:
    constants = _texts("constant", columns)
    pairs = list(itertools.permutations(constants, 2))
    for x in columns.split():
        yield from (form.format(x=x) for form in _texts("alone"))
        for form, a in itertools.product(_texts("compared"), constants):
            yield form.format(x=x, a=a)
        for place, form in enumerate(_texts("of two")):
            yield from (form.format(x=x, a=a, b=b) for a, b in pairs[place % 3 :: 3])


@pytest.mark.parametrize("columns", _columns("constant"))
def test_conditions_keep_every_row(both: _Both, columns: str) -> None:
    zones = ("Europe/Berlin", "Pacific/Kiritimati") if "z" in columns else ("UTC",)
    for zone in zones:
        both.set_zone(zone)
        queries = [f"SELECT k FROM n WHERE {each}" for each in _conditions(columns)]
        differing = both.differ(queries)
        assert not differing, zone
    both.set_zone("UTC")


@pytest.mark.parametrize("column", _columns("value"))
def test_aggregates_see_every_row(both: _Both, column: str) -> None:
    names = [f"o.{each}" for each in "frs"] if column == "o" else [column]
    queries = [
        shape.format(call=call.format(x=name), x=name)
        for name, shape, call in itertools.product(names, _texts("query"), _texts("aggregate"))
    ]
    assert not both.differ(list(dict.fromkeys(queries)))
