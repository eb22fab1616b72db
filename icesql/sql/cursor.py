"""Reading a statement word by word, with errors that say where and what was expected."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from icesql.errors import Error
from icesql.sql.lexer import (
    CLOSING,
    NAME,
    NUMBER,
    OPENING,
    TEXT,
    WORD,
    Token,
    closing,
    outer,
    phrase,
)
from icesql.sql.positions import syntax_error

T = TypeVar("T")


class TokenCursor:
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
        return self.offset(self.index)

    @property
    def rest(self) -> Sequence[Token]:
        """The tokens that are left."""
        return self.tokens[self.index :]

    def word(self, index: int) -> str:
        """The word at a place in upper case; "" for a quoted one and behind the end."""
        return self.tokens[index].word if index < len(self.tokens) else ""

    def kind(self, index: int) -> str:
        """The kind of the token at a place; "" behind the end."""
        return self.tokens[index].kind if index < len(self.tokens) else ""

    def offset(self, index: int) -> int:
        """The offset of the token at a place, or of the end."""
        return self.tokens[index].start if index < len(self.tokens) else self.tokens[-1].stop

    def written(self, first: int, last: int) -> str:
        """The SQL from one token to before another."""
        if first >= last:
            return ""
        return self.sql[self.tokens[first].start : self.tokens[last - 1].stop]

    def matches(self, index: int, words: Sequence[str]) -> bool:
        """Whether these words stand at a place."""
        return all(self.word(index + step) == word for step, word in enumerate(words))

    def peek(self, ahead: int = 0) -> str:
        """A word to come in upper case; "" for a quoted one and at the end."""
        return self.word(self.index + ahead)

    def skip(self, *words: str) -> bool:
        """Step over these words if they come next, all of them."""
        found = self.matches(self.index, words)
        self.index += len(words) if found else 0
        return found

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
        if self.token is None:
            return syntax_error("unexpected end of the statement", self.here, expected)
        text = phrase(self.tokens, self.index) if self.peek(1) == "BY" else self.token.text
        return syntax_error(f'unexpected "{text}"', self.here, expected)

    def end(self) -> None:
        """Raises SqlSyntaxError unless all tokens are used."""
        if self.token is not None:
            raise self.unexpected("the end of the statement")

    def identifier(self, what: str = "a name") -> str:
        """One name."""
        token = self.token
        if token is None or token.kind not in (NAME, WORD) or not token.text:
            raise self.unexpected(what)
        self.index += 1
        return token.text

    def name(self, what: str = "a name") -> tuple[str, ...]:
        """A dotted name of one or more parts."""
        parts = [self.identifier(what)]
        while self.skip("."):
            parts.append(self.identifier(what))
        return tuple(parts)

    def text(self, what: str = "a text in single quotes") -> str:
        """A text."""
        token = self.token
        if token is None or token.kind != TEXT:
            raise self.unexpected(what)
        self.index += 1
        return token.text

    def text_or_name(self, what: str = "a name") -> str:
        """A text, or one name."""
        return self.text() if self.kind(self.index) == TEXT else self.identifier(what)

    def number(self) -> int:
        """A whole number."""
        token = self.token
        if token is None or token.kind != NUMBER or not token.text.isdigit():
            raise self.unexpected("a number")
        self.index += 1
        return int(token.text)

    def until(self, *words: str) -> Sequence[Token]:
        """The tokens up to one of the words, a comma or a closing bracket outside of brackets."""
        start, self.index = self.index, outer(self.tokens, self.index, (*words, ","))
        return self.tokens[start : self.index]

    def balanced(self) -> None:
        """Raises SqlSyntaxError for a bracket to come that closes none: a text put in brackets
        would end there."""
        depth = 0
        for token in self.rest:
            depth += (token.word in OPENING) - (token.word in CLOSING)
            if depth < 0:
                raise syntax_error(f'unexpected "{token.text}"', token)

    def listed(self, read: Callable[[], T]) -> list[T]:
        """One or more items with commas between them."""
        found = [read()]
        while self.skip(","):
            found.append(read())
        return found

    def bracketed(self, read: Callable[[TokenCursor], T]) -> list[T]:
        """The items of a list in brackets; ``read`` reads one at the next word."""
        inner = self.in_brackets()
        found = inner.listed(lambda: read(inner))
        inner.end()
        return found

    def in_brackets(self) -> TokenCursor:
        """The tokens between the next bracket and the one that closes it."""
        opened = self.index
        self.need("(")
        self.index = closing(self.tokens, opened)
        inner = TokenCursor(self.tokens[opened + 1 : self.index], self.sql)
        if not inner.tokens:
            raise self.unexpected("something in the brackets")
        self.need(")")
        return inner
