"""Upserts that others publish: MERGE beside PyIceberg's upsert."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from frame import Table, turns
from sides import fresh, opened
from tables import once
from worker import peak

CASES = ("keys", "wide")
MERGE = (
    "MERGE INTO s.t AS t USING source AS u ON t.k = u.k "
    "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
)


def rows(case: str, scale: float, new: bool) -> Any:
    """The rows of the table, or those that are upserted into it."""
    import numpy as np
    import pyarrow as pa

    if case == "keys":
        count = int(1_000_000 * scale)
        keys = np.arange(count, dtype="int64") + (count // 2 if new else 0)
        names = pa.array([f"row {key % 1000}" for key in keys])
        return pa.table({"k": keys, "a": keys % 1000 + new, "b": keys / 3 + new, "c": names})
    keys = np.arange(int(20_000 * scale), dtype="int64")
    found = {"k": keys} | {f"c{n}": keys * n % 977 / 2 for n in range(199)}
    if new:
        found["c198"] = np.where(keys % 2 == 0, found["c198"] + 1, found["c198"])
    return pa.table(found)


def _run(folder: str, case: str, scale: float, opening: Callable[[Any, str], Any]) -> Any:
    import pyarrow.compute as pc
    from pyiceberg.catalog.sql import SqlCatalog

    uri = f"sqlite:///{folder}/c.db"
    catalog = SqlCatalog("c", uri=uri, warehouse=f"file://{folder}")
    catalog.create_namespace("s")
    before, source = rows(case, scale, False), rows(case, scale, True)
    table = catalog.create_table("s.t", before.schema)
    table.append(before)
    upsert = opening(table, uri)

    def run(_: None) -> dict[str, Any]:
        started, cpu = time.perf_counter(), time.process_time()
        upsert(source)
        taken = {"wall": time.perf_counter() - started, "cpu": time.process_time() - cpu}
        taken["peak"] = peak()
        found = catalog.load_table("s.t").scan().to_arrow()
        sums = [str(pc.sum(found[name]).as_py()) for name in found.column_names if name != "c"]
        return taken | {"rows": [[str(len(found)), *sums]]}

    return run


def icesql(**given: Any) -> Any:
    import icesql

    def opening(table: Any, uri: str) -> Any:
        connection = icesql.connect(uri=uri, warehouse=f"file://{given['folder']}")
        connection.execute("SELECT count(*) FROM s.t").fetchall()
        return lambda source: connection.execute(MERGE, tables={"source": source}).fetchall()

    return _run(**given, opening=opening)


def pyiceberg(**given: Any) -> Any:
    opening = lambda table, uri: partial(table.upsert, join_cols=["k"])  # noqa: E731
    return _run(**given, opening=opening)


def upserts(
    cache: Path,
    scale: float = 1.0,
    rounds: int = 1,
    only: str = ",".join(CASES),
    peers: str = "pyiceberg",
) -> int:
    """A million keys into a million rows, half of them new; 20,000 rows of 200 columns."""
    folder, table = once(cache / "upserts", lambda folder: None), Table()
    for case in only.split(","):
        given = {"folder": str(folder), "case": case, "scale": scale}
        ways = {
            name: partial(fresh, partial(opened, cache, name, given, "upserts"), folder, None)
            for name in ("icesql", *peers.split(","))
        }
        table.line(case, turns(ways, rounds, warm=0))
    return table.end()
