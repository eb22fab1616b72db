"""From text to statements: splitting, errors with positions, references and scopes."""

from __future__ import annotations

import contextlib
import random
import re
import subprocess
import sys
from typing import Any

import duckdb
import pytest
from sqlglot import exp
from sqlglot.dialects.dialect import Dialects

import icesql
from icesql.errors import Error, ProgrammingError, SqlSyntaxError
from icesql.sql.parse import parse, split_statements
from icesql.sql.statement import Query
from tests.tables import read_lines, read_table


def query(sql: str, **options: Any) -> Query:
    statement = parse(sql, **options)[0]
    assert isinstance(statement, Query)
    return statement


def rewritten(sql: str, dialect: str | None = None) -> str:
    return str(query(sql, dialect=dialect).tree.sql(dialect="duckdb"))


def names(sql: str) -> list[str]:
    return [reference.name for reference in query(sql).references]


def test_a_comment_inside_a_clause_is_named_where_sqlglot_reads() -> None:
    with pytest.raises(icesql.Error, match="there is a comment inside of ORDER BY"):
        icesql.connect(dialect="trino").execute("SELECT 1 AS a ORDER -- up\n BY a")
    with icesql.connect() as connection:
        sql = "SELECT 1 AS a /* one */ ORDER /* up */ BY /* up */ a -- end"
        assert connection.execute(sql).fetchall() == [(1,)]


def test_statements_are_split_outside_quotes_and_comments() -> None:
    sql = "SELECT ';' AS a; -- ; no\n EXPLAIN SELECT ';';;"
    assert len(parse(sql)) == 2
    assert split_statements(sql) == [(0, "SELECT ';' AS a"), (26, "EXPLAIN SELECT ';'")]


def test_a_table_becomes_a_scan_with_its_name_as_alias() -> None:
    found = query("SELECT * FROM c.ns.t JOIN u AS x USING (id)")
    assert found.tree.sql() == 'SELECT * FROM "__scan_0" AS "t" JOIN "__scan_1" AS x USING (id)'
    first, second = found.references
    assert (first.index, first.parts, first.offset) == (0, ("c", "ns", "t"), 14)
    assert (second.index, second.parts) == (1, ("u",))


@pytest.mark.parametrize(("sql", "expected"), read_table(__file__, "aliases.tsv"))
def test_columns_with_a_namespace_follow_the_alias(sql: str, expected: str) -> None:
    assert rewritten(sql) == expected


def test_deep_nesting_is_an_error_and_not_a_crash() -> None:
    with pytest.raises(SqlSyntaxError, match="nested too deeply"):
        parse("SELECT " + "(" * 5000 + "1" + ")" * 5000)
    with pytest.raises(SqlSyntaxError, match="nested too deeply"):
        parse("SELECT * FROM " + "(SELECT * FROM " * 1000 + "t" + ")" * 1000)


def test_long_flat_statements_are_fine() -> None:
    many = " OR ".join(f"a = {i}" for i in range(3000))
    assert names(f"SELECT * FROM t WHERE {many}") == ["t"]
    assert names(f"SELECT * FROM t WHERE a IN ({', '.join(map(str, range(20000)))})") == ["t"]


@pytest.mark.parametrize("sql", read_lines(__file__, "duckdb_meanings.tsv"))
def test_the_default_dialect_means_what_duckdb_means(sql: str) -> None:
    # Old releases of sqlglot write lambdas with arrows.
    connection = duckdb.connect(config={"lambda_syntax": "ENABLE_SINGLE_ARROW"})
    assert connection.sql(rewritten(sql)).fetchall() == connection.sql(sql).fetchall()


def test_a_hexadecimal_number_is_what_duckdb_makes_of_it() -> None:
    assert rewritten("SELECT 0xFF") == 'SELECT 0 AS "xFF"'


def test_subscripts_say_what_they_count_from() -> None:
    tree = query("SELECT l[1] FROM t").tree
    bracket = tree.find(exp.Bracket)
    assert bracket is not None
    assert bracket.args["offset"] == 1
    assert bracket.expressions[0].name == "1"
    assert rewritten("SELECT l[0] FROM t", "spark").startswith("SELECT l[1]")


def unpromised() -> list[str]:
    """Every dialect of sqlglot except the supported ones and their variants."""
    promised = {
        "",
        "duckdb",
        "spark",
        "databricks",
        "hive",
        "trino",
        "presto",
        "athena",
        "snowflake",
    }
    return sorted({each.value for each in Dialects} - promised | {"SQLite", "klingon"})


@pytest.mark.parametrize("dialect", unpromised())
def test_a_dialect_that_is_not_promised_is_refused_naming_those_that_are(dialect: str) -> None:
    with pytest.raises(ProgrammingError) as caught:
        parse("SELECT 1", dialect=dialect)
    for name in ("duckdb", "spark", "databricks", "hive", "trino", "presto", "athena", "snowflake"):
        assert name in str(caught.value)


@pytest.mark.parametrize(
    "dialect",
    ["spark", "databricks", "hive", "trino", "presto", "athena", "Athena", "snowflake", "duckdb"],
)
def test_other_dialects_are_read(dialect: str) -> None:
    assert rewritten("SELECT a FROM t WHERE b = 1", dialect) == (
        'SELECT a FROM "__scan_0" AS "t" WHERE b = 1'
    )


def test_strange_text_gives_icesql_errors_only() -> None:
    chooser = random.Random(5)
    words = re.split(
        " ",
        "SELECT FROM WHERE t a , ( ) * = 'x' \" 1 VERSION AS OF AT => @ : ? $ [ ] { } ; EXPLAIN SET "
        "SHOW -- /* */ :: . INTERVAL CASE END NOT IN BETWEEN LATERAL JOIN ON WITH x'G' 0x $$ \x00 ü",
    )
    for _ in range(1500):
        text = " ".join(chooser.choices(words, k=chooser.randrange(1, 14)))
        with contextlib.suppress(Error):  # any other exception fails the test
            parse(text)


def test_reading_sql_imports_no_lark_and_nothing_heavy() -> None:
    code = (
        "import sys; from icesql.sql.parse import parse; parse('SELECT * FROM t VERSION AS OF 1');"
        "print([m for m in ('lark', 'duckdb', 'pyarrow', 'numpy', 'pandas', 'fastavro', 'pyiceberg')"
        " if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=600
    )
    assert done.stdout.strip() == "[]"


def test_half_of_a_character_is_a_syntax_error_at_its_place() -> None:
    with pytest.raises(SqlSyntaxError, match="lone surrogate") as caught:
        parse("SELECT 1,\n '\udcc3'")
    assert (caught.value.line, caught.value.column) == (2, 3)
    str(caught.value).encode()
