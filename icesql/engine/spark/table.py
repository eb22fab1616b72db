"""A table as ``format("icesql")`` names it: found, put at a snapshot, and planned.

Runs in the Python processes that plan for Spark, never on a query's way.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from icesql.config import Settings
from icesql.context import QueryContext
from icesql.errors import (
    ColumnNotFoundError,
    ProgrammingError,
    SnapshotNotFoundError,
    TableNotFoundError,
    similar_names,
)
from icesql.iceberg.expressions.predicate import ALWAYS_TRUE, Operation, Predicate, Term
from icesql.iceberg.schema import Schema
from icesql.iceberg.snapshot import Snapshot
from icesql.iceberg.types import NestedField, PrimitiveType
from icesql.scan.task import CombinedScanTask

if TYPE_CHECKING:
    from icesql.catalog.open import Table
    from icesql.scan.table_scan import TableScan

_TRAVEL: Final = ("snapshot-id", "as-of-timestamp", "branch", "tag")


@dataclass(frozen=True)
class TableSource:
    """Options of a read, and how to connect; ``connect`` may hold credentials and shows nothing."""

    options: Mapping[str, str]
    connect: Mapping[str, Any]

    def __repr__(self) -> str:
        return "TableSource()"

    def option(self, name: str) -> str | None:
        """An option in any case, None when it is not given."""
        lower = {key.lower(): value for key, value in self.options.items()}
        return lower.get(name)

    def table(self) -> Table:
        """The table of ``load("catalog.db.table" | path)``. Raises TableNotFoundError."""
        from icesql.catalog.open import open_catalog, open_table

        name = self.option("path")
        if not name:
            raise ProgrammingError('load() needs a table: "catalog.db.table" or a path')
        if "/" in name or name.endswith(".json"):
            return open_table(name, properties=self.connect.get("properties"))
        catalog = open_catalog(**self.connect)
        try:
            parts = tuple(name.split("."))
            try:
                return catalog.load(parts)
            except TableNotFoundError:
                if len(parts) < 2 or parts[0].lower() != catalog.name.lower():
                    raise
                return catalog.load(parts[1:])
        finally:
            catalog.close()

    def scan(self, table: Table) -> TableScan:
        """The scan of the snapshot and columns that the options ask for."""
        from icesql.scan.table_scan import TableScan

        snapshot, schema = self._snapshot(table)
        return TableScan(table, snapshot, schema, self.projection(schema))

    def _snapshot(self, table: Table) -> tuple[Snapshot | None, Schema]:
        from icesql.query.snapshot_selection import select_snapshot
        from icesql.sql.time_travel import AsOf, SnapshotId, VersionText

        given = {name: text for name in _TRAVEL if (text := self.option(name)) is not None}
        if len(given) > 1:
            raise ProgrammingError(f"give one of {' and '.join(given)}, not both")
        travel: Any = None
        for name, text in given.items():
            if name in ("branch", "tag"):
                ref = table.metadata.refs.get(text)
                if ref is None or ref.kind != name:
                    raise SnapshotNotFoundError(
                        f'{name} "{text}"',
                        table=table.name,
                        similar=similar_names(text, table.metadata.refs),
                    )
                # A name of digits would be taken for a snapshot id.
                travel = VersionText(text) if not text.isdigit() else SnapshotId(ref.snapshot_id)
            elif name == "snapshot-id":
                travel = SnapshotId(_whole(name, text))
            else:
                travel = AsOf(_whole(name, text) * 1000, text)
        found = select_snapshot(table, travel, self.query())
        return found.snapshot, found.schema

    def projection(self, schema: Schema) -> Schema:
        """The columns of the option ``columns`` ("a, b"), all of them without it."""
        wanted = self.option("columns")
        if wanted is None:
            return schema
        names = [name.strip() for name in wanted.split(",") if name.strip()]
        columns = []
        for name in names:
            column = schema.find_column(name)
            if column is None:
                raise ColumnNotFoundError(
                    name, similar=similar_names(name, (each.name for each in schema.fields))
                )
            columns.append(column.field_id)
        return schema.select(columns)

    def query(self) -> QueryContext:
        """A context with the option ``split-size`` if there is one."""
        settings = Settings()
        size = self.option("split-size")
        if size is not None:
            settings = settings.with_text("split_target_size", size)
        return QueryContext(settings=settings)

    def tasks(self, scan: TableScan) -> Sequence[CombinedScanTask]:
        """The combined tasks of a scan."""
        from icesql.scan.planner import plan

        return plan(scan, self.query()).tasks


def _whole(name: str, text: str) -> int:
    try:
        return int(text)
    except ValueError as error:
        raise ProgrammingError(f'option "{name}": {text!r} is not a whole number') from error


# ------------------------------------------------------------------ filters


def predicate_of(filters: Iterable[Any], schema: Schema) -> Predicate:
    """What PySpark's filters imply; Spark evaluates every one of them again."""
    found: Predicate = ALWAYS_TRUE
    for each in filters:
        found = found & _of_filter(each, schema)
    return found


def _of_filter(given: Any, schema: Schema) -> Predicate:
    from icesql.iceberg.expressions.literals import compare

    kind = type(given).__name__
    operation = _OPERATIONS.get(kind)
    column = _column(getattr(given, "attribute", ()), schema)
    if operation is None or column is None:
        return ALWAYS_TRUE
    term = Term(column.field_id, column.name)
    if operation in (Operation.IS_NULL, Operation.NOT_NULL):
        return compare(operation, term, column.type, None)
    value = getattr(given, "value", None)
    found = compare(operation, term, column.type, value)
    if operation in (Operation.GT, Operation.GT_EQ):
        from icesql.iceberg.types import is_floating

        if is_floating(column.type):
            # Spark orders NaN above every number.
            found = found | compare(Operation.IS_NAN, term, column.type, None)
    return found


_OPERATIONS: Final = {
    "EqualTo": Operation.EQ,
    "GreaterThan": Operation.GT,
    "GreaterThanOrEqual": Operation.GT_EQ,
    "LessThan": Operation.LT,
    "LessThanOrEqual": Operation.LT_EQ,
    "In": Operation.IN,
    "IsNull": Operation.IS_NULL,
    "IsNotNull": Operation.NOT_NULL,
    "StringStartsWith": Operation.STARTS_WITH,
}


def _column(path: Sequence[str], schema: Schema) -> NestedField | None:
    """The column of a filter; nested ones and those that Spark holds otherwise are not used."""
    from icesql.engine.spark.types import is_carried

    if len(path) != 1:
        return None
    column = schema.find_column(path[0])
    if column is None or not isinstance(column.type, PrimitiveType) or is_carried(column.type):
        return None
    return column
