"""Answer what metadata alone can answer, without starting an engine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from icesql.errors import ProgrammingError, UnsupportedTableError
from icesql.iceberg.expressions.predicate import ALWAYS_FALSE, ALWAYS_TRUE
from icesql.sql.parser.row_count import NO_ALIAS

if TYPE_CHECKING:
    from sqlglot import exp

    from icesql.catalog.search_path import SearchPath
    from icesql.context import QueryContext
    from icesql.query.bound import BoundQuery
    from icesql.scan.table_scan import TableScan
    from icesql.sql.parser.row_count import RowCount
    from icesql.sql.user_text import UserText

_PARTS: Final = frozenset({"kind", "hint", "expressions", "operation_modifiers", "from_"})
_TABLE_PARTS: Final = frozenset({"this", "alias"})


class MetadataAnswer(Struct, frozen=True):
    """One result row; ``names`` are the output columns, all of type long."""

    names: tuple[str, ...]
    row: tuple[int, ...]


def answer_from_metadata(bound: BoundQuery, query: QueryContext) -> MetadataAnswer | None:
    """The answer to ``SELECT count(*) FROM t`` at any snapshot, None when an engine has to work.

    Nothing is answered so where every file is to be verified. Raises what planning raises.
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
    """The same where planning may count the rows of files that no delete file needs read."""
    names = _counts(bound)
    if names is None:
        return bound
    from icesql.scan.pruning.counted import Counted

    scan = replace(bound.scans[0], counts=(Counted(),) * len(names), left_out=ALWAYS_FALSE)
    return replace(bound, scans=(scan,))


def answer_row_count(
    statement: RowCount, names: SearchPath, query: QueryContext
) -> tuple[TableScan, int] | None:
    """The scan of the table and how many rows it has.

    None where the files have to be read, and where no table has the name.

    Raises what else ``names.load`` and planning raise.
    """
    from icesql.query.snapshot_selection import select_snapshot
    from icesql.scan.pruning.metadata_count import count_rows
    from icesql.scan.table_scan import TableScan

    if query.settings.verify == "full" or query.settings.snapshot_pinned:
        return None
    try:
        table = names.load(statement.parts, None, query)
    except (ProgrammingError, UnsupportedTableError):
        return None  # the parser knows where in the SQL it is, and what a view is
    selected = select_snapshot(table, None, query)
    schema = selected.schema
    scan = TableScan(table, selected.snapshot, schema, schema, ref=selected.ref)
    count = count_rows(scan, query)
    return None if count is None else (scan, count)


def _counts(bound: BoundQuery) -> tuple[str, ...] | None:
    """The output names when every output is ``count(*)`` over one unfiltered scan."""
    from sqlglot import exp

    from icesql.query.names import scan_index

    tree = bound.tree
    if not isinstance(tree, exp.Select) or len(bound.scans) != 1 or bound.about:
        return None
    if bound.scans[0].row_filter is not ALWAYS_TRUE or not tree.expressions:
        return None
    if bound.user_text is not None and not _is_plain(bound.user_text):
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
    names = [_count_name(node) for node in tree.expressions]
    found = tuple(name for name in names if name is not None)
    return found if len(found) == len(names) else None


def _count_name(node: exp.Expr) -> str | None:
    """What a count of rows is called in the result, None for anything else."""
    from sqlglot import exp

    from icesql.query.plain_calls import is_plain_call

    if isinstance(node, exp.Alias):
        return None if _count_name(node.this) is None else node.alias
    if not is_plain_call(node, exp.Count):
        return None
    counted = node.this
    if counted is None or (isinstance(counted, exp.Star) and not any(counted.args.values())):
        return "count_star()"
    if isinstance(counted, exp.Literal) and not counted.is_string:
        return f"count({counted.name})"
    return None


def _is_plain(text: UserText) -> bool:
    """Whether DuckDB's parser, which does not see them, reads these words as the tree has them."""
    from icesql.sql.user_text import CUT, TABLE

    hidden = [(edit.start, edit.end) for edit in text.edits if edit.kind in (TABLE, CUT)]
    words = [
        text.written(first, last + 1)
        for first, last in text.tokens
        if not any(start <= first < end for start, end in hidden)
    ]
    at = 0
    while True:
        call = [word.upper() for word in words[at + 1 : at + 5]]
        counted = call[2:3] == ["*"] or (call[2:3] and call[2].isdecimal() and call[2].isascii())
        if call[:2] != ["COUNT", "("] or call[3:] != [")"] or not counted:
            return False
        at = _after_alias(words, at + 5, any_word=True)
        if words[at : at + 1] != [","]:
            break
    is_from = [word.upper() for word in words[at : at + 1]] == ["FROM"]
    return is_from and _after_alias(words, at + 1, any_word=False) == len(words)


def _after_alias(words: Sequence[str], at: int, *, any_word: bool) -> int:
    """The place after ``[AS] alias``; ``at`` if none is there. ``any_word``: AS takes any."""
    named = words[at].upper() == "AS" if at < len(words) else False
    alias = words[at + named] if at + named < len(words) else ""
    if len(alias) > 2 and alias[0] == alias[-1] == '"':
        return at + named + 1
    is_word = alias.isascii() and alias.replace("_", "a").isalnum() and not alias[0].isdigit()
    if is_word and (alias.lower() not in NO_ALIAS or (named and any_word)):
        return at + named + 1
    return at
