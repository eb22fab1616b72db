"""Read the tokens of a query in DuckDB's spelling as a tree.

Time-travel clauses, colons of parameters and calls that replace tables are icesql's extensions. In
the text for DuckDB's parser they are replaced by blanks, ``$`` and names of the same length, so
that every offset in its tree is an offset in the user's SQL. The clauses are then attached to their
tables by offset.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, TypeAlias

from sqlglot import exp

from icesql.errors import SqlSyntaxError, UnsupportedSqlError
from icesql.frozen import Frozen
from icesql.sql.acceptance import Accepts, check_calls
from icesql.sql.edited_text import Segment, Sources, edited, joined
from icesql.sql.keywords import RESERVED
from icesql.sql.lexer import (
    CLOSING,
    NAME,
    NUMBER,
    OPENING,
    TEXT,
    WORD,
    Span,
    Token,
    Tokens,
    tokens_in,
)
from icesql.sql.parser.depth import place_nodes
from icesql.sql.parser.travel.clauses import Travels
from icesql.sql.positions import syntax_error
from icesql.sql.reading.engine_tree import EngineTree, read_tree
from icesql.sql.reading.queries import QueryReader, read_query
from icesql.sql.references import read_file
from icesql.sql.table_name import Parts


class EngineText(Frozen):
    """The text of a query for DuckDB's parser, and the origin of its words.

    ``stars`` are the names before the table's in ``ns.t.*``, which DuckDB does not read, by the
    table's offset.
    """

    text: str
    sources: Sources
    stars: Mapping[int, Tokens]


class NotParsed(Exception):
    """DuckDB's parser does not accept a text as one query; ``reason`` is its error."""

    def __init__(self, reason: SqlSyntaxError | UnsupportedSqlError) -> None:
        super().__init__(str(reason))
        self.reason = reason


def read_text(text: EngineText, travels: Travels, accepts: Accepts) -> tuple[EngineTree, exp.Expr]:
    """Return DuckDB's tree of a query, and the sqlglot tree made from it.

    Raises NotParsed if DuckDB's parser fails, UnsupportedSqlError for a construct that icesql does
    not support or ``accepts`` does not allow.
    """
    engine_tree = _parsed(text)
    tree, read = read_query(engine_tree, text.sources, accepts)
    for clause in travels.clauses.values():
        if accepts.calls:
            check_calls(clause)
    travels.attach(tree)
    for table in read.files:
        read_file(table, table.name, files=accepts.files and len(table.parts) == 1)
    for table in tree.find_all(exp.Table) if travels.tables else ():
        start = table.meta.get("start", -1)
        if start in travels.tables:
            _rename(table, start, *travels.tables[start])
    for star in tree.find_all(exp.Star) if text.stars else ():
        _name_namespace(star.parent, text.stars)
    return engine_tree, tree


def begins_query(text: EngineText) -> bool:
    """True if the text is a valid beginning: DuckDB's parser finds no error before its end."""
    try:
        read_tree(f"{text.text}\n)")  # on a line of its own: the last may be a comment
    except SqlSyntaxError as error:
        return error.offset is not None and error.offset > len(text.text)
    except UnsupportedSqlError:
        return False
    return True


def _parsed(text: EngineText) -> EngineTree:
    places = text.sources
    try:
        engine_tree = read_tree(text.text)
    except (SqlSyntaxError, UnsupportedSqlError) as error:
        if error.offset is not None:
            error.offset = places.original(error.offset)
        raise NotParsed(error) from None
    if len(engine_tree.statements) != 1:
        raise NotParsed(syntax_error("not a statement", places.original(0)))
    return engine_tree


