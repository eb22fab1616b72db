"""Big and deep SQL gives its answer or a syntax error of icesql's, and never ends the process."""

from __future__ import annotations

import contextlib
import inspect
import random
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


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, rows: pa.Table) -> Path:
    folder = tmp_path_factory.mktemp("deep")
    catalog = SqlCatalog("c", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}")
    catalog.create_namespace("d")
    table = catalog.create_table("d.t", schema=rows.schema)
    for start in range(0, ROWS, 20):
        table.append(rows.slice(start, 20))
    return folder


@pytest.fixture(scope="module")
def deep(folder: Path) -> Iterator[icesql.Connection]:
    with icesql.connect(warehouse=str(folder)) as opened:
        yield opened


NESTED = {
    "parentheses": lambda n: "SELECT " + "(" * n + "1" + ")" * n,
    "calls": lambda n: "SELECT " + "abs(" * n + "1" + ")" * n,
    "CASE": lambda n: "SELECT " + "CASE WHEN true THEN " * n + "1" + " END" * n,
    "CASE ELSE": lambda n: "SELECT " + "CASE WHEN false THEN 0 ELSE " * n + "1" + " END" * n,
    "derived tables": lambda n: "SELECT * FROM " + "(SELECT * FROM " * n + "d.t" + ")" * n,
    "scalar queries": lambda n: "SELECT " + "(SELECT " * n + "1" + ")" * n,
    "EXISTS": lambda n: (
        "SELECT 1 FROM d.t WHERE " + "EXISTS (SELECT 1 FROM d.t WHERE " * n + "true" + ")" * n
    ),
    "lists": lambda n: "SELECT " + "[" * n + "1" + "]" * n,
    "structs": lambda n: "SELECT " + "{'a': " * n + "1" + "}" * n,
    "casts": lambda n: "SELECT " + "CAST(" * n + "1" + " AS INT)" * n,
    "types": lambda n: "SELECT CAST(NULL AS " + "STRUCT(a " * n + "INT" + ")" * n + ")",
    "NOT": lambda n: "SELECT " + "NOT " * n + "true",
    "minus": lambda n: "SELECT " + "- " * n + "1",
    "OR in parentheses": lambda n: (
        "SELECT 1 FROM d.t WHERE " + "(" * n + "id = 1" + " OR id = 2)" * n
    ),
    "UNION to the right": lambda n: "(SELECT 1 UNION " * n + "SELECT 1" + ")" * n,
    "WITH": lambda n: "WITH a AS (" * n + "SELECT 1" + ") SELECT 1" * n,
    "lambdas": lambda n: "SELECT list_transform([1], " + "x -> " * n + "1)",
    "intervals": lambda n: "SELECT " + "INTERVAL " * n + "'1 day'",
    "windows": lambda n: "SELECT " + "sum(" * n + "1" + ") OVER ()" * n,
    "EXPLAIN": lambda n: "EXPLAIN " * n + "SELECT 1",
    "joins": lambda n: "SELECT 1 FROM d.t " + "JOIN d.t " * n + "ON true " * n,
}
CHAINS = {
    "+": lambda n: "SELECT " + " + ".join(["1"] * n),
    "+ and -": lambda n: (
        "SELECT 1" + "".join(" +- "[k % 2 * 2 : k % 2 * 2 + 2] + "1" for k in range(n))
    ),
    "||": lambda n: "SELECT " + " || ".join(["text"] * n) + " FROM d.t",
    "UNION ALL": lambda n: " UNION ALL ".join(["SELECT 1"] * n),
    "casts": lambda n: "SELECT 1" + "::INT" * n,
    "children": lambda n: "SELECT id" + ".a" * n + " FROM d.t",
    "subscripts": lambda n: "SELECT id" + "[1]" * n + " FROM d.t",
}


@pytest.mark.parametrize("levels", [5, 60, 3_000])
@pytest.mark.parametrize("kind", NESTED)
def test_nesting_gives_an_answer_or_a_syntax_error(
    deep: icesql.Connection, kind: str, levels: int
) -> None:
    if kind == "joins" and levels == 60:
        levels = 30  # a cross join of 60 tables has more rows than there is time
    raised = error_of(lambda: deep.execute(NESTED[kind](levels)).fetchone())
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
    # The engine takes time that grows with the square of a chain of ||.
    sql = CHAINS[kind](300 if kind == "||" else 900)
    raised = error_of(lambda: deep.execute(sql).fetchone())
    assert raised is None or kind in ("children", "subscripts"), raised
    with pytest.raises(SqlSyntaxError, match=r"of more than .* parts|nested too deeply"):
        deep.execute(CHAINS[kind](2_500))


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
    found = deep.execute(f"SELECT id FROM d.t WHERE {' OR '.join(terms)} ORDER BY id").fetchall()
    assert [row[0] for row in found] == sorted({*range(0, 40, 4), 7, 3})


