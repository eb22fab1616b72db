"""MERGE INTO as a value, its WHEN clauses, and texts composed of its parts and inserted words."""

from __future__ import annotations

from typing import Any, Final

from icesql.frozen import Frozen
from icesql.sql.cursor import TokenCursor
from icesql.sql.edited_text import Change, Composed, Segment, Sources, edited, joined
from icesql.sql.lexer import Span, Tokens, span_of
from icesql.sql.positions import syntax_error, unsupported
from icesql.sql.statement import Query, Write
from icesql.sql.table_name import Parts
from icesql.sql.writes.statements import TableName
from icesql.sql.writes.update import before_word, plain_words

# Replacements of spans of the statement, sorted by offset, without overlaps.
Edits = tuple[Change, ...]
MATCHED, NOT_MATCHED, BY_SOURCE = "MATCHED", "NOT MATCHED", "NOT MATCHED BY SOURCE"


class MergeValue(Frozen):
    """The value of a column, by its path; ``value`` None is DEFAULT. ``offset`` is the column's."""

    path: Parts
    value: Span | None
    offset: int | None = None


class MergeClause(Frozen):
    """WHEN … THEN …: the first one of its kind whose condition is true acts on a row.

    ``kind`` is MATCHED, NOT_MATCHED or BY_SOURCE; ``action`` "update", "delete", "insert" or
    "nothing". ``star`` chooses the values that the statement does not list: source columns for
    "all" columns of the table, for those with the same "name", or by "position"; "default" is
    DEFAULT VALUES. ``values`` of INSERT VALUES without a column list have empty
    paths.
    """

    kind: str
    action: str
    condition: Span | None = None
    values: tuple[MergeValue, ...] = ()
    star: str = ""
    offset: int | None = None


class JoinKey(Frozen):
    """Two columns that ON compares for equality, each as (qualifier or "", name)."""

    one: tuple[str, str]
    other: tuple[str, str]


class Merge(Write):
    """MERGE INTO.

    ``source`` is the query of all rows of the source, whose text is ``source_text``. The other
    parts are spans of ``sql``, to be copied with ``edits``: the target with its alias and time,
    and ON or USING (…) as ``join``. ``target_name`` and ``source_name`` are the qualifiers of
    columns. ``given`` are the parameters of the statement and the number of those before ON.
    ``keys`` are the columns that ON compares, ``used`` the source columns that the statement names,
    with their offsets. ``taken`` are the values that are a source column, or a field of one, with
    its path. ``evolves``: add columns of the source that the table lacks to it.
    """

    table: TableName
    sql: str
    source: Query
    source_text: Composed
    target: Span
    target_name: str
    source_name: str
    join: Span
    uses_columns: bool
    clauses: tuple[MergeClause, ...]
    edits: Edits
    given: tuple[Any, int]
    keys: tuple[JoinKey, ...] = ()
    used: tuple[tuple[str, int], ...] = ()
    taken: tuple[tuple[Span, Parts], ...] = ()
    evolves: bool = False


class Composer:
    """Builds a ``Composed`` from a statement; ``under`` are the sources of the statement."""

    def __init__(self, sql: str, edits: Edits = (), under: Sources | None = None) -> None:
        self._sql, self._edits, self._under = sql, edits, under
        self._segments: list[Segment] = []

    def add(self, *words: str) -> Composer:
        """Append inserted words; their offset is the end of the words before them."""
        last = self._segments[-1] if self._segments else None
        place = 0 if last is None else last.start + last.length
        self._segments += [Segment(each, -1, place) for each in words]
        return self

    def copy(self, *spans: Span | None) -> Composer:
        """Append spans of the statement; None appends nothing."""
        for start, end in filter(None, spans):
            inside = [
                (first, last, [Segment(words, -1, first)])
                for first, last, words in self._edits
                if start <= first and last <= end
            ]
            self._segments += edited(self._sql[start:end], start, inside)
        return self

    def made(self) -> Composed:
        """Return the text composed so far."""
        return Composed(*joined(self._segments, under=self._under))


# ------------------------------------------------------------------ WHEN … THEN
# ``WHEN [NOT] MATCHED [BY TARGET | BY SOURCE] [AND condition] THEN action``.


_MOST: Final = 64


def until(words: TokenCursor, *stops: str) -> Tokens:
    """Read up to one of these words outside brackets and CASE."""
    rest = words.rest
    count = before_word(rest, *stops)
    words.index += count
    return rest[:count]


