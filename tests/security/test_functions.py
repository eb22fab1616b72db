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
from icesql.sql.acceptance import classes, refusal
from icesql.sql.parse import parse
from icesql.sql.statement import Query
from tests.rows import rows_of
from tests.sessions import answer, fetched
from tests.tables import read_lines
from tests.writer.fields import fields
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


def test_every_function_of_the_engine_is_classed_once() -> None:
    kinds = {"table": "table", "table_macro": "table", "pragma": "pragma"}
    with duckdb.connect() as connection:
        found = fetched(
            connection,
            "SELECT DISTINCT lower(function_name), function_type FROM duckdb_functions()",
        )
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
    first, _, rest = arguments.partition(", ")
    parts = {"arguments": arguments, "first": first or 1, "rest": rest}
    quoted = {"name": name, "upper": name.upper(), "pg_catalog": "pg_catalog"}
    parts |= {key: f"{left}{text}{right}" for key, text in quoted.items()}
    return [form.format(**parts) for form in read_lines(__file__, "spellings.tsv")]


@pytest.mark.parametrize("dialect", ["icesql", *DIALECTS])
def test_no_dialect_and_no_quote_gets_a_refused_function_through(dialect: str) -> None:
    with icesql.connect(dialect=dialect, settings={"query_timeout": 20}) as connection:
        for left, right in QUOTES:
            for sql in spellings("current_setting", "'temp_directory'", left, right):
                with pytest.raises(DatabaseError):
                    fetched(connection, sql)


@rows_of(__file__, "telling_functions.tsv", "name", "arguments")
def test_no_spelling_of_a_telling_function_runs(name: str, arguments: str) -> None:
    with icesql.connect(settings={"query_timeout": 20}) as connection:
        for left, right in QUOTES[:2]:
            for sql in spellings(name, arguments, left, right):
                with pytest.raises((UnsupportedSqlError, SqlSyntaxError)):
                    fetched(connection, sql)


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


@rows_of(__file__, "calls_of_texts.tsv", "sql", "names")
def test_calls_are_found_where_they_stand(sql: str, names: str) -> None:
    with duckdb.connect() as cursor:
        found = check_written(sql.replace("⏎", "\n"), cursor, ()).calls
    assert [str(each["function_name"]).lower() for each in found] == names.split()


@rows_of(__file__, "refused_translations.tsv", "sql", "reason")
def test_a_translation_may_do_no_more_than_a_text_of_a_user(sql: str, reason: str) -> None:
    with duckdb.connect() as cursor, pytest.raises(UnsupportedSqlError, match=reason):
        check_written(sql, cursor, ["t"])


@rows_of(__file__, "harmless.tsv", "sql")
def test_what_is_harmless_runs(sql: str) -> None:
    assert answer(sql)


def test_a_function_that_is_not_there_is_refused_with_its_place() -> None:
    with pytest.raises(UnsupportedSqlError) as caught:
        parse("SELECT 1,\n  uper('a')")
    assert (caught.value.line, caught.value.column) == (2, 3)
    assert "did you mean upper()?" in str(caught.value)


@rows_of(__file__, "named_aggregates.tsv", "sql")
def test_an_aggregate_that_is_named_by_a_text_is_asked_about(sql: str) -> None:
    with pytest.raises(UnsupportedSqlError):
        parse(sql, parameters=["combine_aggr"] if "?" in sql else None)


@pytest.mark.parametrize("name", ["median", '"median"'])
def test_an_engine_with_a_new_function_refuses_it(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from icesql.sql import acceptance

    older = {key: found for key, found in classes().items() if key != ("value", "median")}
    monkeypatch.setattr(acceptance, "classes", lambda: older)
    with pytest.raises(UnsupportedSqlError, match="median"):
        answer(f"SELECT {name}(x) FROM range(3) t(x)")


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
    writer = TableWriter(str(tmp_path / "t"), fields=fields("a double"))
    for start in (0, 500):
        writer.commit([writer.data_file([{"a": (start + i) / 1000} for i in range(500)])])
    with icesql.connect(warehouse=tmp_path) as connection:
        yield connection


def test_a_random_value_is_drawn_for_each_row_and_prunes_nothing(rows: icesql.Connection) -> None:
    assert fetched(rows, "SELECT count(DISTINCT random()) > 900 FROM t") == [(True,)]
    assert fetched(rows, "SELECT count(DISTINCT uuid()) FROM t") == [(1000,)]
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
