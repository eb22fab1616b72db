"""Compaction, and conversion of equality deletes."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from frame import Table, turns
from sides import fresh, opened
from tables import CACHE, deleted, described

REWRITE = (
    "CALL {{system}}.rewrite_data_files(table => 's.{}', "
    "options => map('rewrite-all', 'true', 'target-file-size-bytes', '536870912'))"
)
CONVERT = "CALL {{system}}.convert_equality_deletes('s.{}')"
SUM = "SELECT count(*), sum(l_extendedprice), sum(l_orderkey * l_linenumber) FROM {}"


def compaction(
    cache: Path = CACHE,
    scale: float = 1.0,
    files: int = 2000,
    rounds: int = 3,
    only: str = "plain,positions,mixed,vectors",
    peers: str = "files",
) -> int:
    """Small files of lineitem made into one, beside DuckDB's COPY of them, which merges no deletes.

    ``--peers files,spark,iceberg`` has icesql's tasks and Iceberg's procedure on Spark, too. Each
    process has compacted a small table before.
    """
    folder = deleted(cache, scale, files)
    given, table = described(folder), Table()
    copy = f"COPY (FROM {{0}}) TO '{folder}/{{0}}.parquet' (CODEC zstd)"
    for kind in only.split(","):
        ways = {}
        for name in ("icesql", *peers.split(",")):
            text, opening = (
                copy if name == "files" else REWRITE,
                partial(opened, cache, name, given),
            )
            ways[name] = partial(fresh, opening, folder, text.format("warm"), text.format(kind))
        table.line(kind, turns(ways, rounds, warm=0), apart=ways)
    return table.end()


def conversion(
    cache: Path = CACHE,
    scale: float = 0.2,
    files: int = 200,
    rounds: int = 3,
    only: str = "keys,keys_v3",
) -> int:
    """Equality deletes converted, beside compaction and the table as it is.

    The figures ``then`` and ``again`` are CPU seconds of a sum over all rows behind it.
    """
    folder = deleted(cache, scale, files)
    opening, table = partial(opened, cache, "icesql", described(folder)), Table()
    for kind in only.split(","):
        ways = {}
        for name, text in {"converted": CONVERT, "compacted": REWRITE, "as it is": SUM}.items():
            texts = text.format("warm"), text.format(kind)
            ways[name] = partial(fresh, opening, folder, *texts, then=SUM.format(kind))
        table.line(kind, turns(ways, rounds, warm=0))
    return table.end()