def read_clauses(tokens: Tokens, sql: str) -> tuple[MergeClause, ...]:
    """Read the clauses of a statement; the first token is the first WHEN.

    Raises SqlSyntaxError and UnsupportedSqlError.
    """
    places = [index for index, word in plain_words(tokens) if word == "WHEN"]
    for index, word in plain_words(tokens):
        if word == "RETURNING":
            raise unsupported("MERGE … RETURNING", tokens[index], "query the table afterwards")
    if len(places) > _MOST:
        raise syntax_error(f"MERGE has more than {_MOST} clauses", tokens[places[_MOST]])
    ends = [*places[1:], len(tokens)]
    found: list[MergeClause] = []
    closed: set[str] = set()
    for start, end in zip(places, ends, strict=True):
        clause = _clause(TokenCursor(tokens[start:end], sql))
        if clause.kind in closed:
            raise syntax_error(
                f"this clause is never reached: the WHEN {clause.kind} before it has no condition",
                clause.offset,
            )
        if clause.condition is None:
            closed.add(clause.kind)
        found.append(clause)
    return tuple(found)


def _clause(words: TokenCursor) -> MergeClause:
    offset = words.here
    words.need("WHEN")
    negated = words.skip("NOT")
    words.need("MATCHED")
    kind = NOT_MATCHED if negated else MATCHED
    if negated and words.skip("BY SOURCE"):
        kind = BY_SOURCE
    elif negated:
        words.skip("BY TARGET")
    condition = _condition(words) if words.skip("AND") else None
    words.need("THEN")
    at = words.here
    if words.skip("DO NOTHING"):
        words.end()
        return MergeClause(kind, "nothing", condition, offset=offset)
    if words.peek() == "ERROR":
        raise unsupported("THEN ERROR", at, "query for such rows before the MERGE")
    wanted = "INSERT" if kind == NOT_MATCHED else "UPDATE"
    if kind != NOT_MATCHED and words.skip("DELETE"):
        words.end()
        return MergeClause(kind, "delete", condition, offset=offset)
    if not words.skip(wanted):
        expected = ("INSERT",) if kind == NOT_MATCHED else ("UPDATE", "DELETE")
        raise words.unexpected(*expected, "DO NOTHING")
    star, values = _inserted(words) if wanted == "INSERT" else _updated(words)
    if star and kind == BY_SOURCE:
        raise syntax_error("there is no source row to take values from; write SET", at)
    return MergeClause(kind, wanted.lower(), condition, values, star, offset)


def _condition(words: TokenCursor) -> Span:
    tokens = until(words, "THEN")
    if not tokens:
        raise words.unexpected("a condition")
    return span_of(tokens)


def _star(words: TokenCursor) -> str:
    """Return how values that are not listed are chosen; "" if the values are listed."""
    if (
        words.token is None
        or (words.peek() == "*" and words.skip("*"))
        or words.skip("ALL BY NAME")
    ):
        star = "all"
    elif words.skip("BY NAME"):
        star = "name"
    elif words.skip("BY POSITION"):
        star = "position"
    else:
        return ""
    words.skip("*")
    words.end()
    return star


def _updated(words: TokenCursor) -> tuple[str, tuple[MergeValue, ...]]:
    if not words.skip("SET"):
        star = _star(words)
        if not star:
            raise words.unexpected("SET")
        return star, ()
    if words.peek() == "*":
        return _star(words), ()

    def assignment() -> MergeValue:
        at = words.here
        if words.peek() == "(":
            raise unsupported("SET (columns) = (values)", at, "write SET a = x, b = y")
        path = words.name("a column")
        words.need("=")
        return MergeValue(path, _value(words), at)

    values = words.listed(assignment)
    words.end()
    return "", tuple(values)


def _inserted(words: TokenCursor) -> tuple[str, tuple[MergeValue, ...]]:
    if words.skip("DEFAULT VALUES"):
        words.end()
        return "default", ()
    star = "" if words.peek() in ("(", "VALUES") else _star(words)
    if star:
        return star, ()
    paths: list[tuple[int, Parts]] = []
    if words.peek() == "(":
        paths = words.bracketed(lambda inner: (inner.here, inner.name("a column")))
    at = words.here
    words.need("VALUES")
    given = words.bracketed(lambda inner: (inner.here, _value(inner)))
    words.end()
    if paths and len(paths) != len(given):
        counted = f"{len(paths)} column{'s' * (len(paths) != 1)}"
        raise syntax_error(
            f"INSERT names {counted} and gives {len(given)} value{'s' * (len(given) != 1)}", at
        )
    named = paths or [(place, ()) for place, _ in given]
    pairs = zip(named, given, strict=True)
    return "", tuple(MergeValue(path, value, offset) for (offset, path), (_, value) in pairs)


def _value(words: TokenCursor) -> Span | None:
    tokens = words.until(",")
    if not tokens:
        raise words.unexpected("a value")
    return None if [each.word for each in tokens] == ["DEFAULT"] else span_of(tokens)
