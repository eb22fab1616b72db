"""TPC-H on Spark, all 22 queries: icesql, Spark's Parquet reader, Iceberg's jar and Comet.

    python tests/benchmarks/spark_peers.py CACHE [--scale 10] [--queries 1,6]
        [--peers reader,iceberg,comet] [--rounds 1] [--memory 3g]

All four have local[2] of one PySpark, the newest that Comet has a jar for, and the same data files:
icesql, Iceberg's jar and Comet (beside that jar) read the tables, the reader the bare files of them.
A process for icesql, one for Comet and one for the other two live as long as the run; each runs a
query over tables of scale 0.01 before its turn, engines take turns within a query, and what
a process and all its children use counts: "CPU" is of user and system, in seconds. Medians of the
rounds; ratios are icesql's CPU time divided by the peer's, so below 1 icesql needs less. "differs"
is a peer whose rows are not icesql's. CACHE keeps the tables, the jars (fetched with Maven) and the
environment. Scale 10 needs 8 GB there.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))
sys.path.insert(0, str(Path(__file__).parent))
import tpcds  # type: ignore[import-not-found]
from tpch import TABLES, environment  # type: ignore[import-not-found]

ROOT = Path(__file__).parents[2]
PYSPARK = "4.1.4"
JARS = {
    "iceberg": "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0",
    "comet": "org.apache.datafusion:comet-spark-spark4.1_2.13:1.2.0",
}
PEERS = ("reader", "iceberg", "comet")
WARM_SCALE = 0.01
WARM_RUNS = 1
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "4",
    "spark.sql.catalog.c": "org.apache.iceberg.spark.SparkCatalog",
    "spark.sql.catalog.c.type": "hadoop",
}
COMET = {
    "spark.plugins": "org.apache.spark.CometPlugin",
    "spark.shuffle.manager": ("org.apache.spark.sql.comet.execution.shuffle.CometShuffleManager"),
    "spark.memory.offHeap.enabled": "true",
    "spark.comet.scan.icebergNative.enabled": "true",
}


# ------------------------------------------------------------------ what there is to read


def jar(cache: Path, name: str) -> Path:
    """A jar of Maven's, fetched once."""
    _, artifact, version = JARS[name].split(":")
    path = cache / "jars" / f"{artifact}-{version}.jar"
    if not path.exists():
        goal = ["mvn", "-q", "dependency:copy", f"-Dartifact={JARS[name]}"]
        subprocess.run([*goal, f"-DoutputDirectory={path.parent}"], check=True)
    return path


def tables(cache: Path, scale: float) -> Path:
    """A warehouse folder of the TPC-H tables, written once."""
    import icesql

    folder, raw = cache / f"spark-peers-{scale:g}", cache / f"raw-{scale:g}"
    if (folder / "done").exists():
        return folder
    if not raw.exists():
        python = environment(cache / "env-tpchgen", "tpchgen-cli")
        command = [python.with_name("tpchgen-cli"), "parquet", "-s", f"{scale:g}"]
        subprocess.run([*command, f"--output-dir={raw}"], check=True)
    folder.mkdir(parents=True, exist_ok=True)
    with icesql.connect(warehouse=str(folder), files=True) as con:
        con.execute("CREATE SCHEMA IF NOT EXISTS tpch")
        for name in TABLES:
            con.execute(f"DROP TABLE IF EXISTS tpch.{name} PURGE")
            con.execute(
                f"CREATE TABLE tpch.{name} TBLPROPERTIES ('write.target-file-size-bytes' = "
                f"'{128 << 20}') AS SELECT * FROM '{raw}/{name}.parquet'"
            )
    (folder / "done").touch()
    return folder


# ------------------------------------------------------------------ in the process of an engine


