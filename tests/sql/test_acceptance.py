"""A query reads its tables and nothing else; what is not accepted is refused by name and place."""

from __future__ import annotations

import pytest

from icesql.errors import SqlSyntaxError, UnsupportedSqlError
from icesql.sql.parse import parse


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM READ_PARQUET('x.parquet')",
        "SELECT * FROM parquet_scan('x')",
        "SELECT * FROM read_json_auto('x')",
        "SELECT * FROM read_text('x')",
        "SELECT * FROM read_blob('x')",
        "SELECT * FROM glob('/etc/*')",
        "SELECT * FROM sniff_csv('x')",
        "SELECT * FROM duckdb_settings()",
        "SELECT * FROM duckdb_secrets()",
        "SELECT * FROM pragma_version()",
        "SELECT * FROM query('SELECT 1')",
        "SELECT * FROM query_table('t')",
        "SELECT * FROM postgres_scan('a', 'b', 'c')",
        "SELECT * FROM sqlite_scan('a', 'b')",
        "SELECT * FROM iceberg_column_stats('x')",
        "SELECT * FROM arrow_scan(1, 2, 3)",
        "SELECT * FROM json_execute_serialized_sql('x')",
        "SELECT * FROM t, LATERAL read_text('x')",
        "SELECT * FROM (SELECT * FROM read_csv('x')) y",
        "WITH x AS (SELECT * FROM glob('*')) SELECT * FROM x",
        "SELECT (SELECT count(*) FROM read_text('x'))",
        "SELECT getenv('HOME')",
        "SELECT current_setting('temp_directory')",
        "SELECT which_secret('s3://x', 's3')",
        "SELECT nextval('s')",
        "SELECT read_text('x')",
        "SELECT pg_read_file('x')",
        "SELECT * FROM 'x.parquet'",
        "SELECT * FROM t JOIN 'x.csv' ON true",
        "SELECT * FROM t WHERE a IN (SELECT b FROM read_csv('x'))",
        "SELECT * FROM t ORDER BY getenv('x')",
        "FROM read_csv('x')",
        "EXPLAIN SELECT * FROM read_csv('x')",
    ],
)
def test_nothing_of_the_machine_is_read(sql: str) -> None:
    with pytest.raises(UnsupportedSqlError) as caught:
        parse(sql)
    assert caught.value.line == 1


@pytest.mark.parametrize(
    "word",
    [
        "CREATE",
        "DROP",
        "ALTER",
        "COPY",
        "ATTACH",
        "DETACH",
        "INSTALL",
        "LOAD",
        "PRAGMA",
        "EXPORT",
        "IMPORT",
        "VACUUM",
        "CHECKPOINT",
        "GRANT",
    ],
)
@pytest.mark.parametrize("dialect", [None, "spark", "trino"])
def test_other_statements_are_refused_by_name(word: str, dialect: str | None) -> None:
    with pytest.raises(UnsupportedSqlError) as caught:
        parse(f"SELECT 1;\n  {word.lower()} something", dialect=dialect)
    assert caught.value.construct == word
    assert (caught.value.line, caught.value.column) == (2, 3)


@pytest.mark.parametrize(
    ("sql", "construct"),
    [
        ("SELECT a INTO b FROM t", "SELECT INTO"),
        ("SELECT a FROM t FOR UPDATE", "FOR UPDATE"),
        ("PIVOT t ON a IN (SELECT 1) USING sum(b)", "PIVOT without a list of values"),
        ("SELECT * FROM t PIVOT (sum(a) FOR b IN (SELECT 1))", "PIVOT without a list of values"),
        ("CREATE VIEW v AS PIVOT t ON a USING sum(b)", "PIVOT without a list of values"),
        ("CREATE TEMP VIEW v AS PIVOT t ON a USING sum(b)", "PIVOT without a list of values"),
        ("SELECT * FROM t POSITIONAL JOIN u", "POSITIONAL JOIN"),
        ("SELECT list(a) EXPORT_STATE FROM t", "EXPORT_STATE"),
        ("SELECT f(sum(a + (1)) FILTER (WHERE a > 1) export_state) FROM t", "EXPORT_STATE"),
        ("WITH x AS (DELETE FROM t RETURNING a) SELECT * FROM x", "DELETE"),
        ("WITH x AS (INSERT INTO t VALUES (1) RETURNING a) SELECT * FROM x", "INSERT"),
        ("SELECT /*+ MAX_EXECUTION_TIME(9) */ a FROM t", "hint"),
        ('WITH "__scan_0" AS (SELECT 1) SELECT * FROM "__scan_0"', "__scan_0"),
        ('WITH "__fragment_0" AS (SELECT 1) SELECT * FROM "__fragment_0"', "__fragment_0"),
        ("WITH __Fragment_1 AS (SELECT 1) SELECT * FROM __Fragment_1", "__Fragment_1"),
        ("SELECT 1 FROM t AS __fragment_0", "__fragment_0"),
        ('WITH "__kept_1" AS (SELECT 1) SELECT * FROM "__kept_1"', "__kept_1"),
        ('WITH "__stream_0" AS (SELECT 1) SELECT * FROM "__stream_0"', "__stream_0"),
        ('WITH "__rows_0" AS (SELECT 1) SELECT * FROM "__rows_0"', "__rows_0"),
        ('WITH "__constants_0" AS (SELECT 1) SELECT * FROM "__constants_0"', "__constants_0"),
        ('WITH "__positions_s0" AS (SELECT 1) SELECT * FROM "__positions_s0"', "__positions_s0"),
        ('WITH "__files_s0" AS (SELECT 1) SELECT * FROM "__files_s0"', "__files_s0"),
        ('SELECT * FROM t AS "__scan_1"', "__scan_1"),
        ("SELECT * FROM iceberg_scan('p', mode => 'x')", "option mode"),
    ],
)
def test_other_clauses_are_refused_by_name(sql: str, construct: str) -> None:
    with pytest.raises(UnsupportedSqlError) as caught:
        parse(sql)
    assert construct in str(caught.value)


