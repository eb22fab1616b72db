"""Run tests with each release of a package that the project promises to support.

    python tests/campaigns releases sqlglot|pyspark [RELEASE …]

Installs each release into a folder of its own, which needs a package index, and runs the tests
with it before the installed one; ``30.30.0c`` is sqlglot with its compiled modules. Wrong is a test
that fails and that ``releases.tsv`` does not name: it lists what older releases refuse by name, but
never wrong rows. PySpark 3.5 ships no Spark Connect server: its jar is taken from
``SPARK_CONNECT_JAR``, and without it those tests skip.
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

from tests.tables import read_table

ROOT = Path(__file__).resolve().parents[2]
_FAILED = re.compile(r"^(?:FAILED|ERROR) ((tests/\w+)\S*.*?)(?: - .*)?$", re.MULTILINE)
_COUNTS = re.compile(r"(\d+) (passed|failed|errors?|skipped)")


def listed(package: str, what: str) -> list[str]:
    """The releases of a package, the tests to run with them, or those that are ``refused``."""
    table = read_table(__file__, "releases.tsv")
    return [value for named, kind, value in table if (named, kind) == (package, what)]


def unknown_failures(package: str, release: str, folder: str) -> list[str]:
    """The tests that fail with a release, except for the known failures."""
    number = release.removesuffix("c")
    wanted = [f"{package}=={number}"] + [f"{package}c=={number}"] * (number != release)
    install = [sys.executable, "-m", "pip", "install", "-q", "--target", folder]
    subprocess.run([*install, *wanted], check=True)
    environment = {**os.environ, "PYTHONPATH": folder}
    shown = f"import {package} as p; print(p.__version__, p.__file__)"
    subprocess.run([sys.executable, "-c", shown], check=True, env=environment)
    unknown, refused = list[str](), listed("sqlglot", "refused")
    for name in listed(package, "tests"):
        tests = f"tests/{name}"
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--tb=no", tests]
        done = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
        )
        failed = [found[1] for found in _FAILED.finditer(done.stdout)]
        unknown += [each for each in failed if not any(part in each for part in refused)]
        if done.returncode not in (0, 1):  # nothing was collected
            unknown.append(f"{tests}: pytest ends with {done.returncode}")
        counts = Counter({kind: int(number) for number, kind in _COUNTS.findall(done.stdout)})
        print(f"  {tests}: {', '.join(f'{n} {kind}' for kind, n in counts.items())}", flush=True)
    return unknown


def main(package: Literal["sqlglot", "pyspark"], releases: tuple[str, ...] = ()) -> int:
    """Run the tests of a package with some releases, by default all; return the failures."""
    wrong = 0
    for release in releases or listed(package, "release"):
        with tempfile.TemporaryDirectory() as folder:
            found = unknown_failures(package, release, folder)
        wrong += len(found)
        for each in found:
            print(f"  FAILED beside {package} {release}: {each}")
    return wrong
