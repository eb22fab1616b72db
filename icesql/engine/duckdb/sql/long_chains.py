"""Long chains of OR and AND in a text, in a form that DuckDB plans in linear time.

``a = 1 OR a = 2 …`` and ``a <> 1 AND a <> 2 …`` become lists: DuckDB takes time and memory that
grow with the square of the number of terms, 2 GB for 2,000 of them under AND. Other chains of OR
are cut into pieces, as ``long_disjunctions`` says.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any, Final

from msgspec import Struct

from icesql.engine.duckdb.sql.long_disjunctions import LONGEST, PIECE
from icesql.sql.parser.literal_list import SHORTEST, LiteralList, dates
from icesql.sql.reading.engine_tree import Node, plain_spaces, starts_of
from icesql.sql.reading.places import ParsedText, SourceMap
from icesql.sql.user_text import SQL, Edit, UserText

_COMPARED: Final = {"CONJUNCTION_OR": "COMPARE_EQUAL", "CONJUNCTION_AND": "COMPARE_NOTEQUAL"}
_OPENING: Final = frozenset({"(", "[", "{", "CASE"})
_CLOSING: Final = frozenset({")", "]", "}", "END"})


class Gathered(Struct, frozen=True):
    """A list that terms of a chain become: the column as written, the values, and the places of
    the terms in the user's SQL.
    """

    column: str
    is_not: bool
    values: LiteralList
    places: tuple[tuple[int, int], ...]


def long_chains(text: UserText, chains: list[Node]) -> tuple[list[Edit], list[Gathered]]:
    """What takes the place of ``chains``, conjunctions of DuckDB's tree of a text."""
    edits: list[Edit] = []
    lists: list[Gathered] = []
    assert text.read is not None
    for node in chains:
        found = list(_gathered(text, text.read, node))
        lists += found
        is_or = node["type"] == "CONJUNCTION_OR"
        if found or not is_or or len(node["children"]) <= LONGEST:
            continue
        place = text.read.tree.node(node)
        if place.start is not None and place.end is not None:
            breaks = list(_breaks(text.read.tree.text, place.start, place.end))
            if len(breaks) == len(node["children"]) - 1:
                edits += _pieces(text.read.source_map, place.start, breaks)
    return edits, lists


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


def _gathered(text: UserText, read: ParsedText, node: Node) -> Iterator[Gathered]:
    """The lists of terms that compare one column with literals of one kind."""
    groups: dict[tuple[str, str], list[tuple[Any, tuple[int, int]]]] = {}
    for term in node["children"]:
        if term.get("type") != _COMPARED[node["type"]]:
            continue
        left, right = term["left"], term["right"]
        if left.get("class") != "COLUMN_REF":
            left, right = right, left
        if left.get("class") != "COLUMN_REF" or (literal := _literal(right)) is None:
            continue
        ends, written = read.place(term), read.place(left)
        if ends is None or written is None or _is_changed(text, *written):
            continue
        column = text.written(*written)
        groups.setdefault((column, literal[0]), []).append((literal[1], ends))
    is_not = node["type"] == "CONJUNCTION_AND"
    for (column, kind), terms in groups.items():
        if len(terms) < SHORTEST:
            continue
        values = [value for value, _ in terms]
        found = dates(values) if kind == "date" else LiteralList(kind, tuple(values))
        if found is not None:
            yield Gathered(column, is_not, found, tuple(place for _, place in terms))


def _is_changed(text: UserText, start: int, end: int) -> bool:
    """Whether other words stand for some of those between two places."""
    return any(edit.start < end and start < edit.end for edit in text.edits)


def _literal(node: Node) -> tuple[str, Any] | None:
    """Kind and value, as ``LiteralList`` has them."""
    if node.get("class") == "CAST":
        is_date = str(node["type_expr"].get("type_name")).lower() == "date"
        inner = _literal(node["child"])
        if is_date and not node["try_cast"] and inner is not None and inner[0] == "text":
            return "date", inner[1]
        return None
    if node.get("class") != "CONSTANT":
        return None
    text = str(node["literal"].get("text"))
    match node["literal"]["kind"]:
        case "STRING":
            return "text", text
        case "INTEGER" if len(text) < 19 and text.lstrip("-").isdecimal():
            return "integer", int(text)
        case "NUMERIC" if len(text) <= 38 and text.lstrip("-").replace(".", "", 1).isdecimal():
            return "decimal", Decimal(text)
        case _:
            return None


def as_list(found: Gathered, items: Mapping[LiteralList, str]) -> Iterator[Edit]:
    """``column IN (…)`` for the first term, with the SQL of its items, literals without one.

    The other terms become what changes nothing.
    """
    sql = items.get(found.values) or found.values.written()
    operator, nothing = ("NOT IN", "true") if found.is_not else ("IN", "false")
    for index, (start, end) in enumerate(found.places):
        written = f"({found.column} {operator} ({sql}))" if index == 0 else nothing
        yield Edit(start, end, SQL, written)
