"""The text that the user wrote, checked by DuckDB's own parse, with its tables in their places."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeVar

from sqlglot import exp

from icesql.config import Settings
from icesql.engine.duckdb.sql.checked import Facts, check_text, check_tokens
from icesql.engine.duckdb.sql.column_names import Unmarking
from icesql.engine.duckdb.sql.composed import Composed, Marks, compose, filled
from icesql.engine.duckdb.sql.literal_lists import BoundLists, bound_lists
from icesql.engine.duckdb.sql.long_chains import Gathered, as_list, long_chains
from icesql.engine.duckdb.sql.size_guards import guard_calls
from icesql.engine.duckdb.types import quoted
from icesql.errors import SqlSyntaxError
from icesql.sql.parser.literal_list import held
from icesql.sql.positions import syntax_error
from icesql.sql.reading.engine_tree import EngineTree, parse
from icesql.sql.user_text import ALIAS, CUT, LIST, NAME, SQL, TABLE, VALUE, Edit, UserText
from icesql.storage.cache import BoundedCache, kept

T = TypeVar("T")

# Names of columns by the places of their aliases, counted from the beginning of the text: the same
# text may stand anywhere in a script.
Names = Mapping[int, str]

_UNMARKED: Final = (CUT, SQL)
_MOST_BYTES: Final = 1 << 20
_LONGEST_KEPT: Final = 10_000
# Of what was found of a text, beside its letters.
_FOUND_BYTES: Final = 1_000


class KeptTexts:
    """What checks found of the latest texts, for texts that are run again. Safe for threads."""

    def __init__(self) -> None:
        self._nonces = BoundedCache(_MOST_BYTES)
        self._found = BoundedCache(_MOST_BYTES)

    def nonce(self, text: str) -> str:
        """The same for a text that is kept, and known to nobody who writes one."""
        key = text if len(text) <= _LONGEST_KEPT else None
        return kept(self._nonces, key, lambda: (os.urandom(16).hex(), _FOUND_BYTES + len(text)))

    def find(self, sql: str) -> tuple[Facts, Names] | None:
        """What was found of a text with its marks."""
        found: tuple[Facts, Names] | None = self._found.get(sql)
        return found

    def keep(self, sql: str, found: tuple[Facts, Names]) -> None:
        """Remember it, unless it is long."""
        if len(sql) <= _LONGEST_KEPT and not found[0].chains:
            self._found.put(sql, found, _FOUND_BYTES + len(sql))


class OwnWords:
    """A text that was found to do nothing but what its tree says.

    Raises SqlSyntaxError and UnsupportedSqlError at places of the user's SQL, ScanLimitError for
    what ``size_guards`` refuses.
    """

    def __init__(
        self, text: UserText, tree: exp.Expr, has_lists: bool, cursor: Any, texts: KeptTexts
    ) -> None:
        self._text, self._tree, self._has_lists, self._cursor = text, tree, has_lists, cursor
        self._marks = Marks(texts.nonce(text.text))
        self._chains: list[Gathered] = []
        self._place_marks()
        found = None if has_lists else texts.find(self._composed().sql)
        if found is None:
            found = self._checked(texts)
        self._facts, self._names = found

    def _checked(self, texts: KeptTexts) -> tuple[Facts, Names]:
        text, cursor, lists = self._text, self._cursor, {}
        if self._has_lists:
            for node in self._tree.find_all(exp.In):
                values = held(node)
                if values is not None and "list" in node.meta:
                    lists[int(node.meta["list"][0])] = values
        unmarking = Unmarking(text, self._marks, lists)
        check_tokens(text)
        composed, engine_tree = self._read(unmarking)
        facts = check_text(engine_tree, composed, self._marked(), cursor)
        names = {
            edit.start - text.start: unmarking.column_name(facts.named[mark], cursor)
            for mark, edit in self._aliases()
        }
        facts.named.clear()
        if facts.chains:
            edits, self._chains = long_chains(engine_tree, composed, facts.chains)
            self._text = text.with_edits(edits)
        elif not self._has_lists:
            texts.keep(composed.sql, (facts, names))
        return facts, names

    def _aliases(self) -> Iterator[tuple[str, Edit]]:
        for index, edit in enumerate(self._text.edits):
            if edit.kind == ALIAS:
                yield self._marks.name(index, edit), edit

    def _marked(self) -> set[str]:
        """The marks that DuckDB's tree has to have."""
        return {
            self._marks.name(index, edit)
            for index, edit in enumerate(self._text.edits)
            if index in self._placed and edit.kind != NAME
        }

    def _place_marks(self) -> None:
        edits = list(enumerate(self._text.edits))
        self._placed = {index for index, edit in edits if edit.kind not in _UNMARKED}
        # Some places take a literal and no parameter: INTERVAL 3 DAY.
        self._placed -= {
            index for index, edit in edits if edit.kind == VALUE and self._follows_interval(index)
        }

    def _read(self, unmarking: Unmarking) -> tuple[Composed, EngineTree]:
        """DuckDB's tree of the text with marks."""
        try:
            return self._parsed(unmarking)
        except SqlSyntaxError:
            edits = self._text.edits
            values = {index for index in self._placed if edits[index].kind == VALUE}
            if not values:
                raise
            self._placed -= values
            return self._parsed(unmarking)

    def _follows_interval(self, index: int) -> bool:
        start = self._text.edits[index].start
        before = self._text.written(max(self._text.start, start - 20), start)
        return before.rstrip().upper().endswith("INTERVAL")

    def _composed(self) -> Composed:
        """The text with marks."""

        def fill(index: int, edit: Edit) -> str:
            if index in self._placed:
                return self._marks.fill(index, edit)
            return filled(edit, "", edit.text)

        return compose(self._text, fill)

    def _parsed(self, unmarking: Unmarking) -> tuple[Composed, EngineTree]:
        composed = self._composed()
        try:
            return composed, parse(self._cursor, composed.sql)
        except SqlSyntaxError as error:
            offset = None if error.offset is None else composed.user_offset(error.offset)
            raise syntax_error(unmarking.words(error.problem), offset) from error

    @property
    def engine_tree(self) -> EngineTree:
        """What DuckDB reads in the text, its tables and parameters under marks."""
        return parse(self._cursor, self._composed().sql)

    def guard(self, settings: Settings, scanned: int | None) -> None:
        """Let the cursor refuse, while it runs the text, calls that make too large a value."""
        guard_calls(self._facts, self._cursor, settings, scanned)

    def bind(
        self, sources: Mapping[str, str], run: Callable[[Composed, Mapping[str, Any]], T]
    ) -> T:
        """``run(text, parameters)`` of the text over the SQL of its tables.

        The long lists are parameters, or literals where DuckDB takes no subquery.
        """
        import duckdb

        lists = bound_lists(self._tree) if self._has_lists else BoundLists()
        parameters = lists.parameters
        composed = self._filled(sources, lists)
        try:
            return run(composed, parameters)
        except duckdb.Error:
            # The error that counts is the one that the text as written gives.
            if not parameters:
                raise
            composed = self._filled(sources, BoundLists())
            return run(composed, {})

    def _filled(self, sources: Mapping[str, str], lists: BoundLists) -> Composed:
        def fill(_: int, edit: Edit) -> str:
            if edit.kind == TABLE:
                return filled(edit, f"({sources[edit.text]})", "")
            if edit.kind == LIST:
                return filled(edit, "", lists.placed.get(edit.start, edit.text))
            if edit.kind == ALIAS:
                return filled(edit, quoted(self._names[edit.start - self._text.start]), "")
            return filled(edit, quoted(edit.text), edit.text)

        chains = [edit for each in self._chains for edit in as_list(each, lists.items)]
        return compose(self._text.with_edits(chains), fill)
