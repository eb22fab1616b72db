from __future__ import annotations

import pytest

from icesql.iceberg.expressions.render import render_predicate
from icesql.query.bound import BoundQuery
from tests.tables import read_cases


def filters(bound: BoundQuery) -> list[str]:
    return [render_predicate(scan.row_filter, scan.schema) for scan in bound.scans]


@pytest.mark.parametrize(("sql", "expected"), read_cases(__file__, "row_filters.tsv", 1))
def test_conditions_reach_the_scans_that_they_may_filter(sql, expected, bind_sql):
    assert filters(bind_sql(sql)) == expected


@pytest.mark.parametrize(("sql", "limit"), read_cases(__file__, "limits.tsv", 1))
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
    # Conditions implied for the other table.
    assert told["o.id > 5 (as p.id = o.id)"] == (1, "id > 5", "")
    assert told["p.id = 7 (as o.id = p.id)"] == (0, "id = 7", "")
    assert len(told) == 6


def test_without_pruning_nothing_is_pushed(bind_sql):
    bound = bind_sql("SELECT id FROM orders WHERE id > 5", prune=False)
    assert filters(bound) == ["true"]


def test_conditions_stay_in_the_tree(bind_sql):
    bound = bind_sql("SELECT id FROM orders WHERE id > 5")
    assert "id > 5" in bound.tree.sql(dialect="duckdb")
