"""Big and deep SQL gives its answer or a syntax error of icesql's, and never ends the process."""

from __future__ import annotations

import contextlib
import inspect
import random
import re
import sys
import threading
import time
from collections.abc import Callable, Iterator
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog

import icesql
from icesql.errors import Error, OperationalError, SqlSyntaxError
from tests.sessions import fetched
from tests.tables import read_table

ROWS = 60
COLUMNS: dict[str, tuple[pa.DataType, Callable[[int], Any]]] = {
    "id": (pa.int64(), lambda n: n),
    "small": (pa.int32(), lambda n: None if n % 11 == 0 else n - 20),
    "text": (pa.string(), lambda n: None if n % 13 == 0 else str(n)),
    "day": (pa.date32(), lambda n: date(2026, 1, 1) + timedelta(days=n)),
    "moment": (pa.timestamp("us"), lambda n: datetime(2026, 1, 1) + timedelta(hours=12 * n)),
    "price": (pa.decimal128(9, 2), lambda n: Decimal(n) / 4),
    "double": (pa.float64(), lambda n: n / 2),
}


@pytest.fixture(scope="module")
def rows() -> pa.Table:
    return pa.table(
        {
            name: pa.array([value(n) for n in range(ROWS)], kind)
            for name, (kind, value) in COLUMNS.items()
        }
    )


def made(folder: Path, name: str, rows: pa.Table) -> Any:
    """A table of a new catalog in the folder, with rows."""
    catalog = SqlCatalog("c", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}")
    catalog.create_namespace("d")
    table = catalog.create_table(name, schema=rows.schema)
    table.append(rows)
    return table


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, rows: pa.Table) -> Path:
    folder = tmp_path_factory.mktemp("deep")
    table = made(folder, "d.t", rows.slice(0, 20))
    for start in range(20, ROWS, 20):
        table.append(rows.slice(start, 20))
    return folder


@pytest.fixture(scope="module")
def deep(folder: Path) -> Iterator[icesql.Connection]:
    with icesql.connect(warehouse=folder) as opened:
        yield opened


NESTED = dict(read_table(__file__, "nested_sql.tsv"))
CHAINS = {
    "+": "SELECT 1« + 1»",
    "+ and -": "SELECT 1« + 1 - 1»",
    # The engine takes time that grows with the square of a chain of these.
    "||": "SELECT text« || text» FROM d.t",
    "UNION ALL": "SELECT 1« UNION ALL SELECT 1»",
    "casts": "SELECT 1«::INT»",
    "children": "SELECT id«.a» FROM d.t",
    "subscripts": "SELECT id«[1]» FROM d.t",
}


def repeated(form: str, times: int) -> str:
    return re.sub("«(.*?)»", lambda found: found[1] * times, form)


@pytest.mark.parametrize("levels", [5, 60, 3_000])
@pytest.mark.parametrize("kind", NESTED)
def test_nesting_gives_an_answer_or_a_syntax_error(
    deep: icesql.Connection, kind: str, levels: int
) -> None:
    if kind == "joins" and levels == 60:
        levels = 30  # a cross join of 60 tables has more rows than there is time
    raised = error_of(lambda: deep.execute(repeated(NESTED[kind], levels)).fetchone())
    if isinstance(raised, SqlSyntaxError):
        assert levels > 30 or kind in ("intervals", "EXPLAIN"), raised
        assert (
            "nested" in str(raised) or levels < 3_000 or kind in ("EXPLAIN", "intervals", "lambdas")
        )
    elif raised is not None:
        assert kind in ("windows", "joins", "minus", "casts", "lambdas")


def error_of(function: Callable[[], object]) -> Error | None:
    """The error of icesql that a call ends in, None without one; others are raised."""
    try:
        function()
    except Error as error:
        return error
    return None


@pytest.mark.parametrize("kind", CHAINS)
def test_chains_longer_than_the_engine_takes_are_syntax_errors(
    deep: icesql.Connection, kind: str
) -> None:
    times = {"||": 300, "+ and -": 450}.get(kind, 899)
    raised = error_of(lambda: deep.execute(repeated(CHAINS[kind], times)).fetchone())
    assert raised is None or kind in ("children", "subscripts"), raised
    with pytest.raises(SqlSyntaxError, match=r"of more than .* parts|nested too deeply"):
        deep.execute(repeated(CHAINS[kind], 2_499))


def test_the_place_of_what_is_too_deep_is_told(deep: icesql.Connection) -> None:
    with pytest.raises(SqlSyntaxError, match="line 2, column") as caught:
        deep.execute("SELECT 1,\n" + "(" * 400 + "1" + ")" * 400)
    assert "WITH" in str(caught.value)


