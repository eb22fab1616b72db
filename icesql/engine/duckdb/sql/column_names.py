"""The names of columns, as the engine would give them to the text that the user wrote."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cached_property
from typing import Any, Final

from icesql.engine.duckdb.sql.composed import Marks
from icesql.sql.parser.literal_list import LiteralList
from icesql.sql.reading.engine_tree import Node
from icesql.sql.user_text import LIST, NAME, TABLE, Edit, UserText

_NOTHING: Final[dict[str, Any]] = {
    "type": "SELECT_NODE", "modifiers": [], "cte_map": {"map": []}, "group_expressions": [],
    "from_table": {"type": "EMPTY", "alias": "", "sample": None}, "where_clause": None,
    "group_sets": [], "aggregate_handling": "STANDARD_HANDLING", "having": None, "sample": None,
    "qualify": None,
}  # fmt: skip


class Unmarking:
    """Puts the user's words back where marks are."""

    def __init__(self, text: UserText, marks: Marks, lists: Mapping[int, LiteralList]) -> None:
        self._text, self._lists = text, lists
        self._edits = {marks.name(index, edit): edit for index, edit in enumerate(text.edits)}
        self._nonce = marks.nonce

    @cached_property
    def _mark(self) -> re.Pattern[str]:
        return re.compile(
            rf'(?: AS )?[$"]?(icesql_alias_\d+_{self._nonce})"?'
            rf'|[$"]?(icesql_[a-z]+_\d+_{self._nonce})"?( AS (?:"(?:[^"]|"")*"|[\w$]+))?'
        )

    def words(self, sql: str) -> str:
        """``sql`` with the user's words in the places of marks."""
        # No two texts share a pattern, and to compile one costs as much as to parse a short text.
        return self._mark.sub(self._replaced, sql) if self._nonce in sql else sql

    def _replaced(self, found: re.Match[str]) -> str:
        if found[1]:
            return ""
        edit, alias = self._edits[found[2]], found[3] or ""
        if edit.kind == TABLE and edit.after:
            alias = ""
        return self._written(edit) + alias

    def _written(self, edit: Edit) -> str:
        words = self._text.written(edit.start, edit.end)
        if edit.kind == NAME:
            return words.rstrip().removesuffix(".").rstrip()
        if edit.kind == LIST:
            values = self._lists.get(edit.start)
            return values.shown if values is not None else "…"
        if words == "?":
            before = self._text.edits[: self._text.edits.index(edit)]
            asked = [each for each in before if self._text.written(each.start, each.end) == "?"]
            return f"${len(asked) + 1}"
        if words.startswith(":"):
            return f"${words[1:]}"
        return words.lower() if words.endswith(")") else words

    def column_name(self, node: Node, cursor: Any) -> str:
        """The name that DuckDB gives a column of this expression."""
        if node["class"] == "COLUMN_REF":
            name = str(node["column_names"][-1])
            edit = self._edits.get(name)
            if edit is None:
                return name
            words = self._written(edit)
            return words[1:-1].replace('""', '"') if words.startswith('"') else words
        select = {**_NOTHING, "select_list": [{**node, "alias": ""}]}
        tree = {"error": False, "statements": [{"node": select, "named_param_map": []}]}
        sql = cursor.execute("SELECT json_deserialize_sql($1::JSON)", [json.dumps(tree)])
        return self.words(str(sql.fetchall()[0][0]).removeprefix("SELECT "))
