"""The part of a query below its first exchange, cut out to run inside the tasks on DuckDB.

    SELECT k, sum(x), avg(y) FROM t WHERE c GROUP BY k

becomes, in each task,  SELECT k AS k0, sum(x) AS a0, sum(y) AS a1, count(y) AS a2 … GROUP BY k
and in Spark            SELECT k0, sum(a0), sum(a1) / sum(a2) FROM partials GROUP BY k0

Filter, keys and arguments are evaluated by DuckDB, whose meaning is the contract; only partial
results cross to the JVM. What does not have this form is left to Spark.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from sqlglot import exp
from sqlglot.errors import ErrorLevel

from icesql.engine.spark.kinds import kind, spelled

_SCAN: Final = re.compile(r"__scan_(\d+)")
_VALUES: Final = frozenset(
    {"integer", "decimal", "double", "float", "text", "date", "boolean", "timestamp", "timestamptz"}
)
_SUMMED: Final = frozenset({"integer", "decimal", "double", "float"})
_PARTS: Final = frozenset(
    {"expressions", "from_", "where", "group", "having", "order", "limit", "offset", "with_",
     "distinct", "qualify", "kind", "hint"}
)  # fmt: skip


@dataclass(frozen=True)
class Fragment:
    """What the tasks of scan ``scan`` run, as a tree over its ``__scan_<i>``.

    ``keys`` are the grouping keys; a fragment without any gives one row a task.
    """

    name: str
    scan: int
    tree: exp.Select
    keys: tuple[exp.Expr, ...]

    def sql(self, table: str) -> str:
        """The tree in DuckDB's dialect, the scan called by another name."""
        tree = self.tree.copy()
        for each in tree.find_all(exp.Table):
            each.set("this", exp.to_identifier(table, quoted=True))
        return str(tree.sql(dialect="duckdb", unsupported_level=ErrorLevel.IGNORE))


def cut_fragments(
    tree: exp.Expr, worthwhile: Callable[[int, list[exp.Expr]], bool]
) -> tuple[exp.Expr, tuple[Fragment, ...]]:
    """A copy of a qualified tree whose aggregations read partial results where they can.

    Each fragment is a table of its name in the new tree, with columns ``k<n>`` and ``a<n>``.
    ``worthwhile`` says of a scan and its grouping keys whether partial results are few.
    """
    tree = tree.copy()
    fragments: list[Fragment] = []
    for select in list(tree.find_all(exp.Select)):
        made = _cut(select, f"__fragment_{len(fragments)}", worthwhile)
        if made is not None:
            fragments.append(made)
    return tree, tuple(fragments)


def _cut(
    select: exp.Select, name: str, worthwhile: Callable[[int, list[exp.Expr]], bool]
) -> Fragment | None:
    table = _only_scan(select)
    if table is None:
        return None
    alias = table.alias_or_name
    keys = _keys(select)
    aggregates = list(_aggregates(select))
    if keys is None or (not keys and not aggregates):
        return None
    where = select.args.get("where")
    inside = [*keys, *([where.this] if where is not None else []), *aggregates]
    if not all(_is_local(each, alias) for each in inside):
        return None
    if not all(kind(key) in _VALUES for key in keys) or not all(map(_splits, aggregates)):
        return None
    scan = int(table.name.removeprefix("__scan_"))
    if not worthwhile(scan, keys):
        return None
    partials: list[exp.Expr] = []
    changes: list[tuple[exp.Expr, exp.Expr]] = []
    changes += [(node, _final(node, alias, partials)) for node in aggregates]
    for node, at in list(_key_places(select, keys)):
        column = exp.column(f"k{at}", table=alias, quoted=True)
        column.type = keys[at].type
        changes.append((node, column))
    replaced = {id(node) for node, _ in changes}
    if not _all_covered(select, alias, replaced):
        return None
    columns = [exp.alias_(key.copy(), f"k{at}", quoted=True) for at, key in enumerate(keys)]
    columns += [exp.alias_(each, f"a{at}", quoted=True) for at, each in enumerate(partials)]
    inner = exp.Select(expressions=columns, from_=exp.From(this=table.copy()))
    if where is not None:
        inner.set("where", where.copy())
    if keys:
        inner.set("group", exp.Group(expressions=[key.copy() for key in keys]))
    for node, new in changes:
        if isinstance(node.parent, exp.Select) and node.arg_key == "expressions":
            # A bare column of the list gave its name; its stand-in has another.
            new = exp.alias_(new, node.alias_or_name, quoted=True) if node.alias_or_name else new
        node.replace(new)
    table.set("this", exp.to_identifier(name, quoted=True))
    select.set("where", None)
    if keys:
        select.set(
            "group",
            exp.Group(
                expressions=[
                    exp.column(f"k{at}", table=alias, quoted=True) for at in range(len(keys))
                ]
            ),
        )
    return Fragment(name, scan, inner, tuple(keys))


def _only_scan(select: exp.Select) -> exp.Table | None:
    if any(value and name not in _PARTS for name, value in select.args.items()):
        return None
    source = select.args.get("from_")
    table = source.this if source is not None else None
    if not isinstance(table, exp.Table) or not _SCAN.fullmatch(table.name):
        return None
    alias = table.args.get("alias")
    return table if alias is None or not alias.args.get("columns") else None


