"""Reading a statement word by word, with errors that say where and what was expected."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from sqlglot.tokens import Token, TokenType

from icesql.errors import Error
from icesql.sql.positions import syntax_error

_QUOTED: Final = (TokenType.STRING, TokenType.IDENTIFIER)
_OPENING: Final = "([{"
_CLOSING: Final = ")]}"


class Words:
    """The tokens of one statement and a place among them."""

    def __init__(self, tokens: Sequence[Token], sql: str) -> None:
        self.tokens, self.sql = tokens, sql
        self.index = 0

    @property
    def token(self) -> Token | None:
        """The next token, None at the end."""
        return self.tokens[self.index] if self.index < len(self.tokens) else None

    @property
    def here(self) -> int:
        """The offset of the next token, or of the end."""
        token = self.token
        return token.start if token is not None else self.tokens[-1].end + 1

    @property
    def rest(self) -> Sequence[Token]:
        """The tokens that are left."""
        return self.tokens[self.index :]

    def peek(self, ahead: int = 0) -> str:
        """A word to come in upper case; "" for a quoted one and at the end."""
        place = self.index + ahead
        if place >= len(self.tokens) or self.tokens[place].token_type in _QUOTED:
            return ""
        return self.tokens[place].text.upper()

    def skip(self, *words: str) -> bool:
        """Step over these words if they come next, all of them.

        Some words are one token together, such as PARTITIONED BY.
        """
        found, index = 0, self.index
        while found < len(words):
            parts = self._words_at(index)
            if not parts or tuple(parts) != words[found : found + len(parts)]:
                return False
            found, index = found + len(parts), index + 1
        self.index = index
        return True

    def _words_at(self, index: int) -> list[str]:
        if index >= len(self.tokens) or self.tokens[index].token_type in _QUOTED:
            return []
        return self.tokens[index].text.upper().split() or [""]

    def either(self, *words: str) -> str:
        """Step over the next word if it is one of these, and give it; "" where it is not."""
        word = self.peek()
        if not word or word not in words:
            return ""
        self.index += 1
        return word

    def need(self, *words: str) -> None:
        """Step over these words. Raises SqlSyntaxError where others stand."""
        if not self.skip(*words):
            raise self.unexpected(" ".join(words))

    def unexpected(self, *expected: str) -> Error:
        """The error for the next token."""
        token = self.token
        shown = f'unexpected "{token.text}"' if token else "unexpected end of the statement"
        return syntax_error(shown, self.here, expected)

    def end(self) -> None:
        """Raises SqlSyntaxError unless all tokens are used."""
        if self.token is not None:
            raise self.unexpected("the end of the statement")

    def identifier(self, what: str = "a name") -> str:
        """One name."""
        token = self.token
        if token is None or not _is_name(token):
            raise self.unexpected(what)
        self.index += 1
        return str(token.text)

    def name(self, what: str = "a name") -> tuple[str, ...]:
        """A dotted name of one or more parts."""
        parts = [self.identifier(what)]
        while self.skip("."):
            parts.append(self.identifier(what))
        return tuple(parts)

    def text(self, what: str = "a text in single quotes") -> str:
        """A text."""
        token = self.token
        if token is None or token.token_type != TokenType.STRING:
            raise self.unexpected(what)
        self.index += 1
        return str(token.text)

    def number(self) -> int:
        """A whole number."""
        token = self.token
        if token is None or token.token_type != TokenType.NUMBER or not token.text.isdigit():
            raise self.unexpected("a number")
        self.index += 1
        return int(token.text)

    def until(self, *words: str) -> Sequence[Token]:
        """The tokens up to one of the words, a comma or a closing bracket outside of brackets."""
        start, depth = self.index, 0
        while (token := self.token) is not None:
            plain = token.token_type not in _QUOTED and token.text
            if depth == 0 and plain and (self.peek() in words or token.text in (",", *_CLOSING)):
                break
            if plain:
                depth += (token.text in _OPENING) - (token.text in _CLOSING)
            self.index += 1
        return self.tokens[start : self.index]

    def balanced(self) -> None:
        """Raises SqlSyntaxError for a bracket to come that closes none: a text put in brackets
        would end there."""
        depth = 0
        for token in self.rest:
            if token.token_type in _QUOTED or not token.text:
                continue
            depth += (token.text in _OPENING) - (token.text in _CLOSING)
            if depth < 0:
                raise syntax_error(f'unexpected "{token.text}"', token)

    def in_brackets(self) -> Words:
        """What is between the bracket that comes next and the one that closes it."""
        self.need("(")
        start, depth = self.index, 1
        while (token := self.token) is not None:
            if token.token_type not in _QUOTED and token.text:
                depth += (token.text in _OPENING) - (token.text in _CLOSING)
            if depth == 0:
                break
            self.index += 1
        inner = Words(self.tokens[start : self.index], self.sql)
        if not inner.tokens:
            raise self.unexpected("something in the brackets")
        self.need(")")
        return inner


def _is_name(token: Token) -> bool:
    if token.token_type == TokenType.IDENTIFIER:
        return True
    plain = token.text[:1].replace("_", "a").isalpha()
    return bool(token.token_type != TokenType.STRING and plain)
