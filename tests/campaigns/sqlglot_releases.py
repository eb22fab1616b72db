"""The tests of reading SQL beside each release of sqlglot that other tools pin.

    python tests/campaigns/sqlglot_releases.py [release …]

Installs each release into a folder of its own, which needs a package index, and runs the tests
with it before the installed one; ``30.30.0c`` is a release with its compiled modules. Ends with
code 1 when a test fails.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# The oldest; Superset's newest; the newest before what sqlframe allows; sqlmesh's; the newest.
RELEASES = ("28.10.0", "28.10.1", "29.0.1", "30.8.0", "30.29.0", "30.30.0", "30.30.0c")
TESTS = ("tests/sql", "tests/query", "tests/slt", "tests/engine/duckdb/sql")


def run(release: str, folder: str) -> bool:
    number = release.removesuffix("c")
    wanted = [f"sqlglot=={number}"] + [f"sqlglotc=={number}"] * (number != release)
    install = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", folder]
    subprocess.run([*install, *wanted], check=True)
    environment = {**os.environ, "PYTHONPATH": folder}
    shown = "import sqlglot, sqlglot.parser as p; print(sqlglot.__version__, p.__file__)"
    subprocess.run([sys.executable, "-c", shown], check=True, env=environment)
    tests = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *TESTS]
    return subprocess.run(tests, cwd=ROOT, env=environment).returncode == 0


def main() -> int:
    failed = []
    for release in sys.argv[1:] or RELEASES:
        with tempfile.TemporaryDirectory() as folder:
            if not run(release, folder):
                failed.append(release)
    print("failed with sqlglot", ", ".join(failed)) if failed else print("all releases pass")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
