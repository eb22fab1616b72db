"""The query of a statement made to tell the rows of the table that it changes."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from icesql.sql.statement import Query, TableReference
from icesql.sql.trees import exp
from icesql.sql.writes.statements import TableName


def target_of(query: Query, name: TableName, shift: int = 0) -> TableReference:
    """The table in a query that the statement names first; places are so much further there."""
    assert name.offset is not None
    return next(each for each in query.references if each.offset == name.offset + shift)


def with_columns(query: Query, index: int, columns: Sequence[str]) -> Query:
    """The query with columns of its table number ``index`` before those that it selects."""
    tree = query.tree.copy()
    assert isinstance(tree, exp.Select)
    table = next(each for each in tree.find_all(exp.Table) if each.name == f"__scan_{index}")
    own = [exp.column(name, table=table.alias, quoted=True) for name in columns]
    tree.set("expressions", [*own, *tree.expressions])
    return replace(query, tree=tree)


def counting(query: Query) -> Query:
    """The query with the number of its rows in place of what it selects."""
    tree = query.tree.copy()
    assert isinstance(tree, exp.Select)
    if query.translated:
        # Functions of other dialects are names until binding puts them into DuckDB's.
        counted: exp.Expr = exp.Anonymous(this="count", expressions=[exp.Star()])
    else:
        counted = exp.Count(this=exp.Star())
    tree.set("expressions", [counted])
    return replace(query, tree=tree, user_text=None, spark=None)
