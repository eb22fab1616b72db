"""CREATE, DROP and ALTER in every spelling, as values; what is refused says where and why."""

from __future__ import annotations

from typing import Any

import pytest

from icesql.errors import Error, SqlSyntaxError, UnsupportedSqlError
from icesql.sql.parse import parse
from icesql.sql.statement import Query
from icesql.sql.writes import statements as w


def one(sql: str, dialect: str | None = None) -> Any:
    (statement,) = parse(sql, dialect=dialect, files=True)
    return statement


def shown(type: w.TypeName) -> str:
    if type.fields:
        inner = ",".join(
            f"{each.name}{' ' if each.name else ''}{shown(each.type)}{'!' * each.required}"
            for each in type.fields
        )
        return f"{type.name}<{inner}>"
    return type.name + (str(type.arguments) if type.arguments else "")


@pytest.mark.parametrize(
    ("sql", "types"),
    [
        ("a INT, b BIGINT NOT NULL", ["INT", "BIGINT!"]),
        ("a DECIMAL(9, 2), b VARCHAR(10), c DECIMAL", ["DECIMAL(9, 2)", "VARCHAR(10,)", "DECIMAL"]),
        ("a DOUBLE PRECISION, b CHARACTER VARYING(3)", ["DOUBLE", "VARCHAR(3,)"]),
        (
            "a TIMESTAMP WITH TIME ZONE, b TIMESTAMP WITHOUT TIME ZONE",
            ["TIMESTAMPTZ", "TIMESTAMP_NTZ"],
        ),
        (
            "a TIMESTAMP(6), b TIMESTAMPTZ_NS, c FIXED(16)",
            ["TIMESTAMP(6,)", "TIMESTAMPTZ_NS", "FIXED(16,)"],
        ),
        ("a FIXED[16], b UUID[]", ["FIXED(16,)", "ARRAY<UUID>"]),
        ("a INT[][]", ["ARRAY<ARRAY<INT>>"]),
        ("a STRUCT<x: INT, y: STRING NOT NULL COMMENT 'its'>", ["STRUCT<x INT,y STRING!>"]),
        ("a STRUCT(x INT, y STRUCT(z DATE))", ["STRUCT<x INT,y STRUCT<z DATE>>"]),
        ("a ARRAY<MAP<STRING,ARRAY<INT>>>", ["ARRAY<MAP<STRING,ARRAY<INT>>>"]),
        ("a MAP(VARCHAR, INT[]), b ROW(x INTEGER)", ["MAP<VARCHAR,ARRAY<INT>>", "ROW<x INTEGER>"]),
        ('"a b" INT, `c` DATE', ["INT", "DATE"]),
    ],
)
def test_types(sql: str, types: list[str]) -> None:
    for dialect in (None, "spark", "trino"):
        given = sql.replace("`" if dialect != "spark" else '"', '"' if dialect != "spark" else "`")
        columns = one(f"CREATE TABLE t ({given})", dialect).columns
        assert [shown(each.type) + "!" * each.required for each in columns] == types


def test_everything_of_spark() -> None:
    found = one(
        "CREATE TABLE IF NOT EXISTS cat.db.t (id BIGINT NOT NULL COMMENT 'key', d STRING DEFAULT 'x', ts TIMESTAMP) "
        "USING iceberg PARTITIONED BY (days(ts), bucket(16, id), truncate(4, d), d, years(ts), hours(ts), months(s.ts)) "
        "LOCATION 's3://b/t' COMMENT 'of things' TBLPROPERTIES ('k' = 'v', 'format-version'='2', n = 3, b = true)",
        "spark",
    )
    assert found.table.parts == ("cat", "db", "t")
    assert found.if_not_exists
    assert not found.or_replace
    assert [each.comment for each in found.columns] == ["key", None, None]
    assert isinstance(found.columns[1].default, Query)
    assert [(each.source, each.transform) for each in found.partitioning] == [
        ("ts", "day"), ("id", "bucket[16]"), ("d", "truncate[4]"), ("d", "identity"),
        ("ts", "year"), ("ts", "hour"), ("s.ts", "month"),
    ]  # fmt: skip
    assert found.location == "s3://b/t"
    assert dict(found.properties) == {
        "comment": "of things",
        "k": "v",
        "format-version": "2",
        "n": "3",
        "b": "true",
    }


def test_everything_of_duckdb_and_trino() -> None:
    found = one(
        "CREATE OR REPLACE TABLE t (id INT, ts TIMESTAMP) PARTITIONED BY (bucket(id, 4), day(ts)) "
        "SORTED BY (id DESC NULLS LAST, day(ts)) WITH ('format-version'='2', 'write.x' = 'y')"
    )
    assert found.or_replace
    assert [each.transform for each in found.partitioning] == ["bucket[4]", "day"]
    assert [(s.source, s.transform, s.descending, s.nulls_first) for s in found.ordering] == [
        ("id", "identity", True, False), ("ts", "day", False, None),
    ]  # fmt: skip
    assert found.properties == (("format-version", "2"), ("write.x", "y"))
    found = one(
        "CREATE TABLE t (id INTEGER, ts TIMESTAMP(6)) WITH (partitioning = ARRAY['day(ts)', 'bucket(id, 16)', 'c'], "
        "sorted_by = ARRAY['id DESC NULLS FIRST'], format_version = 2, location = 's3://x', format = 'PARQUET')",
        "trino",
    )
    assert [(p.source, p.transform) for p in found.partitioning] == [
        ("ts", "day"), ("id", "bucket[16]"), ("c", "identity"),
    ]  # fmt: skip
    assert [(s.source, s.descending, s.nulls_first) for s in found.ordering] == [("id", True, True)]
    assert found.location == "s3://x"
    assert found.properties == (("format-version", "2"), ("write.format.default", "parquet"))


