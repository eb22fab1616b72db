"""Replace the tables of a tree by subqueries.

Names, literals and paths come from strangers. So tables are found in the tree, and the SQL has a
name with a nonce for each, which no other text can contain, until its subquery replaces it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING

from icesql.engine.duckdb.sql.composed import Change, changed
from icesql.query.dialects.instant_calls import INSTANTS
from icesql.sql.parser.literal_list import held

if TYPE_CHECKING:
    from sqlglot import exp

    from icesql.engine.duckdb.sql.adapted import Adapter


def spliced_sql(
    tree: exp.Expr,
    sources: Mapping[str, str],
    check: Callable[[str, Collection[str]], str] | None = None,
    adapter: Adapter | None = None,
) -> str:
    """The tree in DuckDB's dialect, tables named in ``sources`` replaced by their subqueries.

    ``adapter`` changes expressions of the text. ``check`` receives the text of the tree, with
    placeholders for its long lists, and the names of its tables; it returns the text that runs.
    """
    nonce = os.urandom(16).hex()
    names = {name: f"{name}_{nonce}" for name in sources}
    tree, lists = _without_lists(tree, nonce)
    text = renamed_sql(tree, names)
    if adapter is not None:
        text = adapter.adapted(text, names, lists)
    if check is not None:
        text = check(text, names.values())
    subqueries = {names[name]: f"({sql})" for name, sql in sources.items()}
    return changed(text, places_of(text, {**lists, **subqueries}))


def _without_lists(tree: exp.Expr, nonce: str) -> tuple[exp.Expr, dict[str, str]]:
    """The tree with a placeholder for each long list, and the items by placeholder."""
    from sqlglot import exp

    lists: dict[str, str] = {}
    if any(held(node) is not None for node in tree.find_all(exp.In)):
        tree = tree.copy()
        for node in tree.find_all(exp.In):
            if held(node) is not None:
                name = f"__list_{len(lists)}_{nonce}"
                lists[name] = node.expressions[0].name
                node.set("expressions", [exp.to_identifier(name, quoted=True)])
    return tree, lists


def renamed_sql(tree: exp.Expr, names: Mapping[str, str]) -> str:
    """The tree in DuckDB's dialect with its tables renamed by ``names``; aliases stay."""
    from sqlglot import exp

    from icesql.sql.parser.writing import write_sql

    tree = tree.copy()
    if any(each.name in INSTANTS for each in tree.find_all(exp.Anonymous)):
        from icesql.query.dialects.spark.instants import written

        tree = written(tree)
    rename_tables(tree, names)
    return write_sql(tree, "duckdb")


def rename_tables(tree: exp.Expr, names: Mapping[str, str]) -> None:
    """Rename the tables of a tree by ``names``, in place; aliases stay."""
    from sqlglot import exp

    for table in tree.find_all(exp.Table):
        if table.name in names:
            table.set("this", exp.to_identifier(names[table.name], quoted=True))


def filled(sql: str, sources: Mapping[str, str]) -> str:
    """``sql`` with its tables of these names replaced by subqueries, in one pass.

    No other text in ``sql`` can contain the nonce of these names; subqueries are not searched.
    """
    return changed(sql, places_of(sql, {name: f"({query})" for name, query in sources.items()}))


def places_of(sql: str, texts: Mapping[str, str]) -> list[Change]:
    """The spans of the names, which contain a nonce, with the texts for them, in order."""
    if not texts:
        return []
    places = "|".join(map(re.escape, texts))
    found = re.finditer(f'"({places})"|({places})', sql)
    return [(each.start(), each.end(), texts[each[1] or each[2]]) for each in found]
