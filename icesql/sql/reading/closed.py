"""Refuse a text if the reader would lose a part of DuckDB's tree or a word of the text.

Every kind, key and value in a tree is one that ``keys`` lists. Each name, number and text belongs
to a node, by its offset or, where a node has no offset, by its value. A word that belongs to no
node was dropped by DuckDB's parser, such as the inner WITH of
``WITH a AS (…) (WITH b AS (…) SELECT …)``: the tree would not mean what the text says.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from icesql.sql.lexer import Token, tokens_in
from icesql.sql.positions import syntax_error, unsupported
from icesql.sql.reading.door import token_kinds
from icesql.sql.reading.engine_tree import (
    NOWHERE,
    EngineTree,
    Node,
    Places,
    SourceMap,
    closing,
    counted,
)
from icesql.sql.reading.keys import ANY, EXPRESSIONS, NODES, PARTS, SAMPLE_SIZE, Keys

_INNER: Final = (dict, list)


def check_closed(statement: Node, places: Places) -> OwnedWords:
    """Return the words of a tree after checking all its kinds, keys and values against ``keys``.

    Raises UnsupportedSqlError for the first that ``keys`` does not list.
    """
    owned = OwnedWords(places.tree)
    stack: list[tuple[Any, str, Node]] = [(statement, "", statement)]
    while stack:
        value, name, around = stack.pop()
        if isinstance(value, list):
            stack += [(each, name, around) for each in value if isinstance(each, dict | list)]
            continue
        keys = _keys_of(value, name, around, places)
        around = value if "query_location" in value else around
        for key, each in value.items():
            allowed = keys.get(key)
            if allowed is not ANY and (allowed is None or each not in allowed):
                raise _refused(key, each, value, around, places)
            if each.__class__ in _INNER and each:
                stack.append((each, key, around))
        owned.add(value)
    return owned


def _keys_of(value: Node, name: str, around: Node, places: Places) -> Keys:
    if "class" in value:
        keys, kind = EXPRESSIONS.get(value["class"]), value["class"]
    elif name == "sample_size":
        return SAMPLE_SIZE
    elif isinstance(value.get("type"), str):
        keys, kind = NODES.get(value["type"]), value["type"]
    elif "id" in value and "type_info" in value:
        return dict.fromkeys(value, ANY)
    else:
        keys, kind = PARTS.get(name), name
    if kind == "SHOW_REF":
        # The SHOW statements that icesql supports were cut out of the text before.
        begin = places.begin(around)
        place = None if begin is None else places.sql_offset(begin)
        raise syntax_error(f'unexpected "{value["show_type"]}"', place, ("a query",))
    if keys is None:
        raise places.refuse(_words(kind), value if "query_location" in value else around)
    return keys


def _refused(key: str, found: Any, value: Node, around: Node, places: Places) -> Exception:
    of = value.get("type", "")
    if key in ("join_type", "ref_type"):
        what = f"{found} JOIN"
    elif key == "at_clause":
        what = "a time-travel clause at this place"
    elif isinstance(found, str):
        what = f"{_words(found)} ({_words(key)})"
    elif isinstance(found, bool):
        what = key.upper()
    else:
        what = f"{_words(key)} of {_words(str(of))}"
    return places.refuse(what, value if "query_location" in value else around)


def _words(name: str) -> str:
    """Format a name of DuckDB's tree for messages."""
    return name.removesuffix("_NODE").removesuffix("_QUERY").replace("_", " ").upper()


# Nodes that own all words in their span.
_OWNERS: Final = frozenset(
    {"COLUMN_REF", "CONSTANT", "PARAMETER", "POSITIONAL_REFERENCE", "TYPE", "BASE_TABLE"}
)
# Nodes that own the name at their start. The tree may have another name than the text:
# quantile_cont for percentile_cont.
_CALLS: Final = frozenset({"FUNCTION", "WINDOW", "OPERATOR", "TABLE_FUNCTION"})
# Keys whose values are names, or lists of names, without offsets.
_NAMES: Final = frozenset(
    {"alias", "aliases", "collation", "column", "column_name_alias", "exclude_list", "groups"}
    | {"key", "method", "name", "path", "relation_name", "table", "unpivot_names", "using_columns"}
    | {"value"}
)
# The kinds of DuckDB's tokens that are not keywords, signs or comments.
_WORDS: Final = frozenset({"identifier", "numeric_const", "string_const"})
_NUMBER: Final = re.compile(r"[0-9_]*\.?[0-9_]+(?:[eE][+-]?[0-9]+)?|[0-9_]+\.")
_BEGINS_QUERY: Final = frozenset(
    {"SELECT", "FROM", "WITH", "VALUES", "TABLE", "PIVOT", "UNPIVOT", "DESCRIBE", "SUMMARIZE"}
    | {"SHOW", "INSERT", "UPDATE", "DELETE", "MERGE"}
)


