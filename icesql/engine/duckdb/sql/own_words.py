"""The text that the user wrote, checked by DuckDB's own parse, with its tables in their places."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeVar

from sqlglot import exp

from icesql.config import Settings
from icesql.engine.duckdb.sql.checked import check_text, check_tokens
from icesql.engine.duckdb.sql.column_names import Unmarking
from icesql.engine.duckdb.sql.composed import Composed, Marks, compose, filled
from icesql.engine.duckdb.sql.engine_tree import EngineTree, parse
from icesql.engine.duckdb.sql.literal_lists import BoundLists, bound_lists
from icesql.engine.duckdb.sql.long_chains import Gathered, as_list, long_chains
from icesql.engine.duckdb.sql.size_guards import guard_calls
from icesql.engine.duckdb.types import quoted
from icesql.errors import SqlSyntaxError
from icesql.sql.parser.literal_list import held
from icesql.sql.positions import syntax_error
from icesql.sql.user_text import ALIAS, CUT, LIST, NAME, SQL, TABLE, VALUE, Edit, UserText

T = TypeVar("T")

_UNMARKED: Final = (CUT, SQL)


class OwnWords:
    """A text that was found to do nothing but what its tree says.

    Raises SqlSyntaxError and UnsupportedSqlError at places of the user's SQL, ScanLimitError for
    what ``size_guards`` refuses.
    """

    def __init__(self, text: UserText, tree: exp.Expr, has_lists: bool, cursor: Any) -> None:
        self._text, self._tree, self._has_lists, self._cursor = text, tree, has_lists, cursor
        lists = {}
        if has_lists:
            for node in tree.find_all(exp.In):
                values = held(node)
                if values is not None and "list" in node.meta:
                    lists[int(node.meta["list"][0])] = values
        self._marks = Marks(os.urandom(16).hex())
        self._unmarking = Unmarking(text, self._marks, lists)
        check_tokens(text)
        composed, engine_tree = self._read()
        self._facts = check_text(engine_tree, composed, self._marked(), cursor)
        self._names = {
            edit: self._unmarking.column_name(self._facts.named[mark], cursor)
            for mark, edit in self._aliases()
        }
        self._chains: list[Gathered] = []
        if self._facts.chains:
            edits, self._chains = long_chains(engine_tree, composed, self._facts.chains)
            self._text = text.with_edits(edits)

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

    def _read(self) -> tuple[Composed, EngineTree]:
        """DuckDB's tree of the text with marks."""
        edits = list(enumerate(self._text.edits))
        marked = {index for index, edit in edits if edit.kind not in _UNMARKED}
        # Some places take a literal and no parameter: INTERVAL 3 DAY.
        values = {index for index, edit in edits if edit.kind == VALUE}
        after = {index for index in values if self._follows_interval(index)}
        self._placed = marked - after
        try:
            return self._parsed()
        except SqlSyntaxError:
            if values == after:
                raise
            self._placed = marked - values
            return self._parsed()

    def _follows_interval(self, index: int) -> bool:
        start = self._text.edits[index].start
        before = self._text.written(max(self._text.start, start - 20), start)
        return before.rstrip().upper().endswith("INTERVAL")

    def _parsed(self) -> tuple[Composed, EngineTree]:
        def fill(index: int, edit: Edit) -> str:
            if index in self._placed:
                return self._marks.fill(index, edit)
            return filled(edit, "", edit.text)

        composed = compose(self._text, fill)
        try:
            return composed, parse(self._cursor, composed.sql)
        except SqlSyntaxError as error:
            offset = None if error.offset is None else composed.user_offset(error.offset)
            problem = self._unmarking.words(error.problem)
            raise syntax_error(problem, offset) from error

    def guard(self, settings: Settings, scanned: int | None) -> None:
        """Let the cursor refuse, while it runs the text, calls that make too large a value."""
        guard_calls(self._facts, self._cursor, settings, scanned)

    def bind(
        self, sources: Mapping[str, str], run: Callable[[str, Mapping[str, Any]], T]
    ) -> tuple[Composed, T]:
        """``run(SQL, parameters)`` of the text over the SQL of its tables, and what it is made of.

        The long lists are parameters, or literals where DuckDB takes no subquery.
        """
        import duckdb

        lists = bound_lists(self._tree) if self._has_lists else BoundLists()
        parameters = lists.parameters
        composed = self._filled(sources, lists)
        try:
            return composed, run(composed.sql, parameters)
        except duckdb.Error:
            # The error that counts is the one that the text as written gives.
            if not parameters:
                raise
            composed = self._filled(sources, BoundLists())
            return composed, run(composed.sql, {})

    def _filled(self, sources: Mapping[str, str], lists: BoundLists) -> Composed:
        def fill(_: int, edit: Edit) -> str:
            if edit.kind == TABLE:
                return filled(edit, f"({sources[edit.text]})", "")
            if edit.kind == LIST:
                return filled(edit, "", lists.placed.get(edit.start, edit.text))
            if edit.kind == ALIAS:
                return filled(edit, quoted(self._names[edit]), "")
            return filled(edit, quoted(edit.text), edit.text)

        chains = [edit for each in self._chains for edit in as_list(each, lists.items)]
        return compose(self._text.with_edits(chains), fill)
