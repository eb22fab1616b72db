"""Cuts the time-travel clauses and options of tables out of the tokens of one statement.

See ``clauses``.
"""

from __future__ import annotations

import re
from typing import Final

from icesql.sql.cursor import TokenCursor
from icesql.sql.keywords import QUERY_WORDS, word_map
from icesql.sql.lexer import (
    NAME,
    NUMBER,
    TEXT,
    Token,
    Tokens,
    before,
    closing,
    ends_clause,
    is_name,
    outer,
)
from icesql.sql.parser.travel.clauses import (
    BEFORE_TEXT,
    BRANCH_KINDS,
    CHANGES_HINT,
    NO_KIND,
    OTHER_RANGES,
    PHRASES,
    RANGES,
    REFUSED,
    STARTS,
    TWO,
    ReadValue,
)
from icesql.sql.positions import syntax_error, unsupported
from icesql.sql.show import COMPARED, PREFIX, end_of_name
from icesql.sql.table_name import Parts
from icesql.sql.trees import exp

_SAMPLES: Final = ("TABLESAMPLE", "SAMPLE", "REPEATABLE", "BERNOULLI", "SYSTEM", "RESERVOIR")
_BEFORE_TABLES: Final = ("FROM", "JOIN", ",")


class TravelCutter(TokenCursor):
    """``run`` puts the remaining tokens into ``kept``; ``clauses`` are by the names before them."""

    def __init__(self, tokens: Tokens, sql: str, read_value: ReadValue) -> None:
        super().__init__(tokens, sql)
        self._read_value = read_value
        self.kept: list[Token] = []
        self.clauses: dict[int, exp.Version] = {}
        self.tables: dict[int, tuple[int, Parts]] = {}

    def run(self) -> None:
        """Scan all tokens once. Raises SqlSyntaxError, UnsupportedSqlError."""
        index = 0
        while index < len(self.tokens):
            end = self._clause(index) if self.kept and self.word(index) else index
            if end == index and self.word(index):
                end = self._call_for_table(index) if self.word(index) in STARTS else index
            if end == index and self.word(index) in COMPARED:
                end = self._compared(index)
            if end == index:
                self.kept.append(self.tokens[index])
                index += 1
            else:
                index = end

    # ------------------------------------------------------------ one clause

    def _clause(self, index: int) -> int:
        """Return the end of a clause that begins at ``index``; ``index`` if there is none."""
        word = self.word(index)
        if word not in STARTS or not (self.kept[-1].word == ")" or is_name(self.kept[-1])):
            return index
        match word:
            case "CHANGES":
                return self._changes(index)
            case "@":
                return self._at_sign(index)
            case "WITH":
                return self._with(index)
        for words, hint in REFUSED.items():
            if self.matches(index, words):
                raise unsupported(words, self.tokens[index], hint)
        for words, kind in PHRASES.items():
            if self.matches(index, words):
                return self._phrase(index, words, kind)
        if word in ("AT", "BEFORE", "END") and self.matches(index + 1, "("):
            self._check_kind(index, word)
        for words, kind in RANGES.items():
            if self.matches(index, words):
                self._refuse_range(words, kind, index)
        for words, kind in BEFORE_TEXT.items():
            if self.matches(index, words) and self.kind(index + len(words.split())) == TEXT:
                return self._phrase(index, words, kind)
        return index

    def _changes(self, index: int) -> int:
        """Read ``CHANGES FROM VERSION a TO VERSION b``; return its end."""
        from icesql.sql.parser.travel.changes import read_changes

        clause = read_changes(self, index)
        if clause is None:
            return index
        self._keep_clause(clause, index, index, self.index, self.index)
        return self.index

    def _with(self, index: int) -> int:
        """Read ``WITH ('branch' = 'audit')`` or ``WITH SNAPSHOT SCHEMA``; return its end."""
        schema = self._schema(index)
        if schema:
            clause = exp.Version(this="SCHEMA", kind="AS OF", expression=exp.Null())
            clause.meta["schema"] = schema
            self._keep_clause(clause, index, index, index + 3, index + 3)
            return index + 3
        if self.word(index + 1) != "(":
            return index

        self.index = index + 2
        option = read_options(self)
        if option is None:
            return index
        kind, value, place = option
        return self._keep(index, kind, value, place, place + 1, self.index)

    def _call_for_table(self, index: int) -> int:
        """Read a call such as ``table_changes('table', first [, last])`` in FROM; see ``calls``."""
        if not self.kept or self.kept[-1].word not in _BEFORE_TABLES:
            return index
        from icesql.sql.parser.travel.changes import read_table_call

        found = read_table_call(self, index)
        if found is None:
            return index
        (parts, clause), behind = found, self.index
        token, stop = self.tokens[index], self.tokens[behind - 1].stop
        self.tables[token.start] = (stop, parts)
        for place, part in enumerate(parts):
            if place:
                self.kept.append(token.like("."))
            # Without a clause the name covers the whole call in the text.
            is_last = clause is None and place == len(parts) - 1
            self.kept.append(Token(NAME, part, token.start, stop if is_last else token.stop))
        if clause is not None:
            self._keep_clause(clause, index + 1, index + 2, behind - 1, behind)
        return behind

    def _compared(self, index: int) -> int:
        """Read ``DIFF t BETWEEN a AND b`` or ``BLAME t``, whose first word became FROM."""
        token = self.tokens[index]
        if not self.kept or self.kept[-1].start != token.start:
            return index
        from icesql.sql.parser.travel.changes import read_blame, read_difference

        place = end_of_name(self.tokens, index + 1)
        if place == index + 1:
            word = self.word(index)
            raise syntax_error(f"nothing follows {word}", self.offset(place), ("a table",))
        self.kept += self.tokens[index + 1 : place]
        self.index = place
        clause = read_blame(self) if self.word(index) == "BLAME" else read_difference(self)
        end = self.index
        if end > place:
            self._keep_clause(clause, place, place, end, end)
        else:  # no word of the clause is in the text
            at = self.tokens[place - 1].stop
            clause.meta.update(start=at, end=at, text="")
            self._put(clause, at)
        return end

    def _check_kind(self, index: int, word: str) -> None:
        """Refuse ``AT (kind => value)`` of a kind that is not in ``PHRASES``."""
        if self.word(index + 3) == "=>":
            hint = NO_KIND.format(word="AT" if word == "END" else word)
            raise unsupported(f"{word} ({self.word(index + 2)} => …)", self.tokens[index], hint)

    def _phrase(self, index: int, phrase: str, kind: str) -> int:
        words = phrase.split()
        first = index + len(words)
        if words[-1] == "=>":
            value, end = self._operand(first, f"nothing follows {words[0]} ({words[2]} =>")
            if self.word(end) != ")":
                raise syntax_error(f"unterminated {words[0]} (", self.offset(end), (")",))
            return self._keep(index, kind, value, first, end, end + 1)
        if words[-1] == "BEFORE":
            what, wanted = "BEFORE", "a value"
        else:
            what = phrase
            wanted = "a time" if kind == "TIMESTAMP" else "a snapshot id, a branch or a tag"
        value, end = self._operand(first, f"nothing follows {what}", wanted)
        if kind not in BRANCH_KINDS or not self.matches(end, "AS OF"):
            return self._keep(index, kind, value, first, end, end)
        first = end + 2  # AT BRANCH b AS OF 'time'
        first += self.word(first) == "TIMESTAMP" and self.kind(first + 1) == TEXT
        time, end = self._operand(first, "nothing follows AS OF", "a time")
        both = exp.Tuple(expressions=[value, time])
        return self._keep(index, "BRANCH AT", both, first, end, end)

    def _at_sign(self, index: int) -> int:
        """Read ``t@ref``, ``t@ref~2``, ``t@branch(ref)``, ``t@tag(ref)``: without a space."""
        tokens, first = self.tokens, index + 1
        if first >= len(tokens) or not (self._touches(index) and self._touches(first)):
            return index
        kind, name, end = "AT SIGN", first, first + 1
        if self.word(first) in ("BRANCH", "TAG") and self.word(first + 1) == "(":
            kind, name = self.word(first), first + 2
            if self.word(first + 3) == "=":  # t@branch('name' = 'audit')
                name = first + 4
            end = name + 2
            if self.word(name + 1) != ")":
                return index
        number = kind == "AT SIGN" and self.kind(name) == NUMBER
        if name >= len(tokens) or not (number or is_name(tokens[name]) or self.kind(name) == TEXT):
            return index
        text, last = tokens[name].text, name + 1
        if kind == "AT SIGN" and self.word(end) == "~" and self._touches(end):
            text, last, end = f"{text}~", end + 1, end + 1
            if self.kind(end) == NUMBER and self._touches(end):
                text, last, end = text + tokens[end].text, end + 1, end + 1
        return self._keep(index, kind, exp.Literal.string(text), name, last, end)

    def _touches(self, index: int) -> bool:
        """True if no space is before a token."""
        return self.tokens[index].start == self.tokens[index - 1].stop

    def _refuse_range(self, phrase: str, kind: str, index: int) -> None:
        first = index + len(phrase.split())
        found = self.word(first)
        if first >= len(self.tokens) or found == "IN" or (found == ")" and first == index + 2):
            return  # [expression FOR version IN a_list]
        start = self.tokens[index].start
        if found in OTHER_RANGES:
            raise unsupported(f"{phrase} {found}", start, CHANGES_HINT[kind])
        written = self.sql[start : self.tokens[first].stop].rstrip()
        problem = f"a time-travel clause without AS OF: {written}"
        raise syntax_error(problem, self.offset(first), ("AS OF",))

    def _operand(self, first: int, problem: str, *expected: str) -> tuple[exp.Expr, int]:
        """Return the value at ``first`` and its end. Raises SqlSyntaxError if there is none."""
        value, end = self.value(first)
        if value is None:
            raise syntax_error(problem, self.offset(first), expected)
        return value, end

    def value(self, first: int) -> tuple[exp.Expr | None, int]:
        """Return the value at ``first``, or None if there is none, and its end."""
        if ends_clause(self.tokens, first):
            return None, first
        if self.word(first) == "(":
            query = query_at(self.tokens, self.sql, first)
            if query is not None:
                return query
        # No value extends past the comma, semicolon or closing bracket that follows it.
        behind = outer(self.tokens, first, (",",)) + 1
        value, count = self._read_value(self.tokens[first:behind])
        return value, first + count

    def _schema(self, index: int) -> str:
        """Return the schema of a ``WITH SNAPSHOT SCHEMA`` clause; "" for other words."""
        word = self.word(index + 1)
        named = word in ("SNAPSHOT", "CURRENT") and self.word(index + 2) == "SCHEMA"
        return word.lower() if named and self.word(index) == "WITH" else ""

    def _keep(self, index: int, kind: str, value: exp.Expr, first: int, last: int, end: int) -> int:
        """Mark the table of a clause from ``index`` to ``end``, including a schema clause after it;
        return where that ends."""
        clause = exp.Version(this=kind, kind="AS OF", expression=value)
        clause.meta["schema"] = schema = self._schema(end)
        end += 3 if schema else 0
        self._keep_clause(clause, index, first, last, end)
        return end

    def _keep_clause(
        self, clause: exp.Version, index: int, first: int, last: int, end: int
    ) -> None:
        tokens = self.tokens
        start, stop = tokens[index].start, tokens[end - 1].stop
        # A text with a parameter does not tell its value.
        told = clause.find(exp.Placeholder, exp.Parameter) is None
        text = self.sql[tokens[first].start : tokens[last - 1].stop].strip() if told else ""
        clause.meta.update(start=start, end=stop, text=text)
        self._put(clause, start)

    def _put(self, clause: exp.Version, start: int) -> None:
        place = len(self.kept) - 1
        ends_in_brackets = self.kept[place].word == ")"
        place = self._before_brackets(place)
        while ends_in_brackets and self._is_sample(place):
            place = self._before_brackets(place - 1)
        name = self.kept[place]
        if ends_in_brackets and (place < 0 or not is_name(name)):  # parentheses without an alias
            in_from = name.word in (*_BEFORE_TABLES, "LATERAL")
            clause.meta["inside"] = self.kept[place + 2].word if in_from else ""
            self.clauses[~start] = clause  # no name has this offset
            return
        if name.start in self.clauses:
            raise unsupported(TWO, start)
        if name.word == "CHANGES":
            raise unsupported("CHANGES (…)", name)
        self.clauses[name.start] = clause

    def _is_sample(self, place: int) -> bool:
        """True for a word of TABLESAMPLE that is no alias."""
        return place > 0 and self.kept[place].word in _SAMPLES and self.kept[place - 1].word != "AS"

    def _before_brackets(self, place: int) -> int:
        """Return the place before the brackets that end at ``place``, -1 for none, or ``place``."""
        if self.kept[place].word != ")":
            return place
        return max(before(self.kept, place, ("(",)) - 1, -1)


