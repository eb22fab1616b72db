"""Choose the SQL that runs for a bound query: the user's own text, or its tree written back.

The user's text runs if it is in DuckDB's dialect and every expression can stay or be replaced in
place. Otherwise the SQL is written from the tree.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any

from icesql.config import Settings
from icesql.engine.duckdb.sql.adapted import adapter_of
from icesql.engine.duckdb.sql.checked import check_written
from icesql.engine.duckdb.sql.composed import Composed, compose
from icesql.engine.duckdb.sql.long_lists import with_constants
from icesql.engine.duckdb.sql.own_words import CheckedText, T
from icesql.engine.duckdb.sql.size_guards import guard_calls
from icesql.engine.duckdb.sql.splice import spliced_sql
from icesql.sql.positions import unsupported
from icesql.sql.trees import exp
from icesql.sql.user_text import UserText

if TYPE_CHECKING:
    from icesql.engine.duckdb.prepared_run import PreparedRun
    from icesql.query.bound import BoundQuery
    from icesql.storage.cache import BoundedCache

_ONLY_TEXT_HINT = "put the rest of it into a derived table"


def bind_sql(
    bound: BoundQuery,
    sources: Mapping[str, str],
    run: Callable[[str, Composed | None], T],
    cursor: Any,
    settings: Settings,
    scanned: int | None,
    texts: BoundedCache,
    prepared: PreparedRun | None = None,
) -> T:
    """The result of ``run(SQL, its mapping to the user's text)``; None is passed without a mapping.

    ``sources`` are the SQL of the tree's tables, ``scanned`` is the number of rows of its only
    table; ``texts`` caches the checks of texts, ``prepared`` the facts from earlier runs.
    Raises UnsupportedSqlError, SqlSyntaxError, AmbiguousColumnError, ScanLimitError.
    """
    if bound.about:
        run = _about(bound.about, run)
    adapter = None
    # Whether a text changes does not depend on the values that it compares.
    if prepared is None or not prepared.runs_unchanged:
        adapter = adapter_of(bound.tree, [scan.projection for scan in bound.scans], cursor)
    words, text = None, bound.user_text
    if text is not None:
        words = CheckedText(text, bound.tree, bound.has_lists, cursor, texts, adapter)
        if prepared is not None and (adapter is None or not adapter.by_value):
            prepared.runs_unchanged = not words.is_changed
    if bound.only_text and (words is None or words.is_changed):
        raise unsupported(f"{bound.only_text} in this statement", None, _ONLY_TEXT_HINT)
    if words is not None:
        words.guard(settings, scanned)
        return words.bind(sources, lambda text: run(text.text, text))

    def check(text: str, tables: Collection[str]) -> str:
        facts = check_written(text, cursor, tables)
        guard_calls(facts, cursor, settings, scanned)
        pieces = UserText(text, 0).with_edits(facts.pieces)
        return compose(pieces, lambda edit: edit.text).text

    def written(tree: exp.Expr) -> T:
        return run(spliced_sql(tree, sources, check, adapter), None)

    return with_constants(written, bound.tree) if bound.has_lists else written(bound.tree)


def _about(
    word: str, run: Callable[[str, Composed | None], T]
) -> Callable[[str, Composed | None], T]:
    """``run`` of SUMMARIZE or DESCRIBE of a query; the query has been checked by then."""
    return lambda sql, text: run(f"SELECT * FROM ({word} {sql}\n)", text)
