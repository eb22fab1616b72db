"""Runs the cases of the .steps files here, in both embedded catalogs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.commit.steps import Run, Step, read_steps
from tests.commit.tables import CATALOGS

CASES = [
    pytest.param(steps, id=f"{path.stem}: {name}")
    for path in sorted(Path(__file__).parent.glob("*.steps"))
    for name, steps in read_steps(path)
]


@pytest.mark.parametrize("catalog", CATALOGS)
@pytest.mark.parametrize("steps", CASES)
def test_what_commits_leave(steps: list[Step], catalog: str, tmp_path) -> None:
    run = Run(CATALOGS[catalog](tmp_path))
    for line, expected in steps:
        try:
            run.step(line, expected)
        except Exception as error:
            error.add_note(f"in the step: {line}")
            raise
