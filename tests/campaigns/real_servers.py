"""Catalogs and stores by others: install them into a folder and run the tests with them.

    python tests/campaigns real_servers FOLDER [-- ARGUMENT OF pytest …]

``real_servers/servers.tsv`` lists them, for Maven, Go, npm and pip. PostgreSQL is the machine's; of
Polaris, Maven has only libraries. Failed installations are reported, and their tests skip. Takes
700 MB and, the first time, ten minutes.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.tables import read_table


def main(folder: Path, arguments: tuple[str, ...] = ()) -> int:
    """Install, then run."""
    folder = folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    found: dict[str, str] = {}
    places = {"folder": folder, "here": Path(__file__).with_suffix(""), "python": sys.executable}
    for name, value, made, command in read_table(__file__, "real_servers/servers.tsv"):
        if not (folder / made).exists():
            environment = {**os.environ, "GOBIN": str(folder)}
            subprocess.run(command.format(**places), shell=True, env=environment, check=False)
        if (folder / made).exists():
            found[name] = str(folder / value)
        print(f"{name}={found.get(name, '')}")
    above = os.environ.get("PYTHONPATH")
    if above and "PYTHONPATH" in found:
        found["PYTHONPATH"] += os.pathsep + above
    tests = ("catalog/test_real_servers", "stores/test_azure", "stores/test_gcs")
    command = [sys.executable, "-m", "pytest", "-q", *(f"tests/{each}.py" for each in tests)]
    root = Path(__file__).parents[2]
    environment = {**os.environ, **found}
    return subprocess.run([*command, *arguments], cwd=root, env=environment, check=False).returncode
