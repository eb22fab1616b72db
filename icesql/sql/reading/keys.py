"""Every kind of node that icesql accepts in DuckDB's tree, and every key of it, as
``grammar/engine_tree.txt`` lists them; ``closed`` refuses all others.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from icesql.sql.grammar import lines


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
