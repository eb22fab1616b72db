"""Sort orders of a table; informational, since no reader may rely on rows being sorted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from icesql.frozen import Frozen
from icesql.iceberg.metadata.json_fields import as_int, as_list, as_object, required_int, sane


class SortField(Frozen):
    """One key; ``direction`` is "asc" or "desc", ``null_order`` "nulls-first" or "nulls-last"."""

    source_ids: tuple[int, ...]
    transform: str
    direction: str
    null_order: str


class SortOrder(Frozen):
    """The keys of one order, most significant first; order 0 is unsorted."""

    order_id: int = 0
    fields: tuple[SortField, ...] = ()


UNSORTED = SortOrder()


def parse_sort_orders(json: Any) -> dict[int, SortOrder]:
    """The orders by id; {0: unsorted} when absent, and those that make no sense are left out."""
    # No result depends on a sort order, so the table stays readable with an invalid one.
    found = sane(json, "sort order", _parse_order)
    return {0: UNSORTED} | {each.order_id: each for each in found}


def _parse_order(fields: Mapping[str, Any]) -> SortOrder:
    order_id = required_int(fields, "order-id", "sort order", 32)
    keys = as_list(fields.get("fields", []), "sort order fields")
    return SortOrder(order_id, tuple(_parse_field(as_object(each, "sort field")) for each in keys))


def _parse_field(fields: Mapping[str, Any]) -> SortField:
    listed = fields.get("source-ids")
    if listed is not None:
        source_ids = tuple(
            as_int(each, "sort field source-ids", 32) for each in as_list(listed, "source-ids")
        )
    else:
        source_ids = (required_int(fields, "source-id", "sort field", 32),)
    return SortField(
        source_ids,
        str(fields.get("transform", "identity")),
        str(fields.get("direction", "asc")).lower(),
        str(fields.get("null-order", "nulls-first")).lower(),
    )
