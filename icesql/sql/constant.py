"""A constant read from its tokens: a value of SET VARIABLE or of a time-travel clause.

No parser is loaded to read one, and sqlglot's nodes only when it is put into a tree.
"""

from __future__ import annotations

import re
from typing import Final

from icesql.frozen import Frozen
from icesql.sql.lexer import NAME, NUMBER, TEXT, WORD, Token, Tokens
from icesql.sql.trees import exp

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
