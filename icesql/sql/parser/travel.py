"""Time-travel clauses, cut out of a statement's tokens before sqlglot parses them.

Every dialect of sqlglot knows some spellings of them, and drops others without a word. So none of
them parses any: a clause is cut out, and the name before it, which is that of a table or its
alias, is marked. The tree then shows whether the marked name is one of a table.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from msgspec import Struct
from sqlglot import exp
from sqlglot.tokens import Token, TokenType

from icesql.sql.parser.words import ENDS_CLAUSE
from icesql.sql.positions import offset_of, syntax_error, unsupported

# Longest first, so that FOR SYSTEM TIME is not taken for something shorter.
_PHRASES: Final[tuple[tuple[tuple[str, ...], str, bool], ...]] = (
    (("FOR", "SYSTEM", "VERSION"), "VERSION", True),
    (("FOR", "SYSTEM", "TIME"), "TIMESTAMP", True),
    (("FOR", "SYSTEM_VERSION"), "VERSION", True),
    (("FOR", "SYSTEM_TIME"), "TIMESTAMP", True),
    (("FOR", "TIMESTAMP"), "TIMESTAMP", True),
    (("FOR", "TIME"), "TIMESTAMP", True),
    (("FOR", "VERSION"), "VERSION", True),
    (("SYSTEM_VERSION", "AS", "OF"), "VERSION", False),
    (("SYSTEM_TIME", "AS", "OF"), "TIMESTAMP", False),
    (("TIMESTAMP", "AS", "OF"), "TIMESTAMP", False),
    (("VERSION", "AS", "OF"), "VERSION", False),
    (("AS", "OF", "TIMESTAMP"), "TIMESTAMP", False),
    (("AS", "OF", "VERSION"), "VERSION", False),
    (("AS", "OF", "SYSTEM", "TIME"), "TIMESTAMP", False),
    (("AT", "TIMESTAMP"), "TIMESTAMP", False),
    (("AT", "SNAPSHOT"), "VERSION", False),
    (("AT", "BRANCH"), "BRANCH", False),
    (("AT", "TAG"), "TAG", False),
)
_AT_KINDS: Final = {
    "VERSION": "VERSION",
    "SNAPSHOT": "VERSION",
    "TIMESTAMP": "TIMESTAMP",
    "VERSION_REF": "VERSION_REF",
    "VERSION_TAG": "VERSION_TAG",
    "BRANCH": "BRANCH",
    "TAG": "TAG",
    "OFFSET": "OFFSET",
}
_BEFORE_KINDS: Final = {"TIMESTAMP": "TIMESTAMP BEFORE", "VERSION": "VERSION BEFORE"}
_STARTS: Final = frozenset(words[0] for words, _, _ in _PHRASES) | {
    "BEFORE", "CHANGES", "END", "@", "TABLE_CHANGES",
}  # fmt: skip
_OTHER_RANGES: Final = ("BETWEEN", "FROM", "ALL", "CONTAINED")

# Token types that are no name, and after which no table ends.
_NO_NAME: Final = ENDS_CLAUSE | {
    TokenType.DOT, TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE, TokenType.DISTINCT,
    TokenType.ALL, TokenType.CASE, TokenType.WHEN, TokenType.ELSE, TokenType.AND, TokenType.OR,
    TokenType.NOT, TokenType.EQ, TokenType.LT, TokenType.GT, TokenType.PLUS, TokenType.DASH,
    TokenType.STAR, TokenType.SLASH, TokenType.NUMBER, TokenType.USING, TokenType.COLON,
    TokenType.WITH, TokenType.IN, TokenType.LIKE, TokenType.BETWEEN, TokenType.IS,
}  # fmt: skip

ReadValue = Callable[[Sequence[Token]], tuple[Any, int]]


class Travels(Struct, frozen=True):
    """The tokens that are left of a statement, and the clauses by the marks of their tables."""

    tokens: list[Token]
    clauses: dict[str, exp.Version]

    @property
    def spans(self) -> dict[int, int]:
        """Where each clause begins in the SQL, and where it ends."""
        return {each.meta["start"]: each.meta["end"] for each in self.clauses.values()}

    def attach(self, tree: exp.Expr) -> None:
        """Give each clause to its table in ``tree`` as ``version``, and take the marks away.

        Raises UnsupportedSqlError for a clause of anything but a table.
        """
        own = tree.find(exp.Version, exp.HistoricalData)
        if own is not None:
            raise unsupported(MISPLACED, offset_of(own))
        if not self.clauses:
            return
        left = dict(self.clauses)
        for node in list(tree.find_all(exp.Identifier, exp.Anonymous)):
            name = node.this
            mark = _mark_in(name) if isinstance(name, str) else ""
            clause = left.pop(mark, None) if mark else None
            if clause is None:
                continue
            node.set("this", name.removesuffix(mark))
            _give(node, clause)
        if left:
            raise unsupported(MISPLACED, min(each.meta["start"] for each in left.values()))


MISPLACED: Final = "a time-travel clause at this place"
_TWO: Final = "two time-travel clauses on one table"
# A zero byte is in no name that a tokenizer makes of text without one.
MARK: Final = "\0travel"


def _mark_in(name: str) -> str:
    at = name.rfind(MARK)
    return name[at:] if at >= 0 else ""


def is_mark(token: Token) -> bool:
    """Whether a token is the mark of a clause after parentheses that nothing names."""
    return token.text.startswith(MARK)


def cut_travels(tokens: Sequence[Token], sql: str, read_value: ReadValue) -> Travels:
    """Take the clauses out of the tokens of one statement.

    ``read_value`` reads an operand from the beginning of tokens and says how many they are.
    Raises SqlSyntaxError and UnsupportedSqlError for a clause that cannot be understood.
    """
    if MARK in sql:
        raise syntax_error("a zero byte", sql.index(MARK))
    if not any(token.text.upper() in _STARTS for token in tokens):
        return Travels(list(tokens), {})
    cutter = _Cutter(tokens, sql, read_value)
    cutter.run()
    return Travels(cutter.kept, cutter.clauses)


class _Cutter:
    def __init__(self, tokens: Sequence[Token], sql: str, read_value: ReadValue) -> None:
        self._tokens, self._sql, self._read_value = tokens, sql, read_value
        self.kept: list[Token] = []
        self.clauses: dict[str, exp.Version] = {}
        self._next_alias: str | None = None

    def run(self) -> None:
        index = 0
        while index < len(self._tokens):
            end = self._clause(index) if self.kept and self._is_word(index) else index
            if end == index and self._text(index) == "TABLE_CHANGES":
                end = self._table_changes(index)
            if end == index:
                self.kept.append(self._tokens[index])
                index += 1
            else:
                index = end

    # ------------------------------------------------------------ one clause

    def _clause(self, index: int) -> int:
        """Where a clause that begins at ``index`` ends, and ``index`` if none does."""
        word = self._text(index)
        if word not in _STARTS or not self._ends_table(self.kept[-1]):
            return index
        if word == "CHANGES":
            return self._changes(index)
        if word == "@":
            return self._at_sign(index)
        if word in ("AT", "BEFORE", "END") and self._text(index + 1) == "(":
            return self._call(index, word)
        phrase = next((each for each in _PHRASES if self._matches(index, each[0])), None)
        return index if phrase is None else self._phrase(index, phrase)

    def _changes(self, index: int) -> int:
        """``CHANGES FROM VERSION a TO VERSION b``."""
        from icesql.sql.parser.changes import ChangesReader

        found = ChangesReader(self._tokens, self._sql, self._value).read(index)
        if found is None:
            return index
        clause, end = found
        self._keep_clause(clause, index, index, end, end)
        return end

    def _table_changes(self, index: int) -> int:
        """``table_changes('table', first [, last])``: the function's name stands for the table's,
        what follows it for a clause."""
        from icesql.sql.parser.changes import ChangesReader
        from icesql.sql.table_name import name_parts

        name = index + 2
        after_from = self.kept and self.kept[-1].text.upper() in ("FROM", "JOIN", ",")
        if not after_from or self._text(index + 1) != "(" or not self._is_text(name):
            return index
        found = ChangesReader(self._tokens, self._sql, self._value).call(name)
        if found is None:
            raise syntax_error(
                "table_changes() needs the first version", self._offset(name + 1), (",",)
            )
        clause, end = found
        token = self._tokens[index]
        for place, part in enumerate(name_parts(self._tokens[name].text)):
            if place:
                self.kept.append(_token_like(token, TokenType.DOT, "."))
            self.kept.append(_token_like(token, TokenType.IDENTIFIER, part))
        self._keep_clause(clause, index + 1, name + 2, end - 1, end)
        return end

    def _call(self, index: int, word: str) -> int:
        """``AT (kind => value)``."""
        kind = self._text(index + 2)
        if self._type(index + 3) != TokenType.FARROW:
            return index
        start = self._tokens[index].start
        kinds = {"AT": _AT_KINDS, "BEFORE": _BEFORE_KINDS}.get(word, {})
        if kind not in kinds:
            hint = "use AT (VERSION => …) or AT (TIMESTAMP => …)"
            raise unsupported(f"{word} ({kind} => …)", start, hint)
        value, end = self._value(index + 4)
        if value is None:
            raise syntax_error(f"nothing follows {word} ({kind} =>", self._offset(index + 4))
        if self._type(end) != TokenType.R_PAREN:
            raise syntax_error(f"unterminated {word} (", self._offset(end), (")",))
        self._keep(index, kinds[kind], value, index + 4, end, end + 1)
        return end + 1

    def _phrase(self, index: int, phrase: tuple[tuple[str, ...], str, bool]) -> int:
        words, kind, needs_as_of = phrase
        start, first = self._tokens[index].start, index + len(words)
        if needs_as_of:
            if not self._matches(first, ("AS", "OF")):
                found = self._text(first)
                if found == "BEFORE" and words[0] == "FOR":
                    return self._before(index, first + 1, kind)
                if found in ("IN", "") or (found == ")" and len(words) == 2):
                    return index  # [expression FOR version IN a_list]
                self._refuse_range(" ".join(words), found, start, first)
            first += 2
        value, end = self._value(first)
        if value is None:
            wanted = "a time" if kind == "TIMESTAMP" else "a snapshot id, a branch or a tag"
            raise syntax_error(
                f"nothing follows {' '.join(words)}{' AS OF' if needs_as_of else ''}",
                self._offset(first),
                (wanted,),
            )
        self._keep(index, kind, value, first, end, end)
        return end

    def _before(self, index: int, first: int, kind: str) -> int:
        """``FOR VERSION BEFORE value``."""
        value, end = self._value(first)
        if value is None:
            raise syntax_error("nothing follows BEFORE", self._offset(first), ("a value",))
        self._keep(index, _BEFORE_KINDS[kind], value, first, end, end)
        return end

    def _at_sign(self, index: int) -> int:
        """``t@ref``, ``t@branch(ref)``, ``t@tag(ref)``: written without a space."""
        tokens = self._tokens
        before, first = tokens[index - 1], index + 1
        touches = first < len(tokens) and tokens[index].start == before.end + 1
        if not touches or tokens[first].start != tokens[index].end + 1:
            return index
        kind, name, end = "VERSION_REF", first, first + 1
        if self._text(first) in ("BRANCH", "TAG") and self._text(first + 1) == "(":
            kind, name, end = self._text(first), first + 2, first + 4
            if self._text(first + 3) != ")":
                return index
        if name >= len(tokens) or not (_is_name(tokens[name]) or self._is_text(name)):
            return index
        value = exp.Literal.string(tokens[name].text)
        self._keep(index, kind, value, name, name + 1, end)
        return end

    def _is_text(self, index: int) -> bool:
        return self._type(index) is TokenType.STRING

    def _refuse_range(self, words: str, found: str, start: int, first: int) -> None:
        if found in _OTHER_RANGES:
            raise unsupported(f"{words} {found}", start, f"only {words} AS OF is supported")
        end = self._tokens[first].end + 1 if first < len(self._tokens) else self._offset(first)
        written = self._sql[start:end].rstrip()
        problem = f"a time-travel clause without AS OF: {written}"
        raise syntax_error(problem, self._offset(first), ("AS OF",))

    def _value(self, first: int) -> tuple[exp.Expr | None, int]:
        if first >= len(self._tokens) or self._type(first) in ENDS_CLAUSE:
            return None, first
        value, count = self._read_value(self._tokens[first:])
        return value, first + count

    def _keep(
        self, index: int, kind: str, value: exp.Expr, first: int, last: int, end: int
    ) -> None:
        """Mark the table of a clause that reaches from ``index`` to ``end``."""
        clause = exp.Version(this=kind, kind="AS OF", expression=value)
        self._keep_clause(clause, index, first, last, end)

    def _keep_clause(
        self, clause: exp.Version, index: int, first: int, last: int, end: int
    ) -> None:
        tokens = self._tokens
        start, stop = tokens[index].start, tokens[end - 1].end + 1
        text = self._sql[tokens[first].start : tokens[last - 1].end + 1].strip()
        clause.meta.update(start=start, end=stop, text=text)
        clause.meta["has_parameter"] = bool(clause.find(exp.Placeholder, exp.Parameter))
        mark = f"{MARK}{len(self.clauses)}\0"
        self.clauses[mark] = clause
        self._mark(mark, start)

    def _mark(self, mark: str, start: int) -> None:
        place = len(self.kept) - 1
        if self.kept[place].token_type == TokenType.R_PAREN:
            place = self._before_parentheses(place)
        name = self.kept[place]
        if place < 0 or not _is_name(name):
            # Parentheses that nothing names: the clause becomes their alias, to be refused.
            self.kept.append(_token_like(self.kept[-1], TokenType.VAR, mark))
            return
        if MARK in name.text:
            raise unsupported(_TWO, start)
        if name.text.upper() == "CHANGES":
            raise unsupported("CHANGES (…)", name)
        self.kept[place] = _token_like(
            name,
            name.token_type if name.token_type == TokenType.IDENTIFIER else TokenType.VAR,
            name.text + mark,
        )

    def _before_parentheses(self, place: int) -> int:
        depth = 0
        while place >= 0:
            kind = self.kept[place].token_type
            depth += (kind == TokenType.R_PAREN) - (kind == TokenType.L_PAREN)
            place -= 1
            if depth == 0:
                break
        return place

    # ------------------------------------------------------------ tokens

    def _ends_table(self, token: Token) -> bool:
        return token.token_type == TokenType.R_PAREN or _is_name(token)

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


def _is_name(token: Token) -> bool:
    kind = token.token_type
    if kind in (TokenType.VAR, TokenType.IDENTIFIER):
        return True
    return kind not in _NO_NAME and token.text.replace("_", "a").isalnum()


def _token_like(token: Token, kind: TokenType, text: str) -> Token:
    return Token(kind, text, token.line, token.col, token.start, token.end, [])


def _give(node: exp.Expr, clause: exp.Version) -> None:
    start = clause.meta["start"]
    owner = node.parent
    if isinstance(owner, exp.TableAlias) and owner.this is node:
        owner = owner.parent
    if isinstance(owner, exp.Dot):
        owner = owner.parent
    if isinstance(owner, exp.Table):
        if owner.args.get("version") is not None:
            raise unsupported(_TWO, start)
        owner.set("version", clause)
        return
    kind = _kinds().get(type(owner)) if owner is not None else None
    if kind is None:
        raise unsupported(MISPLACED, start)
    raise unsupported(f"time travel on {kind}", start, "put the clause after each table inside it")


def _kinds() -> dict[type[exp.Expr], str]:
    return {
        exp.Subquery: "a subquery",
        exp.Unnest: "UNNEST",
        exp.Values: "VALUES",
        exp.Lateral: "LATERAL",
    }