def serve(given: argparse.Namespace) -> None:
    """Answer the queries that come in as lines of JSON."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]")
    for name, value in json.loads(given.settings).items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    engines: dict[tuple[str, str], Callable[[str], list[tuple[Any, ...]]]] = {}
    for line in sys.stdin:
        ask = json.loads(line)
        key = ask["engine"], ask["folder"]
        if key not in engines:
            engines[key] = opened(session, *key)
        run, before, started = engines[key], cpu_of_tree(), time.perf_counter()
        try:
            rows = run(ask["sql"])
            found = {"rows": [list(map(plain, row)) for row in rows]}
        except Exception as error:
            found = {"problem": f"{type(error).__name__}: {error}"[:300]}
        found |= {"wall": time.perf_counter() - started, "cpu": cpu_of_tree() - before}
        print("answer " + json.dumps(found), flush=True)


def opened(session: Any, engine: str, folder: str) -> Callable[[str], list[tuple[Any, ...]]]:
    """What runs a query with an engine over the tables of a folder."""
    if engine == "icesql":
        import icesql

        connection = icesql.connect(warehouse=folder, engine="spark", spark=session)
        connection.execute("USE tpch")
        return lambda sql: connection.execute(sql).fetchall()  # type: ignore[no-any-return]
    mine = session.newSession()
    catalog = "c" + str(abs(hash(folder)))
    for name, value in SETTINGS.items():
        if name.startswith("spark.sql.catalog.c"):
            mine.conf.set(name.replace("catalog.c", f"catalog.{catalog}"), value)
    mine.conf.set(f"spark.sql.catalog.{catalog}.warehouse", folder)
    for table in TABLES:
        if engine == "reader":
            frame = mine.read.parquet(f"{folder}/tpch/{table}/data")
        else:
            frame = mine.table(f"{catalog}.tpch.{table}")
        frame.createOrReplaceTempView(table)
    return lambda sql: [tuple(row) for row in mine.sql(sql).collect()]


def plain(value: Any) -> float | str:
    """A value as JSON has it: numbers of any type as one kind."""
    try:
        return float(value)
    except (TypeError, ValueError):
        return str(value).strip()


def cpu_of_tree() -> float:
    """Seconds of user and system time of this process and all below it, those that ended too."""
    parents: dict[int, tuple[int, float]] = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                text = Path(f"/proc/{entry}/stat").read_text()
            except OSError:
                continue  # it ended meanwhile
            fields = text.rpartition(")")[2].split()
            parents[int(entry)] = int(fields[1]), sum(map(int, fields[11:15]))
    inside, total = {os.getpid()}, 0.0
    while True:
        more = {each for each, (above, _) in parents.items() if above in inside} - inside
        if not more:
            break
        inside |= more
    total = sum(parents[each][1] for each in inside if each in parents)
    return total / os.sysconf("SC_CLK_TCK")


# ------------------------------------------------------------------ the run


class Process:
    """A Spark with what one or two engines need."""

    def __init__(self, python: Path, settings: dict[str, str]) -> None:
        command = [str(python), __file__, ".", "--settings", json.dumps(settings)]
        clean = {**os.environ, "PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": str(python)}
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=clean
        )

    def ask(self, **question: str) -> dict[str, Any]:
        """What one query took and gave."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(question) + "\n")
        self._process.stdin.flush()
        for line in self._process.stdout:
            if line.startswith("answer "):
                return json.loads(line.removeprefix("answer "))  # type: ignore[no-any-return]
        raise RuntimeError("a Spark process ended")

    def end(self) -> None:
        """Let it end."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("cache", type=Path)
    parser.add_argument("--scale", type=float, default=10)
    parser.add_argument("--queries", default="all")
    parser.add_argument("--peers", default=",".join(PEERS))
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--memory", default="3g")
    parser.add_argument("--settings", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.settings:
        serve(given)
        return
    cache = given.cache.resolve()
    folder, warm = tables(cache, given.scale), tables(cache, WARM_SCALE)
    _, queries = tpcds.warehouse(cache, "tpch", WARM_SCALE)
    wanted = sorted(queries, key=int) if given.queries == "all" else given.queries.split(",")
    python = environment(
        cache / f"env-pyspark-{PYSPARK}", f"{ROOT}[spark]", f"pyspark=={PYSPARK}", "pandas"
    )
    peers = given.peers.split(",")
    base = {**SETTINGS, "spark.driver.memory": given.memory}
    iceberg = str(jar(cache, "iceberg"))
    processes = {"icesql": Process(python, base)}
    if "comet" in peers:
        paths = {"spark.driver.extraClassPath": f"{jar(cache, 'comet')}:{iceberg}"}
        off_heap = {"spark.memory.offHeap.size": given.memory}
        processes["comet"] = Process(python, base | COMET | paths | off_heap)
    if {"reader", "iceberg"} & set(peers):
        plain = Process(python, base | {"spark.driver.extraClassPath": iceberg})
        processes |= {each: plain for each in ("reader", "iceberg") if each in peers}
    engines = ["icesql", *peers]
    print(f"TPC-H scale {given.scale:g}, PySpark {PYSPARK}, local[2], {os.cpu_count()} cores; "
          "seconds of wall and CPU time, CPU of icesql divided by the peer's")  # fmt: skip
    print("query " + "".join(f"{each:>24}" for each in engines))
    ratios: dict[str, list[float]] = {each: [] for each in peers}
    for query in wanted:
        sql = queries[query].strip().rstrip(";")
        taken: dict[str, list[dict[str, Any]]] = {each: [] for each in engines}
        for engine in engines:
            for _ in range(WARM_RUNS):
                processes[engine].ask(engine=engine, folder=str(warm), sql=sql)
        for _ in range(given.rounds):
            for engine in engines:
                asked = processes[engine].ask(engine=engine, folder=str(folder), sql=sql)
                taken[engine].append(asked)
        print(f"q{query:5}" + line_of(engines, taken, ratios), flush=True)
    means = (f"{each} {math.exp(statistics.fmean(map(math.log, found))):.2f} of {len(found)}"
             for each, found in ratios.items() if found)  # fmt: skip
    print("geometric mean of the ratios: " + ", ".join(means))
    for process in set(processes.values()):
        process.end()


def same(ours: list[list[float | str]], theirs: list[list[float | str]]) -> bool:
    """Whether rows are the same in any order, averages to the six digits of Spark's decimals."""

    def rough(row: list[float | str]) -> list[str]:
        return [each if isinstance(each, str) else f"{each:.3g}" for each in row]

    def equal(one: float | str, other: float | str) -> bool:
        if isinstance(one, str) or isinstance(other, str):
            return one == other
        return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-6)

    pairs = zip(sorted(ours, key=rough), sorted(theirs, key=rough), strict=False)
    return len(ours) == len(theirs) and all(
        len(one) == len(other) and all(map(equal, one, other)) for one, other in pairs
    )


def line_of(
    engines: list[str], taken: dict[str, list[dict[str, Any]]], ratios: dict[str, list[float]]
) -> str:
    """The line of a query; adds to the ratios of those that gave the rows of icesql."""
    ours, text = taken["icesql"], ""
    for engine in engines:
        problem = next((each["problem"] for each in taken[engine] if "problem" in each), None)
        if problem is not None:
            text += f"{'failed':>24}"
            print(f"{engine}: {problem}", file=sys.stderr)
            continue
        wall, cpu = (statistics.median(e[kind] for e in taken[engine]) for kind in ("wall", "cpu"))
        shown = f"{wall:.1f} {cpu:.1f}"
        if engine != "icesql" and "rows" in ours[0]:
            ratio = statistics.median(each["cpu"] for each in ours) / cpu
            ratios[engine].append(ratio)
            is_same = same(ours[0]["rows"], taken[engine][0]["rows"])
            shown += f" ({ratio:.2f}x)" + " differs" * (not is_same)
        text += f"{shown:>24}"
    return text


if __name__ == "__main__":
    main()