def test_three_thousand_terms_end(deep: icesql.Connection) -> None:
    # 16 s of DuckDB's time as one chain; the limit is far from both.
    terms = " OR ".join(f"(id = {each} AND small > {each + 9_000})" for each in range(3_000))
    started = time.process_time()
    assert deep.execute(f"SELECT count(*) FROM d.t WHERE {terms}").fetchall() == [(0,)]
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
        icesql.connect(warehouse=str(folder), dialect="trino") as trino,
    ):
        engine.register("t", rows)
        for condition in (" OR ".join([*pairs, "small IS NULL"]), " AND ".join(terms)):
            sql = f"SELECT id FROM t WHERE {shape.format(condition)} ORDER BY id"
            expected = engine.execute(sql).fetchall()
            for opened in (deep, trino):
                assert opened.execute(sql.replace("FROM t", "FROM d.t")).fetchall() == expected


# -------------------------------------------------------------------------- long lists


def literals(kind: str, rng: random.Random) -> Iterator[str]:
    while True:
        match kind:
            case "integers":
                yield str(rng.choice([rng.randrange(-30, 90), rng.randrange(-(2**62), 2**62)]))
            case "numbers":
                yield rng.choice(
                    [
                        str(rng.randrange(-5, 60)),
                        f"{rng.randrange(60)}.{rng.choice([0, 25, 5, 125])}",
                    ]
                )
            case "texts":
                yield rng.choice([f"'{rng.randrange(90)}'", "'it''s'", "'\\'", "'Ä, (x)'"])
            case "days":
                yield f"DATE '2026-0{rng.randrange(1, 5)}-{rng.randrange(1, 29):02}'"
            case "day texts":
                yield f"'2026-0{rng.randrange(1, 5)}-{rng.randrange(1, 29):02}'"
            case "number texts":
                yield f"'{rng.randrange(-5, 60)}'"
            case _:
                raise AssertionError(kind)


KINDS = ("integers", "numbers", "texts", "days", "day texts", "number texts")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("column", [*COLUMNS, "id + 0", "lower(text)"])
def test_a_long_list_means_what_it_means_to_the_engine(
    deep: icesql.Connection, rows: pa.Table, column: str, kind: str
) -> None:
    """Against DuckDB itself, which reads the list as literals: types, NULL, NOT, errors."""
    rng = random.Random(f"{column} {kind}")
    with duckdb.connect() as engine:
        engine.register("t", rows)
        for null in (False, True):
            items = [next(literals(kind, rng)) for _ in range(rng.randrange(100, 160))]
            if null:
                items[rng.randrange(len(items))] = "NULL"
            listed = ", ".join(items)
            for query in (
                f"SELECT id FROM t WHERE {column} IN ({listed}) ORDER BY id",
                f"SELECT id FROM t WHERE {column} NOT IN ({listed}) ORDER BY id",
                f"SELECT id, {column} IN ({listed}) AS b FROM t ORDER BY id",
                f"SELECT id FROM t WHERE {' OR '.join(f'{column} = {x}' for x in items)} ORDER BY id",
                "SELECT id FROM t WHERE id < 50 AND "
                f"{' AND '.join(f'({column} <> {x})' for x in items)} ORDER BY id",
            ):
                try:
                    expected: Any = engine.execute(query).fetchall()
                except duckdb.Error:
                    expected = Error
                try:
                    found: Any = deep.execute(query.replace("FROM t", "FROM d.t")).fetchall()
                except Error:
                    found = Error
                # Where no row is left to convert, nothing fails.
                nothing_read = expected is Error and found == []
                assert found == expected or nothing_read, query[:200]


def test_a_list_of_a_hundred_thousand(deep: icesql.Connection) -> None:
    numbers = ", ".join(map(str, range(0, 200_000, 2)))
    explained = deep.execute(f"EXPLAIN SELECT * FROM d.t WHERE id IN ({numbers})").fetchall()
    text = "\n".join(line for (line,) in explained)
    assert "… and 99,990 more" in text
    assert len(text) < 4_000
    for sql in (f"id IN ({numbers})", f"NOT (id NOT IN ({numbers}))"):
        assert deep.execute(f"SELECT count(*) FROM d.t WHERE {sql}").fetchall() == [(30,)]
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
        assert deep.execute(sql, given).fetchall() == [(expected,)], sql[:60]
    assert deep.execute("SELECT count(*) FROM d.t WHERE id IN ?", [[1, None, 3]]).fetchall() == [
        (2,)
    ]
    assert deep.execute("SELECT 1 WHERE ? IN (1, ?)", [2, 2]).fetchall() == [(1,)]
    sql = f"SELECT ? IN ({', '.join('?' * 200)}), ?"
    assert deep.execute(sql, [7, *range(200), "x"]).fetchall() == [(True, "x")]


