"""Refuse everything in DuckDB's tree that ``keys`` does not list.

Every kind, key and value is checked: a newer DuckDB may add one that changes a statement's meaning.
"""

from __future__ import annotations

from typing import Any, Final

from icesql.sql.positions import syntax_error
from icesql.sql.reading.engine_tree import Node, Places
from icesql.sql.reading.keys import ANY, EXPRESSIONS, NODES, PARTS, Keys

_INNER: Final = (dict, list)


def check_closed(statement: Node, places: Places) -> None:
    """Check all kinds, keys and values of a tree against ``keys``.

    Raises UnsupportedSqlError for the first that ``keys`` does not list.
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
