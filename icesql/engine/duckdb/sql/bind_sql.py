"""Which SQL runs for a bound query: the user's own text, or its tree written back.

The text runs where the user wrote DuckDB's spelling and DuckDB needs no other expressions than the
user's. All else is written from the tree.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec.structs import replace

from icesql.config import Settings
from icesql.engine.duckdb.sql.case_sensitive_fields import with_case_sensitive_fields
from icesql.engine.duckdb.sql.checked import check_written
from icesql.engine.duckdb.sql.column_names import column_name
from icesql.engine.duckdb.sql.composed import Composed, compose
from icesql.engine.duckdb.sql.long_lists import with_constants, written_lists
from icesql.engine.duckdb.sql.nanosecond_types import adapted_types
from icesql.engine.duckdb.sql.nothing_lost import check_nothing_lost, replaced_nodes
from icesql.engine.duckdb.sql.own_words import KeptTexts, OwnWords
from icesql.engine.duckdb.sql.size_guards import guard_calls
from icesql.engine.duckdb.sql.splice import spliced_sql
from icesql.sql.positions import unsupported
from icesql.sql.trees import exp
from icesql.sql.user_text import ONLY_TEXT, UserText

if TYPE_CHECKING:
    from icesql.engine.duckdb.prepared_run import PreparedRun
    from icesql.query.bound import BoundQuery

T = TypeVar("T")
_ONLY_TEXT_HINT = "put the rest of it into a derived table"


def bind_sql(
    bound: BoundQuery,
    sources: Mapping[str, str],
    run: Callable[[str, Composed | None], T],
    cursor: Any,
    settings: Settings,
    scanned: int | None,
    texts: KeptTexts,
    prepared: PreparedRun | None = None,
) -> T:
    """``run(SQL, how the SQL is made of the user's words)``.

    ``sources`` are the SQL of the tree's tables, ``scanned`` how many rows its one table has;
    ``texts`` keeps what checks of texts found, ``prepared`` what earlier runs of the query did.
    Raises UnsupportedSqlError, SqlSyntaxError, AmbiguousColumnError, ScanLimitError.
    """
    if bound.about:
        run = _about(bound.about, run)
    tree = _adapted(bound, prepared)
    if bound.user_text is not None and (tree is bound.tree or tree == bound.tree):
        words = OwnWords(bound.user_text, tree, bound.has_lists, cursor, texts)
        words.guard(settings, scanned)
        return words.bind(sources, lambda text: run(text.sql, text))
    if bound.only_text:
        raise unsupported(f"{bound.only_text} in this statement", None, _ONLY_TEXT_HINT)
    for cte in tree.find_all(exp.CTE):
        if ONLY_TEXT in cte.meta:
            raise unsupported(f"{cte.meta[ONLY_TEXT]} in this statement", cte)
    if bound.user_text is not None and not bound.has_lists:
        OwnWords(bound.user_text, bound.tree, False, cursor, texts)
        read = bound.user_text.read
        assert read is not None
        replaced = replaced_nodes(bound.user_text, read)
        check_nothing_lost(read.tree, bound.tree, cursor, replaced)
    if bound.user_text is not None:
        tree = _adapted(replace(bound, tree=_named(bound.tree, bound.user_text, cursor)), None)

    def check(text: str, tables: Collection[str]) -> str:
        facts = check_written(text, cursor, tables)
        guard_calls(facts, cursor, settings, scanned)
        pieces = UserText(text, 0).with_edits(facts.pieces)
        return compose(pieces, lambda _, edit: edit.text).sql

    def written(tree: exp.Expr) -> T:
        return run(spliced_sql(tree, sources, check), None)

    return with_constants(written, tree) if bound.has_lists else written(tree)


def _adapted(bound: BoundQuery, prepared: PreparedRun | None) -> exp.Expr:
    """The tree adapted for DuckDB; the input tree itself if nothing changes."""
    # Whether a tree changes is not up to the values that are compared in it.
    if prepared is not None and prepared.runs_unchanged:
        return bound.tree
    schemas = [scan.projection for scan in bound.scans]
    tree = with_case_sensitive_fields(adapted_types(bound.tree, schemas), schemas)
    if prepared is not None and tree is bound.tree:
        prepared.runs_unchanged = True
    return tree


def _named(tree: exp.Expr, text: UserText, cursor: Any) -> exp.Expr:
    """A copy in which each column without a name has the one that it has in the user's text."""
    tree = tree.copy()
    for select in tree.find_all(exp.Select):
        for column in select.expressions:
            place = column.meta.get("place")
            node = None if place is None else text.column_nodes.get(place[1])
            if node is not None and not isinstance(column, exp.Alias | exp.Column):
                lists = written_lists(column)
                shown = [lists[start] for start in sorted(lists)]
                name = exp.to_identifier(column_name(node, shown, cursor), quoted=True)
                named = exp.Alias(alias=name)
                column.replace(named)
                named.set("this", column)
    return tree


def _about(
    word: str, run: Callable[[str, Composed | None], T]
) -> Callable[[str, Composed | None], T]:
    """``run`` of SUMMARIZE or DESCRIBE of a query, which is checked by then as every other."""
    return lambda sql, text: run(f"SELECT * FROM ({word} {sql}\n)", text)
