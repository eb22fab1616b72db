"""The tests of Spark beside each release of PySpark that the extra allows.

    python tests/campaigns/pyspark_releases.py [release …] [--whole] [--keep FOLDER]

Installs each release into an environment, which needs a package index and Java 17, and runs there
what differs between releases: the statements of both engines, the ways to read, DataFrames,
writing and changing rows, Spark Connect, and ``format("icesql")``. ``--whole`` runs all tests of
Spark instead. ``--keep`` names a folder in which the environments stay for the next run. PySpark
3.5 ships no server of Spark Connect: its jar is taken from ``SPARK_CONNECT_JAR``, and those tests
skip without. Ends with code 1 when a test fails, and shows the last lines of each run.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# The newest of each line that Databricks, EMR and Glue run, and of those since.
RELEASES = ("3.5.9", "4.0.5", "4.1.4", "4.2.1", "4.3.0")
WHOLE = ("tests/spark", "tests/datasource", "tests/engine", "tests/maintain/rewrite")
# About four minutes on two cores.
PART = (
    "tests/spark/test_releases.py",
    "tests/spark/test_session.py",
    "tests/spark/test_differences.py",
    "tests/spark/test_engine.py",
    "tests/spark/test_frames.py",
    "tests/spark/test_own_text.py",
    "tests/spark/test_writing.py",
    "tests/spark/test_changing_rows.py",
    "tests/spark/test_connect.py",
    "tests/datasource/test_source.py",
    "tests/datasource/test_planning.py",
)
SHOWN = (
    "import pyspark, pandas; print('PySpark', pyspark.__version__, 'pandas', pandas.__version__)"
)


def install(release: str, folder: Path, clean: dict[str, str]) -> Path:
    """The Python of an environment with a release, made where it is not there yet."""
    python = folder / release / "bin" / "python"
    done = folder / release / "installed"
    if not done.exists():
        subprocess.run([sys.executable, "-m", "venv", folder / release], check=True, env=clean)
        wanted = [f"{ROOT}[test,spark]", f"pyspark=={release}"]
        command = [python, "-m", "pip", "install", "-q", *wanted]
        subprocess.run(command, check=True, env=clean, cwd=folder)
        # The tests are those of this folder, and so is what they test.
        remove = [python, "-m", "pip", "uninstall", "-q", "-y", "icesql"]
        subprocess.run(remove, check=True, env=clean, cwd=folder)
        done.touch()
    return python


def run(release: str, folder: Path, tests: tuple[str, ...]) -> bool:
    """Whether the tests pass with a release."""
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    python = install(release, folder, clean)
    subprocess.run([python, "-W", "ignore", "-c", SHOWN], check=True, env=clean)
    began = time.monotonic()
    pytest = [python, "-m", "pytest", "-q", "-rfEs", "-p", "no:cacheprovider", *tests]
    found = subprocess.run(
        pytest, cwd=ROOT, env=clean, check=False, stdout=subprocess.PIPE, text=True
    )
    text = found.stdout
    print(text if found.returncode else text[text.rfind("short test summary") :], flush=True)
    print(f"{release}: {time.monotonic() - began:.0f} s, code {found.returncode}", flush=True)
    return found.returncode == 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("releases", nargs="*", default=RELEASES)
    parser.add_argument("--whole", action="store_true")
    parser.add_argument("--keep", type=Path)
    given = parser.parse_args()
    tests = WHOLE if given.whole else PART
    with tempfile.TemporaryDirectory() as folder:
        kept = given.keep.resolve() if given.keep else Path(folder)
        kept.mkdir(parents=True, exist_ok=True)
        failed = [each for each in given.releases if not run(each, kept, tests)]
    print("failed with PySpark", ", ".join(failed)) if failed else print("all releases pass")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