def engine_text(tokens: Tokens, sql: str, travels: Travels) -> EngineText:
    """Compose the text of the tokens for DuckDB's parser.

    ``sql`` has one name in place of each long list of literals. Words that are not in the SQL, such
    as the SELECT before a condition, and words in another order become pieces of their own.
    """
    stars = _long_stars(tokens)
    cuts = _cuts(tokens, travels, stars)
    segments: list[Segment] = []
    kept = {(token.start, token.text) for token in travels.tokens}
    for first, last in _runs(tokens, sql, kept):
        if segments:
            segments.append(Segment(" ", -1, segments[-1].start + segments[-1].length))
        if first is None:
            segments.append(Segment(last.text, -1, last.start))
            continue
        start, stop = first.start, last.stop
        inside = [
            (begin, end, [Segment(word.ljust(end - begin), -1, begin, end - begin)])
            for begin, end, word in (
                (max(begin, start), end, word) for begin, (end, word) in cuts if begin < stop
            )
            if end > start
        ]
        segments += edited(sql[start:stop], start, inside)
    return EngineText(*joined(segments), stars)


def _cuts(
    tokens: Tokens, travels: Travels, stars: Mapping[int, Tokens]
) -> list[tuple[int, tuple[int, str]]]:
    """Replacements of words, in order: start, end and new words of each."""
    spans = ((each.meta["start"], each.meta["end"]) for each in travels.clauses.values())
    cuts = {start: (end, "") for start, end in spans if end > start}
    cuts |= {colon: (colon + 1, "$") for colon in parameter_colons(tokens)}
    for number, (start, (end, _)) in enumerate(travels.tables.items()):
        cuts[start] = (end, f"_{number}")
    cuts |= {before[0].start: (start, "") for start, before in stars.items()}
    for index in range(len(tokens) - 1):
        token = tokens[index]
        is_first = index == 0 or not _is_dot(tokens[index - 1])
        # A word that DuckDB reserves, such as the namespace in FROM default.t.
        is_word = token.kind == WORD and token.text.lower() in RESERVED
        is_name = is_first and is_word and _is_dot(tokens[index + 1])
        # CASE … END.upper()
        if is_name and (token.text.lower() != "end" or tokens[index - 1].word == "FROM"):
            cuts.setdefault(token.start, (token.stop, f'"{token.text}"'))
    return sorted([*cuts.items(), *_interval_brackets(tokens)])


def _interval_brackets(tokens: Tokens) -> Iterator[tuple[int, tuple[int, str]]]:
    """Brackets around the parameter in ``INTERVAL ? DAY``, where DuckDB takes only a literal."""
    for before, token, after in zip(tokens, tokens[1:], tokens[2:], strict=False):
        if before.word == "INTERVAL" and token.word in ("?", "$", ":"):
            stop = token.stop if token.word == "?" else after.stop
            yield before.stop, (before.stop, "(")
            yield stop, (stop, ")")


def _long_stars(tokens: Tokens) -> dict[int, Tokens]:
    """The names before ``t.*`` in ``ns.t.*``, by the offset of ``t``."""
    found: dict[int, Tokens] = {}
    for index in range(2, len(tokens)):
        if tokens[index].word != "*" or not _is_dot(tokens[index - 1]):
            continue
        first = index - 2
        while first > 1 and _is_dot(tokens[first - 1]):
            first -= 2
        names = tokens[first : index - 1 : 2]
        if len(names) > 1:
            found[names[-1].start] = names[:-1]
    return found


def _is_dot(token: Token) -> bool:
    return token.word == "."


def _runs(
    tokens: Tokens, sql: str, kept: Collection[tuple[int, str]]
) -> Iterator[tuple[Token | None, Token]]:
    """Yield the first and last token of each part of the tokens that is in the SQL in this order;
    for a word that is not in the SQL, None and the word.

    The text between two tokens belongs to their part, so that DuckDB parses exactly the text that
    runs: what icesql skips as a comment may not be a comment in DuckDB.

    ``kept`` are the tokens outside time-travel clauses.
    """
    first: Token | None = None
    last: Token | None = None
    for token in tokens:
        is_there = _is_in(sql, token)
        if first is not None and last is not None:
            if is_there and token.start >= last.stop:
                last = token
                continue
            yield first, last
            first = last = None
        if is_there:
            first = last = token
        elif token.start == token.stop and (token.start, token.text) in kept:
            yield None, token
        # Otherwise the SQL has another word here, DIFF or BLAME for FROM.
    if first is not None and last is not None:
        yield first, last


