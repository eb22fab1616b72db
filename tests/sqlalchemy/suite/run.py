"""Run SQLAlchemy's own tests of dialects on icesql: ``python tests/sqlalchemy/suite/run.py``.

Arguments are pytest's, such as ``-k CTETest``. Tables are made, filled and dropped in a SQLite
catalog in a folder of its own. In a process of its own, as SQLAlchemy's plug-in of pytest patches
how tests are collected.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import icesql

HERE = Path(__file__).parent


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the suite with a catalog in ``folder``; what it printed ends with the figures."""
    uri, root = f"sqlite:///{folder}/catalog.db", str(HERE.parents[2])
    new = {"init_catalog_tables": "true"}
    with icesql.connect(uri=uri, warehouse=folder, properties=new) as connection:
        connection.execute("CREATE SCHEMA test").close()
        connection.execute("CREATE SCHEMA test_schema").close()
    url = f"icesql://?uri={uri}&warehouse={folder}&namespace=test&purge=true"
    words = ["-c", "setup.cfg", "--rootdir", ".", "suite.py", "--dburi", url, "-q", "-rfE"]
    path = os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH"))))
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *words, *arguments],
        cwd=HERE,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        done = run(Path(made), *sys.argv[1:])
    print(done.stdout[-20_000:], done.stderr[-2_000:], sep="\n")
    sys.exit(done.returncode)
