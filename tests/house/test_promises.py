"""The table of promises names tests that exist, and versions that pyproject.toml allows."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.tables import read_table

ROOT = Path(__file__).parents[2]
PROMISES = read_table(__file__, "promises.tsv")


@pytest.mark.parametrize(("promise", "holder"), PROMISES, ids=[each[0] for each in PROMISES])
def test_a_promise_is_held_by_what_its_line_names(promise: str, holder: str) -> None:
    file, _, name = holder.partition("::")
    text = (ROOT / file).read_text(encoding="utf-8")
    if file.endswith(".py"):
        names = {node.name for node in ast.walk(ast.parse(text)) if hasattr(node, "name")}
        assert name in names, promise
    else:
        assert name in text, promise
