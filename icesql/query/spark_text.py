"""Statements in Spark's dialect: Spark runs the text, the tree determines scans and conditions."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace
from sqlglot import exp

from icesql.config import time_zone
from icesql.frozen import Frozen
from icesql.iceberg import types as t
from icesql.iceberg.schema import METADATA_COLUMNS, Schema
from icesql.query.constants.volatile import clock_time, clock_value
from icesql.query.names import PARTITION, Resolve
from icesql.query.pushdown.computed.expression import COMPARISONS, Expression
from icesql.query.pushdown.computed.sql import type_sql
from icesql.query.pushdown.predicate import resolved_in
from icesql.sql.parser.literal_list import LiteralList
from icesql.sql.positions import unsupported
from icesql.sql.spark_sql import SparkText

if TYPE_CHECKING:
    from icesql.context import QueryContext


# ------------------------------------------------------------------ conditions
# Spark itself runs a text in its own dialect. The tree is pruned by DuckDB's rules, so a condition
# is pushed only if both are known to give the same answer for every row.


_COMPARED: Final = (*COMPARISONS, "in", "between", "is not distinct from", "is distinct from")
_EXACT: Final = (t.IntegerType, t.LongType, t.DecimalType, t.DoubleType)
_TIMES: Final = (t.DateType, t.TimestampType, t.TimestamptzType)
_LISTS: Final[dict[str, tuple[type, ...]]] = {
    "text": (t.StringType,), "integer": (t.IntegerType, t.LongType), "date": (t.DateType,),
}  # fmt: skip
_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d")
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d{1,6})?")
_ZONED: Final = re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d{1,6})?\+00:00")
_NUMBER: Final = re.compile(r"-?\d{1,18}(\.\d{1,18})?")


class SparkConditions:
    """Finds the reason why a condition is not known to mean the same in Spark."""

    def __init__(self, query: QueryContext) -> None:
        self._query = query
        self._zone = time_zone(query.settings.timezone)
        self._utc = query.settings.timezone.upper() == "UTC"

    def reason(self, condition: Expression, resolve: Resolve) -> str | None:
        """The reason, None for a condition that may be pushed."""
        same = self._same(resolved_in(condition, resolve, self._query))
        return None if same else "Spark may read it in another way"

    def _same(self, each: Expression) -> bool:
        parts = each.arguments
        match each.name:
            case "and" | "or" | "not":
                return all(map(self._same, parts))
            case "is null" | "is not null":
                return parts[0].name == "input"
            case "input":
                return isinstance(each.value.type, t.BooleanType)
            case "cast" if each.value == "BOOLEAN":
                return self._same(parts[0])
            case "~~" | "!~~" if len(parts) == 2:
                text = parts[1].text
                return text is not None and "\\" not in text and parts[0].is_column(t.StringType)
            case "in" if len(parts) == 2 and parts[1].name == "list":
                values: LiteralList = parts[1].value
                return parts[0].is_column(*_LISTS.get(values.kind, ()))
            case name if name in _COMPARED:
                sides = [parts, parts[::-1]] if len(parts) == 2 else [parts]
                return any(self._fits(side, values) for side, *values in sides)
            case _:
                return False

    def _fits(self, side: Expression, values: Sequence[Expression]) -> bool:
        column = _side(side)
        return column is not None and all(self._value(each, column) for each in values)

    def _value(self, each: Expression, column: t.IcebergType) -> bool:
        if each.name == "cast" and (text := each.arguments[0].text) is not None:
            return self._time(text, str(each.value), column)
        if each.name != "literal":
            return False
        match each.value[0], column:
            case "NULL", _:
                return True
            case "BOOLEAN", _:
                return isinstance(column, t.BooleanType)
            case "INTEGER" | "NUMERIC", _:
                return isinstance(column, _EXACT) and bool(_NUMBER.fullmatch(each.value[1]))
            case _, t.StringType():
                return "\\" not in each.value[1]
            case _:
                return self._time(each.value[1], type_sql(column), column)

    def _time(self, text: str, kind: str, column: t.IcebergType) -> bool:
        """Whether a time literal beside a column is complete and one instant in both engines."""
        local = bool(_DATE.fullmatch(text) or _TIME.fullmatch(text))
        match kind, column:
            case "DATE", t.DateType() | t.TimestampType():
                return bool(_DATE.fullmatch(text)) and _moment(text) is not None
            case "DATE", t.TimestamptzType():
                return bool(_DATE.fullmatch(text)) and self._is_one_instant(text)
            case "TIMESTAMP", t.TimestampType():
                return local and _moment(text) is not None
            case "TIMESTAMPTZ", t.TimestamptzType():
                return bool(_ZONED.fullmatch(text)) or (local and self._is_one_instant(text))
            case "TIMESTAMPTZ", t.TimestampType():
                # Spark reads the column as local times of the session.
                return self._utc and (bool(_ZONED.fullmatch(text)) or local)
            case _:
                return False

    def _is_one_instant(self, text: str) -> bool:
        """Whether clocks neither skip nor repeat a local time."""
        moment = _moment(text)
        if moment is None:
            return False
        offsets = {moment.replace(tzinfo=self._zone, fold=fold).utcoffset() for fold in (0, 1)}
        return len(offsets) == 1 and moment.year >= 1970


def _side(each: Expression) -> t.IcebergType | None:
    """The type of a column, or of a date or year extracted from one, else None."""
    if each.name == "input":
        return each.value.type  # type: ignore[no-any-return]
    *unit, inner = each.arguments or (each,)
    is_date = each.name == "cast" and each.value == "DATE"
    is_year = each.name == "year" or [part.text.upper() for part in unit if part.text] == ["YEAR"]
    if is_year and inner.name == "cast" and inner.value == "DATE":
        inner = inner.arguments[0]
    is_part = is_date or (is_year and each.name in ("year", "date_part"))
    if not is_part or not inner.is_column(*_TIMES):
        return None
    return t.DATE if is_date else t.INTEGER


def _moment(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None


# ------------------------------------------------------------------ the text


__all__ = ["SparkConditions", "bind_text", "spark_statement"]

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from icesql.context import QueryContext
    from icesql.scan.plan import TableScan
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
