from __future__ import annotations

import pytest

from icesql.context import QueryContext
from icesql.query.metadata_answers import answer_from_metadata
from icesql.sql.keywords import NO_ALIAS
from tests.tables import read_lines


@pytest.mark.parametrize(
    ("sql", "names"),
    [
        ("SELECT count(*) FROM orders", ("count_star()",)),
        ("SELECT count(*) AS n, count(1) FROM orders AS o", ("n", "count(1)")),
        ('select count( * ) "n m", Count(1) c FROM orders "o"', ("n m", "c")),
        ("SELECT count(*) AS day FROM orders FOR VERSION AS OF 'main' o", ("day",)),
    ],
)
def test_counts_of_a_table_without_snapshot_are_zero(sql, names, bind_sql):
    assert answer_from_metadata(bind_sql(sql), QueryContext()) == (names, 0)


@pytest.mark.parametrize("sql", read_lines(__file__, "no_metadata_answers.tsv"))
def test_anything_else_is_left_to_the_engine(sql, bind_sql):
    assert answer_from_metadata(bind_sql(sql), QueryContext()) is None


def test_names_of_columns_are_left_to_the_engine(bind_sql):
    sql = "SELECT count(*) FROM orders AS x(a, b)"
    assert answer_from_metadata(bind_sql(sql), QueryContext()) is None


@pytest.mark.parametrize("number", ["1", ".5", "1_0", "007", "1e3"])
def test_a_counted_number_names_the_column_as_the_engine_does(number, bind_sql):
    import duckdb

    found = answer_from_metadata(bind_sql(f"SELECT count({number}) FROM orders"), QueryContext())
    with duckdb.connect() as engine:
        assert list(found[0]) == engine.sql(f"SELECT count({number}) FROM range(3)").columns


def test_words_that_the_engine_takes_for_no_alias_are_known():
    import duckdb

    with duckdb.connect() as engine:
        words = engine.execute("SELECT DISTINCT keyword_name FROM duckdb_keywords()").fetchall()
        refused = set()
        for (word,) in words:
            for sql in (f"SELECT count(*) {word} FROM range(1)", f"SELECT 1 FROM range(1) {word}"):
                # DuckDB's own parser, so that a newer one may differ.
                (found,) = engine.execute("SELECT json_serialize_sql($1)", [sql]).fetchone()
                if '"error":true' in found:
                    refused.add(word)
    assert refused <= NO_ALIAS
