from __future__ import annotations

import pytest

from icesql.iceberg.expressions.render import render_predicate
from icesql.query.bound import BoundQuery


def filters(bound: BoundQuery) -> list[str]:
    return [render_predicate(scan.row_filter, scan.schema) for scan in bound.scans]


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT id FROM orders WHERE id > 5 AND length(region) = 1", ["id > 5"]),
        ("SELECT id FROM orders WHERE ID = 5", ["id = 5"]),
        ("SELECT o.id FROM orders o WHERE o.place.zip = 5", ["place.zip = 5"]),
        ("SELECT id FROM orders WHERE place.zip = 5", ["place.zip = 5"]),
        ("SELECT id FROM orders WHERE id = 1 OR id = 2 OR id = 3", ["id IN (1, 2, 3)"]),
        ("SELECT id FROM orders WHERE false", ["false"]),
        # Joins
        ("SELECT 1 FROM orders o JOIN people p ON o.id = p.id AND p.id < 9 WHERE o.id > 5",
         ["id > 5", "id < 9 AND id > 5"]),
        ("SELECT 1 FROM orders o, people p WHERE region = 'x' AND name = 'y'",
         ["region = 'x'", "name = 'y'"]),
        ("SELECT 1 FROM orders o LEFT JOIN people p ON o.id = p.id AND p.id < 9 AND o.id > 5",
         ["true", "id < 9"]),
        ("SELECT 1 FROM orders o LEFT JOIN people p ON o.id = p.id WHERE name = 'y'",
         ["true", "name = 'y'"]),
        ("SELECT 1 FROM orders o LEFT JOIN people p ON o.id = p.id WHERE name IS NULL",
         ["true", "true"]),
        ("SELECT 1 FROM orders o LEFT JOIN people p ON o.id = p.id WHERE name = 'y' OR name IS NULL",
         ["true", "true"]),
        ("SELECT 1 FROM orders o RIGHT JOIN people p ON o.id = p.id AND p.id < 9 AND o.id > 5",
         ["id > 5", "true"]),
        ("SELECT 1 FROM orders o RIGHT JOIN people p ON o.id = p.id WHERE o.id IS NULL AND p.id = 1",
         ["id = 1", "id = 1"]),
        ("SELECT 1 FROM orders o FULL JOIN people p ON o.id = p.id AND p.id < 9 WHERE o.id > 5",
         ["id > 5", "id > 5"]),
        ("SELECT 1 FROM orders o SEMI JOIN people p ON o.id = p.id AND p.id < 9 WHERE id > 5",
         ["id > 5", "id < 9 AND id > 5"]),
        ("SELECT 1 FROM orders o ANTI JOIN people p ON o.id = p.id AND p.id < 9 AND o.id > 5",
         ["true", "id < 9"]),
        ("SELECT 1 FROM orders o ASOF JOIN people p ON o.day >= p.born WHERE p.id = 1 AND o.id = 2",
         ["id = 2", "true"]),
        ("SELECT 1 FROM orders o JOIN people p USING (id) WHERE id = 5", ["true", "true"]),
        ("SELECT 1 FROM orders o JOIN people p ON true "
         "WHERE (o.id = 1 AND p.id = 2) OR (o.id = 3 AND p.id = 4)", ["id IN (1, 3)", "id IN (2, 4)"]),
        ("SELECT 1 FROM orders o LEFT JOIN people p ON true LEFT JOIN people q ON p.id = 5 AND q.id = 6",
         ["true", "true", "id = 6"]),
        ("SELECT 1 FROM orders o LEFT JOIN people p ON true JOIN people q ON p.id IS NULL AND q.id = 6",
         ["true", "true", "id = 6"]),
        # Subqueries
        ("SELECT 1 FROM orders WHERE EXISTS (SELECT 1 FROM people p WHERE p.id = 3)",
         ["true", "id = 3"]),
        ("SELECT 1 FROM orders o WHERE o.id IN (SELECT p.id FROM people p "
         "WHERE p.name = o.region AND p.id > 3)", ["true", "id > 3"]),
        ("SELECT (SELECT max(born) FROM people WHERE people.id = o.id AND name = 'x') FROM orders o",
         ["name = 'x'", "true"]),
        # Derived tables, CTEs, unions
        ("SELECT * FROM (SELECT id + 1 AS k FROM orders) d WHERE k > 5", ["id > 4"]),
        ("SELECT * FROM (SELECT * FROM orders ORDER BY id) d WHERE d.id > 5", ["id > 5"]),
        ("WITH c AS (SELECT id, day FROM orders WHERE id < 9) SELECT * FROM c WHERE day = '2020-01-01'",
         ["id < 9 AND day = 2020-01-01"]),
        ("WITH c AS (SELECT id FROM orders) SELECT * FROM c WHERE id = 1 UNION ALL SELECT * FROM c",
         ["true"]),
        ("SELECT * FROM (SELECT id FROM orders LIMIT 5) d WHERE id > 5", ["true"]),
        ("SELECT * FROM (SELECT DISTINCT id FROM orders) d WHERE id > 5", ["id > 5"]),
        ("SELECT * FROM (SELECT id, row_number() OVER () AS n FROM orders) d WHERE id > 5", ["true"]),
        ("SELECT * FROM (SELECT id, count(*) AS n FROM orders GROUP BY id) d WHERE n > 5", ["true"]),
        ("SELECT * FROM (SELECT 5 AS k, kurtosis(id) AS n FROM orders) d WHERE k > 6", ["true"]),
        ("SELECT id FROM orders GROUP BY id HAVING id > 5", ["id > 5"]),
        ("SELECT id FROM orders QUALIFY id > 5", ["true"]),
        ("SELECT * FROM people p LEFT JOIN (SELECT id FROM orders) d ON p.id = d.id WHERE d.id = 1",
         ["true", "true"]),
        ("SELECT * FROM (SELECT id FROM orders UNION ALL SELECT id FROM people) u WHERE id > 5",
         ["id > 5", "id > 5"]),
        ("SELECT * FROM (SELECT region AS k FROM orders UNION ALL SELECT id FROM people) u "
         "WHERE k < '5'", ["true", "true"]),
        ("WITH RECURSIVE r AS (SELECT id FROM orders UNION ALL SELECT id + 1 FROM r WHERE id < 9) "
         "SELECT * FROM r WHERE id = 5", ["true"]),
        ("SELECT * FROM orders AS o(k) WHERE k > 5", ["true"]),
    ],
)  # fmt: skip
def test_conditions_reach_the_scans_that_they_may_filter(sql, expected, bind_sql):
    assert filters(bind_sql(sql)) == expected


