"""Choose the fragments that pay: more reading in tasks against less data sent to Spark."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace
from sqlglot import exp

from icesql.engine.result_schema import ResultColumn, ResultType
from icesql.engine.spark.bind import described_tree
from icesql.engine.spark.fragments.fragment import Division, Fragment, scan_number, scans_in
from icesql.engine.spark.sql.kinds import named
from icesql.engine.spark.tasks import SparkTasks
from icesql.engine.spark.types import SPARK_KINDS
from icesql.iceberg.bounds import decode_bound
from icesql.iceberg.types import DateType, IntegerType, LongType

if TYPE_CHECKING:
    from icesql.scan.plan import ScanPlan

# Every task may read at most this many files again, since it receives their names.
_MOST_WHOLE_FILES: Final = 1_000
# The most that all tasks may read, as a multiple of reading everything once. Spark's joins take 4
# to 20 times the processor time of DuckDB's over the same files (TPC-H SF10 on two cores), so even
# with this factor, and as much time per worker as Spark's share of a worker, fragments cost less.
_MOST_READ: Final = 3
_FASTER: Final = 5
# Bytes that a worker reads at a negligible cost, and bytes that it reads in the time of an exchange
# of Spark's: DuckDB reads lineitem of TPC-H with 150 to 250 MB a second on one core.
_FREE_BYTES: Final = 128 << 20
_EXCHANGE_BYTES: Final = 64 << 20
# The size in memory of a stored byte, and of a value in a hash table.
_EXPANSION: Final = 4
_VALUE_BYTES: Final = 8
# The type that replaces a sum of integers in Spark.
_CARRIER: Final = ResultType("decimal", 38)
_KINDS: Final = {*SPARK_KINDS, "decimal", "hugeint"}


class FragmentChoice:
    """Chooses the fragments that run, by the metadata of the plans of a query.

    DuckDB's ``cursor`` determines types; ``memory`` is DuckDB's limit in a task, in bytes, and
    ``slots`` the number of tasks that may run at once.
    """

    def __init__(
        self, plans: Sequence[ScanPlan], tasks: SparkTasks, cursor: Any, slots: int, memory: int
    ) -> None:
        self._plans, self._tasks, self._cursor = plans, tasks, cursor
        self._slots, self._memory = slots, memory

    def fragment(
        self,
        name: str,
        select: exp.Select,
        candidates: Sequence[int],
        keys: Sequence[exp.Expr] = (),
    ) -> Fragment | None:
        """``select``, which groups by ``keys``, as a fragment over one of ``candidates``.

        None if that would not pay, or is not possible.
        """
        inside = scans_in(select)
        if not inside or not candidates:
            return None
        made = self._made(name, select, inside, self.divided(candidates, inside, keys))
        if made is None or any(each.type.kind == "hugeint" for each in made.columns):
            return None
        return made

    def whole_query(self, name: str, select: exp.Select, inside: Sequence[int]) -> Fragment | None:
        """``select`` over the scans ``inside`` in one task; None if that is too much."""
        made = self._made(name, select, inside, self.undivided(inside))
        if made is None:
            return None
        columns = list(made.columns)
        for at, each in enumerate(list(select.expressions)):
            if columns[at].type.kind == "hugeint":
                # A sum of integers, checked to fit as in a result of the local engine.
                cast = exp.cast(each.unalias().copy(), exp.DataType.build("DECIMAL(38, 0)"))
                each.replace(named(cast, columns[at].name))
                columns[at] = replace(columns[at], type=_CARRIER)
        return replace(made, columns=tuple(columns), is_whole_query=True)

    def _made(
        self, name: str, select: exp.Select, inside: Sequence[int], division: Division | None
    ) -> Fragment | None:
        columns = None if division is None else self.columns(select)
        if division is None or columns is None:
            return None
        whole = tuple(i for i in inside if i != division.scan)
        return Fragment(name, division, whole, select, columns)

    def divided(
        self, candidates: Sequence[int], inside: Sequence[int], keys: Sequence[exp.Expr]
    ) -> Division | None:
        """The division of one of ``candidates``; each task reads all other scans ``inside``.

        It is the largest of them. None if the tasks would read the others too often.
        Using fewer tasks than the scan is packed into means reading the others less often.
        """
        if not self._are_read_in_tasks(inside):
            return None
        scan = max(candidates, key=lambda each: self._plans[each].projected_bytes)
        own = self._plans[scan].projected_bytes
        whole = [each for each in inside if each != scan]
        packed = max(1, len(self._tasks[scan]))
        if not whole:
            cost = self._cost(own, 0, packed)
            return Division(scan, None, cost) if few_groups(self._plans[scan], keys) else None
        again = self._bytes(whole)
        if not self._fits(whole):
            return None
        tasks = packed
        if packed * again > own // 4 and self._plans[scan].settings.split_target_size is None:
            most = (_MOST_READ * (own + again) - own) // max(1, again)
            cheap = own // max(1, 4 * again)
            tasks = max(1, min(packed, most, max(self._slots, cheap - cheap % self._slots)))
        read, cost = own + tasks * again, self._cost(own, again, tasks)
        if read > max(_FREE_BYTES, _MOST_READ * (own + again)):
            return None
        if cost > max(_FREE_BYTES, self._cost_on_spark(own + again)):
            return None
        return Division(scan, None if tasks == packed else tasks, cost)

    def undivided(self, inside: Sequence[int]) -> Division | None:
        """A single task, if it takes less time than Spark would."""
        read = self._bytes(inside)
        if not self._are_read_in_tasks(inside) or not self._fits(inside):
            return None
        if read > max(_FREE_BYTES, self._cost_on_spark(read)):
            return None
        scan = max(inside, key=lambda each: self._plans[each].projected_bytes)
        return Division(scan, 1, read)

    def _are_read_in_tasks(self, scans: Sequence[int]) -> bool:
        """False if the driver has the rows of a scan, or Spark has them as a DataFrame."""
        return all(self._plans[each].metadata is None for each in scans)

    def is_dearer(self, fragments: Sequence[Fragment], left: exp.Expr, alone: Fragment) -> bool:
        """True if ``left``, which reads ``fragments``, costs more than the query in one task.

        Compares the bytes that the busiest worker reads, in stored bytes. An exchange counts as a
        number of bytes, a scan by Spark as several times its own bytes.
        """
        cost = 0
        for table in left.find_all(exp.Table):
            used = [each for each in fragments if each.name == table.name]
            # A WITH query runs once for each of its readers.
            around = table.find_ancestor(exp.CTE)
            times = 1
            if around is not None:
                named_so = (each.name == around.alias for each in left.find_all(exp.Table))
                times = max(1, sum(named_so))
            for each in used:
                exchange = 0 if each.is_one_row else _EXCHANGE_BYTES
                cost += times * (each.division.cost + exchange)
            number = scan_number(table)
            if number is not None:
                own = self._plans[number].projected_bytes
                cost += times * (self._cost_on_spark(own) + _EXCHANGE_BYTES)
        return cost > alone.division.cost

    def _bytes(self, scans: Sequence[int]) -> int:
        return sum(self._plans[each].projected_bytes for each in scans)

    def _cost(self, own: int, again: int, tasks: int) -> int:
        """The bytes that the busiest worker reads if ``own`` is divided between tasks."""
        rounds = -(-tasks // self._slots)
        return rounds * (own // tasks + again)

    def _cost_on_spark(self, read: int) -> int:
        """The bytes that a DuckDB worker could read in the time that Spark takes for ``read``."""
        return _FASTER * read // self._slots

    def _fits(self, scans: Sequence[int]) -> bool:
        """True if a task can hold the scans in memory; DuckDB would spill somewhat larger ones."""
        plans = [self._plans[each] for each in scans]
        values = sum(len(plan.scan.projection.fields) * plan.rows_in_files for plan in plans)
        needed = max(_EXPANSION * self._bytes(scans), _VALUE_BYTES * values)
        return needed <= self._memory and sum(len(p.files) for p in plans) <= _MOST_WHOLE_FILES

    def columns(self, tree: exp.Select) -> tuple[ResultColumn, ...] | None:
        """The columns of a fragment; a type may be hugeint.

        None if it cannot run on its own, or if Spark lacks another of the types.
        """
        import duckdb

        try:
            columns = described_tree(tree, self._plans, self._cursor).declared
        except duckdb.Error:
            # For example, it refers to a column of an outer query: Spark has to run all of it.
            return None
        return columns if all(each.type.kind in _KINDS for each in columns) else None


def few_groups(plan: ScanPlan, keys: Sequence[exp.Expr]) -> bool:
    """True if grouping by ``keys`` probably leaves few rows, judged by column bounds.

    If a key's range is wider than the number of rows, almost all rows would be sent to Spark, which
    costs a fifth more than Spark's reader. Partial results take 0.84 of its time at four rows per
    group, 0.6 at ten (TPC-H SF1 on two cores).
    """
    rows = plan.rows_in_files
    for key in keys:
        column = plan.scan.schema.find_column(key.name) if isinstance(key, exp.Column) else None
        if column is None or not isinstance(column.type, IntegerType | LongType | DateType):
            continue
        bounds: list[Any] = [
            (decode_bound(column.type, low), decode_bound(column.type, high))
            for task in plan.files
            if (low := (task.data_file.lower_bounds or {}).get(column.field_id)) is not None
            and (high := (task.data_file.upper_bounds or {}).get(column.field_id)) is not None
        ]
        if not bounds:
            continue
        lowest, highest = min(low for low, _ in bounds), max(high for _, high in bounds)
        if highest - lowest > rows > 100_000:
            return False
    return True
