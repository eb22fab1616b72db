"""Lookups: plain questions of tables in memory, asked again and again with other values.

Opening an engine's cursor in a thread of its own, and reading the text once more, costs more than
the answer. A lookup keeps the SQL that was run and puts the values of this time into it. It runs in
the caller's thread, so it is for what ends at once: columns of one small table in memory, compared
with constants, and few rows when it was asked last.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Final
from weakref import ref

from msgspec import Struct
from sqlglot import exp

from icesql.config import time_zone
from icesql.engine.duckdb.errors import is_fatal
from icesql.engine.duckdb.prepared_run import FEW_ROWS, need_checks
from icesql.engine.duckdb.sql.composed import around_values
from icesql.engine.result_reader import Reading
from icesql.engine.result_rows import Converter, converted, row_converter

if TYPE_CHECKING:
    import pyarrow as pa

    from icesql.context import QueryContext
    from icesql.engine.duckdb.instance import Instance, InstancePool
    from icesql.engine.duckdb.prepared_run import PreparedRun
    from icesql.engine.duckdb.sql.composed import Composed
    from icesql.engine.protocol import Result, Sink, WritableResult
    from icesql.engine.result_schema import ResultColumn
    from icesql.file_format import FileFormat
    from icesql.query.bound import BoundQuery
    from icesql.scan.plan import ScanPlan

# The engine walks the tree on the caller's stack, which may be small.
_MOST_NODES: Final = 400
# Nodes whose time does not depend on values: no function is among them.
_PLAIN: Final = (
    exp.Select, exp.From, exp.Table, exp.TableAlias, exp.Star, exp.Column, exp.Identifier,
    exp.Alias, exp.Where, exp.And, exp.Or, exp.Paren, exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT,
    exp.GTE, exp.Is, exp.Not, exp.Null, exp.Boolean, exp.Between, exp.In, exp.Literal, exp.Neg,
    exp.Order, exp.Ordered, exp.Limit,
)  # fmt: skip


class Lookup(Struct, frozen=True):
    """The SQL of a question over tables of one instance: a value stands between two ``pieces``.

    It is valid as long as these tables are, which the caller sees to.
    """

    pieces: tuple[str, ...]
    columns: tuple[ResultColumn, ...]
    converters: tuple[Converter | None, ...]
    instance: ref[Instance]

    def sql(self, values: Sequence[str]) -> str:
        """The SQL with these literals, as many as there are gaps."""
        found = [self.pieces[0]]
        for value, piece in zip(values, self.pieces[1:], strict=True):
            found += [value, piece]
        return "".join(found)


def note_lookup(
    prepared: PreparedRun,
    bound: BoundQuery,
    columns: tuple[ResultColumn, ...],
    ran: tuple[str, str, Composed | None],
    tables: tuple[str, ...],
    instance: Instance,
    query: QueryContext,
) -> None:
    """Keep how a query ran that gave few rows, if it is a lookup.

    ``ran`` are the SQL that gave the rows, the part of it that is the query's own, and how that is
    made; ``tables`` those in memory that stand for all of its scans.
    """
    text, (given, sql, composed) = bound.user_text, ran
    if text is None or composed is None:
        return
    # Names of tables are those of one instance.
    noted = prepared.lookups.get(tables)
    if (noted and noted.instance() is instance) or not _is_lookup(bound, query):
        return
    pieces = around_values(text, composed)
    if composed.sql != sql or pieces is None:
        return
    before_sql, _, behind_sql = given.partition(sql)
    pieces = (before_sql + pieces[0], *pieces[1:])
    pieces = (*pieces[:-1], pieces[-1] + behind_sql)
    zone = time_zone(query.settings.timezone)
    converters = tuple(row_converter(each.type, zone) for each in columns)
    prepared.lookups.note(tables, Lookup(pieces, columns, converters, ref(instance)))


def _is_lookup(bound: BoundQuery, query: QueryContext) -> bool:
    return (
        len(bound.scans) == 1
        and not bound.edges
        and not bound.about
        and not bound.temporary
        and not bound.files
        and query.settings.engine == "local"
        and query.settings.verify != "full"
        and not (bound.scans[0].extremes or bound.scans[0].counts)
        and not (bound.scans[0].values_only or bound.scans[0].rows_alike)
        and _is_plain(bound.tree)
    )


def _is_plain(tree: exp.Expr) -> bool:
    nodes = list(islice(tree.walk(), _MOST_NODES + 1))
    return len(nodes) <= _MOST_NODES and all(isinstance(node, _PLAIN) for node in nodes)


def look_up(
    prepared: PreparedRun,
    plans: Sequence[ScanPlan],
    values: Sequence[str],
    pool: InstancePool,
    query: QueryContext,
    whole: Callable[[], Result],
) -> LookedUp | None:
    """All rows of a query that is kept as a lookup; None where it has to run the whole way.

    ``values`` are the literals of this time, in SQL.
    ``whole`` runs it so, for who wants the rows as Arrow or in a file. Raises QueryCancelledError.
    """
    import duckdb

    known = prepared.known_scans(plans)
    if known is None:
        return None
    query.check()
    folders = frozenset[str]().union(*(each.folders for each in known))
    instance, cursor = pool.lookup_cursor(folders, query.settings)
    lease, is_clean = instance.begin_kept(), False
    try:
        names = [
            lease.name_of(part, tasks, plan.context)
            for plan, scan in zip(plans, known, strict=True)
            for part, tasks in scan.parts
        ]
        lookup = prepared.lookups.get(tuple(names))
        if lookup is None or lookup.instance() is not instance:
            is_clean = True
            return None
        cursor.execute(lookup.sql(values))
        rows = cursor.fetchmany(FEW_ROWS + 1)
        is_clean = len(rows) <= FEW_ROWS
    except (duckdb.Error, UnicodeDecodeError) as error:
        if is_fatal(error):
            pool.discard(instance)
        return None  # the whole way says what is wrong
    finally:
        lease.close()
        instance.give_back(cursor, is_clean=is_clean)
    query.check()
    if not is_clean or need_checks(rows, [each.type for each in lookup.columns]):
        return None
    groups = tuple(name for scan in known for name in scan.groups)
    return LookedUp(prepared, lookup, rows, groups, whole)


class LookedUp:
    """The rows of a lookup. See ``protocol.WritableResult``."""

    notes: tuple[str, ...] = ()

    def __init__(
        self,
        prepared: PreparedRun,
        lookup: Lookup,
        rows: list[tuple[Any, ...]],
        groups: tuple[str, ...],
        whole: Callable[[], Result],
    ) -> None:
        self.columns, self.groups = lookup.columns, groups
        self._prepared, self._lookup, self._rows, self._whole = prepared, lookup, rows, whole
        self._reading = Reading(self._chunks, self._batches, self._finish)

    def fetch(self, count: int | None) -> list[tuple[Any, ...]]:
        """See ``protocol.Result``."""
        return self._reading.rows(count)

    @property
    def ready(self) -> deque[tuple[Any, ...]]:
        """See ``protocol.Result``."""
        return self._reading.ready

    @property
    def row_count(self) -> int | None:
        """See ``protocol.Result``."""
        return self._reading.row_count

    def _chunks(self) -> Iterator[list[tuple[Any, ...]]]:
        rows = converted(self._rows, self._lookup.converters)
        self._reading.last()
        if rows:
            yield rows

    def _other(self) -> Result:
        """Run the query normally, and stop using the lookup for it."""
        self._prepared.note_row_count(None)
        return self._whole()

    def arrow_reader(self) -> pa.RecordBatchReader:
        """See ``protocol.Result``."""
        return self._reading.arrow(lambda: self.columns)

    def _batches(self) -> Iterator[pa.RecordBatch]:
        other = self._other()
        try:
            yield from other.arrow_reader()
        finally:
            other.close()

    def write(self, form: FileFormat, sink: Sink) -> int:
        """See ``protocol.WritableResult``."""

        def written() -> int:
            other: WritableResult = self._other()  # type: ignore[assignment]
            try:
                return other.write(form, sink)
            finally:
                other.close()

        return self._reading.whole(written)

    def cancel(self) -> None:
        """See ``protocol.Result``."""

    def close(self) -> None:
        """See ``protocol.Result``."""
        self._reading.close()

    def abandon(self) -> None:
        """See ``protocol.Result``."""

    def _finish(self) -> None:
        self._rows = []
