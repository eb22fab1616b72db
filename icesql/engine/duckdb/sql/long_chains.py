"""Long chains of OR and AND in a text, in a form that DuckDB plans in linear time.

``a = 1 OR a = 2 …`` and ``a <> 1 AND a <> 2 …`` become lists: DuckDB takes time and memory that
grow with the square of the number of terms, 2 GB for 2,000 of them under AND. Other chains of OR
are cut into pieces, as ``long_disjunctions`` says.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from icesql.engine.duckdb.sql.long_disjunctions import PIECE
from icesql.sql.parser.literal_list import held
from icesql.sql.reading.engine_tree import Node, plain_spaces, starts_of
from icesql.sql.reading.places import SourceMap
from icesql.sql.trees import exp
from icesql.sql.user_text import SQL, Edit, UserText

_OPENING: Final = frozenset({"(", "[", "{", "CASE"})
_CLOSING: Final = frozenset({")", "]", "}", "END"})


def in_pieces(text: UserText, chains: list[Node], lists: Sequence[Edit]) -> Iterator[Edit]:
    """What takes the place of ``chains`` of OR, conjunctions of DuckDB's tree of a text.

    Those in which some terms become ``lists`` stay whole.
    """
    assert text.read is not None
    for node in chains:
        place, (begin, stop) = text.read.tree.node(node), text.read.place(node) or (0, 0)
        if any(begin <= edit.start < stop for edit in lists):
            continue
        if place.start is not None and place.end is not None:
            breaks = list(_breaks(text.read.tree.text, place.start, place.end))
            if len(breaks) == len(node["children"]) - 1:
                yield from _pieces(text.read.source_map, place.start, breaks)


def as_lists(text: UserText, tree: exp.Expr, items: Mapping[int, str]) -> Iterator[Edit]:
    """``column IN (…)`` for the first term of each chain that is a list in the tree of a text.

    ``items`` are the SQL of lists by the places of these terms, literals without one. The other
    terms become what changes nothing.
    """
    for node in tree.find_all(exp.In):
        values, terms = held(node), node.args.get("terms", ())
        places = [place for place in terms if place is not None]
        names = node.this.parts if isinstance(node.this, exp.Column) else ()
        if values is None or not places or len(places) < len(terms):
            continue
        if not names or "end" not in names[-1].meta:
            continue
        start, end = names[0].meta["start"], names[-1].meta["end"] + 1
        if any(edit.start < end and start < edit.end for edit in text.edits):
            continue  # other words stand for the column
        is_not = isinstance(node.parent, exp.Not)
        operator, nothing = ("NOT IN", "true") if is_not else ("IN", "false")
        sql = items.get(places[0][0]) or values.written()
        written = f"({text.written(start, end)} {operator} ({sql}))"
        for first, last in places:
            yield Edit(first, last, SQL, written)
            written = nothing


def _pieces(source_map: SourceMap, start: int, breaks: list[int]) -> Iterator[Edit]:
    """``coalesce(piece, NULL)`` for all pieces of a chain but its last one."""
    begin = source_map.sql_offset(start)
    for place in breaks[PIECE - 1 :: PIECE]:
        end = source_map.sql_offset(place)
        yield Edit(begin, begin, SQL, " coalesce(")
        yield Edit(end, end, SQL, ", NULL) ")
        begin = end + len("OR")


def _breaks(sql: str, start: int, end: int) -> Iterator[int]:
    """Where the chain of OR from ``start`` to ``end`` has its OR, outside of brackets."""
    import duckdb

    part = sql[start:end]
    starts = starts_of(plain_spaces(part))
    depth = 0
    for byte, kind in duckdb.tokenize(plain_spaces(part)):
        offset = starts.index(byte) if starts else byte
        if kind == duckdb.token_type.operator:
            word = part[offset]
        elif kind == duckdb.token_type.keyword:
            word = part[offset : offset + 4].upper()
            word = word[: next((i for i, c in enumerate(word) if not c.isalpha()), 4)]
        else:
            continue
        if word in _OPENING:
            depth += 1
        elif word in _CLOSING:
            depth -= 1
        elif word == "OR" and depth == 0:
            yield start + offset
