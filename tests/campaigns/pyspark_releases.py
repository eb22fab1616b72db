"""The tests of Spark beside each release of PySpark that the extra allows.

    python tests/campaigns/pyspark_releases.py [release …] [-- arguments of pytest]

Installs each release into a fresh environment, which needs a package index and Java 17, and runs
the tests of the Spark engine and of ``format("icesql")`` there. PySpark 3.5 ships no server of
Spark Connect: its jar is taken from ``SPARK_CONNECT_JAR``, and those tests skip without. Ends with
code 1 when a test fails.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# The newest of each line that Databricks, EMR and Glue run.
RELEASES = ("3.5.9", "4.0.5", "4.1.4", "4.2.1", "4.3.0")
TESTS = ("tests/spark", "tests/datasource", "tests/engine", "tests/maintain/rewrite")


def run(release: str, folder: Path, arguments: list[str]) -> bool:
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True, env=clean)
    python = folder / "venv" / "bin" / "python"
    wanted = [f"{ROOT}[test,spark]", f"pyspark=={release}"]
    install = [python, "-m", "pip", "install", "-q", *wanted]
    subprocess.run(install, check=True, env=clean, cwd=folder)
    shown = "import pyspark, pandas; print('PySpark', pyspark.__version__, 'pandas', pandas.__version__)"
    subprocess.run([python, "-W", "ignore", "-c", shown], check=True, env=clean)
    pytest = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *(arguments or TESTS)]
    return subprocess.run(pytest, cwd=ROOT, env=clean, check=False).returncode == 0


def main() -> int:
    given, _, arguments = " ".join(sys.argv[1:]).partition("--")
    failed = []
    for release in given.split() or RELEASES:
        with tempfile.TemporaryDirectory() as folder:
            if not run(release, Path(folder), arguments.split()):
                failed.append(release)
    print("failed with PySpark", ", ".join(failed)) if failed else print("all releases pass")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
