"""Which columns each scan must expose, and which names in the tree mean them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sqlglot import exp

    from icesql.context import QueryContext
    from icesql.scan.table_scan import TableScan


def bind_columns(
    tree: exp.Expression, scans: tuple[TableScan, ...], context: QueryContext
) -> tuple[exp.Expression, tuple[TableScan, ...]]:
    """The tree and the scans with their projections."""
    return tree, scans
