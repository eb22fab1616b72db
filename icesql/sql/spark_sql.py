"""Make the text that Spark runs from a statement in Spark's spelling: the user's text, edited.

Table references with their time-travel clauses, parameters and clock functions are located among
Spark's tokens and compared with the tree. A difference is refused.
"""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from icesql.errors import DataError, nearest
from icesql.frozen import Frozen
from icesql.quoting import spark_name, spark_string
from icesql.sql.edited_text import CUT, SQL, TABLE, Composed, Edit, Segment, edited, joined
from icesql.sql.edited_text import NAME as QUALIFIED
from icesql.sql.grammar import SPARK, words_by_head
from icesql.sql.keywords import word_set
from icesql.sql.lexer import (
    COMMENT,
    NAME,
    NUMBER,
    SIGN,
    TEXT,
    WORD,
    Token,
    Tokens,
    closing,
    pieces,
    span_of,
    tokens_in,
)
from icesql.sql.parameters import literal, write_literal
from icesql.sql.positions import syntax_error, unsupported
from icesql.sql.trees import exp

if TYPE_CHECKING:
    from icesql.sql.statement import TableReference


# ------------------------------------------------------------------ functions of Spark
# Everything that looks like a call in the final text is looked up, by the name that Spark resolves.
# So no dialect, quote or rewriting can produce a call that the user was not allowed to write.


_ALLOWED: Final = word_set("safe volatile word")
_REASONS: Final = {
    "leaks": "it shows what is inside Spark or this machine, not what is in a table",
    "system": "a query reads its tables and nothing else of the machine",
}
_UNKNOWN: Final = "Spark has no such function, or icesql does not classify it yet"
# Words that Spark evaluates as a call without parentheses, unless a column has the name.
_LEAKS_BARE: Final = word_set("current_user session_user user current_path")


@functools.cache
def classes() -> dict[str, str]:
    """Return the checked-in table: name in lower case → class; its head explains the classes."""
    return {name: kind for kind, name in words_by_head("spark_engine_functions.txt")}


def check_calls(tokens: Tokens, tree: exp.Expr) -> None:
    """Raise UnsupportedSqlError for a call among ``tokens`` that is not allowed in a query.

    ``tree`` is their tree: ``name (a, b)`` may be an alias with names for columns.
    """
    found = list(_calls(tokens))
    counts = Counter(each.text.lower() for each, _ in found)
    for each, qualified in found:
        name = each.text.lower()
        known = classes().get(name)
        if known == "word" and each.kind == NAME:
            known = None
        if known in _ALLOWED and not qualified:
            continue
        if not qualified and counts[name] == _declarations(name, tree):
            continue
        if qualified and known in _ALLOWED:
            raise unsupported(f"a qualified function {name}()", each.start)
        reason = _REASONS.get(known or "", _UNKNOWN)
        if known is None:
            from icesql.sql.syntax_errors import SIMILAR, meaning

            reason = meaning(name, SPARK) or nearest(name, _known_names(), reason, SIMILAR)
        raise unsupported(f"the function {name}()", each.start, reason)


def _calls(found: Tokens) -> Iterator[tuple[Token, bool]]:
    """Yield each name before a parenthesis, and whether another name qualifies it."""
    for at, each in enumerate(found[:-1]):
        if each.kind in (NAME, WORD) and found[at + 1].word == "(":
            yield each, at > 0 and found[at - 1].word == "."


def check_bare_words(tokens: Tokens, columns: frozenset[str]) -> None:
    """Raise UnsupportedSqlError for a bare word that is a call, unless a column has its name."""
    for at, each in enumerate(tokens):
        name = each.text.lower()
        if each.kind == WORD and name in _LEAKS_BARE and name not in columns:
            after_dot = at > 0 and tokens[at - 1].word in (".", "AS")
            if not after_dot:
                raise unsupported(each.text, each.start, _REASONS["leaks"])


