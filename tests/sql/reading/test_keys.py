"""DuckDB's parser produces every kind of node, key and value that the reader handles."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from icesql.errors import Error
from icesql.sql.reading.closed import ANY, EXPRESSIONS, NODES
from icesql.sql.reading.engine_tree import read_tree

# Only in DuckDB 2.0.1 and later.
_NEWER = {"is_legacy_function_call"}
# Refused by name, or never passed to DuckDB: icesql's own statements and clauses. POSITIONAL JOIN
# combines rows by their order, which rows of a table do not have.
_REFUSED = {"node SHOW_REF", "BASE_TABLE.at_clause", "JOIN.ref_type"}
# DuckDB's parser sets these only in other modes, or for no known statement.
_NEVER = {"delim_flipped", "duplicate_eliminated_columns", "expected_names", "expected_types"}


def _nodes(value: Any) -> Iterator[dict[str, Any]]:
    stack = [value]
    while stack:
        each = stack.pop()
        if isinstance(each, dict):
            yield each
            stack.extend(each.values())
        elif isinstance(each, list | tuple):
            stack.extend(each)


def _seen(texts: list[str]) -> dict[str, dict[str, list[Any]]]:
    found: dict[str, dict[str, list[Any]]] = defaultdict(lambda: defaultdict(list))
    for text in texts:
        try:
            statements = read_tree(text).statements
        except Error:
            continue
        for node in _nodes(statements):
            name = node["class"] if "class" in node else node.get("type")
            if isinstance(name, str):
                kind = f"{'expression' if 'class' in node else 'node'} {name}"
                for key, value in node.items():
                    if value not in found[kind][key]:
                        found[kind][key].append(value)
    return found


def test_the_forms_have_every_kind_key_and_value_that_is_listed(texts: list[str]) -> None:
    seen = _seen(texts)
    missing = []
    for prefix, table in (("expression", EXPRESSIONS), ("node", NODES)):
        for name, keys in table.items():
            there = seen.get(f"{prefix} {name}", {})
            for key, values in keys.items():
                if key in _NEWER | _NEVER:
                    continue
                if key not in there:
                    missing.append(f"{name}.{key}")
                elif values is not ANY:
                    missing += [f"{name}.{key} = {v}" for v in values if v not in there[key]]
    assert missing == []


def test_no_statement_of_the_suites_has_another_key_or_value(texts: list[str]) -> None:
    unknown = set()
    for kind, there in _seen(texts).items():
        prefix, _, name = kind.partition(" ")
        keys = (EXPRESSIONS if prefix == "expression" else NODES).get(name)
        if keys is None:
            unknown.add(kind)
            continue
        for key, values in there.items():
            allowed = keys.get(key)
            if allowed is None or (allowed is not ANY and any(v not in allowed for v in values)):
                unknown.add(f"{name}.{key}")
    assert unknown <= _REFUSED