@pytest.mark.parametrize(
    ("sql", "column"),
    [
        ("SELECT a, default FROM t", 11),
        ("PIVOT (SELECT 1 a, 2 b) ON a IN (SELECT 1) USING sum(b)", 28),
        ("PIVOT t ON a IN (1, 2), b IN (SELECT 1) USING sum(c)", 25),
        ("SELECT * FROM t PIVOT (sum(a) FOR b IN (1, 2) c IN (SELECT 1))", 47),
    ],
)
def test_a_refusal_names_the_place_of_what_is_refused(sql: str, column: int) -> None:
    with pytest.raises(UnsupportedSqlError) as caught:
        parse(sql)
    assert (caught.value.line, caught.value.column) == (1, column)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM t JOIN u",
        "SELECT * FROM t JOIN u ON",
        "SELECT * FROM t LEFT JOIN u WHERE a = 1",
        "SELECT * FROM a JOIN b JOIN c ON b.x = c.x",
        "SELECT * FROM t JOIN u USING ()",
        "SELECT * FROM t GROUP BY",
        "SELECT * FROM t GROUP BY HAVING a > 1",
        "SELECT * FROM t ORDER",
        "SELECT * FROM t LIMIT",
        "SELECT * FROM t OFFSET",
        "SELECT a IN FROM t",
        "SELECT a FROM t WHERE a IN",
        "SELECT sum(a) OVER (PARTITION BY) FROM t",
        "SELECT * EXCLUDE FROM t",
        "SELECT FROM t",
        "SELECT * FROM iceberg_scan()",
        "SELECT * FROM iceberg_scan(a)",
    ],
)
def test_a_clause_that_sqlglot_would_drop_is_an_error(sql: str) -> None:
    with pytest.raises(SqlSyntaxError):
        parse(sql)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM range(3), generate_series(1, 2) g(i)",
        "SELECT unnest([1, 2]), pg_typeof(1)",
        "SELECT a, FROM t",
        "SELECT * FROM t JOIN UNNEST(t.l) u(x) ON true",
        "SELECT * FROM a JOIN b JOIN c ON b.x = c.x ON a.x = b.x",
        "SELECT * FROM t -- 'quoted /*+ not a hint */'",
        "SELECT '/*+ x */' FROM t /* plain */",
        "SELECT COLUMNS('a.*'), * REPLACE (a + 1 AS a) FROM t",
        "SELECT a FROM information_schema.tables",
        "SELECT export_state FROM (SELECT 1 AS export_state) export_state",
    ],
)
def test_what_is_harmless_is_accepted(sql: str) -> None:
    assert len(parse(sql)) == 1


@pytest.mark.parametrize(
    ("sql", "hint"),
    [
        ("CREATE MATERIALIZED VIEW v AS SELECT 1", "CREATE TABLE t AS"),
        ("CREATE GLOBAL TEMPORARY VIEW v AS SELECT 1", "CREATE TEMP VIEW"),
        ("CREATE LOCAL TEMP TABLE t AS SELECT 1", "CREATE TEMP TABLE"),
        ("CREATE INDEX i ON t (a)", "Bloom filter"),
    ],
)
def test_what_create_makes_has_another_spelling(sql: str, hint: str) -> None:
    with pytest.raises(UnsupportedSqlError) as caught:
        parse(sql)
    assert (caught.value.construct, hint in caught.value.hint) == ("CREATE", True)


@pytest.mark.parametrize(
    ("sql", "hint"),
    [
        ("CREATE TABLE a.t AS SELECT * FROM 'orders.csv'", "--files"),
        ("SELECT * FROM 'orders.parquet'", "--files"),
        ("SELECT * FROM 'orders.csv.gz'", "--files"),
        ("SELECT * FROM read_csv('orders.csv')", "--files"),
        ("SELECT * FROM 'lake/orders'", "iceberg_scan('lake/orders')"),
        ("SELECT * FROM 'a/metadata/v3.metadata.json'", "iceberg_scan('a/metadata/v3"),
        ("SELECT * FROM 'a/metadata/v3.gz.metadata.json'", "iceberg_scan('a/metadata/v3"),
        ("SELECT * FROM read_text_of('x')", "iceberg_scan('path')"),
    ],
)
def test_the_advice_says_how_a_file_is_read(sql: str, hint: str) -> None:
    with pytest.raises(UnsupportedSqlError) as caught:
        parse(sql)
    assert caught.value.hint is not None
    assert hint in caught.value.hint
