"""The row of a grand total, which Spark leaves out where no row comes in."""

from __future__ import annotations

from sqlglot import exp

_CHANGE_ROWS = ("having", "qualify", "limit", "offset", "distinct")


def must_have_rows(tree: exp.Expr) -> bool:
    """Whether a query gives a row even of no rows, as ROLLUP, CUBE and the set ``()`` do.

    Said only of what the outermost SELECT does, or one that hands all of its rows on: Spark gives
    no row there.
    """
    while (inner := _handed_on(tree)) is not None:
        tree = inner
    if not isinstance(tree, exp.Select) or any(tree.args.get(each) for each in _CHANGE_ROWS):
        return False
    group = tree.args.get("group")
    if group is None:
        return False
    if group.args.get("rollup") or group.args.get("cube"):
        return True
    return any(
        isinstance(each, exp.Rollup | exp.Cube)
        or (isinstance(each, exp.Tuple) and not each.expressions)
        for each in group.walk()
    )


def _handed_on(tree: exp.Expr) -> exp.Expr | None:
    """The query whose rows are those of ``SELECT * FROM (…)``; None for any other."""
    if isinstance(tree, exp.Subquery):
        used = {name for name, value in tree.args.items() if value}
        return tree.this if used <= {"this", "alias"} else None
    if not isinstance(tree, exp.Select):
        return None
    if {name for name, value in tree.args.items() if value} != {"expressions", "from_"}:
        return None
    is_all = [type(each) for each in tree.expressions] == [exp.Star]
    item = tree.args["from_"].this
    return item if is_all and isinstance(item, exp.Subquery) else None
