"""Push conditions and limits of a query tree down into its scans."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sqlglot import exp

    from icesql.context import QueryContext
    from icesql.query.bound import PushedConjunct
    from icesql.scan.table_scan import TableScan


def push_down(
    tree: exp.Expression, scans: tuple[TableScan, ...], context: QueryContext
) -> tuple[tuple[TableScan, ...], tuple[PushedConjunct, ...]]:
    """The scans with row filters and limits, and the record of what was pushed."""
    return scans, ()
