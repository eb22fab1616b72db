"""Answer queries from metadata alone, without starting an engine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from icesql.errors import ProgrammingError, UnsupportedTableError

if TYPE_CHECKING:
    from sqlglot import exp

    from icesql.catalog.search_path import SearchPath
    from icesql.context import QueryContext
    from icesql.query.bound import BoundQuery
    from icesql.scan.plan import TableScan
    from icesql.sql.parser.row_count import RowCount


def answer_from_metadata(
    bound: BoundQuery, query: QueryContext
) -> tuple[tuple[str, ...], int] | None:
    """The answer to ``SELECT count(*), … FROM t`` at any snapshot; None if an engine is needed.

    It is the names of the columns, and the number of rows, which each of them has. Also None if
    every file is to be verified. Raises the errors of planning.
    """
    if query.settings.verify == "full":
        return None
    names = _counts(bound)
    if not names:
        return None
    from icesql.scan.pruning.metadata_count import count_rows

    rows = count_rows(bound.scans[0], query)
    return None if rows is None else (names, rows)


def answer_row_count(
    statement: RowCount, names: SearchPath, query: QueryContext
) -> tuple[TableScan, int] | None:
    """The scan of the table and its number of rows.

    None if the files have to be read, or if no table has the name.

    Raises the other errors of ``names.load`` and of planning.
    """
    from icesql.query.snapshot_selection import select_snapshot
    from icesql.scan.plan import TableScan
    from icesql.scan.pruning.metadata_count import count_rows

    if query.settings.verify == "full" or query.settings.snapshot_pinned:
        return None
    try:
        table = names.load(statement.parts, None, query)
    except (ProgrammingError, UnsupportedTableError):
        return None  # the parser knows the offset in the SQL, and the views
    selected = select_snapshot(table, None, query)
    schema = selected.schema
    scan = TableScan(table, selected.snapshot, schema, schema, ref=selected.ref)
    count = count_rows(scan, query)
    return None if count is None else (scan, count)


def _counts(bound: BoundQuery) -> tuple[str, ...]:
    """The output names if every output counts the rows of one unfiltered scan, else none."""
    from icesql.scan.pruning.metadata_count import Counted

    if len(bound.scans) != 1 or bound.tree.args.get("where") is not None:
        return ()
    if any(each != Counted() for each in bound.scans[0].counts) or not bound.scans[0].counts:
        return ()
    return tuple(map(_count_name, bound.tree.expressions))


def _count_name(node: exp.Expr) -> str:
    """The result name of a count of rows."""
    from sqlglot import exp

    from icesql.sql.reading.expressions import WRITTEN

    if isinstance(node, exp.Alias):
        return node.alias
    counted = node.this
    if not isinstance(counted, exp.Literal):
        return "count_star()"
    return f"count({counted.meta.get(WRITTEN, counted.name)})"
