"""All fragments of a query, cut out of its tree."""

from __future__ import annotations

from sqlglot import exp

from icesql.engine.spark.fragments.fragment import Choice, Fragment
from icesql.engine.spark.fragments.partial_aggregates import cut_aggregate
from icesql.engine.spark.fragments.row_fragments import cut_rows


def cut_fragments(tree: exp.Expr, choice: Choice) -> tuple[exp.Expr, tuple[Fragment, ...]]:
    """A copy of a qualified tree that reads fragments where it can, outermost first.

    Each fragment is a table of its name in the new tree.
    """
    tree = tree.copy()
    fragments: list[Fragment] = []
    for select in list(tree.find_all(exp.Select)):
        if select.root() is not tree:
            # It has gone into a fragment of a query around it.
            continue
        name = f"__fragment_{len(fragments)}"
        made = cut_aggregate(select, name, choice) or cut_rows(select, name, choice)
        if made is not None:
            fragments.append(made)
    return tree, tuple(fragments)
