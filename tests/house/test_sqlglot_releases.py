"""What stands in every release of sqlglot that pyproject.toml allows, and nothing else, is used."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2] / "icesql"
# Newer than the oldest release: the base class of nodes is exp.Expression there, exp.DType is
# exp.DataType.Type, trunc() has no node and tokens stand in sqlglot.tokens.
NEWER_NAMES = frozenset({"Expr", "DType", "Trunc", "ArrayContainedBy"})
NEWER_MODULES = ("sqlglot.tokenizer_core", "sqlglot.generators", "sqlglot.parsers")


class _Used(ast.NodeVisitor):
    """Newer names outside of annotations, which are never evaluated."""

    def __init__(self) -> None:
        self.found: list[int] = []

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        for each in (*node.decorator_list, *node.args.defaults, *node.body):
            self.visit(each)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    def visit_If(self, node: ast.If) -> None:
        if ast.unparse(node.test) != "TYPE_CHECKING":
            self.generic_visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        if isinstance(node.value, ast.Name) and node.value.id == "exp" and node.attr in NEWER_NAMES:
            self.found.append(node.lineno)
        self.generic_visit(node)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        if (node.module or "").startswith(NEWER_MODULES):
            self.found.append(node.lineno)


def used(source: str) -> list[int]:
    visitor = _Used()
    visitor.visit(ast.parse(source))
    return visitor.found


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ("def f(a: exp.Expr) -> exp.Expr: ...", []),
        ("isinstance(a, exp.Expr)", [1]),
        ("A = list[exp.Expr]", [1]),
        ("a: exp.Expr = exp.DType.INT", [1]),
        ("from sqlglot.tokenizer_core import Token", [1]),
        ("if TYPE_CHECKING:\n    A = exp.Expr", []),
    ],
)
def test_the_look_at_a_source(source: str, lines: list[int]) -> None:
    assert used(source) == lines


def test_no_name_that_the_oldest_release_lacks_is_used() -> None:
    found = {
        f"{path.relative_to(ROOT)}:{line}"
        for path in sorted(ROOT.rglob("*.py"))
        for line in used(path.read_text(encoding="utf-8"))
    }
    assert found == set()
