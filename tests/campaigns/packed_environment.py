"""The manual's recipe for clusters: a packed environment on machines that have no icesql.

    python tests/campaigns/packed_environment.py FOLDER [--plain-python /usr/bin/python3]

Packs an environment into FOLDER, if it is not there yet (a package index is needed), and starts a
standalone master and two workers whose Python has no icesql. Then asks by each door: an archive of
a job (``spark.archives``), and one sent to a server of Spark Connect on that cluster
(``addArtifacts``), with ``icesql.connect``, ``icesql.sql``, an INSERT and a MERGE in tasks, and by
the first with ``format("icesql")``. Ends with code 1 where rows differ, or where icesql came from
elsewhere.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tests.spark.processes import Cluster, ConnectServer, running  # noqa: E402

PROGRAM = """
import sys
import icesql
from pyspark.sql import SparkSession

door, address, archive, warehouse = sys.argv[1:]
if door == "archives":
    session = (SparkSession.builder.master(address).config("spark.ui.enabled", "false")
               .config("spark.executor.memory", "512m")
               .config("spark.archives", archive + "#environment").getOrCreate())
else:
    session = SparkSession.builder.remote(address).getOrCreate()
    session.addArtifacts(archive + "#environment", archive=True)
    session.conf.set("spark.sql.execution.pyspark.python", "environment/bin/python")


def where(batches):
    import icesql
    import pyarrow
    for batch in batches:
        pass
    yield pyarrow.RecordBatch.from_pydict({"path": [icesql.__file__]})


paths = {row[0] for row in session.range(0, 2, 1, 2).mapInArrow(where, "path string").collect()}
assert all("/environment/" in each for each in paths), paths
named = "SELECT k, count(*) AS n, sum(x) AS s FROM s.t VERSION AS OF 'half' GROUP BY k ORDER BY k"
with icesql.connect(warehouse=warehouse) as local:
    expected = local.execute(named).fetchall()
    assert expected[0][1] > 100
assert [tuple(row) for row in icesql.sql(session, named, warehouse=warehouse).collect()] == expected
if door == "archives":
    # A server of Spark Connect plans format("icesql") in a Python of its own.
    icesql.register_spark(session, warehouse=warehouse)
    frame = session.read.format("icesql").option("tag", "half").load("s.t")
    assert frame.count() == sum(row[1] for row in expected)
with icesql.connect(warehouse=warehouse, engine="spark", spark=session) as con:
    assert con.execute(named).fetchall() == expected
    assert con.execute(f"CREATE TABLE s.{door} AS SELECT * FROM s.t").rowcount == 20000
    changed = con.execute(
        f"MERGE INTO s.{door} USING (SELECT x + 19000 AS x, 'new' AS k FROM s.t WHERE x < 2000) r "
        f"ON r.x = {door}.x WHEN MATCHED THEN UPDATE SET k = r.k WHEN NOT MATCHED THEN INSERT *"
    ).rowcount
    assert changed == 2000, changed
    con.execute("SET engine = 'local'")
    found = con.execute(
        f"SELECT count(*), count(DISTINCT x), count_if(k = 'new') FROM s.{door}").fetchall()
    assert found == [(21000, 21000, 2000)], found
print(door, "holds")
session.stop()
"""


def pack(folder: Path) -> Path:
    """The archive of an environment with icesql; Spark itself comes from the cluster."""
    archive = folder / "packed.tar.gz"
    if not archive.exists():
        clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        commands = (
            [sys.executable, "-m", "venv", folder / "packed"],
            [folder / "packed/bin/pip", "install", "-q", ROOT, "pandas", "venv-pack"],
            [folder / "packed/bin/venv-pack", "-q", "-p", folder / "packed", "-o", archive],
        )
        for command in commands:
            subprocess.run(command, check=True, env=clean)
    return archive


class Bare(Cluster):
    """Two workers of which none has icesql."""

    def add_worker(self, *, icesql: bool = False) -> None:
        super().add_worker()


def asked(door: str, address: str, archive: Path, warehouse: Path) -> bool:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYSPARK_DRIVER_PYTHON": sys.executable}
    if door == "archives":
        environment["PYSPARK_PYTHON"] = "./environment/bin/python"
    command = [sys.executable, "-W", "ignore", "-c", PROGRAM, door, address]
    # format("icesql") is planned by a Python that Spark's driver starts by the same name.
    named = archive.parent / "environment"
    if not named.exists():
        named.symlink_to(archive.parent / "packed")
    done = subprocess.run(
        [*command, archive, warehouse],
        env=environment,
        cwd=archive.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    # Behind the error comes what a Spark says that ends.
    said = done.stderr[max(done.stderr.find("Traceback"), 0) :][:6000] if done.returncode else ""
    print(done.stdout, said, sep="", flush=True)
    return done.returncode == 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--plain-python", default="/usr/bin/python3")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    archive = pack(given.folder.resolve())
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        warehouse = folder / "warehouse"
        warehouse.mkdir()
        prepare(warehouse)
        cluster = Bare(folder / "cluster")
        cluster.environment["PYSPARK_PYTHON"] = given.plain_python
        with running(cluster):
            held = [asked("archives", cluster.address, archive, warehouse)]
            server = ConnectServer(folder / "connect", cluster.address)
            server.environment["PYSPARK_PYTHON"] = given.plain_python
            with running(server):
                held.append(asked("connect", server.address, archive, warehouse))
    return 0 if all(held) else 1


def prepare(warehouse: Path) -> None:
    """A table of 20,000 rows in two snapshots, of which the first has the tag ``half``."""
    import icesql

    with icesql.connect(warehouse=str(warehouse)) as con:
        con.execute("CREATE SCHEMA s")
        con.execute("CREATE TABLE s.t (x BIGINT, k VARCHAR) PARTITIONED BY (bucket(4, x))")
        for low in (0, 10_000):
            con.execute(
                f"INSERT INTO s.t SELECT x, 'k' || x % 5 FROM range({low}, {low + 10_000}) r(x)"
            )
            if not low:
                con.execute("ALTER TABLE s.t CREATE TAG half")


if __name__ == "__main__":
    sys.exit(main())
