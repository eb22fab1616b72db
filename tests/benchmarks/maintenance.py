"""Compaction, and conversion of equality deletes."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from frame import Table, turns
from sides import fresh, opened
from tables import deleted, described, streams

REWRITE = (
    "CALL {{system}}.rewrite_data_files(table => 's.{}', "
    "options => map('rewrite-all', 'true', 'target-file-size-bytes', '536870912'))"
)
CONVERT = "CALL {{system}}.convert_equality_deletes('s.{}')"
SUM = "SELECT count(*), sum(l_extendedprice), sum(l_orderkey * l_linenumber) FROM {}"


def compaction(
    cache: Path,
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
    for kind in only.split(","):
        statements = [REWRITE.format(each) for each in ("warm", kind)]
        copies = [
            f"COPY (FROM {each}) TO '{folder}/{each}.parquet' (CODEC zstd)"
            for each in ("warm", kind)
        ]
        ways = {}
        for name in ("icesql", *peers.split(",")):
            texts = copies if name == "files" else statements
            ways[name] = partial(fresh, partial(opened, cache, name, given), folder, *texts)
        table.line(kind, turns(ways, rounds, warm=0), apart=ways)
    return table.end()


def conversion(
    cache: Path,
    scale: float = 0.2,
    commits: int = 100,
    percent: int = 5,
    rounds: int = 3,
    only: str = "v2,v3",
) -> int:
    """Equality deletes of a stream of upserts converted, beside compaction and the table as it is.

    The figures ``then`` and ``again`` are CPU seconds of a sum over all rows behind it.
    """
    folder = streams(cache, scale, commits, percent)
    given, table = described(folder), Table()
    for kind in only.split(","):
        texts = {"converted": CONVERT, "compacted": REWRITE, "as it is": SUM}
        ways = {
            name: partial(
                fresh, partial(opened, cache, "icesql", given), folder,
                text.format("warm"), text.format(kind), then=SUM.format(kind),
            )
            for name, text in texts.items()
        }  # fmt: skip
        table.line(kind, turns(ways, rounds, warm=0))
    return table.end()
