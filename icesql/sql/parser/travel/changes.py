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

from sqlglot import exp
from sqlglot.tokens import Token, TokenType

from icesql.sql.change_range import OPTIONS
from icesql.sql.positions import syntax_error, unsupported

_KINDS: Final = ("VERSION", "TIMESTAMP")
_INFORMATION: Final[dict[str, dict[str, str]]] = {
    "DEFAULT": {"deduplicationmode": "netChanges"},
    "APPEND_ONLY": {"appends": "true"},
}
_MOMENTS: Final = ("TIMESTAMP", "OFFSET", "VERSION")
# A text that begins as a date is no name of a branch.
_TIME: Final = re.compile(r"\s*\d{4}-\d{1,2}-\d{1,2}")
_VALUES: Final = frozenset({TokenType.STRING, TokenType.VAR, TokenType.IDENTIFIER})

Value = Callable[[int], "tuple[exp.Expr | None, int]"]
if TYPE_CHECKING:
    # What is said of one end of the range, and its value.
    _End = tuple[dict[str, Any], exp.Expr]


class ChangesReader:
    """Reads one clause; ``value`` reads an operand at an index and says where it ends."""

    def __init__(self, tokens: Sequence[Token], sql: str, value: Value) -> None:
        self._tokens, self._sql, self._value = tokens, sql, value
        self._index = 0

    def read(self, index: int) -> tuple[exp.Version, int] | None:
        """The clause that begins at ``index`` and where it ends; None if none does."""
        if self._text(index) == "CHANGES" and self._text(index + 1) == "(":
            return self._snowflake(index)
        if self._text(index) != "CHANGES" or self._text(index + 1) != "FROM":
            return None
        if self._text(index + 2) not in _KINDS:
            return None
        self._index = index + 1
        start, start_value = self._end("FROM")
        end, end_value = self._end("TO") if self._text(self._index) == "TO" else ({}, exp.Null())
        keys = self._keys()
        clause = change_clause((start, start_value), (end, end_value), keys, self._options())
        return clause, self._index

    def call(self, index: int) -> tuple[exp.Version, int] | None:
        """What ``table_changes('table', first [, last])`` asks for, from its first comma on.

        ``index`` is that of the name of the table. None where no such call is.
        """
        self._index = index + 1
        ends: list[_End] = []
        while self._text(self._index) == "," and len(ends) < 2:
            ends.append(self._argument())
        if not ends:
            return None
        self._take(")")
        last = ends[1] if len(ends) > 1 else ({}, exp.Null())
        ends[0][0]["included"] = True
        return change_clause(ends[0], last, [], {}), self._index

    def difference(self, index: int) -> tuple[exp.Version, int]:
        """``BETWEEN a AND b [KEYED BY (column, …)]``, which begins at ``index``."""
        self._index = index
        self._take("BETWEEN")
        first = self._version()
        self._take("AND")
        last = self._version()
        return change_clause(first, last, self._keys(), {"direct": "true"}), self._index

    def blame(self, index: int) -> tuple[exp.Version, int]:
        """``[VERSION AS OF value] [KEYED BY (column, …)]``, which may begin at ``index``."""
        self._index = index
        last: _End = ({}, exp.Null())
        self._index += self._text(index) == "FOR"
        words = [self._text(self._index + step) for step in range(3)]
        if words[0] in _KINDS and words[1:] == ["AS", "OF"]:
            self._index += 3
            last = self._ended(words[0])
        elif self._index > index:
            raise self._unexpected(_KINDS)
        clause = change_clause(({}, exp.Null()), last, self._keys(), {"blame": "true"})
        return clause, self._index

    def _version(self) -> _End:
        """A version or a time in any spelling, by its own or after VERSION or TIMESTAMP."""
        word, after = self._text(self._index), self._text(self._index + 1)
        if word in _KINDS and after != "AND" and self._index + 1 < len(self._tokens):
            quoted = self._tokens[self._index + 1].token_type == TokenType.STRING
            if word == "VERSION" or not quoted:
                self._index += 1
                return self._ended(word)
        return self._ended("TEXT")

    def _ended(self, kind: str) -> _End:
        first = self._index
        value, after = self._value(first)
        if value is None:
            raise self._unexpected(("a snapshot id, a branch, a tag or a time",))
        text = self._sql[self._tokens[first].start : self._tokens[after - 1].end + 1]
        self._index = after
        return {"kind": kind, "start": self._tokens[first].start, "text": text}, value

    def _argument(self) -> _End:
        """A version as a number, else a time in a text, as Databricks has them, or a ref."""
        first = self._index + 1
        value, after = self._value(first)
        if value is None:
            raise self._unexpected(("a snapshot id, a branch, a tag or a time",))
        text = self._sql[self._tokens[first].start : self._tokens[after - 1].end + 1]
        is_time = isinstance(value, exp.Literal) and value.is_string and _TIME.match(value.this)
        kind = "TIMESTAMP" if is_time or isinstance(value, exp.Cast) else "VERSION"
        self._index = after
        return {"kind": kind, "start": self._tokens[first].start, "text": text}, value

    def _snowflake(self, index: int) -> tuple[exp.Version, int] | None:
        """``CHANGES (INFORMATION => DEFAULT) AT (kind => value) [END (kind => value)]``."""
        self._index = index + 2
        if self._text(self._index) != "INFORMATION":
            return None
        self._index += 1
        self._take("=>")
        wanted = self._text(self._index)
        if wanted not in _INFORMATION:
            start = self._offset(index)
            hint = "use DEFAULT for the net changes, APPEND_ONLY for what was appended"
            raise unsupported(f"CHANGES (INFORMATION => {wanted})", start, hint)
        self._index += 1
        self._take(")")
        first = self._moment("AT")
        last = self._moment("END") if self._text(self._index) == "END" else ({}, exp.Null())
        return change_clause(first, last, [], _INFORMATION[wanted]), self._index

    def _moment(self, word: str) -> _End:
        """``AT (kind => value)``."""
        self._take(word)
        self._take("(")
        kind, place = self._text(self._index), self._index
        if kind not in _MOMENTS:
            shown = f"{word} ({kind or self._tokens[-1].text} => …)"
            raise unsupported(shown, self._offset(place), "use TIMESTAMP, OFFSET or VERSION")
        self._index += 1
        self._take("=>")
        first = self._index
        value, after = self._value(first)
        if value is None:
            raise self._unexpected(("a value",))
        text = self._sql[self._tokens[first].start : self._tokens[after - 1].end + 1]
        self._index = after
        self._take(")")
        return {"kind": kind, "start": self._tokens[first].start, "text": text}, value

    def _end(self, word: str) -> _End:
        """One end of the range: what is said of it, and its value."""
        self._index += 1
        kind, first = self._text(self._index), self._index + 1
        if kind not in _KINDS:
            raise self._unexpected(_KINDS)
        value, after = self._value(first)
        if value is None:
            raise syntax_error(
                f"nothing follows {word} {kind}",
                self._offset(first),
                ("a time" if kind == "TIMESTAMP" else "a snapshot id, a branch or a tag",),
            )
        text = self._sql[self._tokens[first].start : self._tokens[after - 1].end + 1]
        told: dict[str, Any] = {"kind": kind, "start": self._tokens[first].start, "text": text}
        self._index = after
        if self._text(after) in ("INCLUSIVE", "EXCLUSIVE"):
            told["included"] = self._text(after) == "INCLUSIVE"
            self._index += 1
        return told, value

    def _keys(self) -> list[str]:
        if self._text(self._index) != "KEYED":
            return []
        self._index += 1
        self._take("BY")
        self._take("(")
        keys = [self._name()]
        while self._text(self._index) == ",":
            self._index += 1
            keys.append(self._name())
        self._take(")")
        return keys

    def _options(self) -> dict[str, str]:
        if self._text(self._index) != "WITH" or self._text(self._index + 1) != "(":
            return {}
        self._index += 2
        found: dict[str, str] = {}
        while True:
            place = self._index
            name = self._name().lower()
            if name not in {each.lower() for each in OPTIONS}:
                raise syntax_error(
                    f'unknown option "{name}" of CHANGES', self._offset(place), OPTIONS
                )
            self._take("=")
            found[name] = self._name()
            if self._text(self._index) != ",":
                break
            self._index += 1
        self._take(")")
        return found

    def _name(self) -> str:
        token = self._tokens[self._index] if self._index < len(self._tokens) else None
        if token is None or not (token.token_type in _VALUES or token.text.isidentifier()):
            raise self._unexpected(("a name",))
        self._index += 1
        return token.text

    def _take(self, text: str) -> None:
        if self._text(self._index) != text:
            raise self._unexpected((text,))
        self._index += 1

    def _unexpected(self, expected: tuple[str, ...]) -> Exception:
        at_end = self._index >= len(self._tokens)
        problem = (
            "unexpected end of the statement"
            if at_end
            else f'unexpected "{self._tokens[self._index].text}"'
        )
        return syntax_error(problem, self._offset(self._index), expected)

    def _text(self, index: int) -> str:
        if index >= len(self._tokens):
            return ""
        token = self._tokens[index]
        quoted = token.token_type in (TokenType.STRING, TokenType.IDENTIFIER)
        return "" if quoted else token.text.upper()

    def _offset(self, index: int) -> int:
        if index < len(self._tokens):
            return int(self._tokens[index].start)
        return int(self._tokens[-1].end) + 1


def change_clause(start: _End, end: _End, keys: list[str], options: dict[str, str]) -> exp.Version:
    """The clause for a range of commits; ``start`` and ``end`` say what is known of its ends."""
    clause = exp.Version(
        this="CHANGES", kind="CHANGES", expression=exp.Tuple(expressions=[start[1], end[1]])
    )
    clause.meta.update({"from": start[0], "to": end[0], "keys": keys, "options": options})
    return clause
