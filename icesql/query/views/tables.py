"""Temporary tables that a statement names: each becomes ``"__temp_<i>"`` instead of a scan."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msgspec.structs import replace
from sqlglot import exp

from icesql.query.views.temporary import SparkFrame, TemporaryTable
from icesql.sql.positions import unsupported
from icesql.sql.statement import Query, TableReference
from icesql.sql.user_text import TABLE

_HINT: Final = "SET engine = local"


def with_tables(query: Query, find: Callable[[TableReference], TemporaryTable | None]) -> Query:
    """The query without temporary tables in its references; the same query if it has none.

    A DataFrame of Spark stays a reference: it is scanned.

    Raises UnsupportedSqlError for time travel on a temporary table.
    """
    found = [find(reference) for reference in query.references]
    if not any(found):
        return query
    names: dict[str, str] = {}
    left: list[TableReference] = []
    held: list[TemporaryTable] = []
    first = None
    for reference, table in zip(query.references, found, strict=True):
        old = f"__scan_{reference.index}"
        if table is not None and (reference.travel is not None or reference.changes is not None):
            what = f"time travel on the temporary table {reference.name}"
            raise unsupported(what, reference.offset, "it has no snapshots")
        if table is None or isinstance(table, SparkFrame):
            names[old] = f"__scan_{len(left)}"
            shown = reference.shown if table is None else table
            left.append(replace(reference, index=len(left), shown=shown))
        else:
            names[old] = f"__temp_{len(held)}"
            held.append(table)
            first = first or reference
    tree = query.tree.copy()
    for node in tree.find_all(exp.Table):
        if isinstance(node.this, exp.Identifier) and node.name in names:
            node.set("this", exp.to_identifier(names[node.name], quoted=True))
    text = query.user_text
    if text is not None:
        edits = tuple(
            replace(edit, text=names.get(edit.text, edit.text)) if edit.kind == TABLE else edit
            for edit in text.edits
        )
        text = replace(text, edits=edits)
    spark = query.spark
    if spark is not None and first is not None:
        spark = unsupported("a temporary table on the Spark engine", first.offset, _HINT)
    return replace(
        query,
        tree=tree,
        references=tuple(left),
        user_text=text,
        spark=spark,
        temporary=tuple(held),
    )