def test_as_a_query() -> None:
    for sql in (
        "CREATE TABLE t AS SELECT 1 AS a",
        "CREATE TABLE t PARTITIONED BY (a) AS (SELECT 1 AS a)",
        "CREATE TABLE t TBLPROPERTIES ('a'='b') AS WITH x AS (SELECT 1 AS a) SELECT * FROM x",
        "CREATE TABLE t AS FROM range(3)",
    ):
        found = one(sql)
        assert isinstance(found.query, Query)
        assert not found.columns


@pytest.mark.parametrize(
    ("sql", "value"),
    [
        ("CREATE SCHEMA s", w.CreateNamespace(("s",))),
        ("CREATE NAMESPACE IF NOT EXISTS a.b", w.CreateNamespace(("a", "b"), True)),
        ("CREATE DATABASE d COMMENT 'x'", w.CreateNamespace(("d",), False, (("comment", "x"),))),
        ("DROP SCHEMA IF EXISTS s", w.DropNamespace(("s",), True)),
        ("DROP NAMESPACE a.b RESTRICT", w.DropNamespace(("a", "b"))),
        ("DROP TABLE a.t", w.DropTable(w.TableName(("a", "t"), 11))),
        ("DROP TABLE IF EXISTS t PURGE", w.DropTable(w.TableName(("t",), 21), True, True)),
        ("ALTER TABLE a.t RENAME TO b.u", w.RenameTable(w.TableName(("a", "t"), 12), ("b", "u"))),
        (
            "ALTER TABLE t SET TBLPROPERTIES ('a'='b', 'c'='1')",
            w.SetProperties(w.TableName(("t",), 12), (("a", "b"), ("c", "1"))),
        ),
        (
            "ALTER TABLE t UNSET TBLPROPERTIES IF EXISTS ('a', 'b')",
            w.SetProperties(w.TableName(("t",), 12), (), ("a", "b"), True),
        ),
    ],
)
def test_other_statements(sql: str, value: Any) -> None:
    assert one(sql) == value


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("CREATE TABLE t", "unexpected end of the statement; expected ( or AS"),
        ("CREATE TABLE t (a)", "expected a type"),
        ("CREATE TABLE t (a INT", "expected )"),
        ("CREATE TABLE t (a INT,)", "expected a column"),
        ("CREATE TABLE t (a INT x)", 'unexpected "x"'),
        ("CREATE TABLE t (a INT) FOO", 'unexpected "FOO"'),
        ("CREATE TABLE t (a INT PRIMARY KEY)", "PRIMARY KEY"),
        ("CREATE TABLE t (a INT, PRIMARY KEY (a))", "PRIMARY KEY"),
        ("CREATE TABLE t (a INT) USING parquet", "USING parquet"),
        ("CREATE TABLE t (a INT) PARTITIONED BY (b DATE)", "a new column in PARTITIONED BY"),
        ("CREATE TABLE t (a INT) PARTITIONED BY (weeks(a))", "partitioning by weeks()"),
        ("CREATE TABLE t (a INT) PARTITIONED BY (bucket(0, a))", "above 0"),
        ("CREATE TABLE t (a INT) PARTITIONED BY (bucket(a))", "unexpected"),
        ("CREATE TABLE t (a INT) CLUSTERED BY (a) INTO 4 BUCKETS", "CLUSTERED"),
        ("CREATE TABLE t (a INT DEFAULT b)", "a value that is no constant"),
        ("CREATE TABLE t (a INT DEFAULT)", "nothing follows DEFAULT"),
        ("CREATE TABLE t (a INT DEFAULT (SELECT 1))", "a value that is no constant"),
        ("CREATE TABLE t (m MAP<INT>)", "a MAP has a type of keys"),
        ("CREATE TABLE t LIKE u PARTITIONED BY (a)", "another layout with LIKE"),
        ("CREATE OR REPLACE TABLE IF NOT EXISTS t (a INT)", "exclude each other"),
        ("CREATE EXTERNAL TABLE t (a INT)", "CREATE EXTERNAL TABLE"),
        ("CREATE TABLE 't' (a INT)", "expected a table"),
        ("CREATE TABLE t (a INT) TBLPROPERTIES ('a')", "expected a value"),
        ("DROP TABLE a, b", "DROP of several tables"),
        ("DROP SCHEMA a CASCADE", "CASCADE"),
        ("DROP TABLE", "expected a name"),
        ("ALTER TABLE t", "ALTER TABLE"),
        ("ALTER TABLE t ADD PARTITION (a = 1)", "ALTER TABLE … ADD PARTITION"),
        ("ALTER TABLE t CLUSTER BY a", "ALTER TABLE … CLUSTER"),
        ("CREATE INDEX i ON t (a)", "CREATE"),
    ],
)
def test_what_is_refused(sql: str, message: str) -> None:
    with pytest.raises(Error) as caught:
        parse(sql)
    assert message in str(caught.value)
    assert isinstance(caught.value, SqlSyntaxError | UnsupportedSqlError)
    assert caught.value.position is not None