@pytest.mark.parametrize(
    ("sql", "limit"),
    [
        ("SELECT id, region AS r FROM orders LIMIT 5", 5),
        ("SELECT * FROM orders LIMIT 5 OFFSET 7", 12),
        ("SELECT id FROM orders WHERE id > 1 LIMIT 5", None),
        ("SELECT id FROM orders ORDER BY id LIMIT 5", None),
        ("SELECT DISTINCT id FROM orders LIMIT 5", None),
        ("SELECT count(*) FROM orders LIMIT 5", None),
        ("SELECT kurtosis(id) FROM orders LIMIT 5", None),
        ("SELECT unnest(tags) FROM orders LIMIT 5", None),
        ("SELECT id FROM orders GROUP BY id LIMIT 5", None),
        ("SELECT o.id FROM orders o, people p LIMIT 5", None),
        ("SELECT id FROM orders LIMIT 5%", None),
        ("SELECT (SELECT max(id) FROM people) FROM orders LIMIT 5", None),
        ("SELECT * FROM (SELECT id FROM orders LIMIT 5) d", None),
    ],
)
def test_limit_reaches_only_a_scan_of_which_any_rows_will_do(sql, limit, bind_sql):
    assert bind_sql(sql).scans[0].limit == limit


def test_every_condition_is_accounted_for(bind_sql):
    bound = bind_sql(
        "SELECT 1 FROM orders o JOIN people p ON o.id = p.id "
        "WHERE o.id > 5 AND length(o.region) = 1 AND p.id = 7"
    )
    told = {each.sql: (each.scan, str(each.predicate), each.note) for each in bound.pushed}
    assert told["o.id > 5"] == (0, "id > 5", "")
    assert told["p.id = 7"] == (1, "id = 7", "")
    scan, predicate, note = told["LENGTH(o.region) = 1"]
    assert (scan, predicate) == (0, "None")
    assert "length() is not known to keep the order" in note
    assert told["o.id = p.id"][0] is None
    # What follows for the other table.
    assert told["o.id > 5 (as p.id = o.id)"] == (1, "id > 5", "")
    assert told["p.id = 7 (as o.id = p.id)"] == (0, "id = 7", "")
    assert len(told) == 6


def test_without_pruning_nothing_is_pushed(bind_sql):
    bound = bind_sql("SELECT id FROM orders WHERE id > 5", prune=False)
    assert filters(bound) == ["true"]


def test_conditions_stay_in_the_tree(bind_sql):
    bound = bind_sql("SELECT id FROM orders WHERE id > 5")
    assert "id > 5" in bound.tree.sql(dialect="duckdb")
