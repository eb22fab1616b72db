from __future__ import annotations

import pytest

import icesql
from icesql.errors import (
    AmbiguousColumnError,
    ColumnNotFoundError,
    UnsupportedSqlError,
    placing,
    position,
)
from icesql.query.bound import BoundQuery
from tests.tables import read_cases, read_lines
from tests.writer.fields import fields
from tests.writer.table import TableWriter

EVERY = ["id", "day", "at", "seen", "region", "amount", "place", "tags"]


def columns(bound: BoundQuery) -> list[list[str]]:
    return [[column.name for column in scan.projection.fields] for scan in bound.scans]


@pytest.mark.parametrize(("sql", "expected"), read_cases(__file__, "exposed_columns.tsv", 1))
def test_a_scan_exposes_the_columns_that_are_named(sql, expected, bind_sql):
    assert columns(bind_sql(sql)) == expected


@pytest.mark.parametrize(
    ("sql", "column", "similar"), read_cases(__file__, "unknown_columns.tsv", 2)
)
def test_an_unknown_column_is_refused_with_the_nearest(sql, column, similar, bind_sql):
    with pytest.raises(ColumnNotFoundError) as caught:
        bind_sql(sql)
    assert caught.value.column == column
    assert caught.value.similar == similar


def test_the_error_of_an_unknown_column_names_the_table(bind_sql):
    with pytest.raises(ColumnNotFoundError, match='column "regoin" not found in table "orders"'):
        bind_sql("SELECT regoin FROM orders")


@pytest.mark.parametrize("sql", read_lines(__file__, "no_columns.tsv"))
def test_names_that_are_no_columns_are_left_to_the_engine(sql, bind_sql):
    assert bind_sql(sql).scans


def test_a_star_leaves_metadata_columns_out(bind_sql):
    bound = bind_sql("SELECT *, _file FROM people")
    assert columns(bound) == [["id", "name", "born", "_file"]]
    assert 'EXCLUDE ("people"."_file")' in bound.tree.sql(dialect="duckdb")


def test_a_star_of_one_table_leaves_its_own_metadata_columns_out(bind_sql):
    bound = bind_sql("SELECT p.*, o._pos FROM people p JOIN orders o ON o.id = p.id")
    assert columns(bound) == [["id", "name", "born"], ["id", "_pos"]]
    assert "EXCLUDE" not in bound.tree.sql(dialect="duckdb")


def test_columns_equal_up_to_case_are_told_apart(bind_sql):
    bound = bind_sql('SELECT "A", a, b FROM clashing WHERE "A" = \'x\'')
    assert columns(bound) == [["__col_1", "__col_2", "b"]]
    assert [column.field_id for column in bound.scans[0].projection.fields] == [1, 2, 3]
    sql = bound.tree.sql(dialect="duckdb")
    assert '"__col_2" AS "A", "__col_1" AS "a", b' in sql
    assert "WHERE \"__col_2\" = 'x'" in sql
    assert str(bound.scans[0].row_filter) == "A = 'x'"


def test_a_star_keeps_the_names_of_columns_equal_up_to_case(bind_sql):
    sql = bind_sql("SELECT * FROM clashing").tree.sql(dialect="duckdb")
    assert '* RENAME ("__col_1" AS "a", "__col_2" AS "A")' in sql


def test_a_star_whose_values_nobody_reads_renames_nothing(bind_sql):
    bound = bind_sql("SELECT 1 FROM people WHERE EXISTS (SELECT * FROM clashing WHERE b = name)")
    assert columns(bound) == [["name"], ["b"]]
    assert "RENAME" not in bound.tree.sql(dialect="duckdb")


def test_rows_exist_whatever_columns_they_have(tmp_path):
    table = TableWriter(tmp_path, fields("id long, name string"))
    table.commit([table.data_file([{"id": each, "name": f"n{each}"} for each in range(5)])])
    with icesql.connect() as connection:
        connection.register_table("t", table.metadata_path)
        for condition, expected in {
            "EXISTS (SELECT * FROM t)": 5,
            "EXISTS (SELECT * FROM t WHERE id > 9)": 0,
            "EXISTS (SELECT * FROM t b WHERE b.id = a.id + 1)": 4,
            "NOT EXISTS (SELECT * FROM t b WHERE b.id = a.id + 1)": 1,
            "EXISTS (SELECT * FROM t b JOIN t c USING (id) WHERE c.id < a.id)": 4,
        }.items():
            sql = f"SELECT count(*) FROM t a WHERE {condition}"
            assert connection.execute(sql).fetchall() == [(expected,)], sql


def test_a_name_that_fits_two_columns_up_to_case_is_ambiguous(bind_sql):
    sql = "SELECT Ab FROM ambiguous WHERE Ab > 1"
    with pytest.raises(AmbiguousColumnError, match=r"ambiguous \(line 1, column"), placing(sql):
        bind_sql(sql)


def test_natural_joins_of_columns_equal_up_to_case_are_refused(bind_sql):
    with pytest.raises(UnsupportedSqlError, match="differ only in case"):
        bind_sql("SELECT 1 FROM clashing NATURAL JOIN people")


def test_partitions_are_those_of_columns_that_still_exist(tmp_path):
    day = {"source-id": 1, "field-id": 1000, "transform": "bucket[2]", "name": "old"}
    table = TableWriter(
        tmp_path,
        fields("id long, k int"),
        spec=[day, {"source-id": 2, "field-id": 1001, "transform": "identity", "name": "k"}],
    )
    table.commit([table.data_file([{"id": 34, "k": 7}], partition=(1, 7))])
    table.set_fields([*fields("id long"), *fields("k string", 3)])
    # The newest name is used, and the real type of a field that is void now.
    table.set_spec(
        [
            {**day, "transform": "void", "name": "new"},
            {"source-id": 3, "field-id": 1002, "transform": "identity", "name": "k"},
        ]
    )
    table.commit([table.data_file([{"id": 35, "k": "x"}], partition=(None, "x"))])
    with icesql.connect() as connection:
        sql = f"SELECT id, _partition FROM iceberg_scan('{tmp_path}') ORDER BY id"
        assert connection.execute(sql).fetchall() == [
            (34, {"new": 1, "k": None}),
            (35, {"new": None, "k": "x"}),
        ]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT id,\n  nane FROM people",
        "SELECT p.id,\n  p.nane FROM people AS p",
        "SELECT 1 WHERE EXISTS (\n  SELECT id FROM people WHERE name IN (SELECT\n  nane FROM people))",
        f"SELECT * FROM people WHERE id IN ({', '.join(['1'] * 200)})\n  AND nane = 'x'",
    ],
)
def test_the_error_of_an_unknown_column_points_at_it(sql, bind_sql):
    with pytest.raises(ColumnNotFoundError) as caught, placing(sql):
        bind_sql(sql)
    line, column = position(sql, sql.index("p.nane" if "p.nane" in sql else "nane"))
    assert str(caught.value) == (
        f'column "nane" not found in table "people" (line {line}, column {column}); '
        'did you mean "name"?'
    )
