"""Run the rest of a query in DuckDB on the driver, over partial results of one row per task.

    SELECT sum(a0), sum(a1) / sum(a2) FROM partials

Without GROUP BY each task returns one row. For these few rows Spark would plan a shuffle and two
stages, which takes longer than the tasks of a short query.
"""

from __future__ import annotations

import secrets
from collections.abc import Generator, Sequence
from typing import TYPE_CHECKING, Any

from sqlglot import exp
from sqlglot.errors import ErrorLevel

from icesql.engine.duckdb.described import register
from icesql.engine.duckdb.errors import translate
from icesql.engine.duckdb.sql.splice import rename_tables
from icesql.engine.duckdb.tasks.rows import batches_of
from icesql.engine.result_schema import (
    ResultColumn,
    arrow_schema,
    cast_batch,
    declare,
    declared_expression,
    selected,
)
from icesql.engine.spark.fragments.fragment import Fragment
from icesql.engine.spark.sql.dialect import spelled_sql, write_added
from icesql.frozen import Frozen

if TYPE_CHECKING:
    import pyarrow as pa

    from icesql.context import QueryContext
    from icesql.engine.duckdb.instance import InstancePool


def _merged_sql(node: exp.Expr) -> str:
    """SQL that means the same in Spark and in DuckDB."""
    text, engine_type = spelled_sql(node, _duckdb_text), node.args.get("engine_type")
    return f"CAST({text} AS {engine_type})" if engine_type else text


def _duckdb_text(node: exp.Expr) -> str:
    return str(node.sql(dialect="duckdb", unsupported_level=ErrorLevel.IGNORE))


class Rest(Frozen):
    """SQL over the rows of one fragment, which it reads as table ``name``; returns ``columns``."""

    sql: str
    name: str
    schema: pa.Schema
    columns: tuple[ResultColumn, ...]

    def rows(
        self,
        partials: Generator[pa.RecordBatch, None, None],
        pool: InstancePool,
        query: QueryContext,
    ) -> Generator[pa.RecordBatch, None, None]:
        """The result, after reading and closing ``partials``. Raises icesql errors."""
        import duckdb
        import pyarrow as pa

        try:
            table = pa.Table.from_batches(partials, self.schema)
        finally:
            partials.close()
        instance, cursor = pool.cursor((), query.settings)
        try:
            register(cursor, self.name, table)
            schema = arrow_schema(self.columns)
            for batch in batches_of(cursor, self.sql, {}, query):
                yield cast_batch(batch, schema)
        except duckdb.Error as error:
            raise translate(error, ()) from error
        finally:
            instance.release(cursor)


def rest_of(
    tree: exp.Expr, fragments: Sequence[Fragment], columns: Sequence[ResultColumn], cursor: Any
) -> Rest | None:
    """The rest of a cut tree if it reads only one row of each task; else None.

    ``columns`` are the query's columns, which the rest has to return.
    """
    import duckdb
    import pyarrow as pa

    if len(fragments) != 1 or not fragments[0].is_one_row:
        return None
    (fragment,) = fragments
    if {table.name for table in tree.find_all(exp.Table)} != {fragment.name}:
        return None
    name = f"{fragment.name}_{secrets.token_hex(4)}"
    renamed = tree.copy()
    rename_tables(renamed, {fragment.name: name})
    sql = _duckdb_text(write_added(renamed, _merged_sql))
    schema = arrow_schema(fragment.columns)
    register(cursor, name, pa.Table.from_batches([], schema))
    try:
        kinds = cursor.sql(sql).types
    except duckdb.Error:
        # Fall back to Spark, which reports why it is not supported.
        return None
    finally:
        cursor.unregister(name)
    if [declare(kind) for kind in kinds] != [column.type for column in columns]:
        return None
    casts = [declared_expression(f"q.c{at}", kind) for at, kind in enumerate(kinds)]
    return Rest(selected(sql, casts), name, schema, tuple(columns))
