"""A text as DuckDB's own parser reads it: the nodes of its tree, and where each stands in the text
and in the user's SQL.

``json_serialize_sql`` gives the tree of a SELECT. It counts places in bytes of UTF-8, DuckDB 2.0.0
in a text whose Unicode spaces have become plain ones; here they are characters of the given text.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec import Struct

from icesql.errors import UnsupportedSqlError
from icesql.sql.acceptance import Accepts
from icesql.sql.lexer import WORD, Token, tokens_in, with_plain_blanks
from icesql.sql.positions import syntax_error, unsupported
from icesql.sql.reading.door import Serialize, makes_spaces_plain, serialized
from icesql.sql.trees import exp

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


def closing(text: str, begin: int) -> int:
    """Behind the bracket that closes the next one that opens; ``begin`` if none does."""
    depth = 0
    for word in tokens_in(text, begin):
        if word.kind == "sign":
            depth += (word.word == "(") - (word.word == ")")
            if word.word == ")" and depth == 0:
                return word.stop
    return begin


class SourceMap(Struct, frozen=True):
    """Where the pieces of a text are from.

    Each of ``pieces`` is where it begins in the text, where it begins in the user's SQL, and how
    many characters it has; none for words that the user did not write. ``literals`` are the
    parameters for which a number stands in the text, since DuckDB takes none there: their names by
    their places, None for a question mark.
    """

    pieces: tuple[tuple[int, int, int], ...]
    literals: Mapping[int, tuple[str | None, int]] = {}

    def sql_offset(self, offset: int) -> int:
        """The place in the SQL of a character of the text."""
        found = 0
        if len(self.pieces) > 1:
            found = max(bisect_right(self.pieces, (offset, 1 << 62, 0)) - 1, 0)
        begin, start, length = self.pieces[found]
        return start + min(max(offset - begin, 0), length)

    def text_offset(self, place: int) -> int | None:
        """The character of the text that stands at a place of the SQL; None if none does."""
        for begin, start, length in self.pieces:
            if start <= place <= start + length and length:
                return begin + place - start
        return None


class ParsedText(Struct, frozen=True):
    """A text as DuckDB's parser read it, and where its words are from."""

    tree: EngineTree
    source_map: SourceMap

    def place(self, node: Node) -> tuple[int, int] | None:
        """Where a node stands in the user's SQL; None where DuckDB names no place."""
        found = self.tree.node(node)
        if found.start is None or found.end is None:
            return None
        last = max(found.end - 1, found.start)
        return self.source_map.sql_offset(found.start), self.source_map.sql_offset(last) + 1


