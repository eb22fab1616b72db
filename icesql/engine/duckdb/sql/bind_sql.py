"""Choose the SQL that runs for a bound query: the user's own text, or its tree written back.

The user's text, with the SQL of its tables filled in, runs if it is in DuckDB's dialect and every
expression can stay or be replaced in place. Otherwise the SQL is written from the tree.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Hashable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, TypeVar

from icesql.config import Settings
from icesql.engine.duckdb.sql.adapted import Adapter, adapter_of
from icesql.engine.duckdb.sql.checked import Facts, check_text, check_written
from icesql.engine.duckdb.sql.composed import Composed, compose, places_of, spliced_sql
from icesql.engine.duckdb.sql.long_lists import with_constants, written_lists
from icesql.engine.duckdb.sql.read_text import column_name
from icesql.engine.duckdb.sql.size_guards import guard_calls
from icesql.errors import UnsupportedSqlError
from icesql.quoting import quoted
from icesql.sql.edited_text import ALIAS, CUT, LIST, NAME, TABLE, VALUE, Edit, UserText
from icesql.sql.positions import unsupported
from icesql.sql.trees import exp
from icesql.storage.cache import BoundedCache

if TYPE_CHECKING:
    from icesql.engine.duckdb.prepared_run import PreparedRun
    from icesql.query.bound import BoundQuery
    from icesql.storage.cache import BoundedCache


# ------------------------------------------------------------------ the user's text


T = TypeVar("T")

# Names of columns by the offsets of their aliases from the start of the text: the same text may
# start anywhere in a script.
Names = Mapping[int, str]

# The size of a cache of facts and names of the latest texts, for texts that run again.
TEXTS_BYTES: Final = 1 << 20
_LONGEST_KEPT: Final = 10_000
# Estimated size of the facts about a text, without its characters.
_FOUND_BYTES: Final = 1_000


def _key(text: UserText) -> Hashable:
    edits = tuple(
        (each.start - text.start, each.end - text.start, each.kind) for each in text.edits
    )
    return text.text, edits


class CheckedText:
    """A user's text that was checked to do only what its tree describes.

    Raises UnsupportedSqlError at offsets of the user's SQL, ScanLimitError for types that
    ``size_guards`` refuses.
    """

    def __init__(
        self,
        text: UserText,
        tree: exp.Expr,
        has_lists: bool,
        cursor: Any,
        texts: BoundedCache,
        adapter: Adapter | None = None,
    ) -> None:
        self._text, self._tree, self._has_lists, self._cursor = text, tree, has_lists, cursor
        self._adapter = adapter
        found: tuple[Facts, Names] | None = None if has_lists else texts.get(_key(text))
        if found is None:
            found = self._checked(texts)
        self._facts, self._names = found

    def _checked(self, texts: BoundedCache) -> tuple[Facts, Names]:
        text = self._text
        if text.read is None:
            raise UnsupportedSqlError("this statement", hint="DuckDB did not read it")
        facts = check_text(text, text.read, self._cursor)
        # Lists of a tree are shown by the first of their values.
        shown = written_lists(self._tree) if self._has_lists else {}
        names = {
            edit.start - text.start: self._column_name(edit.start, shown)
            for edit in text.edits
            if edit.kind == ALIAS
        }
        if facts.pieces:
            self._text = text.with_edits(facts.pieces)
        elif not self._has_lists and len(text.text) <= _LONGEST_KEPT:
            texts.put(_key(text), (facts, names), _FOUND_BYTES + len(text.text))
        return facts, names

    def _column_name(self, end: int, lists: Mapping[int, str]) -> str:
        """The name of the column that ends at the offset ``end``."""
        (start,) = (begin for begin, stop in self._text.columns if stop == end)
        written = self._text.written(start, end)
        is_constant = any(
            e.kind == VALUE and (e.start, e.end) == (start, end) for e in self._text.edits
        )
        if is_constant and written.endswith(")"):
            return written.lower()  # version(), without DuckDB's quotes
        shown = [lists[place] for place in sorted(lists) if start <= place < end]
        return column_name(self._text.column_nodes[end], shown, self._cursor)

    def guard(self, settings: Settings, scanned: int | None) -> None:
        """Make the cursor refuse, at run time, calls that produce too large a value."""
        guard_calls(self._facts, self._cursor, settings, scanned)

    def bind(self, sources: Mapping[str, str], run: Callable[[Composed], T]) -> T:
        """The result of ``run(text)`` with the SQL of its tables filled in."""
        if not self._has_lists:
            return run(self._filled(sources, {}))
        return with_constants(
            lambda tree: run(self._filled(sources, written_lists(tree))), self._tree
        )

    @property
    def is_changed(self) -> bool:
        """True if the adapter changes expressions of the text."""
        return self._changed is not None

    @cached_property
    def _changed(self) -> tuple[Composed, Mapping[str, str], Mapping[int, str]] | None:
        """The text after the adapter's changes, with its names for tables and long lists, which
        contain a nonce; None without changes.
        """
        if self._adapter is None:
            return None
        nonce = os.urandom(16).hex()
        listed = {each.start: each.text for each in self._text.edits if each.kind == LIST}
        tables = {e.text: f"{e.text}_{nonce}" for e in self._text.edits if e.kind == TABLE}
        lists = {start: f"__list_{start}_{nonce}" for start in listed}
        text = self._composed(
            {name: quoted(each) for name, each in tables.items()},
            {start: quoted(each) for start, each in lists.items()},
        )
        items = {lists[start]: each for start, each in listed.items()}
        changes = self._adapter.changes(text.text, tables, items, text.place)
        return (text.edited(changes), tables, lists) if changes else None

    def _filled(self, sources: Mapping[str, str], lists: Mapping[int, str]) -> Composed:
        if self._changed is None:
            return self._composed({name: f"({sql})" for name, sql in sources.items()}, lists)
        text, tables, listed = self._changed
        texts = {name: f"({sources[table]})" for table, name in tables.items()}
        texts |= {name: lists[start] for start, name in listed.items()}
        return text.edited(places_of(text.text, texts))

    def _composed(self, tables: Mapping[str, str], lists: Mapping[int, str]) -> Composed:
        def fill(edit: Edit) -> str:
            text = edit.text
            if edit.kind == TABLE:
                text = tables[text]
            elif edit.kind == NAME:
                text = quoted(text)
            elif edit.kind == ALIAS:
                text = f" AS {quoted(self._names[edit.start - self._text.start])}"
            elif edit.kind == LIST:
                text = lists.get(edit.start, text)
            text = edit.before + text + edit.after
            # A parameter may touch the words beside it; its value must not.
            return f" {text} " if edit.kind in (VALUE, LIST, CUT) else text

        return compose(self._text, fill)


# ------------------------------------------------------------------ the choice


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
