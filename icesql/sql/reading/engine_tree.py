"""A text as DuckDB's own parser reads it: the nodes of its tree and where each stands in the text.

``json_serialize_sql`` gives the tree of a SELECT. It counts places in bytes of UTF-8, DuckDB 2.0.0
in a text whose Unicode spaces have become plain ones; here they are characters of the given text.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec
from msgspec import Struct

from icesql.sql.lexer import with_plain_blanks
from icesql.sql.positions import syntax_error, unsupported
from icesql.sql.reading.door import Serialize, makes_spaces_plain, serialized

Node = Mapping[str, Any]

# The place of what DuckDB's parser makes up.
NOWHERE: Final = 1 << 63
_TOKENS: Final = r'"(?:[^"\\]++|\\.?)*+(?:"|\Z)|[{}\[\]]|[^\s,:{}\[\]"]+'


class EngineNode(Struct, frozen=True):
    """An expression, a table reference, a query or one of its modifiers.

    ``value`` is what ``json_serialize_sql`` gives for it. ``start`` and ``end`` are its place in
    characters of the text, None where DuckDB names none; an operator's is often that of the
    operator alone.
    """

    value: Node
    start: int | None = None
    end: int | None = None

    @property
    def kind(self) -> str:
        """Such as COLUMN_REF, FUNCTION, BASE_TABLE, TABLE_FUNCTION, SELECT_NODE."""
        return str(self.value["type"])


class EngineTree(Struct, frozen=True):
    """The statements of ``text``: their query nodes as ``json_serialize_sql`` gives them."""

    text: str
    statements: tuple[Node, ...]
    # How many bytes are before each character; empty where a character is a byte.
    starts: tuple[int, ...] = ()

    def walk(self, top: Node | None = None) -> Iterator[EngineNode]:
        """Each node of ``top``, or of all statements, before the ones inside it."""
        stack: list[Any] = [top] if top is not None else list(reversed(self.statements))
        while stack:
            each = stack.pop()
            if isinstance(each, dict):
                if isinstance(each.get("type"), str):
                    yield self.node(each)
                stack.extend(reversed([*each.values()]))
            elif isinstance(each, list):
                stack.extend(reversed(each))

    def node(self, value: Node) -> EngineNode:
        """A node with its place."""
        first, length = value.get("query_location"), value.get("query_location_length")
        if first is None or length is None or first >= NOWHERE:
            return EngineNode(value)
        return EngineNode(value, self.offset(first), self.offset(first + length))

    def offset(self, byte: int) -> int:
        """The character at a place that DuckDB names."""
        return bisect_left(self.starts, byte) if self.starts else byte


def parse(cursor: Any, text: str) -> EngineTree:
    """``read_tree`` by a cursor of DuckDB's."""
    return read_tree(lambda given: serialized(cursor, given), text)


def read_tree(serialize: Serialize, text: str) -> EngineTree:
    """The tree of a text of SELECTs; several statements, or none, are no error.

    Raises SqlSyntaxError at the place where DuckDB's parser gave up, and UnsupportedSqlError for
    what it reads but does not tell of: other statements, dynamic PIVOT, mixed parameters.
    """
    found = serialize(text)
    try:
        tree = msgspec.json.decode(found)
    except RecursionError:
        tree = _decode_deep(found)
    starts = starts_of(counted(text))
    if not tree["error"]:
        statements = tuple(each["node"] for each in tree["statements"])
        return EngineTree(text, statements, starts)
    message = str(tree["error_message"])
    if tree["error_type"] != "parser":
        raise unsupported("this statement", None, message)
    place = tree.get("position")
    found_at = None if place is None else EngineTree(text, (), starts).offset(int(place))
    raise syntax_error(message.replace("syntax error at or near", "unexpected", 1), found_at)


def counted(text: str) -> str:
    """The text in which DuckDB counts the places of nodes and errors."""
    return with_plain_blanks(text) if not text.isascii() and makes_spaces_plain() else text


def starts_of(text: str) -> tuple[int, ...]:
    """How many bytes of UTF-8 are before each character; none where characters are bytes."""
    if text.isascii():
        return ()
    places, byte = [], 0
    for character in text:
        places.append(byte)
        code = ord(character)
        byte += 1 + (code > 0x7F) + (code > 0x7FF) + (code > 0xFFFF)
    return (*places, byte)


def _decode_deep(text: str) -> Any:
    """JSON that is nested deeper than Python's decoder goes."""
    top: list[Any] = []
    open_values: list[Any] = [top]
    key: str | None = None
    for token in re.finditer(_TOKENS, text):
        found = token[0]
        if found in "}]":
            open_values.pop()
            continue
        parent = open_values[-1]
        if isinstance(parent, dict) and key is None:
            key = json.loads(found)
            continue
        value: Any = {} if found == "{" else [] if found == "[" else json.loads(found)
        if key is None:
            parent.append(value)
        else:
            parent[key], key = value, None
        if found in "{[":
            open_values.append(value)
    return top[0]