def test_what_only_looks_like_a_list_is_text(deep: icesql.Connection) -> None:
    numbers = ",".join(map(str, range(150)))
    chain = " OR ".join(f"id = {n}" for n in range(150))
    looks = (f"'id IN ({numbers})'", f"'it''s IN ({numbers})'", f"$$ IN ({numbers})$$")
    for quoted in (*looks, f"'{chain}'", f"$$ {chain} $$"):
        sql = f"SELECT length({quoted}) AS n"
        with duckdb.connect() as engine:
            expected = engine.execute(sql).fetchall()
        assert deep.execute(sql).fetchall() == expected
    for text in (f"id IN ({numbers})", chain):
        sql = f"SELECT /* {text} */ count(*) FROM d.t -- {text}\n WHERE {text}"
        assert deep.execute(sql).fetchall() == [(ROWS,)]
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

    for sql in (CHAINS["+ and -"](900), NESTED["parentheses"](35), NESTED["derived tables"](60)):
        assert in_small_stack(lambda sql=sql: deep.execute(sql).fetchall()) == []
    (error,) = in_small_stack(lambda: deep.execute(NESTED["calls"](5_000)))
    assert isinstance(error, SqlSyntaxError)

    def recurse(levels: int, function: Callable[[], Any]) -> Any:
        return function() if levels == 0 else recurse(levels - 1, function)

    used = len(inspect.stack(0))
    room = sys.getrecursionlimit() - used
    sql = "SELECT count(*) FROM d.t WHERE (id IN (1, 2, 3) OR (small > 2 AND id < 5))"
    expected = deep.execute(sql).fetchall()
    for left in (400, 200, 120, 80, 50):
        answer = recurse(room - left, lambda: deep.execute(sql))
        assert answer.fetchall() == expected
    # So little that not even a thread can be started is told as what it is.
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
        deep.execute(sql).fetchall()


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
    catalog = SqlCatalog(
        "c", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=f"file://{tmp_path}"
    )
    catalog.create_namespace("d")
    catalog.create_table("d.wide", schema=wide.schema).append(wide)
    with icesql.connect(warehouse=str(tmp_path)) as connection:
        names = ", ".join(f"c{n}" for n in range(count))
        assert connection.execute(f"SELECT {names} FROM d.wide").fetchall() == [tuple(range(count))]
        assert connection.execute("SELECT * FROM d.wide").fetchall() == [tuple(range(count))]
        where = " AND ".join(f"c{n} = {n}" for n in range(0, count, 5))
        assert connection.execute(f"SELECT count(*) FROM d.wide WHERE {where}").fetchall() == [(1,)]


def test_big_texts(deep: icesql.Connection) -> None:
    big = "x" * 3_000_000
    assert deep.execute(f"SELECT length('{big}')").fetchall() == [(len(big),)]
    assert deep.execute(f"SELECT 1 /* {big} */ -- {big}").fetchall() == [(1,)]
    assert deep.execute("SELECT length(?)", [big]).fetchall() == [(len(big),)]
    with pytest.raises(SqlSyntaxError, match="WITH of more than 900 parts"):
        deep.execute(
            "WITH " + ", ".join(f"c{n} AS (SELECT {n})" for n in range(3_000)) + " FROM c1"
        )
    joins = "".join(f" JOIN d.t t{n} ON t{n}.id = t.id" for n in range(40))
    assert deep.execute(f"SELECT count(*) FROM d.t{joins}").fetchall() == [(ROWS,)]
    branches = " ".join(f"WHEN {n} THEN {n + 1}" for n in range(1_500))
    sql = f"SELECT sum(CASE id {branches} END) FROM d.t"
    assert deep.execute(sql).fetchall() == [(sum(range(ROWS + 1)),)]


def test_a_script_of_ten_thousand_statements(deep: icesql.Connection) -> None:
    script = ";".join(["SET threads = 2", "SET threads = 1"] * 5_000)
    assert sum(1 for _ in deep.execute_script(script)) == 10_000
    deep.execute("RESET threads")