class Places:
    """The places of a tree's nodes.

    Methods take and return places in the text that DuckDB read; what they put into ``meta`` are
    places in the user's SQL: ``start`` of a node's first character, ``end`` of the last one of its
    name, and ``stop`` behind a call, a parameter or a cast.
    """

    def __init__(self, tree: EngineTree, source_map: SourceMap, accepts: Accepts) -> None:
        self.tree, self.text, self._source_map = tree, tree.text, source_map
        self.accepts = accepts

    def begin(self, found: Node) -> int | None:
        """Where a node begins; None where DuckDB names no place."""
        first = found.get("query_location", NOWHERE)
        return None if first >= NOWHERE else self.tree.offset(first)

    def end(self, found: Node) -> int:
        """Where a node that has a place ends."""
        return self.tree.offset(found["query_location"] + found["query_location_length"])

    def sql_offset(self, offset: int) -> int:
        """The place in the user's SQL of one in the text."""
        return self._source_map.sql_offset(offset)

    def sql_place(self, byte: int) -> int:
        """The place in the user's SQL of one that DuckDB names."""
        return self._source_map.sql_offset(self.tree.offset(byte))

    def parameter_at(self, found: Node) -> exp.Placeholder | None:
        """The parameter that a literal stands for, if it does."""
        begin = self.begin(found)
        start = -1 if begin is None else self.sql_offset(begin)
        if start not in self._source_map.literals:
            return None
        name, stop = self._source_map.literals[start]
        made = exp.Placeholder(this=name)
        made.meta.update(start=start, stop=stop)
        return made

    def has_place(self, found: Node) -> bool:
        """Whether a node stands in the text, and is not made up by DuckDB's parser."""
        return bool(found.get("query_location", NOWHERE) < NOWHERE)

    def offset(self, found: Node) -> int | None:
        """Where a node begins in the user's SQL; None where DuckDB names no place."""
        begin = self.begin(found)
        return None if begin is None else self.sql_offset(begin)

    def refuse(self, construct: str, found: Node, hint: str = "") -> UnsupportedSqlError:
        """The error for something of DuckDB's tree that icesql does not run."""
        return unsupported(construct, self.offset(found), hint)

    def placed(self, node: exp.Expr, found: Node) -> exp.Expr:
        """``node`` with the place of ``found``."""
        begin = self.begin(found)
        if begin is not None:
            node.meta["start"] = self.sql_offset(begin)
        return node

    def stop(self, found: Node) -> int:
        """Behind the last character of a node, in the SQL."""
        return self.sql_offset(self.end(found) - 1) + 1

    def call_placed(self, node: exp.Expr, found: Node) -> exp.Expr:
        """A call with the places of its name and its end."""
        begin = self.begin(found)
        if begin is not None:
            first = next(tokens_in(self.text, begin), None)
            last = begin if first is None else first.stop - 1
            node.meta.update(
                start=self.sql_offset(begin), end=self.sql_offset(last), stop=self.stop(found)
            )
        return node

    def names(self, begin: int | None, names: Sequence[str]) -> list[exp.Identifier]:
        """Identifiers of a dotted name that begins at a place, quoted as they are written.

        Where the text has other words, and for no place, they are in quotes and have no place.
        """
        return self.names_to(begin, names)[0]

    def names_to(
        self, begin: int | None, names: Sequence[str]
    ) -> tuple[list[exp.Identifier], int | None]:
        """``names``, and where the last one ends that was found."""
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
        """The next word from a place on, behind a dot or bracket, if it is ``name``."""
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
        """An identifier with the place and the quotes of a word."""
        node.set("quoted", word.kind != "word")
        node.meta.update(start=self.sql_offset(word.start), end=self.sql_offset(word.stop - 1))
        return node

    def named(self, name: str, words: Mapping[str, Token]) -> exp.Identifier:
        """The identifier of a name, at the place of the word that it is among ``words``."""
        node, word = exp.Identifier(this=name, quoted=True), words.get(name.lower())
        return node if word is None else self.name_placed(node, word)

    def words_behind(self, begin: int) -> dict[str, Token]:
        """The first of each word from a place to the end of the item of the list that it is in."""
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
        """Identifiers of names with commas between that begin at a place."""
        made = []
        for name in names:
            (node,), end = self.names_to(begin, [name])
            if end is not None:
                comma = next(tokens_in(self.text, end), None)
                begin = comma.stop if comma is not None and comma.word == "," else end
            made.append(node)
        return made

    def closing(self, begin: int) -> int:
        """See ``closing``."""
        return closing(self.text, begin)


# DuckDB's own tree of a condition or column, kept beside its node.

# In ``meta`` of the node.
_KEPT: Final = "engine_node"


class KeptNode:
    """A node of DuckDB's tree.

    ``sql_place`` turns a place that DuckDB names into one of the user's SQL. Copies of the sqlglot
    node share it.
    """

    __slots__ = ("sql_place", "value")

    def __init__(self, value: Mapping[str, Any], sql_place: Callable[[int], int]) -> None:
        self.value, self.sql_place = value, sql_place

    def __deepcopy__(self, memo: Any) -> KeptNode:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        # Conditions are pruned by where the text was read; elsewhere nobody asks for it.
        return _nothing, ()


def _nothing() -> None:
    return None


def set_engine_node(
    node: exp.Expr, value: Mapping[str, Any], sql_place: Callable[[int], int]
) -> None:
    """Keep ``value``, of which ``node`` was made, beside it."""
    node.meta[_KEPT] = KeptNode(value, sql_place)


def engine_node(node: exp.Expr) -> KeptNode | None:
    """The tree that ``set_engine_node`` kept beside a node, or beside the original of a copy."""
    found: KeptNode | None = node.meta.get(_KEPT)
    return found
