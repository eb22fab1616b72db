"""Tests beside each release of a package that the project promises to run with.

    python tests/campaigns releases sqlglot|pyspark [RELEASE …]

Installs each release into a folder of its own, which needs a package index, and runs the tests
with it before the installed one; ``30.30.0c`` is sqlglot with its compiled modules. Wrong is a test
that fails and that ``REFUSED`` does not name: what older releases refuse by name is known there,
other rows never are. PySpark 3.5 ships no server of Spark Connect: its jar is taken from
``SPARK_CONNECT_JAR``, and those tests skip without.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Literal

ROOT = Path(__file__).resolve().parents[2]
RELEASES = {
    # The oldest; Superset's newest; the newest before what sqlframe allows; sqlmesh's; the last
    # that groups a remainder as a sum; the newest.
    "sqlglot": (
        "28.10.0", "28.10.1", "29.0.1", "30.8.0", "30.16.0", "30.29.0", "30.30.0", "30.30.0c",
    ),
    # The newest of each line that Databricks, EMR and Glue run, and of those since.
    "pyspark": ("3.5.9", "4.0.5", "4.1.4", "4.2.1", "4.3.0"),
}  # fmt: skip
TESTS = {
    # Whatever reads, translates or writes SQL.
    "sqlglot": (
        "sql", "query", "slt", "engine/duckdb", "modify", "dbapi", "repl", "sqlalchemy", "security",
        "house/test_sqlglot_releases.py", "house/test_grammar.py", "house/test_documents.py",
        "explain/test_explain.py", "test_session.py", "spark/test_fragments.py",
        "spark/test_own_text.py",
    ),
    "pyspark": ("spark", "datasource", "engine", "maintain/rewrite"),
}  # fmt: skip
# Parts of the names of tests: forms that a release of sqlglot from 28.10 on does not read, each an
# error with the place in the text, and two that ask what only the newest release drops.
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


def unknown_failures(package: str, release: str, folder: str) -> list[str]:
    """The tests that fail beside a release, without those that are known to."""
    number = release.removesuffix("c")
    wanted = [f"{package}=={number}"] + [f"{package}c=={number}"] * (number != release)
    install = [sys.executable, "-m", "pip", "install", "-q", "--target", folder]
    subprocess.run([*install, *wanted], check=True)
    environment = {**os.environ, "PYTHONPATH": folder}
    shown = f"import {package} as p; print(p.__version__, p.__file__)"
    subprocess.run([sys.executable, "-c", shown], check=True, env=environment)
    unknown: list[str] = []
    for name in TESTS[package]:
        tests = f"tests/{name}"
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--tb=no", tests]
        done = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
        )
        failed = [found[1] for found in _FAILED.finditer(done.stdout)]
        unknown += [each for each in failed if not any(part in each for part in REFUSED)]
        if done.returncode not in (0, 1):  # nothing was collected
            unknown.append(f"{tests}: pytest ends with {done.returncode}")
        counts = Counter({kind: int(number) for number, kind in _COUNTS.findall(done.stdout)})
        print(f"  {tests}: {', '.join(f'{n} {kind}' for kind, n in counts.items())}", flush=True)
    return unknown


def main(package: Literal["sqlglot", "pyspark"], releases: tuple[str, ...] = ()) -> int:
    """Run the tests of a package beside some releases, by default all; how many fail."""
    wrong = 0
    for release in releases or RELEASES[package]:
        with tempfile.TemporaryDirectory() as folder:
            found = unknown_failures(package, release, folder)
        wrong += len(found)
        for each in found:
            print(f"  FAILED beside {package} {release}: {each}")
    return wrong
