"""Refuse everything in DuckDB's tree that ``grammar/engine_tree.txt`` does not list.

Every kind, key and value is checked: a newer DuckDB may add one that changes a statement's meaning.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from icesql.sql.grammar import lines
from icesql.sql.positions import syntax_error
from icesql.sql.reading.engine_tree import Node, Places


class _Any(tuple[()]):
    """The reader uses the value, whatever it is."""


ANY: Final = _Any()
# The allowed values of a key: ANY, or one of these.
Values = tuple[object, ...]
Keys = Mapping[str, Values]
_PLAIN: Final[Mapping[str, object]] = {"false": False, "null": None, "[]": []}


def _value(text: str) -> object:
    return _PLAIN.get(text, text.replace("NULLS_", "NULLS "))


def _read() -> dict[str, dict[str, dict[str, Values]]]:
    """Return the sections of the file: for each kind, the values that each key may have."""
    sections: dict[str, dict[str, dict[str, Values]]] = {}
    kinds: dict[str, dict[str, Values]] = {}
    keys: dict[str, Values] = {}
    for line in lines("engine_tree.txt"):
        if line.startswith("["):
            kinds = sections[line.strip("[]")] = {}
        else:
            kind, colon, words = line.partition(":")
            if colon:
                keys = kinds[kind] = {}
            for word in (words if colon else line).split():
                key, is_limited, allowed = word.partition("=")
                if key[0] == "+":
                    keys |= sections["shared"][key[1:]]
                else:
                    keys[key] = tuple(map(_value, allowed.split("|"))) if is_limited else ANY
    return sections


_SECTIONS: Final = _read()
# Expressions by their ``class``, other nodes by their ``type``, and objects without a ``type`` by
# the key that holds them.
EXPRESSIONS: Final = _SECTIONS["expressions"]
NODES: Final = _SECTIONS["nodes"]
PARTS: Final = _SECTIONS["parts"]

_INNER: Final = (dict, list)


def check_closed(statement: Node, places: Places) -> None:
    """Check all kinds, keys and values of a tree against the table.

    Raises UnsupportedSqlError for the first that the table does not list.
    """
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


def _keys_of(value: Node, name: str, around: Node, places: Places) -> Keys:
    if "class" in value:
        keys, kind = EXPRESSIONS.get(value["class"]), value["class"]
    elif name == "sample_size":
        return PARTS[name]
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
