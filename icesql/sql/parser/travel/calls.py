"""Calls that stand for a table: Databricks' and Trino's table_changes, Dremio's table_history.

    table_changes('table', first [, last])
    TABLE(system.table_changes(schema_name => 's', table_name => 't', start_snapshot_id => …, …))
    TABLE(table_history('table'))

A call becomes the names of its table at the place of the call, and a clause for the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from icesql.sql.cursor import TokenCursor
from icesql.sql.lexer import TEXT, Token
from icesql.sql.parser.travel.changes import ChangesReader, Value, change_clause
from icesql.sql.positions import syntax_error, unsupported
from icesql.sql.table_name import name_parts
from icesql.sql.trees import exp

# Dremio's functions and the metadata tables that they are.
_METADATA: Final = {
    "TABLE_HISTORY": "history",
    "TABLE_MANIFESTS": "manifests",
    "TABLE_PARTITIONS": "partitions",
    "TABLE_SNAPSHOT": "snapshots",
    "TABLE_FILES": "files",
}
_NAMES: Final = ("schema_name", "table_name", "start_snapshot_id", "end_snapshot_id")
_CHANGES_HINT: Final = "use CHANGES FROM VERSION a TO VERSION b behind the table"


class FoundCall(Struct, frozen=True):
    """The names of the table, the clause for what is asked of it if any, and where the call ends.

    ``clause_from`` is the first token of the clause.
    """

    parts: tuple[str, ...]
    end: int
    clause: exp.Version | None = None
    clause_from: int = 0


class TravelCallReader(TokenCursor):
    """Reads one call; ``value`` reads an operand at an index and says where it ends."""

    def __init__(self, tokens: Sequence[Token], sql: str, value: Value) -> None:
        super().__init__(tokens, sql)
        self._value = value

    def read(self, index: int) -> FoundCall | None:
        """The call that begins at ``index``, None where none does."""
        word, opened = self.word(index), self.word(index + 1) == "("
        if word == "APPENDS" and opened and self.word(index + 2) == "TABLE":
            raise unsupported("APPENDS (TABLE …)", self.tokens[index], _CHANGES_HINT)
        if word == "TABLE_CHANGES" and opened and self.kind(index + 2) == TEXT:
            return self._table_changes(index, index + 2, index)
        if word != "TABLE" or not opened:
            return None
        place = index + 2
        while self.word(place + 1) == ".":  # catalog.system.table_changes
            place += 2
        if self.word(place) in _METADATA and self.word(place + 1) == "(":
            return self._metadata(index, place)
        if self.word(place) != "TABLE_CHANGES" or self.word(place + 1) != "(":
            return None
        return self._trino(index, place + 2)

    def _table_changes(self, index: int, name: int, start: int) -> FoundCall:
        found = ChangesReader(self.tokens, self.sql, self._value).call(name)
        if found is None:
            at = self.tokens[name + 1] if name + 1 < len(self.tokens) else self.tokens[-1]
            raise syntax_error("table_changes() needs the first version", at, (",",))
        clause, end = found
        return FoundCall(name_parts(self.tokens[name].text), end, clause, start + 1)

    def _metadata(self, index: int, place: int) -> FoundCall:
        name = place + 2
        if self.kind(name) != TEXT or [self.word(name + 1), self.word(name + 2)] != [")", ")"]:
            shown = self.word(place).lower()
            raise syntax_error(f"{shown}() takes the name of a table", self.tokens[place])
        parts = name_parts(self.tokens[name].text)
        return FoundCall((*parts, _METADATA[self.word(place)]), name + 3)

    def _trino(self, index: int, place: int) -> FoundCall:
        """Trino's: the first snapshot is left out, the last one is not."""
        given: dict[str, tuple[exp.Expr, int, int]] = {}
        while True:
            name = _NAMES[len(given)] if len(given) < len(_NAMES) else ""
            if self.word(place + 1) == "=>":
                name = self.tokens[place].text.lower()
                place += 2
            value, after = self._value(place)
            if value is None or name not in _NAMES or name in given:
                problem = "table_changes() takes a schema, a table and two snapshots"
                raise syntax_error(problem, self.tokens[place], _NAMES)
            given[name] = (value, place, after)
            place = after + 1
            if self.word(after) != ",":
                break
        names = [given.get(each) for each in _NAMES]
        texts = [each[0].name for each in names[:2] if each and each[0].is_string]
        if self.word(after) != ")" or self.word(place) != ")" or len(texts) < 2:
            problem = "table_changes() takes a schema, a table and two snapshots"
            raise syntax_error(problem, self.tokens[after], _NAMES)
        ends = []
        for each in names[2:]:
            if each is None:
                raise syntax_error("table_changes() needs both snapshots", self.tokens[index])
            first, last = self.tokens[each[1]], self.tokens[each[2] - 1]
            text = self.sql[first.start : last.stop]
            ends.append(({"kind": "VERSION", "start": first.start, "text": text}, each[0]))
        clause = change_clause(ends[0], ends[1], [], {})
        return FoundCall((*name_parts(texts[0]), texts[1]), place + 1, clause, index + 1)
