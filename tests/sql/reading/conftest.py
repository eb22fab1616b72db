"""Statements that DuckDB's parser accepts."""

from __future__ import annotations

from pathlib import Path

import pytest

from icesql.sql.parse import split_statements


def forms() -> list[str]:
    """The statements of forms.sql."""
    script = (Path(__file__).parent / "forms.sql").read_text(encoding="utf-8")
    return [text for _, text in split_statements(script)]


@pytest.fixture(scope="session")
def texts() -> list[str]:
    """The statements of forms.sql, and the queries of the .slt files in DuckDB's words."""
    found = forms()
    for path in sorted((Path(__file__).parents[2] / "slt").glob("**/*.slt")):
        other = False
        for block in path.read_text(encoding="utf-8").split("\n\n"):
            head, _, rest = block.strip().partition("\n")
            if head.startswith(("case ", "connect ")):
                other = " dialect=" in head
            if head.startswith("query") and not other:
                found.append(rest.partition("\n----")[0].strip().rstrip(";"))
    return found