@functools.cache
def _known_names() -> tuple[str, ...]:
    return tuple(name for name, each in classes().items() if each in ("safe", "volatile"))


def _declarations(name: str, tree: exp.Expr) -> int:
    """Return how many aliases in the tree have the form ``name (a, b)``."""
    from sqlglot import exp

    return sum(
        each.name.lower() == name and bool(each.args.get("columns"))
        for each in tree.find_all(exp.TableAlias)
    )


# ------------------------------------------------------------------ the text


_NAMED: Final = (NAME, WORD)

# The kind of an edit of a clock function, whose ``text`` is its name in lower case.
CLOCK: Final = "clock"
_CLOCKS: Final = ("NOW", "CURDATE", "LOCALTIMESTAMP")
_BARE_CLOCKS: Final = ("CURRENT_TIMESTAMP", "CURRENT_DATE")
_SIGNS: Final = frozenset({*"!%&()*+,-./:<=>?@[]^|~", "=>", "->"})


class SparkText(Frozen):
    """``sql``, which starts at ``start`` of the user's SQL, its edits in order, and its tree.

    ``text`` of the edit of a table is its index, and of a clock function the name in lower case.
    Comments are blanks. ``words`` are the names in it, in lower case: it refers to no other column.
    """

    sql: str
    start: int
    edits: tuple[Edit, ...]
    tree: exp.Expression
    words: frozenset[str]

    def final(
        self, tables: Sequence[str], clocks: Mapping[str, str] | None
    ) -> tuple[str, Callable[[int], int]]:
        """Return the text that Spark runs, and a map from its offsets to those in the user's SQL.

        ``tables`` are the names of the scans' views, ``clocks`` the SQL of each clock function;
        with None the calls of clock functions stay.
        """
        spans = [
            (edit.start, edit.end, [Segment(self._put(edit, tables, clocks), -1, edit.start)])
            for edit in self.edits
        ]
        text = Composed(*joined(edited(self.sql, self.start, spans)))
        return text.text, text.place

    def _put(self, edit: Edit, tables: Sequence[str], clocks: Mapping[str, str] | None) -> str:
        """Return the SQL that replaces the span of an edit."""
        match edit.kind:
            case "table":
                return spark_name(tables[int(edit.text)]) + edit.after
            case "name":
                return spark_name(edit.text)
            case "cut":
                return " "
            case "clock":
                as_it_is = self.sql[edit.start - self.start : edit.end - self.start]
                return as_it_is if clocks is None else clocks[edit.text]
            case _:
                return edit.text

    @property
    def clocks(self) -> int:
        """The number of calls of clock functions."""
        return sum(edit.kind == CLOCK for edit in self.edits)

    def check_names(self, columns: frozenset[str]) -> None:
        """Raise UnsupportedSqlError for a bare word that is a call, not one of ``columns``."""
        stop = self.start + len(self.sql)
        check_bare_words(spark_tokens(" " * self.start + self.sql, self.start, stop), columns)