# A query as a version or a time: ``TIMESTAMP AS OF (SELECT max(…) FROM …)``.
#
# Only its text is kept: a session runs it before the statement is bound.

# Key of the query in the ``meta`` of the node that replaces it.
QUERY: Final = "query"


def query_at(tokens: Tokens, sql: str, first: int) -> tuple[exp.Expr, int] | None:
    """Return the node for the query in brackets that begins at ``first``, and its end.

    None if there is no query. Raises UnsupportedSqlError for one with parameters.
    """
    if tokens[first].word != "(" or first + 1 >= len(tokens):
        return None
    opening = tokens[first + 1]
    if opening.word not in QUERY_WORDS[:-1]:
        return None
    end = closing(tokens, first)
    if end == len(tokens):
        raise syntax_error("unterminated query", tokens[first], (")",))
    for index in range(first + 1, end):
        _check(tokens, index)
    start, stop = opening.start, tokens[end].start
    node = exp.Null()
    # Blanks before the query keep the offsets of errors in it.
    before = "".join(each if each == "\n" else " " for each in sql[:start])
    node.meta[QUERY] = (before + sql[start:stop], sql[start:stop].strip())
    return node, end + 1


def _check(tokens: Tokens, index: int) -> None:
    token = tokens[index]
    if token.word in ("?", "$"):
        hint = "write the value into the query"
        raise unsupported("a parameter in a query that chooses a snapshot", token, hint)
    if token.text.startswith(PREFIX):
        hint = "use the metadata table: t.snapshots, t.history or t.refs"
        raise unsupported("SHOW in a query that chooses a snapshot", token, hint)


