"""A fragment: the part of a query below its first exchange, which tasks run on DuckDB.

One scan is divided between the tasks, and each task reads the others whole, as in a broadcast join;
or a single task reads everything, and the fragment may be the whole query. DuckDB evaluates joins,
filters and expressions, with the semantics that icesql defines. Only the resulting rows go to the
JVM; the rest of the query reads them as a table with the fragment's name.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

from msgspec import Struct
from sqlglot import exp

from icesql.engine.spark.fragments.division import scans_in

# The type of a sum of integers, which Spark lacks, and the type that replaces it in Spark.
HUGEINT: Final = "HUGEINT"
_CARRIER: Final = "DECIMAL(38,0)"


class Division(Struct, frozen=True):
    """Scan ``scan`` divided between at most ``tasks`` tasks; None: as it is packed.

    ``cost`` is what the busiest worker reads, in stored bytes.
    """

    scan: int
    tasks: int | None = None
    cost: int = 0


class Choice(Protocol):
    """Decides which of the possible fragments run."""

    def divided(
        self, candidates: Sequence[int], inside: Sequence[int], keys: Sequence[exp.Expr]
    ) -> Division | None:
        """The division of one of ``candidates``; each task reads all other scans ``inside``.

        None if a fragment would cost more than it saves; ``keys`` are its grouping keys.
        """

    def undivided(self, inside: Sequence[int]) -> Division | None:
        """A single task for the scans ``inside``; None if they are too large."""

    def is_dearer(self, fragments: Sequence[Fragment], left: exp.Expr, alone: Fragment) -> bool:
        """True if ``left``, which reads ``fragments``, costs more than the query in one task."""

    def columns(self, scans: Sequence[int], tree: exp.Select) -> tuple[tuple[str, str], ...] | None:
        """Names and Spark types of a fragment's columns; a type may be HUGEINT.

        None if it cannot run on its own, or if Spark lacks the type of a column.
        """


class Fragment(Struct, frozen=True):
    """A query that the tasks run, as a tree over ``__scan_<i>`` tables.

    Every task reads its part of the scan of ``division`` and all of the ``whole`` scans.
    ``columns`` are names and Spark types. With ``is_one_row`` each task returns exactly one row;
    with ``is_whole_query`` the task returns the query's rows, in their order.
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
    """``select`` over the scans ``inside`` as a fragment of one task; None if that is too much."""
    division = choice.undivided(inside)
    columns = None if division is None else choice.columns(inside, select)
    if division is None or columns is None:
        return None
    kinds: list[tuple[str, str]] = []
    for (column, kind), each in zip(columns, list(select.expressions), strict=True):
        if kind == HUGEINT:
            # A sum of integers, checked to fit as in a result of the local engine.
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
    """Replace FROM, JOIN and WHERE of a SELECT by the table ``name``."""
    alias = exp.TableAlias(this=exp.to_identifier(name, quoted=True))
    table = exp.Table(this=exp.to_identifier(name, quoted=True), alias=alias)
    select.set("from_", exp.From(this=table))
    select.set("joins", [])
    select.set("where", None)
