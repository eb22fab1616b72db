"""The part of a query below its first exchange, cut out to run inside the tasks on DuckDB.

One scan is divided between the tasks, the others are read whole by each, as in a broadcast join;
or one task reads everything, and the part may be the whole query.
Joins, filters and expressions are evaluated by DuckDB, whose meaning is the contract; only what
is left crosses to the JVM, and the rest of the query reads it as a table of the fragment's name.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

from msgspec import Struct
from sqlglot import exp

from icesql.engine.spark.fragments.division import scans_in

# The type of a sum of integers, which Spark lacks, and what it crosses as where it has to.
HUGEINT: Final = "HUGEINT"
_CARRIER: Final = "DECIMAL(38,0)"


class Division(Struct, frozen=True):
    """Scan ``scan`` divided between ``tasks`` tasks at most, as it is packed for None.

    ``cost`` is what the busiest worker reads, in stored bytes.
    """

    scan: int
    tasks: int | None = None
    cost: int = 0


class Choice(Protocol):
    """Decides which of the possible fragments are run."""

    def divided(
        self, candidates: Sequence[int], inside: Sequence[int], keys: Sequence[exp.Expr]
    ) -> Division | None:
        """How to divide one of ``candidates``, all other scans ``inside`` being read by each task.

        None when a fragment would cost more than it saves; ``keys`` are its grouping keys.
        """

    def undivided(self, inside: Sequence[int]) -> Division | None:
        """The division of the scans ``inside`` into one task; None where they are too much."""

    def is_dearer(self, fragments: Sequence[Fragment], left: exp.Expr, alone: Fragment) -> bool:
        """Whether ``left``, which reads ``fragments``, costs more than the query in one task."""

    def columns(self, scans: Sequence[int], tree: exp.Select) -> tuple[tuple[str, str], ...] | None:
        """Names and Spark types of a fragment's columns, HUGEINT among them.

        None if it cannot run on its own, or if Spark has no type for one.
        """


class Fragment(Struct, frozen=True):
    """A query that the tasks run, as a tree over ``__scan_<i>`` tables.

    Every task reads its part of the scan of ``division`` and all of the ``whole`` scans.
    ``columns`` are names and Spark types. A task of ``is_one_row`` gives one row whatever it reads;
    that of ``is_whole_query`` those of the query, in their order.
    """

    name: str
    division: Division
    whole: tuple[int, ...]
    tree: exp.Select
    columns: tuple[tuple[str, str], ...]
    is_one_row: bool = False
    is_whole_query: bool = False

    @property
    def scan(self) -> int:
        """The scan that is divided."""
        return self.division.scan


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
    division = choice.divided(candidates, inside, keys)
    if division is None:
        return None
    columns = choice.columns(inside, select)
    if columns is None or any(kind == HUGEINT for _, kind in columns):
        return None
    return Fragment(name, division, _others(inside, division), select, columns)


def undivided_fragment(
    name: str, select: exp.Select, inside: Sequence[int], choice: Choice
) -> Fragment | None:
    """``select`` over the scans ``inside`` as the fragment of one task; None as ``fragment``."""
    division = choice.undivided(inside)
    columns = None if division is None else choice.columns(inside, select)
    if division is None or columns is None:
        return None
    kinds: list[tuple[str, str]] = []
    for (column, kind), each in zip(columns, list(select.expressions), strict=True):
        if kind == HUGEINT:
            # The sum of integers, checked to fit as a result of the local engine is.
            cast = exp.cast(each.unalias().copy(), exp.DataType.build(_CARRIER))
            each.replace(exp.alias_(cast, column, quoted=True))
        kinds.append((column, _CARRIER if kind == HUGEINT else kind))
    return Fragment(
        name, division, _others(inside, division), select, tuple(kinds), is_whole_query=True
    )


def _others(inside: Sequence[int], division: Division) -> tuple[int, ...]:
    return tuple(i for i in inside if i != division.scan)


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
