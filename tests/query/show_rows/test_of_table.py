"""SHOW and DESCRIBE of one table: Spark's DDL, properties, partitions, refs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import icesql
from icesql.errors import UnsupportedSqlError
from tests.writer.fields import fields, spec
from tests.writer.table import TableWriter

FIELDS = fields(
    "id long!, odd_name string, at timestamptz, s struct<a int!, d decimal(9, 2)>, l list<uuid>, "
    "m map<string, double>"
)
FIELDS[1] |= {"name": "odd name", "doc": "it's"}
SPEC = spec("1 bucket[16] id_bucket, 3 day at_day, 2 truncate[4] p")
PROPERTIES = {
    "owner's": "a\\b",
    "write.format.default": "orc",
    "s3.secret-access-key": "wJalrXUt",
    "mirror": "https://user:pa55word@host/x?token=abcdef123456",
    "comment": "two words",
}


@pytest.fixture
def connection(tmp_path) -> Iterator[Any]:
    writer = TableWriter(tmp_path / "t", FIELDS, SPEC, properties=PROPERTIES)
    writer.commit([])
    first = writer.snapshots[0]["snapshot-id"]
    writer.tag("may", first)
    writer.tag("audit", first, kind="branch")
    writer.location = "s3://key:pa55word@bucket/t"
    path = writer.write_metadata()
    with icesql.connect() as opened:
        opened.register_table("t", path)
        yield opened


def test_the_statement_is_the_one_of_spark(connection: Any) -> None:
    ((text,),) = connection.execute("SHOW CREATE TABLE t").fetchall()
    current = connection.execute("SELECT max(snapshot_id) FROM t.snapshots").fetchone()[0]
    assert (
        text
        == f"""\
CREATE TABLE t (
  id BIGINT NOT NULL,
  `odd name` STRING COMMENT 'it\\'s',
  `at` TIMESTAMP,
  s STRUCT<a: INT NOT NULL, d: DECIMAL(9,2)>,
  l ARRAY<STRING>,
  m MAP<STRING, DOUBLE>)
USING iceberg
PARTITIONED BY (bucket(16, id), days(`at`), truncate(4, `odd name`))
COMMENT 'two words'
LOCATION 's3://key:***@bucket/t'
TBLPROPERTIES (
  'current-snapshot-id' = '{current}',
  'format' = 'iceberg/orc',
  'format-version' = '2',
  'mirror' = 'https://user:***@host/x?token=***',
  'owner\\'s' = 'a\\\\b',
  's3.secret-access-key' = '***',
  'write.format.default' = 'orc')"""
    )


@pytest.mark.parametrize(
    "sql",
    ["SHOW CREATE TABLE t", "SHOW TBLPROPERTIES t", "DESCRIBE EXTENDED t", "DESCRIBE DETAIL t"],
)
def test_no_secret_is_shown(connection: Any, sql: str) -> None:
    told = str(connection.execute(sql).fetchall())
    assert not any(secret in told for secret in ("pa55word", "wJalrXUt", "abcdef123456"))
    assert "***" in told


def test_a_property_that_is_not_there_is_told_as_spark_tells_it(connection: Any) -> None:
    assert connection.execute("SHOW TBLPROPERTIES t ('x')").fetchall() == [
        ("x", "Table t does not have property: x")
    ]


def test_branches_and_tags_are_told_apart(connection: Any) -> None:
    branches = connection.execute("SHOW BRANCHES t").fetchall()
    tags = connection.execute("SHOW TAGS t").fetchall()
    assert {row[0] for row in branches} == {"main", "audit"}
    assert [row[0] for row in tags] == ["may"]


def test_partitions_are_spelled_as_in_paths(tmp_path) -> None:
    writer = TableWriter(
        tmp_path / "t", fields("d date, c string"), spec("1 month d_month, 2 identity c")
    )
    rows = [{"d": 20454, "c": "x/y"}], [{"d": None, "c": None}]
    writer.commit([writer.data_file(rows[0], partition=[672, "x/y"])])
    before = writer.snapshots[0]["snapshot-id"]
    writer.commit([writer.data_file(rows[1], partition=[None, None])])
    with icesql.connect() as connection:
        connection.register_table("t", writer.metadata_path)
        shown = connection.execute("SHOW PARTITIONS t").fetchall()
        assert sorted(row[:4] for row in shown) == [
            ("d_month=2026-01/c=x/y", 0, 1, 1),
            ("d_month=null/c=null", 0, 1, 1),
        ]
        past = connection.execute(f"SHOW PARTITIONS t VERSION AS OF {before}").fetchall()
        assert [row[0] for row in past] == ["d_month=2026-01/c=x/y"]


def test_extended_has_the_parts_of_spark(connection: Any) -> None:
    rows = {row[0]: row[1] for row in connection.execute("DESCRIBE EXTENDED t").fetchall()}
    assert rows["s"] == "struct<a: int not null, d: decimal(9,2)>"
    assert (rows["Part 0"], rows["Part 1"]) == ("bucket(16, id)", "days(`at`)")
    assert (rows["Name"], rows["Provider"]) == ("t", "iceberg")


@pytest.mark.parametrize("what", ["SHOW TAGS", "SHOW CREATE TABLE", "DESCRIBE DETAIL"])
def test_what_no_snapshot_changes_takes_no_time_travel(connection: Any, what: str) -> None:
    with pytest.raises(UnsupportedSqlError, match="time travel"):
        connection.execute(f"{what} t VERSION AS OF 'may'")
    with pytest.raises(UnsupportedSqlError, match="metadata table"):
        connection.execute(f"{what} t.files")
