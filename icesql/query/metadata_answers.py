"""Answer queries from metadata alone, without starting an engine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from icesql.errors import ProgrammingError, UnsupportedTableError
from icesql.iceberg.expressions.predicate import ALWAYS_FALSE, ALWAYS_TRUE

if TYPE_CHECKING:
    from sqlglot import exp

    from icesql.catalog.search_path import SearchPath
    from icesql.context import QueryContext
    from icesql.query.bound import BoundQuery
    from icesql.scan.table_scan import TableScan
    from icesql.sql.parser.row_count import RowCount

_PARTS: Final = frozenset({"kind", "hint", "expressions", "operation_modifiers", "from_"})
_TABLE_PARTS: Final = frozenset({"this", "alias"})


class MetadataAnswer(Struct, frozen=True):
    """One result row; ``names`` are the output columns, all of type long."""

    names: tuple[str, ...]
    row: tuple[int, ...]


def answer_from_metadata(bound: BoundQuery, query: QueryContext) -> MetadataAnswer | None:
    """The answer to ``SELECT count(*) FROM t`` at any snapshot; None if an engine is needed.

    Also None if every file is to be verified. Raises the errors of planning.
    """
    if query.settings.verify == "full":
        return None
    names = _counts(bound)
    if names is None:
        return None
    from icesql.scan.pruning.metadata_count import count_rows

    rows = count_rows(bound.scans[0], query)
    return None if rows is None else MetadataAnswer(names, (rows,) * len(names))


def with_counts(bound: BoundQuery) -> BoundQuery:
    """The query, changed so that planning counts rows of files that no delete file affects."""
    names = _counts(bound)
    if names is None:
        return bound
    from icesql.scan.pruning.counted import Counted

    scan = replace(bound.scans[0], counts=(Counted(),) * len(names), left_out=ALWAYS_FALSE)
    return replace(bound, scans=(scan,))


def answer_row_count(
    statement: RowCount, names: SearchPath, query: QueryContext
) -> tuple[TableScan, int] | None:
    """The scan of the table and its number of rows.

    None if the files have to be read, or if no table has the name.

    Raises the other errors of ``names.load`` and of planning.
    """
    from icesql.query.snapshot_selection import select_snapshot
    from icesql.scan.pruning.metadata_count import count_rows
    from icesql.scan.table_scan import TableScan

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


def _counts(bound: BoundQuery) -> tuple[str, ...] | None:
    """The output names if every output is ``count(*)`` over one unfiltered scan, else None."""
    from sqlglot import exp

    from icesql.query.names import scan_index

    tree = bound.tree
    if not isinstance(tree, exp.Select) or len(bound.scans) != 1 or bound.about:
        return None
    if bound.scans[0].row_filter is not ALWAYS_TRUE or not tree.expressions:
        return None
    if bound.scans[0].metadata_table is not None or bound.scans[0].changes is not None:
        return None
    if any(value for part, value in tree.args.items() if part not in _PARTS):
        return None
    start = tree.args.get("from_")
    if start is None or scan_index(start.this) != 0:
        return None
    if any(value for part, value in start.this.args.items() if part not in _TABLE_PARTS):
        return None
    alias = start.this.args.get("alias")
    if alias is not None and alias.columns:
        return None
    names = [_count_name(node) for node in tree.expressions]
    found = tuple(name for name in names if name is not None)
    return found if len(found) == len(names) else None


def _count_name(node: exp.Expr) -> str | None:
    """The result name of a count of rows, None for other expressions."""
    from sqlglot import exp

    from icesql.query.plain_calls import is_plain_call
    from icesql.sql.reading.expressions import WRITTEN

    if isinstance(node, exp.Alias):
        return None if _count_name(node.this) is None else node.alias
    if not is_plain_call(node, exp.Count):
        return None
    counted = node.this
    if counted is None or (isinstance(counted, exp.Star) and not any(counted.args.values())):
        return "count_star()"
    if isinstance(counted, exp.Literal) and not counted.is_string:
        return f"count({counted.meta.get(WRITTEN, counted.name)})"
    return None
