"""A small part of ``tests/campaigns/killed_statements.py``, the same points on every run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[1] / "campaigns" / "killed_statements.py"


def test_a_killed_statement_leaves_a_table_that_reads(tmp_path: Path) -> None:
    arguments = {
        "points": 4, "seconds": 0.4, "lanes": 1, "rows": 400, "kinds": "sqlite",
        "folder": tmp_path, "statements": "update vectors,compaction in parts",
    }  # fmt: skip
    given = [word for key, value in arguments.items() for word in (f"--{key}", str(value))]
    done = subprocess.run(
        [sys.executable, str(SCRIPT), *given], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "4 points" in done.stdout
