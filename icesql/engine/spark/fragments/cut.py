"""Cut all fragments of a query out of its tree."""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from icesql.engine.spark.fragments.choice import FragmentChoice
from icesql.engine.spark.fragments.division import is_divisible, scans_in
from icesql.engine.spark.fragments.fragment import Fragment, column_of, read_instead
from icesql.engine.spark.fragments.partial_aggregates import cut_aggregate
from icesql.engine.spark.fragments.row_fragments import cut_rows
from icesql.engine.spark.sql.kinds import identifier, named, quoted_column

# A whole query as one fragment: a single task returns its rows, in their order.
#
# A query that takes one task a few seconds ends before Spark has planned, shuffled and joined it.
# It may have any form: windows, distinct counts, set operations, WITH.

_QUERY: Final = "q"
_FIRST: Final = "__fragment_0"


def _cut_whole(tree: exp.Expr, choice: FragmentChoice) -> tuple[exp.Select, Fragment] | None:
    """A query that reads all of a qualified tree from one fragment, and the fragment.

    None for the rows of a single scan, which several tasks read faster, and if ``choice``
    declines.
    """
    if not isinstance(tree, exp.Query) or isinstance(tree, exp.Subquery):
        return None
    inside = scans_in(tree, {each.alias for each in tree.find_all(exp.CTE)})
    if not inside or (len(inside) == 1 and is_divisible(tree, inside[0])):
        return None
    names = [f"c{at}" for at in range(len(tree.selects))]
    alias = exp.TableAlias(
        this=identifier(_QUERY),
        columns=[identifier(each) for each in names],
    )
    inner = exp.Select(
        expressions=[quoted_column(each, _QUERY) for each in names],
        from_=exp.From(this=exp.Subquery(this=tree.copy(), alias=alias)),
    )
    made = choice.whole_query(_FIRST, inner, inside)
    if made is None:
        return None
    outer = exp.Select(
        expressions=[
            named(column_of(_FIRST, each, selected.unalias()), selected.alias_or_name or each)
            for each, selected in zip(names, tree.selects, strict=True)
        ]
    )
    read_instead(outer, _FIRST)
    return outer, made


def cut_fragments(
    tree: exp.Expr, choice: FragmentChoice, *, whole: bool = True
) -> tuple[exp.Expr, tuple[Fragment, ...]]:
    """A copy of a qualified tree that reads fragments where possible, outermost first.

    In the new tree each fragment is a table with its name. If it costs less, the only fragment is
    the whole query, unless ``whole`` is false.
    """
    cut = tree.copy()
    fragments: list[Fragment] = []
    for select in list(cut.find_all(exp.Select)):
        if select.root() is not cut:
            # It is part of a fragment that was cut from an outer query.
            continue
        name = f"__fragment_{len(fragments)}"
        made = cut_aggregate(select, name, choice) or cut_rows(select, name, choice)
        if made is not None:
            fragments.append(made)
    alone = _cut_whole(tree, choice) if whole else None
    if alone is not None and choice.is_dearer(fragments, cut, alone[1]):
        return alone[0], (alone[1],)
    return cut, tuple(fragments)