def spark_text(
    sql: str,
    tokens: Tokens,
    tokenize: Callable[[str], Tokens],
    tree: exp.Expression,
    references: Sequence[TableReference],
    changes: Sequence[Edit],
    parameters: Callable[[str | None], Any],
) -> SparkText:
    """Return the text for Spark of the statement in ``sql`` with these ``tokens`` of sqlglot.

    In ``tree`` references and parameters are already replaced, by the edits ``changes``.
    ``parameters`` returns the value of the named parameter, or with None of the next one. Raises
    UnsupportedSqlError, SqlSyntaxError.
    """
    start, stop = span_of(tokens)
    every = spark_tokens(sql, start, stop)
    found = list(pieces(sql, start, stop, "spark"))
    text = "".join(
        re.sub(r"[^\n]", " ", sql[first:last]) if kind == COMMENT else sql[first:last]
        for kind, first, last in found
    )
    comment = next((first for kind, first, _ in found if kind == COMMENT), None)
    if comment is not None:
        _check_comments(comment, tokens, tokenize(" " * start + text))
    cuts = list(_changed(every, changes, CUT))

    def is_kept(each: Token | Edit) -> bool:
        return not any(cut.start <= each.start < cut.end for cut in cuts)

    # Removed clauses call no function, and their values are in the references.
    own = [each for each in every if is_kept(each)]
    check_calls(own, tree)
    for before, after in pairwise(own):
        if before.word == "USING" and after.kind == TEXT:
            raise unsupported("a script (TRANSFORM … USING)", before.start)
    given = [each for each in _parameters(every, parameters) if is_kept(each)]
    edits = [
        *_tables(own, references),
        *_changed(own, changes, QUALIFIED),
        *cuts,
        *given,
        *_clocks(own),
        *_doubled(own, sql),
    ]
    for year in tree.find_all(exp.Year):
        # The date cast that sqlglot adds to the argument would prevent pruning.
        if isinstance(year.this, exp.TsOrDsToDate) and not year.this.args.get("format"):
            year.set("this", year.this.this)
    edits.sort(key=lambda each: each.start)
    for one, other in pairwise(edits):
        if other.start < one.end:
            raise unsupported("a clause inside another", other.start)
    words = frozenset(each.text.lower() for each in own if each.kind in _NAMED)
    return SparkText(text, start, tuple(edits), tree, words)


def spark_tokens(sql: str, start: int, stop: int) -> list[Token]:
    """Return the tokens from ``start`` to ``stop``, split like Spark's own lexer does.

    Raises SqlSyntaxError and UnsupportedSqlError for text that is not a token of Spark's.
    """
    found = list(tokens_in(sql, start, stop, "spark"))
    for each in found:
        if each.word == "|>":
            raise unsupported("the pipe |>", each)
        if each.kind == SIGN and each.text not in _SIGNS:
            raise syntax_error(f"unexpected {each.text!a}", each)
        if each.kind in (WORD, NUMBER) and sql.startswith("://", each.stop):
            raise unsupported("an address as a name", each)
    return found


def _check_comments(comment: int, tokens: Tokens, without: Tokens) -> None:
    """Refuse comments that end elsewhere in Spark, which continues one after a final backslash."""
    before = [(each.word, each.start, each.text) for each in tokens]
    if before != [(each.word, each.start, each.text) for each in without]:
        raise unsupported("a comment that Spark reads in another way", comment)


def _tables(own: Tokens, references: Sequence[TableReference]) -> Iterator[Edit]:
    by_start = {each.start: at for at, each in enumerate(own)}
    for reference in references:
        at = by_start.get(-1 if reference.offset is None else reference.offset)
        if at is None:
            raise unsupported(f'the table "{reference.name}" at this place', reference.offset)
        if reference.path is not None:
            end = closing(own, at + 1)
            if end == len(own):
                raise unsupported("this table", own[at + 1].start)
        else:
            end = at + 2 * (len(reference.parts) - 1)
            parts = own[at : end + 1 : 2]
            names = all(each.kind in _NAMED for each in parts)
            dots = all(each.word == "." for each in own[at + 1 : end : 2])
            if not (names and dots) or tuple(each.text for each in parts) != reference.parts:
                raise unsupported(f'the table "{reference.name}" at this place', own[at].start)
        alias = reference.given_alias
        after = f" AS {spark_name(alias)}" if alias else ""
        yield Edit(own[at].start, own[end].stop, TABLE, str(reference.index), after=after)


def _changed(own: Tokens, changes: Sequence[Edit], kind: str) -> Iterator[Edit]:
    """Yield the edits of a kind, whose spans must be those of tokens."""
    starts, stops = {each.start for each in own}, {each.stop for each in own}
    for each in changes:
        if each.kind == kind:
            if each.start not in starts or each.end not in stops:
                what = "a time-travel clause" if kind == CUT else f"the name {each.text}"
                raise unsupported(f"{what} at this place", each.start)
            yield each


