"""What DuckDB's parser makes of statements, kept for texts that are run again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from icesql.engine.duckdb.instance import InstancePool
from icesql.engine.duckdb.sql.engine_tree import EngineTree, parse
from icesql.errors import Error
from icesql.storage.cache import BoundedCache, kept

if TYPE_CHECKING:
    from sqlglot import exp

    from icesql.context import QueryContext

_MOST_BYTES: Final = 16 << 20
_LONGEST_KEPT: Final = 10_000
# Of a tree, by letters of its text.
_LETTER_BYTES: Final = 100


class EngineReading:
    """Compares statements with DuckDB's reading of their text. Safe for threads."""

    def __init__(self, pool: InstancePool) -> None:
        self._pool = pool
        self._trees = BoundedCache(_MOST_BYTES)

    def mark(self, tree: exp.Expr, text: str, start: int, query: QueryContext) -> None:
        """Mark the nodes of ``tree`` that say what DuckDB reads; none where it cannot read it."""
        from icesql.engine.duckdb.sql.same.queries import mark_tree

        found = self._tree(text, query)
        if found is not None:
            mark_tree(tree, found, start)

    def forget(self) -> None:
        """Parse every text anew."""
        self._trees.clear()

    def ask(
        self, sql: str, parameters: Sequence[Any], query: QueryContext
    ) -> list[tuple[Any, ...]] | None:
        """The rows of a query without tables, None where the engine raises."""
        import duckdb

        query.check()
        try:
            with self._pool.asking(query.settings) as cursor:
                rows: list[tuple[Any, ...]] = cursor.execute(sql, list(parameters)).fetchall()
                return rows
        except (duckdb.Error, Error):
            return None

    def _tree(self, text: str, query: QueryContext) -> EngineTree | None:
        def parsed() -> tuple[tuple[EngineTree | None], int]:
            return (self._parsed(text, query),), _LETTER_BYTES * len(text)

        (tree,) = kept(self._trees, text if len(text) <= _LONGEST_KEPT else None, parsed)
        return tree

    def _parsed(self, text: str, query: QueryContext) -> EngineTree | None:
        try:
            with self._pool.parsing(query.settings) as cursor:
                return parse(cursor, text)
        except Error:
            return None  # the engine says what is wrong with it when it runs the text
