"""The tree of DuckDB's own parser, and the span of each node in the text and in the user's SQL.

``json_serialize_sql`` returns the tree of a SELECT. It counts offsets in bytes of UTF-8; DuckDB
2.0.0 counts them after Unicode spaces were replaced by ASCII spaces. Here offsets are in
characters of the given text.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final

import msgspec

from icesql.errors import UnsupportedSqlError
from icesql.frozen import Frozen
from icesql.sql.acceptance import Accepts
from icesql.sql.lexer import WORD, Span, Token, tokens_in, with_plain_blanks
from icesql.sql.positions import syntax_error, unsupported
from icesql.sql.reading.door import Serialize, makes_spaces_plain, serialize, serialized
from icesql.sql.trees import exp

if TYPE_CHECKING:
    from icesql.sql.edited_text import Sources

Node = Mapping[str, Any]

# The offset of nodes that DuckDB's parser synthesized.
NOWHERE: Final = 1 << 63
_TOKENS: Final = r'"(?:[^"\\]++|\\.?)*+(?:"|\Z)|[{}\[\]]|[^\s,:{}\[\]"]+'


class EngineTree(Frozen):
    """The statements of ``text``: their query nodes as ``json_serialize_sql`` returns them."""

    text: str
    statements: tuple[Node, ...]
    # The byte offset of each character; empty if all characters are ASCII.
    starts: tuple[int, ...] = ()

    def walk(self, top: Node | None = None) -> Iterator[Node]:
        """Yield the nodes of ``top``, or of all statements, each before the nodes inside it.

        A node is an expression, a table reference, a query or one of its modifiers; its ``type`` is
        COLUMN_REF, FUNCTION, BASE_TABLE, TABLE_FUNCTION, SELECT_NODE …
        """
        stack: list[Any] = [top] if top is not None else list(reversed(self.statements))
        while stack:
            each = stack.pop()
            if isinstance(each, dict):
                if isinstance(each.get("type"), str):
                    yield each
                stack.extend(reversed([*each.values()]))
            elif isinstance(each, list):
                stack.extend(reversed(each))

    def span(self, node: Node) -> Span | None:
        """Return the span of a node in characters of the text; None if DuckDB gives no offset.

        The span of an operator is often that of the operator sign alone.
        """
        first, length = node.get("query_location"), node.get("query_location_length")
        if first is None or length is None or first >= NOWHERE:
            return None
        return self.offset(first), self.offset(first + length)

    def offset(self, byte: int) -> int:
        """Return the character offset for one of DuckDB's byte offsets."""
        return bisect_left(self.starts, byte) if self.starts else byte


def parse(cursor: Any, text: str) -> EngineTree:
    """Run ``read_tree`` with one of DuckDB's cursors."""
    return read_tree(text, lambda given: serialized(cursor, given))


def read_tree(text: str, serialize: Serialize = serialize) -> EngineTree:
    """Return the tree of a text of SELECTs; several statements, or none, are not an error.

    Raises SqlSyntaxError at the offset where DuckDB's parser failed, and UnsupportedSqlError for
    statements that it cannot serialize: other statements, dynamic PIVOT, mixed parameters.
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
    """Return the text in which DuckDB counts the offsets of nodes and errors."""
    return with_plain_blanks(text) if not text.isascii() and makes_spaces_plain() else text


def starts_of(text: str) -> tuple[int, ...]:
    """Return the byte offset of each character in UTF-8; () if all characters are ASCII."""
    if text.isascii():
        return ()
    return tuple(accumulate((len(each.encode()) for each in text), initial=0))


def _decode_deep(text: str) -> Any:
    """Decode JSON that is nested too deeply for msgspec's recursive decoder."""
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


class ParsedText(Frozen):
    """The tree of a text from DuckDB's parser, and the origin of the text's words."""

    tree: EngineTree
    sources: Sources

    def place(self, node: Node) -> Span | None:
        """Return the span of a node in the user's SQL; None if DuckDB gives no offset."""
        span = self.tree.span(node)
        if span is None:
            return None
        start, end = span
        return self.sources.original(start), self.sources.original(max(end - 1, start)) + 1