def _parameters(own: Tokens, value: Callable[[str | None], Any]) -> Iterator[Edit]:
    for at, each in enumerate(own):
        before = own[at - 1] if at else None
        listed = before is not None and before.word == "IN"
        if each.word == "?":
            yield Edit(each.start, each.stop, SQL, spark_literal(value(None), listed=listed))
        elif each.word == ":" and at + 1 < len(own) and own[at + 1].start == each.stop:
            glued = before is not None and (
                before.stop == each.start and (before.word == ":" or before.kind in _NAMED)
            )
            if own[at + 1].kind in _NAMED and not glued:
                written = spark_literal(value(own[at + 1].text), listed=listed)
                yield Edit(each.start, own[at + 1].stop, SQL, written)


def _clocks(own: Tokens) -> Iterator[Edit]:
    for at, each in enumerate(own):
        called = [token.word for token in own[at + 1 : at + 3]] == ["(", ")"]
        bare = each.word in _BARE_CLOCKS and not (at and own[at - 1].word == "AS")
        if at and own[at - 1].word == ".":
            continue
        if (each.word in _CLOCKS and called) or bare:
            stop = own[at + 2].stop if called else each.stop
            yield Edit(each.start, stop, CLOCK, each.text.lower())


def _doubled(own: Tokens, sql: str) -> Iterator[Edit]:
    """Rewrite doubled quotes in a string, which Spark 3.5 does not support, with a backslash."""
    for each in own:
        quote, inner = sql[each.start], sql[each.start + 1 : each.stop - 1]
        if each.kind == TEXT and quote in "'\"":
            body = re.sub(
                rf"\\.|{quote}{quote}",
                lambda found: found[0] if found[0][0] == "\\" else f"\\{found[0][0]}",
                inner,
                flags=re.DOTALL,
            )
            if body != inner:
                yield Edit(each.start, each.stop, SQL, f"{quote}{body}{quote}")


# Python values in Spark's spelling.

# Keys are sqlglot's names of types.
_TYPES: Final = {"TIMESTAMPNTZ": "TIMESTAMP_NTZ", "TIMESTAMPTZ": "TIMESTAMP_LTZ"}
_REFUSED: Final = ("TIME", "TIMESTAMP_NS")


def spark_literal(value: Any, *, listed: bool = False) -> str:
    """Return a parameter's value as an expression; a list after IN in parentheses.

    Raises DataError for a value that Spark's SQL cannot hold, ProgrammingError for Python types
    that are not SQL values.
    """
    if listed and isinstance(value, list | tuple | set | frozenset) and value:
        return "(" + ", ".join(_written(literal(each)) for each in value) + ")"
    return _written(literal(value))


def _written(node: exp.Expr) -> str:
    match node:
        case exp.Literal() if node.is_string:
            return spark_string(str(node.this))
        case exp.Null() | exp.Boolean() | exp.Literal() | exp.Neg():
            return write_literal(node)
        case exp.Cast():
            kind = node.to.this
            if kind.name in _REFUSED:
                raise DataError("a time of day or of nanoseconds is no value of Spark's SQL")
            if kind is exp.DataType.Type.UUID:
                return _written(node.this)
            name = _TYPES.get(kind.name, kind.value)
            sizes = ", ".join(str(each.name) for each in node.to.expressions)
            return f"CAST({_written(node.this)} AS {name}{sizes and f'({sizes})'})"
        case exp.HexString():
            return f"X'{node.this}'"
        case exp.Interval():
            return f"INTERVAL {spark_string(node.name)} {node.text('unit')}"
        case exp.Array():
            return f"array({', '.join(map(_written, node.expressions))})"
        case exp.Struct():
            fields = (
                f"{spark_string(each.this.name)}, {_written(each.expression)}"
                for each in node.expressions
            )
            return f"named_struct({', '.join(fields)})"
        case _:
            raise DataError(f"a parameter of this kind ({node.key}) is no value of Spark's SQL")
