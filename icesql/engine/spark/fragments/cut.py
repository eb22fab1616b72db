"""All fragments of a query, cut out of its tree."""

from __future__ import annotations

from sqlglot import exp

from icesql.engine.spark.fragments.fragment import Choice, Fragment
from icesql.engine.spark.fragments.partial_aggregates import cut_aggregate
from icesql.engine.spark.fragments.row_fragments import cut_rows
from icesql.engine.spark.fragments.whole_query import cut_whole


def cut_fragments(
    tree: exp.Expr, choice: Choice, *, whole: bool = True
) -> tuple[exp.Expr, tuple[Fragment, ...]]:
    """A copy of a qualified tree that reads fragments where it can, outermost first.

    Each fragment is a table of its name in the new tree. The only one is the whole query where
    that costs less, unless ``whole`` is false.
    """
    cut = tree.copy()
    fragments: list[Fragment] = []
    for select in list(cut.find_all(exp.Select)):
        if select.root() is not cut:
            # It has gone into a fragment of a query around it.
            continue
        name = f"__fragment_{len(fragments)}"
        made = cut_aggregate(select, name, choice) or cut_rows(select, name, choice)
        if made is not None:
            fragments.append(made)
    alone = cut_whole(tree, "__fragment_0", choice) if whole else None
    if alone is not None and choice.is_dearer(fragments, cut, alone[1]):
        return alone[0], (alone[1],)
    return cut, tuple(fragments)
