"""The columns of a query, bound by DuckDB over empty tables: its types are the contract."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any

from icesql.engine.duckdb.described import Described, describe
from icesql.engine.duckdb.errors import translate
from icesql.engine.duckdb.relations.relation import empty_relation
from icesql.engine.duckdb.sql.adapted import adapter_of
from icesql.engine.duckdb.sql.bind_sql import bind_sql
from icesql.engine.duckdb.sql.checked import check_written
from icesql.engine.duckdb.sql.composed import spliced_sql
from icesql.engine.result_schema import ResultColumn
from icesql.engine.spark.sql.dialect import qualified
from icesql.engine.spark.sql.kinds import refuse
from icesql.sql.parser.literal_list import spread
from icesql.storage.cache import BoundedCache

if TYPE_CHECKING:
    from sqlglot import exp

    from icesql.config import Settings
    from icesql.query.bound import BoundQuery
    from icesql.scan.plan import ScanPlan


def declared_columns(
    bound: BoundQuery, plans: Sequence[ScanPlan], cursor: Any, settings: Settings
) -> tuple[exp.Expr, tuple[ResultColumn, ...]]:
    """The qualified tree of a query, and its columns as the local engine would return them.

    Raises ProgrammingError for SQL that DuckDB refuses, UnsupportedSqlError if the qualified
    tree would have another meaning.
    """
    import duckdb

    def run(sql: str, _: object) -> Described:
        return describe(cursor, sql)

    def check(text: str, tables: Collection[str]) -> str:
        check_written(text, cursor, tables)
        return text

    written = bound.tree
    try:
        # The columns in the local engine, which binds the user's own text.
        wanted = bind_sql(bound, _empty(plans), run, cursor, settings, None, BoundedCache())
        if bound.has_lists:
            written = written.copy()
            spread(written)
        tree = qualified(written, bound.scans)
        found = described_tree(tree, plans, cursor, check)
    except duckdb.Error as error:
        raise translate(error, ()) from error
    if list(map(str, wanted.types)) != list(map(str, found.types)):
        raise refuse("a statement with names that cannot be resolved")
    return tree, wanted.declared


def _empty(plans: Sequence[ScanPlan]) -> dict[str, str]:
    return {
        f"__scan_{index}": empty_relation(plan.scan.projection).sql
        for index, plan in enumerate(plans)
    }


def described_tree(
    tree: exp.Expr,
    plans: Sequence[ScanPlan],
    cursor: Any,
    check: Callable[[str, Collection[str]], str] | None = None,
) -> Described:
    """The columns of a tree in DuckDB; ``check`` as for ``spliced_sql``. Raises DuckDB's errors."""
    adapter = adapter_of(tree, [plan.scan.projection for plan in plans], cursor)
    return describe(cursor, spliced_sql(tree, _empty(plans), check, adapter))