def test_and_and_or_of_ten_thousand_terms(deep: icesql.Connection) -> None:
    def count(condition: str) -> int:
        return int(deep.execute(f"SELECT count(*) FROM d.t WHERE {condition}").fetchone()[0])

    numbers = range(0, 20_000, 2)
    assert count(" OR ".join(f"id = {n}" for n in numbers)) == 30
    assert count(" AND ".join(f"id > {-n}" for n in numbers[:1_200])) == 59
    numbers = numbers[:1_200]
    assert count(" AND ".join(f"id <> {n}" for n in numbers)) == 30
    assert count(" OR ".join(f"(id = {n} OR text = '{n + 1}')" for n in numbers)) == 58
    assert count("small IS NULL AND (" + " OR ".join(f"{n} = id" for n in numbers) + ")") == 3
    assert count("NOT (" + " OR ".join(f"small = {n}" for n in numbers) + ")") == 36


def test_a_long_or_keeps_the_rows_of_other_terms(deep: icesql.Connection) -> None:
    terms = [f"id = {n}" for n in range(0, 40, 4)] * 20 + ["text = '7'", "day = DATE '2026-01-04'"]
    random.Random(5).shuffle(terms)
    found = fetched(deep, f"SELECT id FROM d.t WHERE {' OR '.join(terms)} ORDER BY id")
    assert [row[0] for row in found] == sorted({*range(0, 40, 4), 7, 3})


def test_three_thousand_terms_end(deep: icesql.Connection) -> None:
    # 16 s of DuckDB's time as one chain; the limit is far from both.
    terms = " OR ".join(f"(id = {each} AND small > {each + 9_000})" for each in range(3_000))
    started = time.process_time()
    assert fetched(deep, f"SELECT count(*) FROM d.t WHERE {terms}") == [(0,)]
    assert time.process_time() - started < 60


@pytest.mark.parametrize(
    "shape", ["{}", "NOT ({})", "({}) IS NULL", "({}) AND small > 1 OR id = 2"]
)
def test_a_long_chain_means_what_it_means_to_the_engine(
    deep: icesql.Connection, folder: Path, rows: pa.Table, shape: str
) -> None:
    rng = random.Random(shape)
    pairs = [f"(small = {rng.randrange(9)} AND id > {rng.randrange(60)})" for _ in range(400)]
    others = ("small <> {}", "{} <> id", "id BETWEEN 0 AND {}0", "text <> '{}'")
    terms = [rng.choice(others).format(rng.randrange(3, 9)) for _ in range(400)]
    with (
        duckdb.connect() as engine,
        icesql.connect(warehouse=folder, dialect="trino") as trino,
    ):
        engine.register("t", rows)
        opened = [deep, trino] if "NOT" in shape or "OR" in shape else [trino, deep]
        conditions = " OR ".join([*pairs, "small IS NULL"]), " AND ".join(terms)
        for one, condition in zip(opened, conditions, strict=True):
            sql = f"SELECT id FROM t WHERE {shape.format(condition)} ORDER BY id"
            expected = engine.execute(sql).fetchall()
            assert fetched(one, sql.replace("FROM t", "FROM d.t")) == expected


# -------------------------------------------------------------------------- long lists


LITERALS: dict[str, Callable[[random.Random], str]] = {
    "integers": lambda rng: str(
        rng.choice([rng.randrange(-30, 90), rng.randrange(-(2**62), 2**62)])
    ),
    "numbers": lambda rng: rng.choice(
        [str(rng.randrange(-5, 60)), f"{rng.randrange(60)}.{rng.choice([0, 25, 5, 125])}"]
    ),
    "texts": lambda rng: rng.choice([f"'{rng.randrange(90)}'", "'it''s'", "'\\'", "'Ä, (x)'"]),
    "days": lambda rng: f"DATE '2026-0{rng.randrange(1, 5)}-{rng.randrange(1, 29):02}'",
    "day texts": lambda rng: f"'2026-0{rng.randrange(1, 5)}-{rng.randrange(1, 29):02}'",
    "number texts": lambda rng: f"'{rng.randrange(-5, 60)}'",
}


LISTS: tuple[Callable[[str, list[str]], str], ...] = (
    lambda c, items: f"SELECT id FROM t WHERE {c} IN ({', '.join(items)}) ORDER BY id",
    lambda c, items: f"SELECT id FROM t WHERE {c} NOT IN ({', '.join(items)}) ORDER BY id",
    lambda c, items: f"SELECT id, {c} IN ({', '.join(items)}) AS b FROM t ORDER BY id",
    lambda c, items: (
        f"SELECT id FROM t WHERE {' OR '.join(f'{c} = {x}' for x in items)} ORDER BY id"
    ),
    lambda c, items: (
        "SELECT id FROM t WHERE id < 50 AND "
        f"{' AND '.join(f'({c} <> {x})' for x in items)} ORDER BY id"
    ),
)


