"""The row of a grand total, which Spark omits if there are no input rows."""

from __future__ import annotations

from sqlglot import exp

from icesql.query.pushdown.select_forms import has_only

_CHANGE_ROWS = ("having", "qualify", "limit", "offset", "distinct")
# The clauses that produce the input rows of a SELECT.
_INPUT = ("from_", "joins", "laterals", "where")
_LISTS = ("joins", "laterals")


def must_have_rows(tree: exp.Expr) -> bool:
    """True if a query returns a row even for no input, as ROLLUP, CUBE and the set ``()`` do.

    This considers only the outermost SELECT, or one whose rows it returns unchanged: Spark
    returns no row there. ``row_questions`` is for the other SELECTs.
    """
    return _outermost(tree) is not None


def row_questions(tree: exp.Expr) -> tuple[exp.Select, ...]:
    """Queries that return a row if a grand total in a nested SELECT has an input row.

    They read the input of that SELECT, and have its visible CTEs. A query from a correlated
    subquery refers to columns that it does not have.
    """
    outermost = _outermost(tree)
    return tuple(
        _any_row(each)
        for each in tree.find_all(exp.Select)
        if each is not outermost and each.args.get("from_") is not None and _has_total(each)
    )


def _outermost(tree: exp.Expr) -> exp.Select | None:
    while (inner := _handed_on(tree)) is not None:
        tree = inner
    if not isinstance(tree, exp.Select) or any(tree.args.get(each) for each in _CHANGE_ROWS):
        return None
    return tree if _has_total(tree) else None


def _has_total(select: exp.Select) -> bool:
    group = select.args.get("group")
    if group is None:
        return False
    if group.args.get("rollup") or group.args.get("cube"):
        return True
    return any(
        isinstance(each, exp.Rollup | exp.Cube)
        or (isinstance(each, exp.Tuple) and not each.expressions)
        for each in group.walk()
    )


def _any_row(select: exp.Select) -> exp.Select:
    probe = exp.Select(expressions=[exp.alias_(exp.Literal.number(1), "c0")])
    for name in _INPUT:
        value = select.args.get(name)
        if value:
            probe.set(name, [each.copy() for each in value] if name in _LISTS else value.copy())
    probe.set("limit", exp.Limit(expression=exp.Literal.number(1)))
    known: list[exp.Expr] = []
    is_recursive = False
    node: exp.Expr | None = select
    while node is not None:
        clause = node.args.get("with_")
        if isinstance(clause, exp.With):
            known = [*(each.copy() for each in clause.expressions), *known]
            is_recursive = is_recursive or bool(clause.args.get("recursive"))
        node = node.parent
    if known:
        probe.set("with_", exp.With(expressions=known, recursive=is_recursive))
    return probe


def _handed_on(tree: exp.Expr) -> exp.Expr | None:
    """The inner query of ``SELECT * FROM (…)``, which has the same rows; None for any other."""
    if isinstance(tree, exp.Subquery):
        return tree.this if has_only(tree, ("this", "alias")) else None
    if not isinstance(tree, exp.Select) or not has_only(tree, ("expressions", "from_")):
        return None
    is_all = [type(each) for each in tree.expressions] == [exp.Star]
    source = tree.args.get("from_")
    return source.this if is_all and source and isinstance(source.this, exp.Subquery) else None