# ------------------------------------------------------------------ options of a table
# Spark's ``t WITH ('branch' = 'audit')``, Flink's ``t /*+ OPTIONS(…) */``. ``read_hints`` rewrites
# Flink's hint to Spark's clause before.


# The kind of clause for each option.
_KINDS: Final = word_map("""
snapshot-id = VERSION
as-of-timestamp = MILLISECONDS
branch = BRANCH
tag = TAG
versionasof = VERSION
timestampasof = TIMESTAMP
""")
_RANGES: Final = re.compile(r"(?:start|end)-(?:snapshot-id|snapshot-timestamp|timestamp|tag)")
_RANGE_HINT: Final = "use CHANGES FROM VERSION a TO VERSION b for what commits added"
_LONGEST: Final = 18
_VALUES: Final = (TEXT, NUMBER)


def read_options(words: TokenCursor) -> tuple[str, exp.Expr, int] | None:
    """Read the one option that chooses a snapshot in ``'key' = 'value')``, after the bracket.

    Return its kind, its value and the index of its value; None if there are no options. Raises
    UnsupportedSqlError for other options, SqlSyntaxError.
    """
    tokens = words.tokens
    if _equals(tokens, words.index) is None:
        return None

    def option() -> tuple[str, exp.Expr, int]:
        start, equals = words.index, _equals(tokens, words.index)
        if equals is None or words.kind(equals + 1) not in _VALUES:
            at = tokens[min(start, len(tokens) - 1)]
            raise syntax_error("an option is 'name' = 'value'", at)
        words.index = equals + 2
        name = "".join(each.text for each in tokens[start:equals])
        return *_option(name, tokens[start], tokens[equals + 1]), equals + 1

    (_, found), *more = words.listed(lambda: (words.here, option()))
    if more:
        raise unsupported("two versions of one table", more[0][0], "give one of them")
    if not words.skip(")"):
        at = words.token or tokens[-1]
        raise syntax_error("unterminated options of a table", at, (",", ")"))
    return found


def _equals(tokens: Tokens, start: int) -> int | None:
    """Return the index of the ``=`` after an option's name: a text, or words with dashes."""
    for index in range(start, min(start + 6, len(tokens))):
        token = tokens[index]
        if token.word == "=":
            return index if index > start else None
        plain = token.text in ("-", ".") or token.text.replace("_", "a").isalnum()
        if token.word and not plain:
            return None
    return None


def _option(name: str, token: Token, value: Token) -> tuple[str, exp.Expr]:
    key = name.lower()
    kind = _KINDS.get(key)
    if kind is None:
        known = "snapshot-id, as-of-timestamp (milliseconds), branch and tag choose a snapshot"
        hint = _RANGE_HINT if _RANGES.fullmatch(key) or key == "streaming" else known
        raise unsupported(f"the option {name} of a table", token, hint)
    is_number = kind == "MILLISECONDS" or (kind == "VERSION" and value.text.isdigit())
    if kind == "MILLISECONDS" and not (value.text.isdigit() and len(value.text) <= _LONGEST):
        raise syntax_error(f"{name} counts milliseconds since 1970", value, ("a number",))
    literal = exp.Literal.number if is_number else exp.Literal.string
    return kind, literal(value.text)