def check_words(owned: OwnedWords, source_map: SourceMap, named: Iterable[Token]) -> None:
    """Raise UnsupportedSqlError at the first word that belongs to no node.

    ``named`` are the names before ``AS (`` that the reader did not match to a query of WITH. They
    are names of windows: DuckDB's tree has their definitions in place of the names, and does not
    have unused windows at all.
    """
    tree, spans, names = owned.tree, owned.spans(), owned.names
    windows = set()
    for word in named:
        begin = tree.text.index("(", word.stop)
        first = next(tokens_in(tree.text, begin + 1), None)
        if first is not None and (first.word in _BEGINS_QUERY or first.word == "("):
            raise _lost(word.text, source_map.sql_offset(word.start))
        windows.add(word.text.lower())
        spans.append((begin, closing(tree.text, begin)))
    spans = _outermost(spans)
    starts = [start for start, _ in spans]
    for byte, kind in token_kinds(counted(tree.text)):
        if kind not in _WORDS:
            continue
        start = tree.offset(byte)
        place = bisect_right(starts, start) - 1
        if place >= 0 and start < spans[place][1]:
            continue
        written, name = _word_at(tree.text, start, kind)
        if names[name] > 0:
            names[name] -= 1
        elif name not in windows and name not in owned.words_of_groups():
            raise _lost(written, source_map.sql_offset(start))


def _lost(word: str, place: int) -> Exception:
    return unsupported(f"{word} at this place", place, "DuckDB's parser ignores it; leave it out")


class OwnedWords:
    """The words that the nodes of a tree own; ``add`` records those of one node.

    ``names`` are the words without an offset.
    """

    def __init__(self, tree: EngineTree) -> None:
        self.tree = tree
        # DuckDB's byte offsets: spans of nodes that own all their words, and starts of calls.
        self._nodes: list[tuple[int, int]] = []
        self._calls: list[int] = []
        self.names: Counter[str] = Counter()
        self._groups: list[Node] = []
        self._of_groups: set[str] | None = None

    def add(self, node: Node) -> None:
        """Record the words of a node, without those of the nodes inside it."""
        kind = node["class"] if "class" in node else node.get("type")
        first = node.get("query_location", NOWHERE)
        if first >= NOWHERE:
            self._add_unplaced(kind, node)
        elif kind in _OWNERS:
            self._nodes.append((first, first + node["query_location_length"]))
            if kind == "BASE_TABLE":
                return
        elif kind in _CALLS:
            self._calls.append(first)
        for key in node.keys() & _NAMES:
            value = node[key]
            for each in value if isinstance(value, list) else (value,):
                if each and isinstance(each, str):
                    self.names[each.lower()] += 1
                    if key == "collation":
                        self.names.update(each.lower().split("."))

    def _add_unplaced(self, kind: Any, node: Node) -> None:
        if kind == "CONSTANT":
            text = str(node["literal"].get("text", "")).lower()
            self.names[text if node["literal"]["kind"] == "STRING" else text.lstrip("-")] += 1
        elif kind == "COLUMN_REF":
            self.names.update(each.lower() for each in node["column_names"])
        elif kind == "SELECT_NODE":
            self._groups += node["group_expressions"]
        elif "sample_size" in node:
            self.names.update(_numbers(node))

    def spans(self) -> list[tuple[int, int]]:
        """The spans of the text whose words are owned."""
        place = self.tree.offset
        found = [(place(start), place(end)) for start, end in self._nodes]
        for start in map(place, self._calls):
            found += _name_of_call(self.tree.text, start)
        return found

    def words_of_groups(self) -> set[str]:
        """The words in GROUP BY; DuckDB's tree has each of its expressions only once."""
        if self._of_groups is None:
            self._of_groups = {
                word.text.lower()
                for start, end in _spans_of(self.tree, self._groups)
                for word in tokens_in(self.tree.text, start, end)
            }
        return self._of_groups


def _spans_of(tree: EngineTree, nodes: Sequence[Node]) -> Iterator[tuple[int, int]]:
    for node in _dicts(list(nodes)):
        first = node.get("query_location", NOWHERE)
        if first < NOWHERE:
            yield tree.offset(first), tree.offset(first + node["query_location_length"])


def _name_of_call(text: str, start: int) -> list[tuple[int, int]]:
    """Return the span of a dotted name before a bracket at ``start``; [] for other forms."""
    end, expects_name = start, True
    for word in tokens_in(text, start):
        if expects_name and word.kind in ("word", "name"):
            end = word.stop
        elif not expects_name and word.word == "(":
            return [(start, end)]
        elif expects_name or word.word != ".":
            break
        expects_name = not expects_name
    return []


def _numbers(sample: Node) -> Iterator[str]:
    value = sample["sample_size"]["value"]
    yield from (str(value), str(int(value)), str(sample["seed"]))


def _outermost(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    kept: list[tuple[int, int]] = []
    for start, end in sorted(spans, key=lambda span: (span[0], -span[1])):
        if not kept or start >= kept[-1][1]:
            kept.append((start, end))
    return kept


def _dicts(top: Any) -> Iterator[Node]:
    stack = [top]
    while stack:
        value = stack.pop()
        if isinstance(value, dict):
            yield value
            stack += [each for each in value.values() if isinstance(each, dict | list)]
        elif isinstance(value, list | tuple):
            stack += value


def _word_at(text: str, start: int, kind: str) -> tuple[str, str]:
    """Return a name, number or text as written, and its value."""
    if kind == "numeric_const":
        number = _NUMBER.match(text, start)
        written = text[start] if number is None else number[0]
        return written, written.replace("_", "").lower()
    word = next(tokens_in(text, start))
    return text[start : word.stop], word.text.lower()
