"""The part of a query below its first exchange, cut out to run inside the tasks on DuckDB.

One scan is divided between the tasks, the others are read whole by each, as in a broadcast join.
Joins, filters and expressions are evaluated by DuckDB, whose meaning is the contract; only what
is left crosses to the JVM, and the rest of the query reads it as a table of the fragment's name.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct
from sqlglot import exp

from icesql.engine.spark.fragments.division import scans_in


class Choice(Protocol):
    """Decides which of the possible fragments are run."""

    def divided(
        self, candidates: Sequence[int], inside: Sequence[int], keys: Sequence[exp.Expr]
    ) -> int | None:
        """The scan of ``candidates`` to divide, all others ``inside`` being read by each task.

        None when a fragment would cost more than it saves; ``keys`` are its grouping keys.
        """

    def columns(self, scans: Sequence[int], tree: exp.Select) -> tuple[tuple[str, str], ...] | None:
        """Names and Spark types of a fragment's columns; None if it cannot run on its own."""


class Fragment(Struct, frozen=True):
    """What the tasks of scan ``scan`` run, as a tree over ``__scan_<i>`` tables.

    Every task reads all of the ``whole`` scans. ``columns`` are names and Spark types. A task of
    ``is_one_row`` gives one row whatever it reads.
    """

    name: str
    scan: int
    whole: tuple[int, ...]
    tree: exp.Select
    columns: tuple[tuple[str, str], ...]
    is_one_row: bool = False


def fragment(
    name: str,
    select: exp.Select,
    candidates: Sequence[int],
    keys: Sequence[exp.Expr],
    choice: Choice,
) -> Fragment | None:
    """``select`` as a fragment over one of ``candidates``; None if that would not pay."""
    inside = scans_in(select)
    if not inside or not candidates:
        return None
    scan = choice.divided(candidates, inside, keys)
    if scan is None:
        return None
    columns = choice.columns(inside, select)
    if columns is None:
        return None
    return Fragment(name, scan, tuple(i for i in inside if i != scan), select, columns)


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
    """Let a SELECT read the table ``name`` in the place of FROM, JOIN and WHERE."""
    alias = exp.TableAlias(this=exp.to_identifier(name, quoted=True))
    table = exp.Table(this=exp.to_identifier(name, quoted=True), alias=alias)
    select.set("from_", exp.From(this=table))
    select.set("joins", [])
    select.set("where", None)
