"""SELECTs, warm: TPC-H, TPC-DS, what users ask, and tables with deletes."""

from __future__ import annotations

from pathlib import Path

from sides import side_by_side
from tables import KINDS, deleted, described, raw, suite, user_statements, warehouse


def tpch(
    cache: Path, scale: float = 1.0, rounds: int = 7, only: str = "", peers: str = "files,extension"
) -> int:
    """TPC-H, 22 queries, warm, beside DuckDB over the bare files and its extension."""
    return _suite(cache, "tpch", scale, rounds, only, peers)


def tpcds(
    cache: Path, scale: float = 1.0, rounds: int = 3, only: str = "", peers: str = "files"
) -> int:
    """TPC-DS, 99 queries, warm; with ``--peers spark`` icesql on Spark gives the same rows."""
    return _suite(cache, "tpcds", scale, rounds, only, peers)


def _suite(cache: Path, name: str, scale: float, rounds: int, only: str, peers: str) -> int:
    folder, queries = suite(cache, name, scale)
    names = ("icesql", *peers.split(","))
    return side_by_side(cache, names, described(folder), queries, rounds=rounds, only=only)


def spark(
    cache: Path,
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


# ------------------------------------------------------------------ what users ask

USER_CASES = {
    "ev_limit10": "SELECT * FROM events LIMIT 10",
    "ev_topn": "SELECT ts, id FROM events ORDER BY ts DESC, id DESC LIMIT 10",
    "ev_minmax": "SELECT min(ts), max(ts) FROM events",
    "ev_count_part": "SELECT count(*) FROM events WHERE cat = 'cat03'",
    "ev_count_days": "SELECT count(*) FROM events WHERE ts >= TIMESTAMP '2023-11-20' "
    "AND ts < TIMESTAMP '2023-11-30'",
    "ev_count_range": "SELECT count(*) FROM events WHERE value BETWEEN 10 AND 20",
    "ev_group": "SELECT cat, count(*) FROM events GROUP BY cat ORDER BY cat",
    "ev_joinday": "SELECT day, sum(value) FROM events JOIN days ON CAST(ts AS DATE) = day "
    "WHERE marked GROUP BY day ORDER BY day",
    "ev_insub": "SELECT sum(value) FROM events WHERE cat IN (SELECT cat FROM cats WHERE grp = 3)",
    "ev_maxsub": "SELECT count(*), sum(value) FROM events WHERE ts = (SELECT max(ts) FROM events)",
    "ev_full": "SELECT sum(value) FROM events",
    "ev_dfilter": "SELECT count(*), sum(value) FROM events WHERE value > 99.5",
    "ev_point": "SELECT * FROM events WHERE id = 1234567",
    "ev_join": "SELECT grp, sum(value) FROM events JOIN cats ON events.cat = cats.cat "
    "WHERE grp = 3 GROUP BY grp",
    "ev_distinct": "SELECT DISTINCT cat FROM events ORDER BY cat",
    "wide_2": "SELECT sum(c003), sum(c444) FROM wide",
    "wide_limit": "SELECT * FROM wide LIMIT 10",
    "wide_filter": "SELECT c001, c499 FROM wide WHERE c250 = 77",
    "month_q6": "SELECT sum(l_extendedprice * l_discount) AS revenue FROM months "
    "WHERE l_shipdate >= DATE '1994-01-01' AND l_shipdate < DATE '1995-01-01' "
    "AND l_discount BETWEEN 0.05 AND 0.07 AND l_quantity < 24",
    "month_point": "SELECT * FROM months WHERE l_orderkey = 12325",
    "nest_struct": "SELECT rec.kind, sum(rec.item.price) FROM nested WHERE rec.item.name = 's7' "
    "GROUP BY ALL ORDER BY ALL",
    "nest_unnest": "SELECT u.tag, count(*) FROM nested, UNNEST(tags) AS u(tag) WHERE id < 200000 "
    "GROUP BY u.tag ORDER BY u.tag",
    "nest_list": "SELECT count(*) FROM nested WHERE list_contains(tags, 17)",
    "str_like": "SELECT count(*) FROM strings WHERE text LIKE '%tok bora%'",
    "str_group": "SELECT key, count(*), max(size) FROM strings GROUP BY key ORDER BY key",
    "evo_plain": "SELECT key, sum(amount) FROM plain GROUP BY key ORDER BY key",
    # The bare files do not know these columns, and fail.
    "evo_renamed": "SELECT key, sum(total) FROM evolved GROUP BY key ORDER BY key",
    "evo_added": "SELECT extra, count(*) FROM evolved GROUP BY extra ORDER BY extra",
}


def users(cache: Path, rounds: int = 7, only: str = "", peers: str = "files,extension") -> int:
    """28 cases of users: 800 small files, months, 500 columns, nested, strings, evolved."""
    lineitem = raw(cache, "tpch", 1) / "lineitem.parquet"
    given = described(warehouse(cache / "users", user_statements(lineitem)))
    names, any_rows = ("icesql", *peers.split(",")), ("ev_limit10", "wide_limit")
    return side_by_side(cache, names, given, USER_CASES, rounds=rounds, only=only, apart=any_rows)


# ------------------------------------------------------------------ deletes

_BY_POSITION = "f.filename = d.file_path AND f.file_row_number = d.pos"
_BY_KEY = "f.l_orderkey IS NOT DISTINCT FROM d.l_orderkey"


def deletes(
    cache: Path,
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
