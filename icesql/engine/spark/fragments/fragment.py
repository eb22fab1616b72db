"""A fragment: the part of a query below its first exchange, which tasks run on DuckDB.

One scan is divided between the tasks, and each task reads the others whole, as in a broadcast join;
or a single task reads everything, and the fragment may be the whole query. DuckDB evaluates joins,
filters and expressions, with the semantics that icesql defines. Only the resulting rows go to the
JVM; the rest of the query reads them as a table with the fragment's name.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Sequence
from typing import Final

from sqlglot import exp

from icesql.engine.result_schema import ResultColumn
from icesql.engine.spark.sql.kinds import identifier, quoted_column
from icesql.frozen import Frozen
from icesql.query.pushdown.select_forms import has_only


class Division(Frozen):
    """Scan ``scan`` divided between at most ``tasks`` tasks; None: as it is packed.

    ``cost`` is what the busiest worker reads, in stored bytes.
    """

    scan: int
    tasks: int | None = None
    cost: int = 0


class Fragment(Frozen):
    """A query that the tasks run, as a tree over ``__scan_<i>`` tables.

    Every task reads its part of the scan of ``division`` and all of the ``whole`` scans.
    With ``is_one_row`` each task returns exactly one row; with ``is_whole_query`` the task returns
    the query's rows, in their order.
    """

    name: str
    division: Division
    whole: tuple[int, ...]
    tree: exp.Select
    columns: tuple[ResultColumn, ...]
    is_one_row: bool = False
    is_whole_query: bool = False

    @property
    def scan(self) -> int:
        """The scan that is divided."""
        return self.division.scan


def column_of(table: str, name: str, like: exp.Expr) -> exp.Column:
    """A column of ``table`` with the type of an expression."""
    column = quoted_column(name, table)
    column.type = like.type
    return column


def below(select: exp.Select, columns: Sequence[exp.Expr]) -> exp.Select:
    """A SELECT of ``columns`` over copies of FROM, JOIN and WHERE of another."""
    made = exp.Select(expressions=list(columns))
    for part in ("from_", "where"):
        if select.args.get(part) is not None:
            made.set(part, select.args[part].copy())
    if select.args.get("joins"):
        made.set("joins", [join.copy() for join in select.args["joins"]])
    return made


def read_instead(select: exp.Select, name: str) -> None:
    """Replace FROM, JOIN and WHERE of a SELECT by the table ``name``."""
    alias = exp.TableAlias(this=identifier(name))
    table = exp.Table(this=identifier(name), alias=alias)
    select.set("from_", exp.From(this=table))
    select.set("joins", [])
    select.set("where", None)


# ------------------------------------------------------------------ division
# A scan may be divided if its parts together give the same rows:
#
#     FROM a JOIN b ON …          a or b: each task joins its part of one with all of the other
#     FROM a LEFT JOIN b ON …     only a: over a part of b, rows of a would wrongly get NULLs
#
# Each scan occurs once in a tree, so a scan found here is needed nowhere else.


_SCAN: Final = re.compile(r"__scan_(\d+)")
# Parts of a SELECT that compute each row of FROM separately.
_ROW_WISE: Final = frozenset({"expressions", "from_", "joins", "where", "kind", "hint"})
_JOIN: Final = frozenset({"this", "on", "side", "kind"})


def scan_number(table: exp.Expr) -> int | None:
    """The number of the scan that a table in the tree represents; None for another table."""
    found = _SCAN.fullmatch(table.name) if isinstance(table, exp.Table) else None
    return int(found[1]) if found else None


def scans_in(node: exp.Expr, besides: Container[str] = ()) -> tuple[int, ...] | None:
    """The scans below ``node``; None if it names another table, such as a WITH query outside.

    Tables may have the names ``besides``.
    """
    tables = node.find_all(exp.Table)
    numbers = [scan_number(table) for table in tables if table.name not in besides]
    known = tuple(number for number in numbers if number is not None)
    return known if len(known) == len(numbers) else None


def divisible_scans(select: exp.Select) -> tuple[int, ...]:
    """The scans by any of which FROM, JOIN and WHERE of a SELECT may be divided; () for none."""
    source = select.args.get("from_")
    joins: list[exp.Join] = select.args.get("joins") or []
    if source is None:
        return ()
    found = list(_of_source(source.this))
    for join in joins:
        if not has_only(join, _JOIN):
            return ()
        match (join.side.upper(), join.kind.upper()):
            case ("", "" | "INNER" | "CROSS"):
                found.extend(_of_source(join.this))
            case ("LEFT", "" | "OUTER" | "SEMI" | "ANTI") | ("", "SEMI" | "ANTI"):
                pass
            case ("RIGHT", "" | "OUTER") if len(joins) == 1:
                found = list(_of_source(join.this))
            case _:
                return ()
    return tuple(found)


def _of_source(source: exp.Expr) -> Iterator[int]:
    if not has_only(source, ("this", "alias")):
        return
    match source:
        case exp.Table():
            alias = source.args.get("alias")
            number = scan_number(source)
            if number is not None and (alias is None or not alias.args.get("columns")):
                yield number
        case exp.Subquery(this=exp.Select() as select) if _is_row_wise(select):
            yield from divisible_scans(select)


def _is_row_wise(select: exp.Select, *besides: str) -> bool:
    return has_only(select, {*_ROW_WISE, *besides}) and all(
        is_computed_per_row(each) and each.find(exp.Explode, exp.Unnest) is None
        for each in select.expressions
    )


def is_divisible(tree: exp.Expr, scan: int) -> bool:
    """True if a query over parts of a scan, and all other scans whole, gives the same rows."""
    if not isinstance(tree, exp.Select) or not _is_row_wise(tree, "with_"):
        return False
    return scan in divisible_scans(tree)


def is_computed_per_row(node: exp.Expr) -> bool:
    """True if an expression has no aggregate or window, except inside nested queries."""
    return not any(
        isinstance(each, exp.AggFunc | exp.Window)
        for each in node.walk(prune=lambda each: isinstance(each, exp.Query))
    )


def is_local(node: exp.Expr, aliases: Container[str], *but: type[exp.Expr]) -> bool:
    """True if an expression has no query, no node of the classes ``but``, and only columns of
    ``aliases``."""
    return node.find(exp.Query, *but) is None and all(
        column.table in aliases for column in node.find_all(exp.Column)
    )


def sources(select: exp.Select) -> Iterator[str]:
    """The aliases of the tables and queries that a SELECT reads."""
    source = select.args.get("from_")
    for each in [source, *(select.args.get("joins") or [])]:
        if each is not None:
            yield each.this.alias_or_name
