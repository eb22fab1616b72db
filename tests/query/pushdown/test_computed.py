"""Expressions that the engine evaluates while a query is planned, and those that it must not."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import duckdb
import pytest

import icesql
from icesql.query.pushdown.computed.simpler import TO_LOWER, TO_UPPER, regex_prefix
from icesql.query.pushdown.computed.sql import DOUBLING, KNOWN
from tests.tables import read_cases
from tests.writer.fields import fields
from tests.writer.table import TableWriter

FIELDS = fields("i int, d date, s string")


@pytest.fixture
def connection(tmp_path) -> Iterator[icesql.Connection]:
    """``t``: two files, with i = 1 and with i = 1,000."""
    writer = TableWriter(tmp_path / "t", FIELDS)
    writer.commit([writer.data_file([{"i": i, "d": None, "s": str(i)}]) for i in (1, 1_000)])
    with icesql.connect() as opened:
        opened.register_table("t", writer.metadata_path)
        yield opened


def _rows_and_files(connection: icesql.Connection, condition: str) -> tuple[list[Any], int]:
    cursor = connection.execute(f"SELECT i FROM t WHERE {condition}")
    return cursor.fetchall(), cursor.scan_reports[0].result_data_files


def test_functions_are_the_engines_and_always_give_the_same() -> None:
    told = duckdb.execute(
        "SELECT function_name, function_type, stability FROM duckdb_functions()"
    ).fetchall()
    found: dict[str, set[tuple[str, str]]] = {}
    for name, kind, stability in told:
        found.setdefault(name.lower(), set()).add((kind, str(stability)))
    # The parser turns these into operators.
    assert KNOWN - set(found) <= {"nullif", "weekofyear"}
    scalar = {("scalar", "CONSISTENT"), ("macro", "None"), ("scalar", "CONSISTENT_WITHIN_QUERY")}
    wrong = {name: kinds for name, kinds in found.items() if name in KNOWN and not kinds <= scalar}
    assert wrong == {}


def test_macros_that_write_an_argument_twice_are_known() -> None:
    macros = duckdb.execute(
        "SELECT lower(function_name), parameters, macro_definition FROM duckdb_functions() "
        "WHERE function_type = 'macro' AND internal"
    ).fetchall()
    doubling = {
        name
        for name, parameters, text in macros
        if name in KNOWN
        and any(len(re.findall(rf"\b{re.escape(each)}\b", text)) > 1 for each in parameters)
    }
    assert {name for name in KNOWN if name in DOUBLING} == doubling | {"nullif"}


@pytest.mark.parametrize(
    "nested",
    ["abs({})", "greatest({}, 0)", "least(greatest({}, i), 9999)", "coalesce({}, i)",
     "CASE WHEN i > 5000 THEN 1 ELSE {} END", "if({} = 7, 1, i)", "abs(-{})", "({} + 0)"],
)  # fmt: skip
def test_nested_calls_are_planned_in_time(connection: icesql.Connection, nested: str) -> None:
    """Each abs() doubles a comparison; with many of them it is not expanded."""
    start = time.process_time()
    for count in (1, 7, 8, 40):  # seven calls of abs() are expanded, eight are not
        text = "i"
        for _ in range(count):
            text = nested.format(text)
        for prune in ("on", "off"):
            connection.execute(f"SET prune = {prune}")
            assert _rows_and_files(connection, f"{text} = 1000")[0] == [(1_000,)]
    assert time.process_time() - start < 20


def test_nested_macros_are_not_asked_for(connection: icesql.Connection) -> None:
    """The engine takes twice as long for each, and cancelling the query does not stop it."""
    for count, files in ((8, 1), (9, 2)):
        text = "nullif(" * count + "i" + ", 7)" * count
        assert _rows_and_files(connection, f"{text} + i * 0 = 1000") == ([(1_000,)], files)


def test_all_letters_that_become_ascii_ones_are_known() -> None:
    found = duckdb.execute(
        "SELECT chr(i::INTEGER), lower(chr(i::INTEGER)), upper(chr(i::INTEGER)) "
        "FROM range(128, 1114112) t(i) WHERE (i < 55296 OR i > 57343) "
        "AND (ascii(lower(chr(i::INTEGER))) < 128 OR ascii(upper(chr(i::INTEGER))) < 128)"
    ).fetchall()
    lower = {low: each for each, low, _ in found if low.isascii()}
    upper = {high: each for each, _, high in found if high.isascii()}
    assert (lower, upper) == (TO_LOWER, TO_UPPER)


@pytest.mark.parametrize(
    ("pattern", "anchored", "prefix"), read_cases(__file__, "regex_prefixes.tsv", 1)
)
def test_a_regular_expression_demands_no_more_than_its_first_plain_characters(
    pattern: str, anchored: bool, prefix: str
) -> None:
    assert regex_prefix(pattern, anchored=anchored) == prefix


@pytest.mark.parametrize(
    "condition",
    [
        "random() * i > 5",
        "length(getenv('HOME')) < i",
        "length((SELECT content FROM read_text('/etc/passwd'))) < i",
        "i > nextval('x')",
        "i > len(repeat('x', 1000000000))",
        "i > list_sum(range(1000000000))",
        "i > (SELECT 5)",
    ],
)
def test_nothing_else_is_asked_of_the_engine(
    connection: icesql.Connection, condition: str, monkeypatch
) -> None:
    asked: list[str] = []
    monkeypatch.setattr(
        "icesql.engine.duckdb.engine.LocalEngine.evaluate",
        lambda self, sql, parameters, query: asked.append(sql),
    )
    with suppress(icesql.Error):
        connection.execute(f"EXPLAIN SELECT i FROM t WHERE {condition}")
    assert asked == []


def test_a_question_that_ends_the_engine_ends_no_query(connection: icesql.Connection) -> None:
    opened = connection.execute("SELECT i FROM t ORDER BY i")
    connection.execute("SELECT i FROM t WHERE d + i * 1000000 > TIMESTAMP '2020-01-01'").fetchall()
    assert opened.fetchall() == [(1,), (1_000,)]
    assert _rows_and_files(connection, "abs(i) = 1") == ([(1,)], 1)


def test_constants_are_those_of_the_session_and_of_this_statement(
    connection: icesql.Connection,
) -> None:
    form = "i < epoch(TIMESTAMPTZ '1970-01-01 01:00:00')"
    for zone, rows in (("UTC", [(1,), (1_000,)]), ("Europe/Berlin", [])):
        connection.execute(f"SET timezone = '{zone}'")
        assert _rows_and_files(connection, form)[0] == rows
        assert _rows_and_files(connection, form)[0] == rows  # from the prepared text


@pytest.mark.parametrize(("condition", "rows"), read_cases(__file__, "infinities.tsv", 1))
def test_between_infinities_is_what_no_end_of_a_range_shows(
    condition: str, rows: list[tuple[int]], tmp_path
) -> None:
    writer = TableWriter(tmp_path / "t", fields("i int, x double"))
    writer.commit([writer.data_file([{"i": i, "x": 4.0 * i} for i in (-5, 0, 5)])])
    with icesql.connect() as connection:
        connection.register_table("t", writer.metadata_path)
        assert _rows_and_files(connection, condition)[0] == rows


def test_parameters_are_those_of_each_run(connection: icesql.Connection) -> None:
    for value in (1, 1_000, 1, 1_000, 2):
        rows = connection.execute("SELECT i FROM t WHERE abs(i) = ?", [value]).fetchall()
        assert rows == ([(value,)] if value != 2 else [])


def test_a_cancelled_query_leaves_nothing_to_the_same_text(connection: icesql.Connection) -> None:
    connection.execute("SET query_timeout = 60")
    for _ in range(3):
        assert _rows_and_files(connection, "round(i / 10.0) = 100") == ([(1_000,)], 1)


@pytest.mark.parametrize("condition", ["lower(s) = 'new'", "length(s) = 3", "s ILIKE 'NEW'"])
def test_versions_of_a_row_are_paired_before_a_condition_is_asked(tmp_path, condition: str) -> None:
    writer = TableWriter(tmp_path / "t", FIELDS)
    old = writer.data_file([{"i": 1, "d": None, "s": "earlier"}])
    first = writer.commit([old])
    writer.commit([writer.data_file([{"i": 1, "d": None, "s": "new"}])], removed=[old])
    with icesql.connect() as connection:
        connection.register_table("t", writer.metadata_path)
        changes = f"CHANGES FROM VERSION {first} KEYED BY (i) WITH (computeUpdates = true)"
        sql = f"SELECT s, _change_type FROM t {changes} WHERE {condition}"
        assert connection.execute(sql).fetchall() == [("new", "update_postimage")]


@pytest.fixture
def months(tmp_path) -> Path:
    """``s.t``: nine files, one for each month from January to August 2026, and one of 20000."""
    with icesql.connect(warehouse=str(tmp_path)) as connection:
        connection.execute("CREATE SCHEMA s")
        connection.execute("CREATE TABLE s.t (ts TIMESTAMP)")
        for start in (*(f"2026-0{month}-05" for month in range(1, 9)), "20000-01-01"):
            connection.execute(
                f"INSERT INTO s.t SELECT TIMESTAMP '{start}' + INTERVAL (n) HOUR FROM range(30) r(n) "
                "UNION ALL SELECT NULL"
            )
    return tmp_path


@pytest.mark.parametrize(("dialect", "condition", "files"), read_cases(__file__, "formats.tsv", 2))
def test_formats_that_keep_the_order_prune_in_each_dialect(
    months: Path, dialect: str, condition: str, files: int
) -> None:
    with icesql.connect(warehouse=str(months), dialect=dialect) as connection:
        cursor = connection.execute(f"EXPLAIN SELECT ts FROM s.t WHERE {condition}")
        assert f"data files: {files} kept" in "\n".join(row[0] for row in cursor.fetchall())


@pytest.mark.parametrize("prune", ["on", "off"])
def test_a_file_whose_rows_raise_an_error_is_read(months: Path, prune: str) -> None:
    # Spark writes +20000, which sorts before 2026.
    with icesql.connect(warehouse=str(months), dialect="spark") as connection:
        connection.execute(f"SET prune = {prune}")
        with pytest.raises(icesql.DataError, match="a year of other than four digits"):
            connection.execute(
                "SELECT * FROM s.t WHERE date_format(ts, 'yyyy') < '2026'"
            ).fetchall()
