"""The entry point of this folder: translate a bound statement's tree to DuckDB's meaning."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from sqlglot import exp

from icesql.errors import UnsupportedSqlError
from icesql.iceberg.schema import Schema
from icesql.sql.grammar import SPARK
from icesql.sql.parser.sqlglot_releases import TRANSLATED

if TYPE_CHECKING:
    from icesql.query.views.temporary import TemporaryTable


def translate(
    tree: exp.Expr,
    schemas: Sequence[Schema],
    dialect: str,
    timezone: str,
    temporary: Sequence[TemporaryTable] = (),
) -> None:
    """Rewrite a tree of ``dialect`` in place; ``schemas`` are those of its ``"__scan_<i>"`` tables.

    ``temporary`` are its ``"__temp_<i>"`` tables.

    Raises UnsupportedSqlError at the offset of a construct that the dialect's table does not have.
    """
    from icesql.query.dialects.types import of_engine

    ctes = {
        f"__temp_{index}": tuple((name, of_engine(engine)) for name, _, engine in table.columns)
        for index, table in enumerate(temporary)
    }
    if dialect != SPARK:
        from icesql.query.dialects.trino_snowflake.translation import translate as by_vendor

        by_vendor(tree, schemas, dialect, ctes)
        return
    from icesql.query.dialects.spark.instants import resolved
    from icesql.query.dialects.spark.queries import SparkQueries

    queries = SparkQueries(schemas, timezone)
    queries.ctes.update(ctes)
    queries.translate(tree)
    resolved(tree, timezone)
    tree.meta[TRANSLATED] = True


def translated_time(time: exp.Expr, timezone: str) -> exp.Expr:
    """A time to travel to, translated from Spark's dialect; unchanged if it is not translatable."""
    from icesql.query.dialects.queries import Scope
    from icesql.query.dialects.spark.expressions import Expressions
    from icesql.query.dialects.spark.instants import resolved
    from icesql.query.dialects.spark.queries import SparkQueries

    if not time.find(exp.Func, exp.Interval):
        return time
    try:
        found = Expressions(Scope(), SparkQueries((), timezone)).of(time.copy())
    except UnsupportedSqlError:
        return time  # may be sqlglot's own nodes, which the caller checks
    return resolved(found.node, timezone)


# ------------------------------------------------------------------ calls of instants
# They represent instants computed from a wall clock; see ``spark/instants``.


# Arguments: a DATE or TIMESTAMP and optionally its zone, the session's by default; a unit and an
# and the months to go.
FIRST_INSTANT: Final = "first_instant"
TRUNCATED: Final = "instant_truncated"
MOVED: Final = "instant_moved"
MOVED_BACK: Final = "instant_moved_back"

INSTANTS: Final = frozenset({FIRST_INSTANT, TRUNCATED, MOVED, MOVED_BACK})