class Places:
    """Offsets of a tree's nodes.

    Methods take and return offsets in the text that DuckDB parsed. The ``meta`` of nodes gets
    offsets in the user's SQL: ``start`` is the node's first character, ``end`` the last character
    of its name, and ``stop`` the end of a call, a parameter or a cast.
    """

    def __init__(self, tree: EngineTree, sources: Sources, accepts: Accepts) -> None:
        self.tree, self.text, self.sql_offset = tree, tree.text, sources.original
        self.accepts = accepts

    def begin(self, found: Node) -> int | None:
        """Return the start of a node; None if DuckDB gives no offset."""
        first = found.get("query_location", NOWHERE)
        return None if first >= NOWHERE else self.tree.offset(first)

    def end(self, found: Node) -> int:
        """Return the end of a node that has an offset."""
        return self.tree.offset(found["query_location"] + found["query_location_length"])

    def sql_place(self, byte: int) -> int:
        """Return the offset in the user's SQL of one of DuckDB's byte offsets."""
        return self.sql_offset(self.tree.offset(byte))

    def has_place(self, found: Node) -> bool:
        """True unless DuckDB's parser synthesized the node."""
        return bool(found.get("query_location", NOWHERE) < NOWHERE)

    def offset(self, found: Node) -> int | None:
        """Return the start of a node in the user's SQL; None if DuckDB gives no offset."""
        begin = self.begin(found)
        return None if begin is None else self.sql_offset(begin)

    def refuse(self, construct: str, found: Node, hint: str = "") -> UnsupportedSqlError:
        """Return the error for a construct in DuckDB's tree that icesql does not support."""
        return unsupported(construct, self.offset(found), hint)

    def placed(self, node: exp.Expr, found: Node) -> exp.Expr:
        """Return ``node`` with the offset of ``found``."""
        begin = self.begin(found)
        if begin is not None:
            node.meta["start"] = self.sql_offset(begin)
        return node

    def stop(self, found: Node) -> int:
        """Return the end of a node in the user's SQL."""
        return self.sql_offset(self.end(found) - 1) + 1

    def call_placed(self, node: exp.Expr, found: Node) -> exp.Expr:
        """Return a call with the span of its name and its end."""
        begin = self.begin(found)
        if begin is not None:
            first = next(tokens_in(self.text, begin), None)
            last = begin if first is None else first.stop - 1
            node.meta.update(
                start=self.sql_offset(begin), end=self.sql_offset(last), stop=self.stop(found)
            )
        return node

    def names(self, begin: int | None, names: Sequence[str]) -> list[exp.Identifier]:
        """Return the identifiers of a dotted name at ``begin``, with quotes as in the text.

        Identifiers that the text does not have, or without ``begin``, are quoted, without offset.
        """
        return self.names_to(begin, names)[0]

    def names_to(
        self, begin: int | None, names: Sequence[str]
    ) -> tuple[list[exp.Identifier], int | None]:
        """Return ``names``, and the end of the last name that was found in the text."""
        made: list[exp.Identifier] = []
        place, end = begin, None
        for name in names:
            node = exp.Identifier(this=name, quoted=True)
            word = None if place is None else self._name_at(place, name)
            if word is not None:
                self.name_placed(node, word)
                end = word.stop
            place = None if word is None else word.stop
            made.append(node)
        return made, end

    def _name_at(self, place: int, name: str) -> Token | None:
        """Return the next word after ``place``, past a dot or bracket, if it is ``name``."""
        text = self.text
        place += text.startswith(".", place)
        end = place + len(name)
        if text.startswith(name, place) and name.isidentifier():
            after = text[end : end + 1]
            if not (after.isalnum() or after in ("_", "$")):
                return Token(WORD, name, place, end, name.upper())
        for word in tokens_in(text, place):
            if word.word in ("(", "."):
                continue
            is_same = word.kind != "sign" and word.text.lower() == name.lower()
            return word if is_same else None
        return None

    def name_placed(self, node: exp.Identifier, word: Token) -> exp.Identifier:
        """Give an identifier the span and the quotes of a word."""
        node.set("quoted", word.kind != "word")
        node.meta.update(start=self.sql_offset(word.start), end=self.sql_offset(word.stop - 1))
        return node

    def named(self, name: str, words: Mapping[str, Token]) -> exp.Identifier:
        """Return an identifier for a name, with the span of its word in ``words``."""
        node, word = exp.Identifier(this=name, quoted=True), words.get(name.lower())
        return node if word is None else self.name_placed(node, word)

    def words_behind(self, begin: int) -> dict[str, Token]:
        """Return the first token of each word from ``begin`` to the end of the list item."""
        found: dict[str, Token] = {}
        depth = 0
        for word in tokens_in(self.text, begin):
            if word.kind == "sign":
                depth += (word.word == "(") - (word.word == ")")
                if depth < 0 or (depth == 0 and word.word == ","):
                    break
            elif word.kind in ("word", "name"):
                if depth == 0 and word.word == "FROM":
                    break
                found.setdefault(word.text.lower(), word)
        return found

    def listed(self, begin: int | None, names: Sequence[str]) -> list[exp.Identifier]:
        """Return the identifiers of a comma-separated list of names at ``begin``."""
        made = []
        for name in names:
            (node,), end = self.names_to(begin, [name])
            if end is not None:
                comma = next(tokens_in(self.text, end), None)
                begin = comma.stop if comma is not None and comma.word == "," else end
            made.append(node)
        return made

    def closing(self, begin: int) -> int:
        """Return the end of the next bracketed part after ``begin``; ``begin`` without one."""
        depth = 0
        for word in tokens_in(self.text, begin):
            if word.kind == "sign":
                depth += (word.word == "(") - (word.word == ")")
                if word.word == ")" and depth == 0:
                    return word.stop
        return begin


# DuckDB's tree of a condition or column, kept with its sqlglot node.

# Key in the node's ``meta``.
_KEPT: Final = "engine_node"


class KeptNode:
    """A node of DuckDB's tree.

    ``sql_place`` converts a byte offset of DuckDB to an offset in the user's SQL. Copies of the
    sqlglot node share this object.
    """

    __slots__ = ("sql_place", "value")

    def __init__(self, value: Mapping[str, Any], sql_place: Callable[[int], int]) -> None:
        self.value, self.sql_place = value, sql_place

    def __deepcopy__(self, memo: Any) -> KeptNode:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        # Only the process that parsed the text prunes by its conditions; a pickle omits the node.
        return _nothing, ()


def _nothing() -> None:
    return None


def set_engine_node(
    node: exp.Expr, value: Mapping[str, Any], sql_place: Callable[[int], int]
) -> None:
    """Attach ``value``, the source of ``node``, to it."""
    node.meta[_KEPT] = KeptNode(value, sql_place)


def engine_node(node: exp.Expr) -> KeptNode | None:
    """Return the tree that ``set_engine_node`` attached to a node or to its original."""
    found: KeptNode | None = node.meta.get(_KEPT)
    return found
