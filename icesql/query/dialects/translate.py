"""The door of this room: a bound statement's tree from its dialect's meaning into DuckDB's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from msgspec.structs import replace
from sqlglot import exp

from icesql.errors import UnsupportedSqlError
from icesql.iceberg.schema import Schema
from icesql.sql.function_table import SPARK
from icesql.sql.parser.writing import TRANSLATED
from icesql.sql.positions import unsupported
from icesql.sql.statement import Query, TableReference
from icesql.sql.time_travel import AtTime, Before

if TYPE_CHECKING:
    from icesql.query.views.temporary import TemporaryTable


def translate(
    tree: exp.Expr,
    schemas: Sequence[Schema],
    dialect: str,
    timezone: str,
    temporary: Sequence[TemporaryTable] = (),
) -> None:
    """Rewrite a tree of ``dialect`` in place; ``schemas`` are those of its ``"__scan_<i>"``.

    ``temporary`` are its ``"__temp_<i>"``.

    Raises UnsupportedSqlError at the place of what has no row in the table of its dialect.
    """
    from icesql.query.dialects.types import of_engine

    ctes = {
        f"__temp_{index}": tuple((name, of_engine(engine)) for name, _, engine in table.columns)
        for index, table in enumerate(temporary)
    }
    if dialect != SPARK:
        from icesql.query.dialects.vendors.translation import translate as by_vendor

        by_vendor(tree, schemas, dialect, ctes)
        return
    from icesql.query.dialects.spark.instants import resolved
    from icesql.query.dialects.spark.queries import SparkQueries

    queries = SparkQueries(schemas, timezone)
    queries.ctes.update(ctes)
    queries.translate(tree)
    resolved(tree, timezone)
    tree.meta[TRANSLATED] = True


def translated_travels(statement: Query, timezone: str) -> tuple[TableReference, ...]:
    """The references of a statement, the expressions of their times in DuckDB's meaning.

    Raises UnsupportedSqlError for AT TIME ZONE, which gives Trino an instant, DuckDB a clock time.
    """
    if statement.translated:
        for each in statement.references:
            _check_zones(each)
    if statement.translated != SPARK:
        return statement.references
    return tuple(_translated_travel(each, timezone) for each in statement.references)


def _check_zones(reference: TableReference) -> None:
    changes = reference.changes
    travels = (reference.travel,) if changes is None else (changes.start, changes.end)
    for each in travels:
        travel = each.travel if isinstance(each, Before) else each
        if isinstance(travel, AtTime) and travel.expression.find(exp.AtTimeZone, exp.FromTimeZone):
            raise unsupported(
                "AT TIME ZONE in a time to travel to",
                travel.offset,
                "write the zone into the text: TIMESTAMP '2026-01-31 12:00:00 Europe/Vienna'",
            )


def _translated_travel(reference: TableReference, timezone: str) -> TableReference:
    """The reference with the expression of its time in DuckDB's meaning."""
    from icesql.query.dialects.scope import Scope
    from icesql.query.dialects.spark.expressions import Expressions
    from icesql.query.dialects.spark.instants import resolved
    from icesql.query.dialects.spark.queries import SparkQueries

    travel = reference.travel
    if isinstance(travel, Before) and isinstance(travel.travel, AtTime):
        inner = _translated_travel(replace(reference, travel=travel.travel), timezone).travel
        return replace(reference, travel=Before(cast("AtTime", inner)))
    if not isinstance(travel, AtTime) or not travel.expression.find(exp.Func, exp.Interval):
        return reference
    try:
        found = Expressions(Scope(), SparkQueries((), timezone)).of(travel.expression.copy())
    except UnsupportedSqlError:
        return reference  # folding knows sqlglot's own nodes, and refuses what it does not know
    moment = resolved(found.node, timezone)
    moment.meta[TRANSLATED] = True
    return replace(reference, travel=replace(travel, expression=moment))