@pytest.mark.parametrize("kind", LITERALS)
@pytest.mark.parametrize("column", [*COLUMNS, "id + 0", "lower(text)"])
def test_a_long_list_means_what_it_means_to_the_engine(
    deep: icesql.Connection, rows: pa.Table, column: str, kind: str
) -> None:
    """Against DuckDB itself, which reads the list as literals: types, NULL, NOT, errors."""
    rng = random.Random(f"{column} {kind}")
    with duckdb.connect() as engine:
        engine.register("t", rows)
        for number, form in enumerate(LISTS):
            items = [LITERALS[kind](rng) for _ in range(rng.randrange(100, 160))]
            # Each form has NULL with half of the columns and of the kinds.
            if (number + [*LITERALS].index(kind) + len(column)) % 2:
                items[rng.randrange(len(items))] = "NULL"
            query = form(column, items)
            try:
                expected: Any = engine.execute(query).fetchall()
            except duckdb.Error:
                expected = Error
            try:
                found: Any = fetched(deep, query.replace("FROM t", "FROM d.t"))
            except Error:
                found = Error
            # Where no row is left to convert, nothing fails.
            nothing_read = expected is Error and found == []
            assert found == expected or nothing_read, query[:200]


def test_a_list_of_a_hundred_thousand(deep: icesql.Connection) -> None:
    numbers = ", ".join(map(str, range(0, 200_000, 2)))
    explained = fetched(
        deep, f"EXPLAIN SELECT * FROM d.t WHERE id IN ({numbers}) -- IN ({numbers})"
    )
    text = "\n".join(line for (line,) in explained)
    assert "… and 99,990 more" in text
    assert len(text) < 4_000
    for sql in (f"id IN ({numbers})", f"NOT (id NOT IN ({numbers}))"):
        assert fetched(deep, f"SELECT count(*) FROM d.t WHERE {sql}") == [(30,)]
    column = deep.execute(f"SELECT id IN ({numbers}) FROM d.t LIMIT 1").description[0][0]
    assert column.endswith("… and 99,990 more))")


def test_long_lists_prune(deep: icesql.Connection) -> None:
    numbers = ", ".join(map(str, [*range(20, 40), *range(1_000, 2_000)]))
    cursor = deep.execute(f"SELECT count(*) FROM d.t WHERE id IN ({numbers})")
    assert cursor.fetchall() == [(20,)]
    (report,) = cursor.scan_reports
    assert (report.result_data_files, report.skipped_data_files) == (1, 2)


def test_parameters_may_be_long_lists(deep: icesql.Connection) -> None:
    values = list(range(0, 100_000, 2))
    for sql, given in (
        ("SELECT count(*) FROM d.t WHERE id IN ?", [values]),
        ("SELECT count(*) FROM d.t WHERE id IN $1", [tuple(values)]),
        ("SELECT count(*) FROM d.t WHERE id IN :v", {"v": set(values)}),
        (f"SELECT count(*) FROM d.t WHERE id IN ({', '.join('?' * 50_000)})", values),
        ("SELECT count(*) FROM d.t WHERE text IN ?", [[str(n) for n in values]]),
    ):
        expected = 27 if "text" in sql else 30
        assert fetched(deep, sql, given) == [(expected,)], sql[:60]
    assert fetched(deep, "SELECT count(*) FROM d.t WHERE id IN ?", [[1, None, 3]]) == [(2,)]
    assert fetched(deep, "SELECT 1 WHERE ? IN (1, ?)", [2, 2]) == [(1,)]
    sql = f"SELECT ? IN ({', '.join('?' * 200)}), ?"
    assert fetched(deep, sql, [7, *range(200), "x"]) == [(True, "x")]


def test_what_only_looks_like_a_list_is_text(deep: icesql.Connection) -> None:
    numbers = ",".join(map(str, range(150)))
    chain = " OR ".join(f"id = {n}" for n in range(150))
    looks = (f"'id IN ({numbers})'", f"'it''s IN ({numbers})'", f"$$ IN ({numbers})$$")
    for quoted in (*looks, f"'{chain}'", f"$$ {chain} $$"):
        sql = f"SELECT length({quoted}) AS n"
        with duckdb.connect() as engine:
            expected = engine.execute(sql).fetchall()
        assert fetched(deep, sql) == expected
    for text in (f"id IN ({numbers})", chain):
        sql = f"SELECT /* {text} */ count(*) FROM d.t -- {text}\n WHERE {text}"
        assert fetched(deep, sql) == [(ROWS,)]
    texts = ",".join(["'a'"] * 120)
    sql = f"SELECT 'x IN (', {texts}, ')' AS z"
    assert len(deep.execute(sql).fetchone()) == 122


# -------------------------------------------------------------------------- stacks


