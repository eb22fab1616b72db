"""SELECTs, warm: TPC-H, TPC-DS, what users ask, and tables with deletes."""

from __future__ import annotations

from pathlib import Path

from sides import side_by_side
from tables import CACHE, KINDS, deleted, described, raw, suite, user_statements, warehouse

from tests.tables import read_table


def tpch(
    cache: Path = CACHE,
    scale: float = 1.0,
    rounds: int = 7,
    only: str = "",
    peers: str = "files,extension",
) -> int:
    """TPC-H, 22 queries, warm, beside DuckDB over the bare files and its extension."""
    return _suite(cache, "tpch", scale, rounds, only, peers)


def tpcds(
    cache: Path = CACHE, scale: float = 1.0, rounds: int = 3, only: str = "", peers: str = "files"
) -> int:
    """TPC-DS, 99 queries, warm; with ``--peers spark`` icesql on Spark gives the same rows."""
    return _suite(cache, "tpcds", scale, rounds, only, peers)


def _suite(cache: Path, name: str, scale: float, rounds: int, only: str, peers: str) -> int:
    folder, queries = suite(cache, name, scale)
    names = ("icesql", *peers.split(","))
    return side_by_side(cache, names, described(folder), queries, rounds=rounds, only=only)


def spark(
    cache: Path = CACHE,
    scale: float = 10.0,
    rounds: int = 1,
    warm: int = 1,
    only: str = "",
    peers: str = "reader,iceberg,comet",
    memory: str = "3g",
) -> int:
    """TPC-H on Spark, local[2]: icesql, Spark's own reader of Parquet, Iceberg's jar and Comet."""
    folder, queries = suite(cache, "tpch", scale)
    names = ("spark", *peers.split(","))
    return side_by_side(
        cache, names, described(folder), queries, rounds=rounds, warm=warm, only=only, memory=memory
    )


def stages(
    cache: Path = CACHE,
    scale: float = 1.0,
    rounds: int = 1,
    warm: int = 1,
    only: str = "",
    peers: str = "joins",
    memory: str = "3g",
    limit: str = "low",
) -> int:
    """TPC-H as stages of DuckDB with Spark's exchanges, beside icesql where Spark joins large sides.

    ``--limit low``: sides above 8 MB for each unit of scale, at most 64 MB, are exchanged and left
    to Spark's joins; ``high``: none are.
    """
    folder, queries = suite(cache, "tpch", scale)
    given = {"limit": limit, "parts": max(4, round(1.6 * scale)), "broadcast": _broadcast(scale)}
    return side_by_side(
        cache, ("stages", *peers.split(",")), described(folder) | given, queries,
        rounds=rounds, warm=warm, only=only, memory=memory,
        others={(query, "stages"): query for query in queries},
    )  # fmt: skip


def _broadcast(scale: float) -> int:
    return int(min(8 * max(scale, 1), 64) * (1 << 20))


# ------------------------------------------------------------------ what users ask

USER_CASES = dict(read_table(__file__, "users.tsv"))


def users(
    cache: Path = CACHE, rounds: int = 7, only: str = "", peers: str = "files,extension"
) -> int:
    """28 cases of users: 800 small files, months, 500 columns, nested, strings, evolved."""
    lineitem = raw(cache, "tpch", 1) / "lineitem.parquet"
    given = described(warehouse(cache / "users", user_statements(lineitem)))
    names, any_rows = ("icesql", *peers.split(",")), ("ev_limit10", "wide_limit")
    return side_by_side(cache, names, given, USER_CASES, rounds=rounds, only=only, apart=any_rows)


# ------------------------------------------------------------------ deletes

_BY_POSITION = "f.filename = d.file_path AND f.file_row_number = d.pos"
_BY_KEY = "f.l_orderkey IS NOT DISTINCT FROM d.l_orderkey"


def deletes(
    cache: Path = CACHE,
    scale: float = 1.0,
    files: int = 4,
    rounds: int = 7,
    only: str = "",
    peers: str = "files",
) -> int:
    """A sum over lineitem with deletes, beside DuckDB's anti join over the same files."""
    given = described(deleted(cache, scale, files))
    tables = given["tables"]

    def bare(kind: str, condition: str) -> str:
        data, gone = tables[kind]["files"], tables[kind]["deletes"]
        return (
            f"SELECT sum(l_extendedprice) FROM read_parquet({data}, filename = true, "
            f"file_row_number = true) f ANTI JOIN read_parquet({gone}) d ON {condition}"
        )

    cases = {kind: f"SELECT sum(l_extendedprice) FROM {kind}" for kind in KINDS}
    # DuckDB reads no vectors: the same rows are deleted by the position deletes of another table.
    by_position = bare("positions", _BY_POSITION)
    others = {("positions", "files"): by_position, ("vectors", "files"): by_position}
    others |= {(kind, "files"): bare(kind, _BY_KEY) for kind in ("keys", "keys_v3", "many_keys")}
    del cases["mixed"]
    names = ("icesql", *peers.split(","))
    return side_by_side(cache, names, given, cases, rounds=rounds, only=only, others=others)
