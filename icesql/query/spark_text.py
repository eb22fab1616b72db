"""Bind a statement in Spark's dialect: Spark runs its text, the tree determines the scans."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import TYPE_CHECKING

from msgspec.structs import replace
from sqlglot import exp

from icesql.frozen import Frozen
from icesql.iceberg import types as t
from icesql.iceberg.metadata_columns import METADATA_COLUMNS
from icesql.iceberg.schema import Schema
from icesql.query.constants.current_time import clock_time, clock_value
from icesql.query.names import PARTITION
from icesql.query.pushdown.spark_conditions import SparkConditions
from icesql.sql.positions import unsupported
from icesql.sql.spark_text.spark_text import SparkText

__all__ = ["SparkConditions", "bind_text", "spark_statement"]

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from icesql.context import QueryContext
    from icesql.scan.table_scan import TableScan
    from icesql.sql.statement import Query

_REFUSED = (
    t.TimeType | t.TimestampNanoType | t.TimestamptzNanoType | t.VariantType | t.GeometryType
    | t.GeographyType
)  # fmt: skip
# Spark's names of clock functions, and DuckDB's.
_CLOCKS = {"curdate": "current_date"} | {
    name: name for name in ("now", "current_timestamp", "current_date", "localtimestamp")
}


class BoundSparkText(Frozen):
    """A text with clock functions; ``clocks`` has the SQL of their values by name in lower case."""

    text: SparkText
    clocks: Mapping[str, str]

    def final(self, tables: Sequence[str]) -> tuple[str, Callable[[int], int]]:
        """See ``SparkText.final``."""
        return self.text.final(tables, self.clocks)

    def checked(self, scans: Sequence[TableScan]) -> tuple[TableScan, ...]:
        """The scans with every column that the text may name. Raises UnsupportedSqlError."""
        text = self.text
        # A name missing from the tree could otherwise resolve to a column of an outer query.
        found = []
        for scan in scans:
            exposed = {each.field_id for each in scan.projection.fields}
            own = {each.field_id for each in scan.schema.fields}
            lowered = [each.name.lower() for each in scan.schema.fields]
            columns = [
                each
                for each in scan.schema.fields
                if each.field_id in exposed or each.name.lower() in text.words
            ]
            for each in columns:
                if lowered.count(each.name.lower()) > 1:
                    raise unsupported(
                        f'the column {each.name} of table "{scan.table.name}" in Spark\'s text',
                        text.start,
                        "its columns differ only in case",
                    )
                if _has_refused(each.type):
                    raise unsupported(
                        f"the column {each.name} of type {each.type} in Spark's text", text.start
                    )
            hidden = [each for each in scan.projection.fields if each.field_id not in own]
            if hidden and text.tree.find(exp.Star) is not None:
                raise unsupported(
                    f"* beside the metadata column {hidden[0].name}",
                    text.start,
                    "name the columns of the table",
                )
            fields = (*columns, *hidden)
            found.append(
                replace(scan, projection=Schema(fields, schema_id=scan.projection.schema_id))
            )
        names = {each.name.lower() for scan in scans for each in scan.schema.fields}
        text.check_names(frozenset(names | set(METADATA_COLUMNS) | {PARTITION}))
        return tuple(found)

    def named(self, tables: Sequence[str]) -> str | None:
        """The text with clock functions, from which Spark names columns; None without any."""
        return self.text.final(tables, None)[0] if self.text.clocks else None


def spark_statement(statement: Query) -> Query:
    """The statement with the tree of its Spark text. Raises the error if Spark cannot run it."""
    text = statement.spark() if callable(statement.spark) else statement.spark
    if not isinstance(text, SparkText):
        assert text is not None
        raise text
    return replace(statement, tree=text.tree, refused=None, spark=text)


def bind_text(statement: Query, query: QueryContext) -> BoundSparkText:
    """The text with the time of the statement.

    Raises UnsupportedSqlError if tree and text differ in their clock functions.
    """
    text = statement.spark
    assert isinstance(text, SparkText)
    in_tree = sum(clock_time(each, query) is not None for each in text.tree.find_all(exp.Func))
    if in_tree != text.clocks:
        raise unsupported("a clock function at this place", text.start)
    clocks = {}
    for name, own in _CLOCKS.items():
        match clock_value(own, query):
            case datetime() as moment if moment.tzinfo is not None:
                written = moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S.%f")
                clocks[name] = f"TIMESTAMP_LTZ'{written} UTC'"
            case datetime() as moment:
                clocks[name] = f"TIMESTAMP_NTZ'{moment.strftime('%Y-%m-%d %H:%M:%S.%f')}'"
            case date() as day:
                clocks[name] = f"DATE'{day.isoformat()}'"
            case _:
                raise AssertionError(name)
    return BoundSparkText(text, clocks)


def _has_refused(node: t.IcebergType) -> bool:
    return isinstance(node, _REFUSED) or any(_has_refused(each.type) for each in t.children(node))
