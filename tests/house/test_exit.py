"""A process that ends with results still open ends quietly."""

from __future__ import annotations

import os
import subprocess
import sys

SCRIPT = """
import icesql
connection = icesql.connect()
cursor = connection.execute("SELECT * FROM range(1000000)")
print(cursor.fetchone())
"""


def test_open_results_leave_no_noise_at_exit():
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.stdout == "(0,)\n"
    assert done.stderr == ""
