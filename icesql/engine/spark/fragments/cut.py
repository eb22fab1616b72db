"""Cut all fragments of a query out of its tree; tasks drop the rows that the rest does not need."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from sqlglot import exp

from icesql.engine.spark.fragments.aggregates import cut_aggregate
from icesql.engine.spark.fragments.choice import FragmentChoice
from icesql.engine.spark.fragments.fragment import (
    Fragment,
    below,
    column_of,
    divisible_scans,
    is_computed_per_row,
    is_divisible,
    is_local,
    read_instead,
    scan_number,
    scans_in,
    sources,
)
from icesql.engine.spark.sql.kinds import identifier, literal_integer, named, quoted_column
from icesql.query.pushdown.select_forms import has_only

# ------------------------------------------------------------------ fewer rows
# By filters, by joins, beyond a LIMIT, or duplicates:
#
#     SELECT x, y FROM t WHERE c ORDER BY z LIMIT 10
#
# becomes, in each task,  SELECT x AS c0, y AS c1, z AS o0 FROM t WHERE c ORDER BY z LIMIT 10
# and in Spark            SELECT c0, c1 FROM parts ORDER BY o0 LIMIT 10


# The most rows that each task sends for a LIMIT; above it, Spark sorts all rows.
MOST_ROWS: Final = 100_000
_PARTS: Final = frozenset(
    {"expressions", "from_", "joins", "where", "order", "limit", "offset", "with_", "distinct",
     "kind", "hint"}
)  # fmt: skip


def cut_rows(select: exp.Select, name: str, choice: FragmentChoice) -> Fragment | None:
    """Make a SELECT with joins, DISTINCT or LIMIT read only the rows that each task keeps.

    None, with nothing changed, if it does not have that form or ``choice`` declines.
    """
    if not has_only(select, _PARTS):
        return None
    distinct, count = select.args.get("distinct"), _rows_of_limit(select)
    if count is None and select.args.get("limit") is not None:
        return None
    if count is None and distinct is None and len(scans_in(select) or ()) < 2:
        return None
    if distinct is not None and distinct.args.get("on"):
        return None
    aliases = frozenset(sources(select))
    listed = [each.unalias() for each in select.expressions]
    order = select.args.get("order")
    ordered = list(order.expressions) if order is not None else []
    places = [_place(each.this, select) for each in ordered]
    extra = [each.this for each, place in zip(ordered, places, strict=True) if place is None]
    if extra and distinct is not None:
        return None
    if not all(_is_of(each, aliases) for each in [*listed, *extra]):
        return None
    columns = [named(each.copy(), f"c{at}") for at, each in enumerate(listed)]
    columns += [named(each.copy(), f"o{at}") for at, each in enumerate(extra)]
    names = iter(f"o{at}" for at in range(len(extra)))
    keys = [next(names) if place is None else f"c{place}" for place in places]
    inner = below(select, columns)
    if distinct is not None:
        inner.set("distinct", exp.Distinct())
    if count is not None:
        inner.set("limit", exp.Limit(expression=exp.Literal.number(count)))
        if order is not None:
            inner.set("order", _by_names(order, keys))
    keyed = listed if count is None else ()
    made = choice.fragment(name, inner, divisible_scans(select), keyed)
    if made is None:
        return None
    for at, each in enumerate(select.expressions):
        column = column_of(name, f"c{at}", listed[at])
        each.replace(named(column, each.alias_or_name or f"c{at}"))
    read_instead(select, name)
    if order is not None:
        for each, key in zip(order.expressions, keys, strict=True):
            each.set("this", column_of(name, key, each.this))
    return made


def _rows_of_limit(select: exp.Select) -> int | None:
    """LIMIT plus OFFSET; None without a LIMIT, or if it is not a small constant."""
    limit, offset = select.args.get("limit"), select.args.get("offset")
    if not isinstance(limit, exp.Limit) or limit.expressions or limit.args.get("offset"):
        return None
    rows = literal_integer(limit.expression)
    skipped = 0 if offset is None else literal_integer(offset.expression)
    if rows is None or skipped is None or not 0 <= rows + skipped <= MOST_ROWS:
        return None
    return rows + skipped


def _place(key: exp.Expr, select: exp.Select) -> int | None:
    """The index of an ORDER BY key in the select list; None if it is not in the list."""
    number = literal_integer(key)
    if number is not None and 1 <= number <= len(select.expressions):
        return number - 1
    for at, each in enumerate(select.expressions):
        if key == each.unalias():
            return at
    if isinstance(key, exp.Column) and not key.table:
        names = [each.alias_or_name.lower() for each in select.expressions]
        if names.count(key.name.lower()) == 1:
            return names.index(key.name.lower())
    return None


def _is_of(node: exp.Expr, aliases: frozenset[str]) -> bool:
    return is_computed_per_row(node) and is_local(node, aliases, exp.Explode, exp.Unnest, exp.Star)


def _by_names(order: exp.Order, names: list[str]) -> exp.Order:
    made = order.copy()
    for each, name in zip(made.expressions, names, strict=True):
        each.set("this", quoted_column(name))
    return made


def filtered(
    tree: exp.Expr, scan: int, names: list[str], name: str, choice: FragmentChoice
) -> Fragment | None:
    """A fragment of the columns ``names`` of a scan, with the conditions on that scan alone.

    The tree stays unchanged: it evaluates the same conditions again for the remaining rows. None
    if there are no such conditions.
    """
    table = next((each for each in tree.find_all(exp.Table) if scan_number(each) == scan), None)
    select = table.find_ancestor(exp.Select) if table is not None else None
    if table is None or select is None or scan not in divisible_scans(select):
        return None
    alias = table.alias_or_name
    where = select.args.get("where")
    own = [each.copy() for each in _conjuncts(where) if _is_of(each, frozenset({alias}))]
    if not own:
        return None
    columns = [named(quoted_column(each, alias), each) for each in names]
    inner = exp.Select(
        expressions=columns,
        from_=exp.From(this=table.copy()),
        where=exp.Where(this=exp.and_(*own, copy=False)),
    )
    return choice.fragment(name, inner, (scan,))


def _conjuncts(where: exp.Expr | None) -> Iterator[exp.Expr]:
    if where is None:
        return
    inner = where.this.unnest()
    yield from inner.flatten() if isinstance(inner, exp.And) else [inner]


# ------------------------------------------------------------------ all fragments


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
