"""Which fragments are worth running: what a task reads more against what crosses less."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from sqlglot import exp

from icesql.engine.duckdb.described import with_relations
from icesql.engine.duckdb.relations.relation import empty_relation
from icesql.engine.duckdb.sql.nanosecond_types import adapted_types
from icesql.engine.duckdb.sql.splice import spliced_sql
from icesql.engine.result_schema import declare
from icesql.engine.spark.tasks import SparkTasks
from icesql.iceberg.bounds import decode_bound
from icesql.iceberg.types import DateType, IntegerType, LongType

if TYPE_CHECKING:
    from icesql.scan.plan import ScanPlan

# Stored bytes that every task may read again, and files, as their names travel with each task.
_MOST_WHOLE_BYTES: Final = 256 << 20
_MOST_WHOLE_FILES: Final = 1_000
# What a worker reads again at no cost worth counting: 0.6 s of DuckDB on one core
# for lineitem of TPC-H.
_FREE_BYTES: Final = 128 << 20

_SPARK_TYPES: Final = {
    "boolean": "BOOLEAN",
    "tinyint": "TINYINT",
    "smallint": "SMALLINT",
    "integer": "INT",
    "bigint": "BIGINT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "date": "DATE",
    "varchar": "STRING",
    "timestamp": "TIMESTAMP_NTZ",
    "timestamptz": "TIMESTAMP_LTZ",
}


class FragmentChoice:
    """Chooses by the metadata of the plans of a query; see ``fragment.Choice``.

    ``cursor`` is DuckDB's, which knows the types.
    """

    def __init__(self, plans: Sequence[ScanPlan], tasks: SparkTasks, cursor: Any) -> None:
        self._plans, self._tasks, self._cursor = plans, tasks, cursor

    def divided(
        self, candidates: Sequence[int], inside: Sequence[int], keys: Sequence[exp.Expr]
    ) -> int | None:
        """The largest of ``candidates``, unless the tasks would read the others too often."""
        scan = max(candidates, key=lambda each: self._plans[each].projected_bytes)
        plan = self._plans[scan]
        whole = [self._plans[each] for each in inside if each != scan]
        if not whole:
            return scan if few_groups(plan, keys) else None
        again = sum(each.projected_bytes for each in whole)
        if again > _MOST_WHOLE_BYTES or sum(len(each.files) for each in whole) > _MOST_WHOLE_FILES:
            return None
        slots = self._tasks.slots
        rounds = -(-len(self._tasks[scan]) // slots)
        own = plan.projected_bytes // slots
        return scan if again * max(1, rounds) <= max(own, _FREE_BYTES) else None

    def columns(self, scans: Sequence[int], tree: exp.Select) -> tuple[tuple[str, str], ...] | None:
        """Names and Spark types of the fragment's columns; None if Spark lacks one of the types."""
        import duckdb

        empty = {
            f"__scan_{scan}": empty_relation(self._plans[scan].scan.projection).sql
            for scan in scans
        }
        adapted = adapted_types(tree, [plan.scan.projection for plan in self._plans])
        try:
            with_relations()
            relation = self._cursor.sql(spliced_sql(adapted, empty))
        except duckdb.Error:
            # It names a column of a query around it, say: the whole is for Spark.
            return None
        found = [_spark_type(each) for each in relation.types]
        if any(name is None for name in found):
            return None
        return tuple(zip(relation.columns, map(str, found), strict=True))


def _spark_type(kind: Any) -> str | None:
    declared = declare(kind)
    if declared.kind == "decimal":
        return f"DECIMAL({declared.precision},{declared.scale})"
    return _SPARK_TYPES.get(declared.kind)


def few_groups(plan: ScanPlan, keys: Sequence[exp.Expr]) -> bool:
    """Whether grouping by ``keys`` may leave few rows, judged by column bounds.

    A key of a wider range than there are rows would cross to Spark almost unreduced, which costs
    a fifth more than Spark's reader. Partial results take 0.84 of its time at four rows a group,
    0.6 at ten (TPC-H SF1 on two cores).
    """
    rows = sum(max(0, task.data_file.record_count) for task in plan.files)
    for key in keys:
        column = plan.scan.schema.find_column(key.name) if isinstance(key, exp.Column) else None
        if column is None or not isinstance(column.type, IntegerType | LongType | DateType):
            continue
        low: Any = None
        high: Any = None
        for task in plan.files:
            file = task.data_file
            bounds = [
                None if (raw := (each or {}).get(column.field_id)) is None
                else decode_bound(column.type, raw)
                for each in (file.lower_bounds, file.upper_bounds)
            ]  # fmt: skip
            if None not in bounds:
                low = bounds[0] if low is None else min(low, bounds[0])
                high = bounds[1] if high is None else max(high, bounds[1])
        if low is not None and high is not None and high - low > rows > 100_000:
            return False
    return True
