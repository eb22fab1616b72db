"""Sort orders are informational: read when they make sense, passed over otherwise."""

from __future__ import annotations

from icesql.iceberg.metadata.table_metadata import UNSORTED, SortField, SortOrder, parse_sort_orders


def test_orders_are_read_by_id() -> None:
    orders = parse_sort_orders(
        [
            {"order-id": 0, "fields": []},
            {
                "order-id": 1,
                "fields": [
                    {
                        "source-id": 2,
                        "transform": "bucket[4]",
                        "direction": "DESC",
                        "null-order": "nulls-last",
                    },
                    {"source-ids": [3, 4], "transform": "zorder"},
                ],
            },
        ]
    )
    assert orders == {
        0: UNSORTED,
        1: SortOrder(
            1,
            (
                SortField((2,), "bucket[4]", "desc", "nulls-last"),
                SortField((3, 4), "zorder", "asc", "nulls-first"),
            ),
        ),
    }


def test_no_orders_is_the_unsorted_one() -> None:
    assert parse_sort_orders(None) == {0: UNSORTED}


def test_strange_orders_are_passed_over() -> None:
    strange = [7, {"order-id": "x"}, {"order-id": 2, "fields": [{}]}, {"order-id": 3, "fields": []}]
    assert parse_sort_orders(strange) == {0: UNSORTED, 3: SortOrder(3)}
    assert parse_sort_orders("orders") == {0: UNSORTED}
