"""Subqueries in the place of a tree's tables.

Names, literals and paths are strangers' texts. So a table is found in the tree, and stands in the
SQL under a name that no text can know until its subquery takes its place.
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

    ``adapter`` changes expressions of the text. ``check`` is given the text of the tree alone,
    without its long lists, and its tables' names, and returns the text that runs.
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
    """The tree with a name for the items of each long list, and what the names stand for."""
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
    """The tree in DuckDB's dialect, its tables called by other ``names``; aliases stay."""
    from sqlglot import exp

    from icesql.sql.parser.writing import write_sql

    tree = tree.copy()
    if any(each.name in INSTANTS for each in tree.find_all(exp.Anonymous)):
        from icesql.query.dialects.spark.instants import written

        tree = written(tree)
    for table in tree.find_all(exp.Table):
        if table.name in names:
            table.set("this", exp.to_identifier(names[table.name], quoted=True))
    return write_sql(tree, "duckdb")


def filled(sql: str, sources: Mapping[str, str]) -> str:
    """``sql`` with its tables of these names replaced by subqueries, in one pass.

    The names hold what no other text in ``sql`` can know; subqueries are not looked at again.
    """
    return changed(sql, places_of(sql, {name: f"({query})" for name, query in sources.items()}))


def places_of(sql: str, texts: Mapping[str, str]) -> list[Change]:
    """Where names that no other text can know are in ``sql``, in order, with the texts for them."""
    if not texts:
        return []
    places = "|".join(map(re.escape, texts))
    found = re.finditer(f'"({places})"|({places})', sql)
    return [(each.start(), each.end(), texts[each[1] or each[2]]) for each in found]