def test_small_stacks_and_deep_callers(deep: icesql.Connection) -> None:
    def in_small_stack(function: Callable[[], object]) -> list[BaseException]:
        errors: list[BaseException] = []

        def run() -> None:
            try:
                function()
            except BaseException as error:
                errors.append(error)

        before = threading.stack_size(256 * 1024)
        try:
            thread = threading.Thread(target=run)
            thread.start()
        finally:
            threading.stack_size(before)
        thread.join()
        return errors

    for form, times in (
        (CHAINS["+ and -"], 450),
        (NESTED["parentheses"], 35),
        (NESTED["derived tables"], 60),
    ):
        sql = repeated(form, times)
        assert in_small_stack(lambda sql=sql: fetched(deep, sql)) == []
    (error,) = in_small_stack(lambda: deep.execute(repeated(NESTED["calls"], 5_000)))
    assert isinstance(error, SqlSyntaxError)

    def recurse(levels: int, function: Callable[[], Any]) -> Any:
        return function() if levels == 0 else recurse(levels - 1, function)

    used = len(inspect.stack(0))
    room = sys.getrecursionlimit() - used
    sql = "SELECT count(*) FROM d.t WHERE (id IN (1, 2, 3) OR (small > 2 AND id < 5))"
    expected = fetched(deep, sql)
    for left in (400, 200, 120, 80, 50):
        answer = recurse(room - left, lambda: deep.execute(sql))
        assert answer.fetchall() == expected
    # If the stack is too short even to start a thread, RecursionError is raised.
    for left in range(12, 50, 4):
        try:
            recurse(room - left, lambda: deep.execute(sql)).close()
        except (OperationalError, SqlSyntaxError):
            pass
        except RecursionError:
            assert left < 30, "the frames of the DB-API itself"


@pytest.mark.parametrize("seed", range(60))
def test_random_nesting(deep: icesql.Connection, seed: int) -> None:
    sql = random_query(random.Random(seed), 45)
    with contextlib.suppress(Error):
        fetched(deep, sql)


def random_query(rng: random.Random, depth: int) -> str:
    """A SELECT of values whose nesting is about ``depth`` levels of any kind."""
    forms = (
        "({})", "abs({})", "CASE WHEN true THEN {} END", "(SELECT {})", "[{}][1]", "CAST({} AS INT)",
        "- {}", "{} + 1", "1 + {}", "coalesce({}, 2)", "(SELECT max(x) FROM (SELECT {} AS x))",
        "(CASE {} WHEN 1 THEN 2 ELSE 3 END)", "({} * 2)", "greatest(1, {})", "+ {}",
    )  # fmt: skip
    text = "1"
    for _ in range(rng.randrange(1, depth)):
        text = rng.choice(forms).replace("{}", text)
    return f"SELECT {text}"


# -------------------------------------------------------------------------- wide and long


def test_a_thousand_columns(tmp_path: Path) -> None:
    count = 1_000
    wide = pa.table({f"c{n}": pa.array([n], pa.int32()) for n in range(count)})
    made(tmp_path, "d.wide", wide)
    with icesql.connect(warehouse=tmp_path) as connection:
        names = ", ".join(f"c{n}" for n in range(count))
        assert fetched(connection, f"SELECT {names} FROM d.wide") == [tuple(range(count))]
        assert fetched(connection, "SELECT * FROM d.wide") == [tuple(range(count))]
        where = " AND ".join(f"c{n} = {n}" for n in range(0, count, 5))
        assert fetched(connection, f"SELECT count(*) FROM d.wide WHERE {where}") == [(1,)]


def test_big_texts(deep: icesql.Connection) -> None:
    big = "x" * 3_000_000
    assert fetched(deep, f"SELECT length('{big}')") == [(len(big),)]
    assert fetched(deep, f"SELECT 1 /* {big} */ -- {big}") == [(1,)]
    assert fetched(deep, "SELECT length(?)", [big]) == [(len(big),)]
    with pytest.raises(SqlSyntaxError, match="WITH of more than 900 parts"):
        deep.execute(
            "WITH " + ", ".join(f"c{n} AS (SELECT {n})" for n in range(3_000)) + " FROM c1"
        )
    joins = "".join(f" JOIN d.t t{n} ON t{n}.id = t.id" for n in range(40))
    assert fetched(deep, f"SELECT count(*) FROM d.t{joins}") == [(ROWS,)]
    branches = " ".join(f"WHEN {n} THEN {n + 1}" for n in range(1_500))
    sql = f"SELECT sum(CASE id {branches} END) FROM d.t"
    assert fetched(deep, sql) == [(sum(range(ROWS + 1)),)]


def test_a_script_of_ten_thousand_statements(deep: icesql.Connection) -> None:
    script = ";".join(["SET threads = 2", "SET threads = 1"] * 5_000)
    assert sum(1 for _ in deep.execute_script(script)) == 10_000
    deep.execute("RESET threads")
