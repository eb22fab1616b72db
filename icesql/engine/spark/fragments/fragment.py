"""A fragment: the part of a query below its first exchange, which tasks run on DuckDB.

One scan is divided between the tasks, and each task reads the others whole, as in a broadcast join;
or a single task reads everything, and the fragment may be the whole query. DuckDB evaluates joins,
filters and expressions, with the semantics that icesql defines. Only the resulting rows go to the
JVM; the rest of the query reads them as a table with the fragment's name.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from icesql.engine.result_schema import ResultColumn
from icesql.engine.spark.sql.kinds import identifier, quoted_column
from icesql.frozen import Frozen


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
