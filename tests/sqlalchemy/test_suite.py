"""A part of SQLAlchemy's own tests of dialects; the whole is ``suite/run.py``."""

from __future__ import annotations

import re
from pathlib import Path

from tests.sqlalchemy.suite.run import run

PART = (
    "TableDDLTest or SimpleUpdateDeleteTest or RowFetchTest or BitwiseTest or DistinctOnTest or "
    "CTETest"
)


def test_a_part_of_the_suite_passes(tmp_path: Path) -> None:
    done = run(tmp_path, "-k", PART)
    last = done.stdout.strip().splitlines()[-1]
    passed = re.search(r"(\d+) passed", last)
    assert done.returncode == 0, done.stdout[-3000:]
    assert passed is not None
    assert int(passed[1]) >= 30, last
    assert "failed" not in last
    assert "error" not in last
