"""The sides by name, the environments that they need, and the runs of several of them.

The name of a side is that of the function which opens it; ``icesql@FOLDER`` and ``spark@FOLDER``
have the icesql of another checkout.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from frame import Table, Taken, turns
from process import ROOT, Side, environment
from tables import DUCKDB, restored

from tests.tables import read_table

PYSPARK = "4.1.4"  # the newest that Comet has a jar for
ICEBERG = "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0"
COMET = "org.apache.datafusion:comet-spark-spark4.1_2.13:1.2.0"
JARS = {"iceberg": (ICEBERG,), "comet": (COMET, ICEBERG)}
SETTINGS = read_table(__file__, "sides.tsv")
# The extensions of DuckDB that sides need.
EXTENSIONS = {"extension": ("avro", "iceberg", "httpfs"), "ducklake": ("ducklake",)}


def settings(kind: str) -> dict[str, str]:
    """Spark's, of a side that runs on it."""
    return {key: value for sides, key, value in SETTINGS if kind in sides.split()}


def parts(cache: Path, name: str) -> tuple[str, Path, Path]:
    """Split a name into the function that opens the side, its Python and the checkout of icesql."""
    kind, _, folder = name.partition("@")
    python = Path(sys.executable)
    if settings(kind):
        wanted = (f"{ROOT}[spark]", f"pyspark=={PYSPARK}", "pandas")
        python = environment(cache / f"env-pyspark-{PYSPARK}", *wanted)
    elif extensions := EXTENSIONS.get(kind):
        named = ("duckdb", *(f"duckdb-extension-{each}" for each in extensions))
        place = cache / f"env-{'-'.join(('duckdb', *extensions))}"
        python = environment(place, *(f"{each}=={DUCKDB}" for each in named))
    return kind, python, Path(folder).resolve() if folder else ROOT


def opened(
    cache: Path, name: str, given: Mapping[str, Any], module: str = "engines", memory: str = "3g"
) -> Side:
    kind, python, root = parts(cache, name)
    if known := settings(kind):
        path = ":".join(_jar(cache, each) for each in JARS.get(kind, ()))
        sized = {"spark.driver.memory": memory, "spark.memory.offHeap.size": memory}
        given = {**given, "settings": {**known, **sized, "spark.driver.extraClassPath": path}}
    return Side(f"{module}:{kind}", given, python=python, root=root)


def _jar(cache: Path, name: str) -> str:
    """A jar of Maven's, fetched once."""
    _, artifact, version = name.split(":")
    path = cache / "jars" / f"{artifact}-{version}.jar"
    if not path.exists():
        goal = ["mvn", "-q", "dependency:copy", f"-Dartifact={name}"]
        subprocess.run([*goal, f"-DoutputDirectory={path.parent}"], check=True)
    return str(path)


@contextmanager
def together(names: Iterable[str], opening: Callable[[str], Side]) -> Iterator[dict[str, Side]]:
    """The processes of some sides; one that does not start is left out."""
    sides: dict[str, Side] = {}
    try:
        for name in names:
            try:
                sides[name] = opening(name)
            except (RuntimeError, subprocess.CalledProcessError) as error:
                print(f"{name} is left out: {error}")
        yield sides
    finally:
        for side in sides.values():
            side.end()


def side_by_side(
    cache: Path,
    names: Iterable[str],
    given: Mapping[str, Any],
    cases: Mapping[str, Any],
    *,
    module: str = "engines",
    rounds: int,
    warm: int = 2,
    only: str = "",
    others: Mapping[tuple[str, str], str] | None = None,
    apart: Collection[str] = (),
    memory: str = "3g",
) -> int:
    """Run cases, each a statement or the arguments of a run, in processes that stay for all of them.

    ``others`` holds other statements for one side; the rows of the cases ``apart`` may differ.
    """
    table = Table()
    with together(names, lambda name: opened(cache, name, given, module, memory)) as sides:
        for case in only.split(",") if only else cases:
            ways = {}
            for name, side in sides.items():
                asked = (others or {}).get((case, name), cases[case])
                ways[name] = partial(side, *([asked] if isinstance(asked, str) else asked))
            taken = turns(ways, rounds, warm)
            table.line(case, taken, apart=sides if case in apart else ())
    return table.end()


def fresh(
    opening: Callable[[], Side], folder: Path, *statements: str, then: str = ""
) -> Taken | None:
    """Run statements in a new process and measure the last one; then restore the files of the folder.

    ``then`` is run three times after it; the CPU seconds of the first and the last are figures.
    """
    with restored(folder):
        side = opening()
        try:
            for each in statements[:-1]:
                side(each)
            taken = side(statements[-1])
            if taken and then and "error" not in taken:
                runs = [side(then) or {} for _ in range(3)]
                figures = {"then": runs[0]["cpu"], "again": runs[-1]["cpu"]}
                taken |= {"rows": runs[-1]["rows"], **figures}
            return taken
        finally:
            side.end()
