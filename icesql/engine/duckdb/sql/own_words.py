"""The user's text, checked by DuckDB's own parse, with the SQL of its tables filled in."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Mapping
from functools import cached_property
from typing import Any, Final, TypeVar

from icesql.config import Settings
from icesql.engine.duckdb.sql.adapted import Adapter
from icesql.engine.duckdb.sql.checked import Facts, check_text
from icesql.engine.duckdb.sql.column_names import column_name
from icesql.engine.duckdb.sql.composed import Composed, compose
from icesql.engine.duckdb.sql.long_lists import with_constants, written_lists
from icesql.engine.duckdb.sql.size_guards import guard_calls
from icesql.engine.duckdb.sql.splice import places_of
from icesql.errors import UnsupportedSqlError
from icesql.quoting import quoted
from icesql.sql.trees import exp
from icesql.sql.user_text import ALIAS, CUT, LIST, NAME, TABLE, VALUE, Edit, UserText
from icesql.storage.cache import BoundedCache

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
