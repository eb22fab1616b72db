"""The clause ``CHANGES FROM VERSION a TO VERSION b``, read from tokens.

    CHANGES FROM (VERSION | TIMESTAMP) value [INCLUSIVE | EXCLUSIVE]
        [TO (VERSION | TIMESTAMP) value [INCLUSIVE | EXCLUSIVE]]
        [KEYED BY (column, …)]
        [WITH (deduplicationMode = none | dropCarryovers | netChanges, computeUpdates = true)]

Source: Spark 4.2, ``CHANGES`` of a table; ``KEYED BY`` is icesql's own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from sqlglot import exp
from sqlglot.tokens import Token, TokenType

from icesql.sql.change_range import OPTIONS
from icesql.sql.positions import syntax_error

_KINDS: Final = ("VERSION", "TIMESTAMP")
_VALUES: Final = frozenset({TokenType.STRING, TokenType.VAR, TokenType.IDENTIFIER})

Value = Callable[[int], "tuple[exp.Expr | None, int]"]


class ChangesReader:
    """Reads one clause; ``value`` reads an operand at an index and says where it ends."""

    def __init__(self, tokens: Sequence[Token], sql: str, value: Value) -> None:
        self._tokens, self._sql, self._value = tokens, sql, value
        self._index = 0

    def read(self, index: int) -> tuple[exp.Version, int] | None:
        """The clause that begins at ``index`` and where it ends; None if none does."""
        if self._text(index) != "CHANGES" or self._text(index + 1) != "FROM":
            return None
        if self._text(index + 2) not in _KINDS:
            return None
        self._index = index + 1
        start, start_value = self._end("FROM")
        end, end_value = self._end("TO") if self._text(self._index) == "TO" else ({}, exp.Null())
        keys = self._keys()
        options = self._options()
        clause = exp.Version(
            this="CHANGES",
            kind="CHANGES",
            expression=exp.Tuple(expressions=[start_value, end_value]),
        )
        clause.meta.update({"from": start, "to": end, "keys": keys, "options": options})
        return clause, self._index

    def _end(self, word: str) -> tuple[dict[str, Any], exp.Expr]:
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
