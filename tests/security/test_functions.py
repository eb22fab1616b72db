"""No spelling of a refused function reaches the engine, and every function is classed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import icesql
from icesql.engine.duckdb.sql.checked import check_written
from icesql.errors import DatabaseError, SqlSyntaxError, UnsupportedSqlError
from icesql.query.dialects.trino_snowflake.translation import translate
from icesql.sql.engine_functions import classes, refusal
from icesql.sql.parse import parse
from icesql.sql.statement import Query
from tests.writer.table import TableWriter

DIALECTS = ["duckdb", "spark", "databricks", "hive", "trino", "presto", "athena", "snowflake"]
QUOTES = [("", ""), ('"', '"'), ("`", "`"), ("[", "]")]
REFUSED = sorted(
    {
        name
        for (kind, name), found in classes().items()
        if kind != "word" and found in ("leaks", "system", "internal", "files")
        if refusal(name) is not None
    }
)
TELLING = {
    "current_setting": "'temp_directory'",
    "current_query": "",
    "stats": "1",
    "sleep_ms": "30000",
    "write_log": "'x'",
    "in_search_path": "'a', 'b'",
    "pg_get_viewdef": "1",
    "json_serialize_plan": "'SELECT 1'",
    "txid_current": "",
    "getenv": "'HOME'",
}


def test_every_function_of_the_engine_is_classed_once() -> None:
    kinds = {"table": "table", "table_macro": "table", "pragma": "pragma"}
    with duckdb.connect() as connection:
        found = connection.execute(
            "SELECT DISTINCT lower(function_name), function_type FROM duckdb_functions()"
        ).fetchall()
    there = {(kinds.get(kind, "value"), name) for name, kind in found if " " not in name}
    table = {key for key in classes() if key[0] != "word"}
    assert there - table == set(), "class these in grammar/engine_functions.txt"
    newer = {
        ("table", "add_grammar_extension"), ("table", "duckdb_live_query_metrics"),
        ("table", "parquet_page_index"), ("table", "remove_grammar_extension"),
        ("value", "map_type_id_to_pg_oid"),
    }  # fmt: skip
    newer = newer if duckdb.__version__ == "2.0.0" else set()
    assert table - there == newer, "the engine has no such functions any more"


def test_the_table_has_no_line_twice() -> None:
    from icesql.sql.grammar import folder

    seen: list[tuple[str, str]] = []
    kind = ""
    for line in (folder() / "engine_functions.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith(" "):
            seen += [(kind, name) for name in line.split()]
        elif line and not line.startswith("#"):
            kind = line.split()[0]
    assert len(seen) == len(set(seen)) == len(classes())


def test_no_word_of_the_parser_is_a_refused_function() -> None:
    words = {name for kind, name in classes() if kind == "word"}
    refused = {
        name for (kind, name), found in classes().items()
        if kind == "value" and found not in ("safe", "volatile")
    }  # fmt: skip
    assert words & refused == set()


@pytest.mark.parametrize("name", REFUSED)
def test_a_refused_function_is_named_with_its_place(name: str) -> None:
    with pytest.raises((UnsupportedSqlError, SqlSyntaxError)) as caught:
        parse(f'SELECT 1,\n  "{name}"(1)')
    if isinstance(caught.value, UnsupportedSqlError):
        assert name in str(caught.value)
        assert caught.value.line == 2


def spellings(name: str, arguments: str, left: str, right: str) -> list[str]:
    quoted = f"{left}{name}{right}"
    upper = f"{left}{name.upper()}{right}"
    first, _, rest = arguments.partition(", ")
    return [
        f"SELECT {quoted}({arguments})",
        f"SELECT {upper} ({arguments})",
        f"SELECT {quoted}/* x */({arguments})",
        f"SELECT main.{quoted}({arguments})",
        f"SELECT system.main.{quoted}({arguments})",
        f"SELECT {left}pg_catalog{right}.{quoted}({arguments})",
        f"SELECT ({first or 1}).{quoted}({rest})",
        f"SELECT CASE WHEN {quoted}({arguments}) IS NULL THEN 1 ELSE 2 END",
        f"SELECT 1 ORDER BY {quoted}({arguments})",
        f"SELECT list_transform([1], x -> {quoted}({arguments}))",
        f"SELECT (SELECT max({quoted}({arguments})) FROM range(1))",
        f"WITH {quoted}(a) AS (SELECT 1) SELECT {quoted}({arguments})",
        f"SELECT count(*) FILTER (WHERE {quoted}({arguments}) IS NULL)",
        f"SELECT * FROM range(1) WHERE {quoted}({arguments}) IS NOT NULL",
        f"SELECT * FROM {quoted}({arguments})",
        f"SELECT sum(1) OVER (ORDER BY {quoted}({arguments}))",
    ]


@pytest.mark.parametrize("dialect", ["icesql", *DIALECTS])
def test_no_dialect_and_no_quote_gets_a_refused_function_through(dialect: str) -> None:
    with icesql.connect(dialect=dialect, settings={"query_timeout": 20}) as connection:
        for left, right in QUOTES:
            for sql in spellings("current_setting", "'temp_directory'", left, right):
                with pytest.raises(DatabaseError):
                    connection.execute(sql).fetchall()


@pytest.mark.parametrize(("name", "arguments"), TELLING.items())
def test_no_spelling_of_a_telling_function_runs(name: str, arguments: str) -> None:
    with icesql.connect(settings={"query_timeout": 20}) as connection:
        for left, right in QUOTES[:2]:
            for sql in spellings(name, arguments, left, right):
                with pytest.raises((UnsupportedSqlError, SqlSyntaxError)):
                    connection.execute(sql).fetchall()


@given(st.sampled_from(REFUSED), st.data())
@settings(max_examples=100)
def test_case_and_space_hide_nothing(name: str, data: st.DataObject) -> None:
    cased = "".join(data.draw(st.sampled_from([c.lower(), c.upper()])) for c in name)
    space = data.draw(st.sampled_from(["", " ", "\n", "\t", " /* c */ ", " -- c\n"]))
    quote = data.draw(st.sampled_from(['"', "`"]))
    dialect = data.draw(st.sampled_from([None, "spark", "trino", "snowflake"]))
    try:
        (statement,) = parse(f"SELECT {quote}{cased}{quote}{space}(1)", dialect=dialect)
    except (UnsupportedSqlError, SqlSyntaxError):
        return
    assert isinstance(statement, Query)
    if dialect in ("trino", "snowflake"):
        with pytest.raises(UnsupportedSqlError):
            translate(statement.tree, [], dialect, {})
        return
    # Spark's spelling is refused once it is known that the local engine is to run it.
    assert dialect == "spark"
    assert isinstance(statement.refused, UnsupportedSqlError)


@pytest.mark.parametrize(
    ("sql", "names"),
    [
        ("SELECT ABS(1)", ["abs"]),
        ('SELECT "Abs" (1)', ["abs"]),
        ("SELECT 'abs(1)', E'\\'abs(1)', '''abs('", []),
        ('SELECT "a""b"(1)', ['a"b']),
        ("SELECT x /* abs(1) */ -- abs(1)\n", []),
        ("SELECT $$abs(1)$$, $t$abs(1)$t$", []),
        ("SELECT x.abs(1)", ["abs"]),
        ("WITH abs(a) AS (SELECT abs(2)) SELECT a FROM abs", ["abs"]),
        ("SELECT x FROM range(3) AS abs(x)", []),
        ("SELECT CAST(x AS DECIMAL(3, 2))", []),
    ],
)
def test_calls_are_found_where_they_stand(sql: str, names: list[str]) -> None:
    with duckdb.connect() as cursor:
        found = check_written(sql, cursor, ()).calls
    assert [str(each["function_name"]).lower() for each in found] == names


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        ("SELECT x.current_setting()", "current_setting"),
        ('SELECT list_transform([1], lambda x: system.main."Sleep_MS"(9))', "sleep_ms"),
        ("SELECT * FROM read_csv('/etc/passwd')", "read_csv"),
        ("SELECT * FROM 't.parquet'", "the table"),
        ("SELECT * FROM t, duckdb_settings()", "duckdb_settings"),
        ("SELECT a FROM t WHERE a = $1", "a parameter"),
        ("SELECT 1; SELECT 2", "more than one"),
        ("SELECT", "this translation"),
        ("DROP TABLE t", "this translation"),
    ],
)
def test_a_translation_may_do_no_more_than_a_text_of_a_user(sql: str, reason: str) -> None:
    with duckdb.connect() as cursor, pytest.raises(UnsupportedSqlError, match=reason):
        check_written(sql, cursor, ["t"])


@pytest.mark.parametrize(
    "sql",
    [
        "WITH stats(a) AS (SELECT 1) SELECT a FROM stats",
        'WITH "query"(a, b) AS (SELECT 1, 2) SELECT a FROM "query"',
        "SELECT version FROM (SELECT 1 AS version)",
        "SELECT pg_typeof(1), pg_size_pretty(1024), random() < 2, uuid() IS NOT NULL",
        "SELECT current_schema(), current_user, current_date IS NOT NULL",
        "SELECT list_transform([1, 2], x -> x + 1), [x * 2 FOR x IN [1, 2]], {'a': 1}.a",
        "SELECT 'abc'.upper(), \"upper\"('a'), main.upper('a')",
        "SELECT x ~~~ 'a*', x GLOB ('a' || '*') FROM (SELECT 'ab' AS x)",
        "SELECT CAST({'a': 1} AS STRUCT(a DECIMAL(9, 2))), CAST(MAP {1: 2} AS MAP(INT, BIGINT))",
        "SELECT count(*) FILTER (WHERE a > 1), sum(a) OVER (ORDER BY a) FROM range(3) AS t(a) GROUP BY a",
        "SELECT grouping(a), a FROM range(2) AS t(a) GROUP BY GROUPING SETS ((a), ())",
        "SELECT * EXCLUDE (a) FROM (SELECT 1 AS a, 2 AS b) WHERE (b) IN (2) AND (b) NOT IN (3)",
        "SELECT coalesce(1), nullif(1, 2), greatest(1), if(true, 1, 2), try_cast('x' AS INT)",
        "SELECT list_aggregate([1, 2], 'sum'), [1, 2].list_aggr('max')",
        "SELECT l.list_aggregate('sum'), main.array_aggr(l, 'min') FROM (SELECT [1] AS l)",
        "SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY range) FROM range(3)",
    ],
)
def test_what_is_harmless_runs(sql: str) -> None:
    with icesql.connect() as connection:
        assert connection.execute(sql).fetchall()


def test_a_function_that_is_not_there_is_refused_with_its_place() -> None:
    with pytest.raises(UnsupportedSqlError) as caught:
        parse("SELECT 1,\n  uper('a')")
    assert (caught.value.line, caught.value.column) == (2, 3)
    assert "did you mean upper()?" in str(caught.value)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT list_aggregate([1], 'combine_aggr')",
        "SELECT \"list_aggr\"([1], 'Combine_Aggr')",
        "SELECT [1].array_aggregate('combine_aggr')",
        "SELECT main.list_aggregate([1], 'combine_aggr')",
        "SELECT array_aggr([1], 'comb' || 'ine_aggr')",
        "SELECT aggregate([1], 'no_such_aggregate')",
        "SELECT list_aggregate([1], ?)",
    ],
)
def test_an_aggregate_that_is_named_by_a_text_is_asked_about(sql: str) -> None:
    with pytest.raises(UnsupportedSqlError):
        parse(sql, parameters=["combine_aggr"] if "?" in sql else None)


def test_an_engine_with_a_new_function_refuses_it(monkeypatch: pytest.MonkeyPatch) -> None:
    from icesql.sql import engine_functions

    older = {key: found for key, found in classes().items() if key != ("value", "median")}
    monkeypatch.setattr(engine_functions, "classes", lambda: older)
    with icesql.connect() as connection, pytest.raises(UnsupportedSqlError, match="median"):
        connection.execute("SELECT median(x) FROM range(3) t(x)").fetchall()
    with icesql.connect() as connection, pytest.raises(UnsupportedSqlError, match="median"):
        connection.execute('SELECT "median"(x) FROM range(3) t(x)').fetchall()


# Of these the instant of the statement is known: tests/query/test_clock.py.
CLOCKS = {"now", "today", "current_date", "transaction_timestamp", "get_current_timestamp"}
VOLATILE = sorted(
    name
    for (kind, name), found in classes().items()
    if (kind, found) == ("value", "volatile") and name not in CLOCKS
)


@pytest.fixture
def rows(tmp_path: Path) -> Iterator[icesql.Connection]:
    """A table ``t`` of a thousand rows in two files."""
    fields = [{"id": 1, "name": "a", "required": False, "type": "double"}]
    writer = TableWriter(str(tmp_path / "t"), fields=fields)
    for start in (0, 500):
        writer.commit([writer.data_file([{"a": (start + i) / 1000} for i in range(500)])])
    with icesql.connect(warehouse=str(tmp_path)) as connection:
        yield connection


def test_a_random_value_is_drawn_for_each_row_and_prunes_nothing(rows: icesql.Connection) -> None:
    assert rows.execute("SELECT count(DISTINCT random()) > 900 FROM t").fetchall() == [(True,)]
    assert rows.execute("SELECT count(DISTINCT uuid()) FROM t").fetchall() == [(1000,)]
    cursor = rows.execute("SELECT count(*) FROM t WHERE a < random()")
    ((count,),) = cursor.fetchall()
    assert 300 < count < 700
    assert cursor.scan_reports[0].skipped_data_files == 0
    # A filter that no row passes by its bounds alone must not be taken for a constant.
    cursor = rows.execute("SELECT count(*) FROM t WHERE a >= random() + 0.999")
    cursor.fetchall()
    assert cursor.scan_reports[0].skipped_data_files == 0


@pytest.mark.parametrize("name", VOLATILE)
def test_a_volatile_function_is_never_a_reason_to_skip_a_file(
    rows: icesql.Connection, name: str
) -> None:
    argument = {"setseed": "0.5", "ago": "INTERVAL 1 DAY", "age": "TIMESTAMP '2020-01-01'"}
    sql = f"SELECT count(*) FROM t WHERE CAST({name}({argument.get(name, '')}) AS VARCHAR) > 'zzzz'"
    cursor = rows.execute(sql)
    cursor.fetchall()
    assert cursor.scan_reports[0].skipped_data_files == 0
