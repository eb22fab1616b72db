from __future__ import annotations

import pytest

from icesql.context import QueryContext
from icesql.query.metadata_answers import answer_from_metadata


@pytest.mark.parametrize(
    ("sql", "names"),
    [
        ("SELECT count(*) FROM orders", ("count_star()",)),
        ("SELECT count(*) AS n, count(1) FROM orders AS o", ("n", "count(1)")),
    ],
)
def test_counts_of_a_table_without_snapshot_are_zero(sql, names, bind_sql):
    answer = answer_from_metadata(bind_sql(sql), QueryContext())
    assert answer is not None
    assert (answer.names, answer.row) == (names, (0,) * len(names))


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT count(id) FROM orders",
        "SELECT count(NULL) FROM orders",
        "SELECT count(DISTINCT id) FROM orders",
        "SELECT count(*) FILTER (WHERE id > 1) FROM orders",
        "SELECT count(*) OVER () FROM orders",
        "SELECT count(*) + 1 FROM orders",
        "SELECT count(*) FROM orders WHERE id > 1",
        "SELECT count(*) FROM orders WHERE true",
        "SELECT count(*) FROM orders WHERE false",
        "SELECT count(*) FROM orders GROUP BY id",
        "SELECT count(*) FROM orders LIMIT 0",
        "SELECT count(*) FROM orders HAVING false",
        "SELECT DISTINCT count(*) FROM orders",
        "SELECT count(*) FROM orders, people",
        "SELECT count(*) FROM (SELECT * FROM orders) d",
        "SELECT count(*) FROM orders UNION ALL SELECT 1",
        "SELECT (SELECT count(*) FROM orders)",
        "WITH c AS (SELECT 1) SELECT count(*) FROM orders",
        "SELECT 1 FROM orders",
    ],
)
def test_anything_else_is_left_to_the_engine(sql, bind_sql):
    assert answer_from_metadata(bind_sql(sql), QueryContext()) is None
