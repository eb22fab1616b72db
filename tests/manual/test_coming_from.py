"""What the chapter for those who come from another system says of its words, statement by statement."""

from __future__ import annotations

from pathlib import Path

import pytest

import icesql
from icesql import demo

WORKS = [
    ("duckdb", "SELECT * FROM iceberg_snapshots('demo.trips')"),
    ("duckdb", "SELECT * FROM iceberg_metadata('demo.trips')"),
    ("duckdb", "SELECT count(*) FROM demo.trips AT (VERSION => -1)"),
    ("duckdb", "SELECT count(*) FROM read_csv('{folder}/one.csv')"),
    ("duckdb", "SELECT count(*) FROM '{folder}/one.csv'"),
    ("duckdb", "INSERT INTO demo.t BY NAME SELECT 1 AS id"),
    ("duckdb", "UPDATE demo.t SET id = 2; DELETE FROM demo.t WHERE id = 9"),
    ("duckdb", "ALTER TABLE demo.t WRITE ORDERED BY id"),
    ("spark", "SELECT * FROM demo.t.snapshots"),
    ("spark", "SELECT count(*) FROM demo.trips.branch_audit"),
    ("spark", "CREATE TABLE demo.s (ts TIMESTAMP) USING iceberg PARTITIONED BY (days(ts))"),
    ("spark", "ALTER TABLE demo.t CREATE BRANCH b"),
    ("spark", "CALL system.rewrite_data_files(table => 'demo.t')"),
    ("spark", "CREATE TEMP TABLE kept AS SELECT * FROM demo.t"),
    ("spark", "INSERT WITH SCHEMA EVOLUTION INTO demo.t BY NAME SELECT 1L AS id, 'x' AS note"),
    ("databricks", "MERGE WITH SCHEMA EVOLUTION INTO demo.t USING (SELECT 1L AS id, 2 AS n) s ON demo.t.id = s.id WHEN MATCHED THEN UPDATE SET *"),
    ("databricks", "COPY demo.t FROM '{folder}/one.csv' (MERGE_SCHEMA)"),
    ("databricks", "DESCRIBE HISTORY demo.t"),
    ("databricks", "OPTIMIZE demo.t ZORDER BY (id)"),
    ("databricks", "CALL system.remove_orphan_files('demo.t')"),
    ("trino", 'SELECT * FROM demo."t$snapshots"'),
    ("trino", "SELECT count(*) FROM demo.trips FOR VERSION AS OF 'audit'"),
    ("trino", "CREATE TABLE demo.o (ts TIMESTAMP(6)) WITH (partitioning = ARRAY['day(ts)'])"),
    ("trino", "ALTER TABLE demo.t EXECUTE optimize"),
    ("trino", "ALTER TABLE demo.t EXECUTE expire_snapshots(retention_threshold => '7d')"),
    ("trino", "ANALYZE demo.t"),
    ("trino", "SUMMARIZE demo.t"),
    ("snowflake", "SELECT count(*) FROM demo.trips AT (OFFSET => 0)"),
    ("snowflake", "SELECT count(*) FROM demo.trips AT (TIMESTAMP => current_timestamp())"),
    ("snowflake", "SELECT * FROM demo.trips CHANGES (INFORMATION => DEFAULT) AT (VERSION => 'two-weeks')"),
    ("snowflake", "CREATE TABLE demo.c AS SELECT * FROM demo.t"),
    ("snowflake", "CALL system.rewrite_data_files('demo.t', strategy => 'sort')"),
]  # fmt: skip
# What the chapter says is not there, with the words of the refusal that lead on.
REFUSED = [
    ("duckdb", "CREATE INDEX i ON demo.t (id)", "Bloom filter"),
    ("duckdb", "PRAGMA table_info('demo.t')", "SET name = value"),
    ("duckdb", "INSTALL iceberg", "extensions are not loaded"),
    ("duckdb", "EXPORT DATABASE 'x'", "--output"),
    ("duckdb", "ATTACH 'x.db'", "--warehouse"),
    ("spark", "CACHE TABLE demo.t", "CREATE TEMP TABLE"),
    ("databricks", "RESTORE TABLE demo.t TO TIMESTAMP AS OF '2026-01-31'", "rollback_to_timestamp"),
    ("databricks", "VACUUM demo.t", "expire_snapshots"),
    ("databricks", "CREATE TABLE demo.x SHALLOW CLONE demo.t", "SHALLOW"),
    ("trino", "SHOW STATS FOR demo.t", "STATS"),
    ("snowflake", "SELECT * FROM demo.t BEFORE (STATEMENT => 'x')", "BEFORE (VERSION"),
    ("snowflake", "UNDROP TABLE demo.gone", "register_table"),
    ("snowflake", "CREATE TABLE demo.x CLONE demo.t", "CLONE"),
    ("snowflake", "COPY INTO demo.t FROM @stage", "COPY"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("coming-from")
    demo.build(place / "lake")
    (place / "one.csv").write_text("id\n1\n", encoding="utf-8")
    with icesql.connect(warehouse=place / "lake") as connection:
        connection.execute("CREATE TABLE demo.t (id BIGINT)")
    return place


@pytest.mark.parametrize(("dialect", "sql"), WORKS)
def test_the_same_words_work(dialect: str, sql: str, folder: Path) -> None:
    text = sql.format(folder=folder)
    with icesql.connect(
        warehouse=folder / "lake", dialect=dialect, files=[str(folder)], read_only=False
    ) as connection:
        for cursor in connection.execute_script(text):
            if cursor.description:
                cursor.fetchall()


@pytest.mark.parametrize(("dialect", "sql", "said"), REFUSED)
def test_what_is_not_there_is_refused_with_what_is(
    dialect: str, sql: str, said: str, folder: Path
) -> None:
    with (
        icesql.connect(warehouse=folder / "lake", dialect=dialect) as connection,
        pytest.raises(icesql.Error) as found,
    ):
        connection.execute(sql)
    assert said in str(found.value)
