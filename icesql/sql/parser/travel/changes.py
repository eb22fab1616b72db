"""The clause ``CHANGES FROM VERSION a TO VERSION b``, read from tokens.

    CHANGES FROM (VERSION | TIMESTAMP) value [INCLUSIVE | EXCLUSIVE]
        [TO (VERSION | TIMESTAMP) value [INCLUSIVE | EXCLUSIVE]]
        [KEYED BY (column, …)]
        [WITH (deduplicationMode = none | dropCarryovers | netChanges, computeUpdates = true)]

    CHANGES (INFORMATION => DEFAULT | APPEND_ONLY) AT (kind => value) [END (kind => value)]

    table_changes('table', first [, last])

Sources: Spark 4.2, ``CHANGES`` of a table (``KEYED BY`` is icesql's own); Snowflake's clause of the
same name, whose DEFAULT is the net change; Databricks, ``table_changes``, which includes both ends.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from icesql.errors import Error
from icesql.sql.change_range import OPTIONS
from icesql.sql.cursor import TokenCursor
from icesql.sql.lexer import TEXT, Token
from icesql.sql.positions import syntax_error, unsupported
from icesql.sql.trees import exp

_KINDS: Final = ("VERSION", "TIMESTAMP")
_INFORMATION: Final[dict[str, dict[str, str]]] = {
    "DEFAULT": {"deduplicationmode": "netChanges"},
    "APPEND_ONLY": {"appends": "true"},
}
_MOMENTS: Final = ("TIMESTAMP", "OFFSET", "VERSION")
# A text that begins as a date is no name of a branch.
_TIME: Final = re.compile(r"\s*\d{4}-\d{1,2}-\d{1,2}")

Value = Callable[[int], "tuple[exp.Expr | None, int]"]
if TYPE_CHECKING:
    # What is said of one end of the range, and its value.
    _End = tuple[dict[str, Any], exp.Expr]


class ChangesReader(TokenCursor):
    """Reads one clause; ``value`` reads an operand at an index and says where it ends."""

    def __init__(self, tokens: Sequence[Token], sql: str, value: Value) -> None:
        super().__init__(tokens, sql)
        self._value = value

    def read(self, index: int) -> tuple[exp.Version, int] | None:
        """The clause that begins at ``index`` and where it ends; None if none does."""
        if self.word(index) == "CHANGES" and self.word(index + 1) == "(":
            return self._snowflake(index)
        if self.word(index) != "CHANGES" or self.word(index + 1) != "FROM":
            return None
        if self.word(index + 2) not in _KINDS:
            return None
        self.index = index + 1
        start, start_value = self._end("FROM")
        end, end_value = self._end("TO") if self.peek() == "TO" else ({}, exp.Null())
        keys = self._keys()
        clause = change_clause((start, start_value), (end, end_value), keys, self._options())
        return clause, self.index

    def call(self, index: int) -> tuple[exp.Version, int] | None:
        """Read ``table_changes('table', first [, last])`` from its first comma on.

        ``index`` is that of the name of the table. None where no such call is.
        """
        self.index = index + 1
        ends: list[_End] = []
        while self.peek() == "," and len(ends) < 2:
            ends.append(self._argument())
        if not ends:
            return None
        self.need(")")
        last = ends[1] if len(ends) > 1 else ({}, exp.Null())
        ends[0][0]["included"] = True
        return change_clause(ends[0], last, [], {}), self.index

    def difference(self, index: int) -> tuple[exp.Version, int]:
        """``BETWEEN a AND b [KEYED BY (column, …)]``, which begins at ``index``."""
        self.index = index
        self.need("BETWEEN")
        first = self._version()
        self.need("AND")
        last = self._version()
        return change_clause(first, last, self._keys(), {"direct": "true"}), self.index

    def blame(self, index: int) -> tuple[exp.Version, int]:
        """``[VERSION AS OF value] [KEYED BY (column, …)]``, which may begin at ``index``."""
        self.index = index
        last: _End = ({}, exp.Null())
        self.index += self.word(index) == "FOR"
        words = [self.word(self.index + step) for step in range(3)]
        if words[0] in _KINDS and words[1:] == ["AS", "OF"]:
            self.index += 3
            last = self._ended(words[0])
        elif self.index > index:
            raise self.unexpected(*_KINDS)
        clause = change_clause(({}, exp.Null()), last, self._keys(), {"blame": "true"})
        return clause, self.index

    def _version(self) -> _End:
        """A version or a time in any spelling, by its own or after VERSION or TIMESTAMP."""
        word, after = self.peek(), self.peek(1)
        if word in _KINDS and after != "AND" and self.index + 1 < len(self.tokens):
            quoted = self.tokens[self.index + 1].kind == TEXT
            if word == "VERSION" or not quoted:
                self.index += 1
                return self._ended(word)
        return self._ended("TEXT")

    def _ended(self, kind: str, missing: Error | None = None, first: int = -1) -> _End:
        """The value at ``first`` or next, as an end of this kind."""
        first = self.index if first < 0 else first
        value, after = self._value(first)
        if value is None:
            raise missing or self.unexpected("a snapshot id, a branch, a tag or a time")
        self.index = after
        start, text = self.tokens[first].start, self.written(first, after)
        return {"kind": kind, "start": start, "text": text}, value

    def _argument(self) -> _End:
        """A version as a number, else a time in a text, as Databricks has them, or a ref."""
        told, value = self._ended("VERSION", None, self.index + 1)
        is_time = isinstance(value, exp.Literal) and value.is_string and _TIME.match(value.this)
        if is_time or isinstance(value, exp.Cast):
            told["kind"] = "TIMESTAMP"
        return told, value

    def _snowflake(self, index: int) -> tuple[exp.Version, int] | None:
        """``CHANGES (INFORMATION => DEFAULT) AT (kind => value) [END (kind => value)]``."""
        self.index = index + 2
        if self.peek() != "INFORMATION":
            return None
        self.index += 1
        self.need("=>")
        wanted = self.peek()
        if wanted not in _INFORMATION:
            start = self.offset(index)
            hint = "use DEFAULT for the net changes, APPEND_ONLY for what was appended"
            raise unsupported(f"CHANGES (INFORMATION => {wanted})", start, hint)
        self.index += 1
        self.need(")")
        first = self._moment("AT")
        last = self._moment("END") if self.peek() == "END" else ({}, exp.Null())
        return change_clause(first, last, [], _INFORMATION[wanted]), self.index

    def _moment(self, word: str) -> _End:
        """``AT (kind => value)``."""
        self.need(word)
        self.need("(")
        kind, place = self.peek(), self.index
        if kind not in _MOMENTS:
            shown = f"{word} ({kind or self.tokens[-1].text} => …)"
            raise unsupported(shown, self.offset(place), "use TIMESTAMP, OFFSET or VERSION")
        self.index += 1
        self.need("=>")
        found = self._ended(kind, self.unexpected("a value"))
        self.need(")")
        return found

    def _end(self, word: str) -> _End:
        """One end of the range: what is said of it, and its value."""
        self.index += 1
        kind, first = self.peek(), self.index + 1
        if kind not in _KINDS:
            raise self.unexpected(*_KINDS)
        wanted = "a time" if kind == "TIMESTAMP" else "a snapshot id, a branch or a tag"
        missing = syntax_error(f"nothing follows {word} {kind}", self.offset(first), (wanted,))
        told, value = self._ended(kind, missing, first)
        included = self.either("INCLUSIVE", "EXCLUSIVE")
        if included:
            told["included"] = included == "INCLUSIVE"
        return told, value

    def _keys(self) -> list[str]:
        if not self.skip("KEYED"):
            return []
        self.need("BY")
        self.need("(")
        keys = self.listed(self.text_or_name)
        self.need(")")
        return keys

    def _options(self) -> dict[str, str]:
        if not self.skip("WITH", "("):
            return {}

        def option() -> tuple[str, str]:
            at, name = self.here, self.text_or_name().lower()
            if name not in {each.lower() for each in OPTIONS}:
                raise syntax_error(f'unknown option "{name}" of CHANGES', at, OPTIONS)
            self.need("=")
            return name, self.text_or_name()

        found = dict(self.listed(option))
        self.need(")")
        return found


def change_clause(start: _End, end: _End, keys: list[str], options: dict[str, str]) -> exp.Version:
    """The clause for a range of commits; ``start`` and ``end`` say what is known of its ends."""
    clause = exp.Version(
        this="CHANGES", kind="CHANGES", expression=exp.Tuple(expressions=[start[1], end[1]])
    )
    clause.meta.update({"from": start[0], "to": end[0], "keys": keys, "options": options})
    return clause
