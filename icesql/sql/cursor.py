"""Read a statement and its constants token by token; errors give the offset and expected words."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, TypeVar, cast

from icesql.errors import Error
from icesql.frozen import Frozen
from icesql.sql.lexer import (
    NAME,
    NUMBER,
    TEXT,
    WORD,
    Token,
    Tokens,
    closing,
    outer,
    phrase,
)
from icesql.sql.positions import syntax_error
from icesql.sql.table_name import Parts
from icesql.sql.trees import exp

if TYPE_CHECKING:
    from icesql.sql.parse import Parse


T = TypeVar("T")


class TokenCursor:
    """The tokens of one statement and a position among them.

    ``parse`` reads the queries in it; None for a text without queries.
    """

    def __init__(self, tokens: Tokens, sql: str, parse: Parse | None = None) -> None:
        self.tokens, self.sql = tokens, sql
        self.parse = cast("Parse", parse)
        self.index = 0

    @property
    def token(self) -> Token | None:
        """The next token, None at the end."""
        return self.tokens[self.index] if self.index < len(self.tokens) else None

    @property
    def is_text(self) -> bool:
        """True if the next token is a string literal."""
        return self.kind(self.index) == TEXT

    @property
    def here(self) -> int:
        """The offset of the next token, or of the statement's end."""
        return self.offset(self.index)

    @property
    def rest(self) -> Tokens:
        """The remaining tokens."""
        return self.tokens[self.index :]

    def following(self, what: str, *expected: str) -> Tokens:
        """Return the remaining tokens. Raises SqlSyntaxError if none follows ``what``."""
        if self.token is None:
            raise syntax_error(f"nothing follows {what}", self.here, expected)
        return self.rest

    def word(self, index: int) -> str:
        """Return the word at an index in upper case; "" for a quoted one and after the end."""
        return self.tokens[index].word if index < len(self.tokens) else ""

    def kind(self, index: int) -> str:
        """Return the kind of the token at an index; "" after the end."""
        return self.tokens[index].kind if index < len(self.tokens) else ""

    def offset(self, index: int) -> int:
        """Return the offset of the token at an index, or of the end."""
        return self.tokens[index].start if index < len(self.tokens) else self.tokens[-1].stop

    def written(self, first: int, last: int) -> str:
        """Return the SQL from token ``first`` to before token ``last``."""
        if first >= last:
            return ""
        return self.sql[self.tokens[first].start : self.tokens[last - 1].stop]

    def matches(self, index: int, phrase: str) -> bool:
        """True if the words of a phrase start at an index."""
        if not phrase.startswith(self.word(index)):
            return False
        return all(self.word(index + step) == word for step, word in enumerate(phrase.split()))

    def peek(self, ahead: int = 0) -> str:
        """Return a coming word in upper case; "" for a quoted one and at the end."""
        return self.word(self.index + ahead)

    def comes(self, phrase: str) -> bool:
        """True if the words of a phrase come next."""
        return self.matches(self.index, phrase)

    def skip(self, phrase: str) -> bool:
        """Step over the words of a phrase if all of them come next; return True if so."""
        found = self.comes(phrase)
        self.index += len(phrase.split()) if found else 0
        return found

    def either(self, *words: str) -> str:
        """Step over the next word if it is one of these, and return it; "" otherwise."""
        word = self.peek()
        if not word or word not in words:
            return ""
        self.index += 1
        return word

    def need(self, phrase: str) -> None:
        """Step over the words of a phrase. Raises SqlSyntaxError if the next words differ."""
        if not self.skip(phrase):
            raise self.unexpected(phrase)

    def unexpected(self, *expected: str) -> Error:
        """Return the error for the next token."""
        if self.token is None:
            return syntax_error("unexpected end of the statement", self.here, expected)
        text = phrase(self.tokens, self.index) if self.peek(1) == "BY" else self.token.text
        return syntax_error(f'unexpected "{text}"', self.here, expected)

    def end(self) -> None:
        """Raise SqlSyntaxError unless all tokens were read."""
        if self.token is not None:
            raise self.unexpected("the end of the statement")

    def identifier(self, what: str = "a name") -> str:
        """Read one name."""
        token = self.token
        if token is None or token.kind not in (NAME, WORD) or not token.text:
            raise self.unexpected(what)
        self.index += 1
        return token.text

    def name(self, what: str = "a name") -> Parts:
        """Read a dotted name of one or more parts."""
        parts = [self.identifier(what)]
        while self.skip("."):
            parts.append(self.identifier(what))
        return tuple(parts)

    def key(self, what: str = "a name") -> str:
        """Read the name of a setting or property: words joined by dots or dashes."""
        text = ".".join(self.name(what))
        while self.skip("-"):
            text += "-" + ".".join(self.name(what))
        return text

    def column(self) -> str:
        """Read the dotted name of a column."""
        return ".".join(self.name("a column"))

    def text(self, what: str = "a text in single quotes") -> str:
        """Read a string literal."""
        token = self.token
        if token is None or token.kind != TEXT:
            raise self.unexpected(what)
        self.index += 1
        return token.text

    def text_or_name(self, what: str = "a name") -> str:
        """Read a string literal or one name."""
        return self.text() if self.is_text else self.identifier(what)

    def number(self) -> int:
        """Read a whole number."""
        token = self.token
        if token is None or token.kind != NUMBER or not token.text.isdigit():
            raise self.unexpected("a number")
        self.index += 1
        return int(token.text)

    def until(self, *words: str) -> Tokens:
        """Read up to one of the words, a comma or a closing bracket, outside nested brackets."""
        start, self.index = self.index, outer(self.tokens, self.index, (*words, ","))
        return self.tokens[start : self.index]

    def balanced(self) -> None:
        """Raise SqlSyntaxError for an unmatched closing bracket in the rest: a text that is put in
        brackets would end there."""
        end = outer(self.tokens, self.index, ())
        if end < len(self.tokens):
            raise syntax_error(f'unexpected "{self.tokens[end].text}"', self.tokens[end])

    def listed(self, read: Callable[[], T], closing: str = "") -> list[T]:
        """Read one or more items separated by commas, and the sign ``closing`` after them."""
        found = [read()]
        while self.skip(","):
            found.append(read())
        if closing:
            self.need(closing)
        return found

    def bracketed(self, read: Callable[[TokenCursor], T]) -> list[T]:
        """Read the items of a list in brackets; ``read`` reads one item from its cursor."""
        inner = self.in_brackets()
        found = inner.listed(lambda: read(inner))
        inner.end()
        return found

    def in_brackets(self) -> TokenCursor:
        """Read a bracketed part; return a cursor on the tokens between the brackets."""
        opened = self.index
        self.need("(")
        self.index = closing(self.tokens, opened)
        inner = TokenCursor(self.tokens[opened + 1 : self.index], self.sql, self.parse)
        if not inner.tokens:
            raise self.unexpected("something in the brackets")
        self.need(")")
        return inner


