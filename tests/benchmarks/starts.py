"""A command from start to exit."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from frame import Table, command, turns
from sides import parts
from tables import CACHE, NAMESPACE, described, suite

PEER = """
import sys
from engines import extension, files
run = extension({"lineitem": {"metadata": sys.argv[2]}}) if sys.argv[2:] else files({})
for row in run(sys.argv[1]):
    print(*row, sep=",")
"""
CASES = {
    "select": "SELECT 1",
    "show": "SHOW TABLES",
    "count": "SELECT count(*) FROM lineitem",
    "point": "SELECT * FROM lineitem WHERE l_orderkey = 12325 ORDER BY l_linenumber",
    "q6": "SELECT sum(l_extendedprice * l_discount) AS revenue FROM lineitem "
    "WHERE l_shipdate >= DATE '1994-01-01' AND l_shipdate < DATE '1995-01-01' "
    "AND l_discount BETWEEN 0.05 AND 0.07 AND l_quantity < 24",
}


def cold(
    cache: Path = CACHE,
    scale: float = 1.0,
    rounds: int = 9,
    only: str = "",
    peers: str = "extension",
) -> int:
    """``icesql -c`` beside a script of Python with DuckDB, with its extension where it needs it."""
    folder, _ = suite(cache, "tpch", scale)
    metadata = described(folder)["tables"]["lineitem"]["metadata"]
    table = Table()
    for case in only.split(",") if only else CASES:
        sql, ways = CASES[case], {}
        named = sql.replace("lineitem", f"{NAMESPACE}.lineitem")
        for name in ("icesql", *peers.split(",")):
            kind, python, root = parts(cache, name)
            words = ["-m", "icesql", "--warehouse", folder, "-c", named]
            if kind == "extension":
                words = ["-c", PEER, sql, *[metadata] * (named != sql)]
            ways[name] = partial(command, [python, *words], root)
        table.line(case, turns(ways, rounds))
    return table.end()
