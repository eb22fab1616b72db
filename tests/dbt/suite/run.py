"""Run dbt's own tests of adapters on icesql: ``python tests/dbt/suite/run.py``.

Arguments are pytest's, such as ``-k Snapshot``. Needs ``pip install '.[dbt]' dbt-tests-adapter``,
which pins some tools of the other tests to older releases: an environment of its own is best.
Models are written to a SQLite catalog in a folder of its own.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[2]


def with_adapter(folder: Path) -> dict[str, str]:
    """The environment of a process that finds the adapter, as the wheel installs it."""
    place = folder / "path" / "dbt" / "adapters" / "icesql"
    place.mkdir(parents=True, exist_ok=True)
    for name, file in (("plugin", "__init__"), ("version", "__version__")):
        shutil.copy(ROOT / "icesql" / "dbt" / f"{name}.py", place / f"{file}.py")
    paths = (str(folder / "path"), str(ROOT), os.environ.get("PYTHONPATH"))
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        "DBT_SEND_ANONYMOUS_USAGE_STATS": "false",
    }


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the suite with a catalog in ``folder``; what it printed ends with the figures."""
    # Its logs go below the root.
    words = ["-c", "setup.cfg", "--rootdir", str(folder), "suite.py", "-q", "-rfEs"]
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *words, *arguments],
        cwd=HERE,
        env={**with_adapter(folder), "DBT_LAKE_OF_TESTS": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        done = run(Path(made), *sys.argv[1:])
    print(done.stdout[-200_000:], done.stderr[-2_000:], sep="\n")
    sys.exit(done.returncode)