# ------------------------------------------------------------------ constants
# No parser is loaded to read one, and sqlglot's nodes only when it is put into a tree.


_NUMBER: Final = r"(?:0|[1-9][0-9]{0,17})(?:\.[0-9]{1,18})?"
_NEGATIVE: Final = "-"
_WORDS: Final = ("TRUE", "FALSE", "NULL")
_TYPES: Final = {"DATE": "DATE", "TIMESTAMP": "TIMESTAMPNTZ", "TIMESTAMPTZ": "TIMESTAMPTZ"}
# Words that continue an expression after a literal.
_OPERATORS: Final = ("AT", "COLLATE", "DIV")


class Constant(Frozen):
    """A literal: ``kind`` is TEXT, NUMBER, ``-`` for a negative number, TRUE, FALSE, NULL, or the
    type before a text.
    """

    kind: str
    text: str

    def node(self) -> exp.Expression:
        """Return the literal as a node of a tree."""
        match self.kind:
            case "TRUE" | "FALSE":
                return exp.Boolean(this=self.kind == "TRUE")
            case "NULL":
                return exp.Null()
            case "number" | "-":
                number = exp.Literal.number(self.text)
                return exp.Neg(this=number) if self.kind == _NEGATIVE else number
        text = exp.Literal.string(self.text)
        if self.kind == TEXT:
            return text
        to = exp.DataType(this=exp.DataType.Type[_TYPES[self.kind]], nested=False)
        return exp.Cast(this=text, to=to)


def read_constant(tokens: Tokens) -> tuple[Constant, int] | None:
    """Return the constant at the start of the tokens, and its number of tokens.

    None for anything else, if an operator follows the literal, and in dialects other than the
    default one, which have different types.
    """
    if not tokens or tokens[0].given is not None:
        return None
    first = tokens[0]
    kind = first.kind if first.kind in (TEXT, NUMBER) else first.word
    count = 2 if kind in (_NEGATIVE, *_TYPES) else 1
    wanted = NUMBER if kind in (NUMBER, _NEGATIVE) else WORD if kind in _WORDS else TEXT
    last, after = tokens[count - 1 : count], tokens[count : count + 1]
    if not last or last[0].kind != wanted:
        return None
    if wanted == NUMBER and not re.fullmatch(_NUMBER, last[0].text):
        return None
    if after and not _is_behind(after[0], last[0].stop):
        return None
    return Constant(kind, last[0].text), count


def _is_behind(token: Token, stop: int) -> bool:
    """True if a token does not continue the expression of the literal that ends before it."""
    if token.kind in (NAME, WORD):
        return token.start > stop and token.word not in _OPERATORS
    return token.word in (")", ",", ";")
