"""The tokens of a statement by their places, also of places behind the last one."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot.tokens import Token, TokenType

from icesql.sql.parser.words import is_name


class TokenReader:
    """What stands at a place."""

    def __init__(self, tokens: Sequence[Token]) -> None:
        self._tokens = tokens

    def _ends_table(self, token: Token) -> bool:
        return token.token_type == TokenType.R_PAREN or is_name(token)

    def _is_word(self, index: int) -> bool:
        return self._type(index) not in (TokenType.STRING, TokenType.IDENTIFIER)

    def _matches(self, index: int, words: Sequence[str]) -> bool:
        return all(
            self._text(index + step) == word and self._is_word(index + step)
            for step, word in enumerate(words)
        )

    def _text(self, index: int) -> str:
        return self._tokens[index].text.upper() if index < len(self._tokens) else ""

    def _type(self, index: int) -> TokenType | None:
        return self._tokens[index].token_type if index < len(self._tokens) else None

    def _offset(self, index: int) -> int:
        if index < len(self._tokens):
            return int(self._tokens[index].start)
        return int(self._tokens[-1].end) + 1

    def _is_text(self, index: int) -> bool:
        return self._type(index) is TokenType.STRING