def _is_in(sql: str, token: Token) -> bool:
    """True if a token is a word of the SQL, and was not inserted."""
    written = sql[token.start : token.stop]
    return bool(written) and (token.kind != WORD or written.upper() == token.word)


def parameter_colons(tokens: Tokens) -> list[int]:
    """Return the offsets of the colons of named parameters (``:name``)."""
    found, in_subscript = [], [False]
    for index, token in enumerate(tokens):
        kind = token.word
        # After these a colon belongs to a struct, a slice or a prefix alias.
        before = index > 0 and (
            tokens[index - 1].is_name
            or tokens[index - 1].kind in (TEXT, NUMBER)
            or tokens[index - 1].word in (*CLOSING, "?")
        )
        if kind in OPENING:
            in_subscript.append(kind == "[" and before)
        elif kind in CLOSING:
            if len(in_subscript) > 1:
                in_subscript.pop()
        elif kind == ":" and not in_subscript[-1] and not before:
            name = tokens[index + 1] if index + 1 < len(tokens) else None
            if (
                name is not None
                and name.start == token.stop
                and name.text.replace("_", "a").isalnum()
                and name.kind != TEXT
            ):
                found.append(token.start)
    return found


def _name_namespace(column: exp.Expr | None, stars: Mapping[int, Tokens]) -> None:
    """Add the names before ``t`` in ``ns.t.*`` to the column node."""
    if not isinstance(column, exp.Column) or column.args.get("table") is None:
        return
    names = stars.get(column.args["table"].meta.get("start", -1), ())
    for key, token in zip(("db", "catalog"), reversed(names), strict=False):
        is_quoted = token.kind == NAME
        name = exp.Identifier(this=token.text, quoted=is_quoted)
        name.meta.update(start=token.start, end=token.stop - 1)
        column.set(key, name)


def _rename(table: exp.Table, start: int, end: int, names: Parts) -> None:
    """Give a table the name from a call, with the span of the call."""
    parts = [exp.Identifier(this=name, quoted=True) for name in names]
    for part in parts:
        part.meta.update(start=start, end=end - 1)
    for key, part in zip(("this", "db", "catalog"), reversed(parts), strict=False):
        table.set(key, part)


# ------------------------------------------------------------------ linked nodes
# Each sqlglot node is paired with the DuckDB expression it was made from.


# An expression of DuckDB's tree, and the sqlglot node made from it.
Pair: TypeAlias = "tuple[dict[str, Any], exp.Expr]"


class _LinkingReader(QueryReader):
    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.pairs: list[Pair] = []

    def expression(self, found: Any, *, named: bool = False) -> exp.Expr:
        made = super().expression(found, named=named)
        self.pairs.append((found, made))
        return made


def read_linked(tree: EngineTree) -> tuple[exp.Expr, list[Pair]]:
    """Convert the one statement of a tree; record the spans of columns in its text."""
    _, sources = joined([Segment(tree.text, -1, 0, len(tree.text))])
    reader = _LinkingReader(tree, sources, Accepts(calls=False))
    made = reader.query_of(tree.statements[0])
    place_nodes(made, list(tokens_in(tree.text)))
    return made, reader.pairs


def with_brackets(text: str, start: int, end: int) -> Span:
    """Extend a span to include both brackets of each pair. Raises ValueError if one is missing."""
    depth = least = 0
    for token in tokens_in(text, start, end):
        depth += (token.word in OPENING) - (token.word in CLOSING)
        least = min(least, depth)
    for _ in range(-least):
        start = text.rindex("(", 0, start)
    for _ in range(depth - least):
        end = text.index(")", end) + 1
    return start, end
