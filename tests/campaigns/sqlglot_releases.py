"""The tests of reading SQL beside each release of sqlglot that other tools pin.

    python tests/campaigns/sqlglot_releases.py [release …]

Installs each release into a folder of its own, which needs a package index, and runs the tests
with it before the installed one; ``30.30.0c`` is a release with its compiled modules. Prints how
many tests passed and failed in each folder. Ends with code 1 when a test fails that ``REFUSED``
does not name: what older releases refuse by name is known there, other rows never are.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# The oldest; Superset's newest; the newest before what sqlframe allows; sqlmesh's; the last that
# groups a remainder as a sum; the newest.
RELEASES = ("28.10.0", "28.10.1", "29.0.1", "30.8.0", "30.16.0", "30.29.0", "30.30.0", "30.30.0c")
# Whatever reads, translates or writes SQL. Those of Spark start a JVM each.
TESTS = (
    "tests/sql", "tests/query", "tests/slt", "tests/engine/duckdb", "tests/modify", "tests/dbapi",
    "tests/repl", "tests/sqlalchemy", "tests/security", "tests/house/test_sqlglot_releases.py",
    "tests/house/test_grammar.py", "tests/house/test_documents.py", "tests/explain/test_explain.py",
    "tests/test_session.py", "tests/spark/test_fragments.py", "tests/spark/test_own_text.py",
)  # fmt: skip
# Parts of the names of tests: forms that a release from 28.10 on does not read, each an error with
# the place in the text, and two that ask what only the newest release drops.
REFUSED = (
    "jaro_winkler_similarity", "list_has_any([1], [2], a)", "s NOT LIKE 'a%'",  # read whole
    "date_format(TIMESTAMP '2022-10-20 05:10:07.123456', '%f')", "b.x(+)",
    "OVER (GROUPS ", "$tag$c$$d$tag$", "version()", "test_the_session_tells_of_itself",
    "test_each_form_works_where_it_is_said_to[default]", "forms-auto", "forms-arrow",
    "metadata_tables-auto", "metadata_tables-arrow",
    "test_every_form_gives_its_rows_or_the_spelling_that_does",
)  # fmt: skip
_FAILED = re.compile(r"^(?:FAILED|ERROR) ((tests/\w+)\S*.*?)(?: - .*)?$", re.MULTILINE)
_COUNTS = re.compile(r"(\d+) (passed|failed|errors?|skipped)")


def run(release: str, folder: str) -> bool:
    number = release.removesuffix("c")
    wanted = [f"sqlglot=={number}"] + [f"sqlglotc=={number}"] * (number != release)
    install = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", folder]
    subprocess.run([*install, *wanted], check=True)
    environment = {**os.environ, "PYTHONPATH": folder}
    shown = "import sqlglot, sqlglot.parser as p; print(sqlglot.__version__, p.__file__)"
    subprocess.run([sys.executable, "-c", shown], check=True, env=environment)
    unknown: list[str] = []
    for tests in TESTS:
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--tb=no", tests]
        done = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
        )
        failed = [found[1] for found in _FAILED.finditer(done.stdout)]
        others = [each for each in failed if not any(part in each for part in REFUSED)]
        if done.returncode not in (0, 1):  # nothing was collected
            others.append(f"{tests}: pytest ends with {done.returncode}")
        unknown += others
        counts = Counter({kind: int(number) for number, kind in _COUNTS.findall(done.stdout)})
        figures = ", ".join(f"{count} {kind}" for kind, count in counts.items())
        known = len(failed) - sum(each in failed for each in others)
        print(f"  {tests}: {figures}; {known} refused as known", flush=True)
    for each in unknown:
        print(f"  FAILED {each}")
    return not unknown


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