def _keys(select: exp.Select) -> list[exp.Expr] | None:
    group = select.args.get("group")
    if group is None:
        return []
    if any(value for name, value in group.args.items() if name not in ("expressions", "all")):
        return None
    if group.args.get("all"):
        listed = [each.unalias() for each in select.expressions if not _has_aggregate(each)]
    else:
        listed = list(group.expressions)
    keys: list[exp.Expr] = []
    for each in listed:
        if isinstance(each, exp.Literal | exp.Tuple):
            return None
        if each not in keys:
            keys.append(each)
    return keys


def _outside(select: exp.Select) -> Iterator[exp.Expr]:
    """The nodes of a SELECT that are computed after grouping, nested queries whole."""
    for each in _after_grouping(select):
        yield from each.walk(prune=lambda node: isinstance(node, exp.Query))


def _is_aggregate(node: exp.Expr) -> bool:
    if not isinstance(node, exp.AggFunc):
        return False
    parent = node.parent
    while isinstance(parent, exp.Filter | exp.IgnoreNulls | exp.RespectNulls | exp.WithinGroup):
        parent = parent.parent
    return not (isinstance(parent, exp.Window) and parent.this.find(type(node)) is node)


def _has_aggregate(node: exp.Expr) -> bool:
    return any(_is_aggregate(each) for each in node.find_all(exp.AggFunc))


def _aggregates(select: exp.Select) -> Iterator[exp.Expr]:
    """The aggregate calls, with their FILTER if they have one."""
    for node in _outside(select):
        if _is_aggregate(node):
            parent = node.parent
            if isinstance(parent, exp.Filter | exp.IgnoreNulls | exp.RespectNulls):
                yield parent
            else:
                yield node


def _is_local(node: exp.Expr, alias: str) -> bool:
    if node.find(exp.Query) is not None:
        return False
    return all(column.table == alias for column in node.find_all(exp.Column))


def _splits(node: exp.Expr) -> bool:
    """Whether partial results of an aggregate can be put together to the exact whole."""
    call = node.this if isinstance(node, exp.Filter) else node
    argument = call.this
    if isinstance(argument, exp.Distinct | exp.Order) or _has_nested_aggregate(call):
        return False
    match call:
        case exp.Count():
            return not call.expressions
        case exp.Sum() | exp.Avg():
            return kind(argument) in _SUMMED
        case exp.Min() | exp.Max():
            return kind(argument) in _VALUES and not call.expressions
        case _:
            return False


def _has_nested_aggregate(call: exp.Expr) -> bool:
    return any(node is not call for node in call.find_all(exp.AggFunc))


def _final(node: exp.Expr, alias: str, partials: list[exp.Expr]) -> exp.Expr:
    """What stands for an aggregate in Spark; what the tasks compute for it goes to ``partials``."""
    condition = node.expression if isinstance(node, exp.Filter) else None
    call = node.this if isinstance(node, exp.Filter) else node

    def partial(inner: exp.Expr, type_: exp.DataType | None = None) -> exp.Column:
        made: exp.Expr = inner
        if condition is not None:
            made = exp.Filter(this=inner, expression=condition.copy())
        if type_ is not None:
            made = exp.cast(made, type_)
        if made not in partials:
            partials.append(made)
        return exp.column(f"a{partials.index(made)}", table=alias, quoted=True)

    whole = exp.DataType.build("DECIMAL(38, 0)")
    match call:
        case exp.Count():
            column = partial(call.copy())
            return spelled("COALESCE(SUM({0}), 0)", column, like="BIGINT")
        case exp.Sum():
            # A HUGEINT has no equal in Spark; its sum is checked to fit a BIGINT at the end.
            integer = kind(call.this) == "integer"
            return spelled("SUM({0})", partial(call.copy(), whole if integer else None), like=call)
        case exp.Avg():
            integer = kind(call.this) == "integer"
            total = partial(exp.Sum(this=call.this.copy()), whole if integer else None)
            count = partial(exp.Count(this=call.this.copy()))
            return spelled(
                "(CAST(SUM({0}) AS DOUBLE) / NULLIF(SUM({1}), 0))", total, count, like="DOUBLE"
            )
        case _:
            word = "MIN" if isinstance(call, exp.Min) else "MAX"
            return spelled(f"{word}({{0}})", partial(call.copy()), like=call)


def _key_places(select: exp.Select, keys: list[exp.Expr]) -> Iterator[tuple[exp.Expr, int]]:
    """Where the grouping keys stand outside of aggregates, outermost first."""

    def visit(node: exp.Expr) -> Iterator[tuple[exp.Expr, int]]:
        if node in keys:
            yield node, keys.index(node)
            return
        if _is_aggregate(node) or isinstance(node, exp.Query):
            return
        for child in node.iter_expressions():
            yield from visit(child)

    for each in _after_grouping(select):
        yield from visit(each)


def _all_covered(select: exp.Select, alias: str, replaced: set[int]) -> bool:
    """Whether nothing of the table is needed but keys and aggregates, nested queries included."""

    def visit(node: exp.Expr) -> bool:
        if id(node) in replaced:
            return True
        if isinstance(node, exp.Column) and node.table == alias:
            return False
        return all(visit(child) for child in node.iter_expressions())

    return all(map(visit, _after_grouping(select)))


def _after_grouping(select: exp.Select) -> Iterator[exp.Expr]:
    """The expressions of a SELECT that are computed after grouping."""
    for part in ("expressions", "having", "order", "qualify"):
        value = select.args.get(part)
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, exp.Expr):
                yield each
