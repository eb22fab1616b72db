"""An ``id()`` is a key only where its object is held: an address that is freed is used again.

The number says nothing once its object is gone, and the next object at that address is taken for
it. So whatever keeps an ``id()`` keeps the object beside it, where this test sees it, or is in
the table beside this file, where someone has looked at who holds it.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.tables import read_table

ROOT = Path(__file__).parents[2] / "icesql"


HELD = {function for function, _ in read_table(__file__, "identities.tsv")}


def test_whatever_keeps_an_id_keeps_the_object() -> None:
    found = {
        f"{source.relative_to(ROOT).as_posix()}:{name}"
        for source in sorted(ROOT.rglob("*.py"))
        for name in _keepers(ast.parse(source.read_text(encoding="utf-8")))
    }
    assert sorted(found - HELD) == []
    assert sorted(HELD - found) == [], "no longer needed"


@pytest.mark.parametrize(("function", "is_keeper"), read_table(__file__, "keepers.tsv"))
def test_the_test_sees_who_keeps_only_the_number(function: str, is_keeper: str) -> None:
    assert bool([*_keepers(ast.parse(function))]) == (is_keeper == "yes")


def _keepers(tree: ast.Module) -> Iterator[str]:
    """The functions that keep an ``id()`` and not its object, by their qualified names."""
    above = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Name) or node.id != "id" or not isinstance(node.ctx, ast.Load):
            continue
        call = above[node]
        called = isinstance(call, ast.Call) and call.func is node
        if not called or not _is_safe(call, above):
            yield _qualified(node, above)


def _is_safe(call: ast.Call, above: dict[ast.AST, ast.AST]) -> bool:
    """Whether the number is only looked up, or is kept beside the object."""
    object_ = call.args[0]
    wanted = {ast.dump(object_)}
    if isinstance(object_, ast.Attribute):
        wanted.add(ast.dump(object_.value))  # what holds the object by this very name

    def holds(value: ast.AST | None) -> bool:
        if isinstance(value, ast.Tuple | ast.List):
            return any(map(holds, value.elts))
        if isinstance(value, ast.Call):
            return any(map(holds, value.args))
        return value is not None and ast.dump(value) in wanted

    node: ast.AST = call
    while isinstance(above[node], ast.Tuple):
        node = above[node]
    if isinstance(above[node], ast.Assign) and isinstance(above[node].targets[0], ast.Name):
        name = above[node].targets[0].id
        uses = [each for each in ast.walk(_function(node, above)) if _is_name(each, name)]
        return all(_use_is_safe(each, above, holds) for each in uses)
    return _use_is_safe(node, above, holds)


def _use_is_safe(
    node: ast.AST, above: dict[ast.AST, ast.AST], holds: Callable[[ast.AST | None], bool]
) -> bool:
    match above[node]:
        case ast.Compare(ops=[ast.In() | ast.NotIn() | ast.Eq() | ast.NotEq()]):
            return True
        case ast.Subscript(ctx=ast.Load()):
            return True
        case ast.Subscript(ctx=ast.Store()) as place:
            assigned = above[place]
            return isinstance(assigned, ast.Assign | ast.AnnAssign) and holds(assigned.value)
        case ast.DictComp(key=key, value=value) if key is node:
            return holds(value)
        case ast.Call(func=ast.Attribute(attr=name), args=[first, *_]) if first is node and (
            name in ("get", "pop", "move_to_end")
        ):
            return True
        case ast.Call(func=ast.Attribute(attr="setdefault"), args=[first, value]) if first is node:
            return holds(value)
        case _:
            return False


def _is_name(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load)


def _function(node: ast.AST, above: dict[ast.AST, ast.AST]) -> ast.AST:
    while not isinstance(node, ast.FunctionDef):
        node = above[node]
    return node


def _qualified(node: ast.AST, above: dict[ast.AST, ast.AST]) -> str:
    names = []
    while node in above:
        node = above[node]
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.insert(0, node.name)
    return ".".join(names)
