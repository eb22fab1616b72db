"""Tables in an object store, with the requests that a query sends."""

from __future__ import annotations

import sqlite3
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

from engines import Run, with_extensions
from frame import Table, Taken, attempted, turns
from sides import opened
from starts import CASES
from tables import CACHE, EVENTS, once, raw

QUERIES = {
    "q6": CASES["q6"],
    "point": CASES["point"],
    "limit10": "SELECT * FROM lineitem LIMIT 10",
    "sum800": "SELECT sum(value) FROM events",
}


def icesql(catalog: str, properties: dict[str, str], cache: str, **_: Any) -> Run:
    import icesql

    settings = {"cache_directory": cache}
    connection = icesql.connect(uri=catalog, properties=properties, settings=settings)
    connection.execute("USE s")
    # As its peer has done by now: the engine is loaded, no table has been looked at.
    connection.execute("SELECT 1").fetchall()
    return lambda sql: connection.execute(sql).fetchall()


def extension(properties: dict[str, str], metadata: dict[str, str], **_: Any) -> Run:
    connection = with_extensions("avro", "httpfs", "iceberg")
    given = {name.partition(".")[2]: value for name, value in properties.items()}
    connection.execute(
        f"CREATE SECRET (TYPE s3, KEY_ID '{given['access-key-id']}', REGION 'us-east-1', "
        f"SECRET '{given['secret-access-key']}', USE_SSL false, URL_STYLE 'path', "
        f"ENDPOINT '{given['endpoint'].removeprefix('http://')}')"
    )

    def run(sql: str) -> Any:
        for name, path in metadata.items():
            sql = sql.replace(name, f"iceberg_scan('{path}')")
        return connection.execute(sql).fetchall()

    return run


def stores(
    cache: Path = CACHE,
    latency: float = 0.03,
    bandwidth: float = 80e6,
    scale: float = 1.0,
    rounds: int = 3,
    only: str = "",
    peers: str = "extension",
) -> int:
    """Queries of tables in S3: the first and the second run of a process, with their requests."""
    from tests.stores.server import Store

    lineitem = raw(cache, "tpch", scale) / "lineitem.parquet"
    folder = once(cache / f"stores-{scale:g}", partial(_made, lineitem=lineitem))
    store, table = Store(folder, latency=latency, bandwidth=bandwidth), Table()
    with store.running():
        given = {"catalog": _catalog(folder), "metadata": _metadata(folder)}
        given["properties"] = store.properties()
        for case in only.split(",") if only else QUERIES:
            ways = {
                name: partial(_visit, store, cache, name, given, QUERIES[case])
                for name in ("icesql", *peers.split(","))
            }
            taken = turns(ways, rounds, warm=0)
            for run in ("first", "second"):
                runs = {
                    name: [each.get(run, each) for each in found] for name, found in taken.items()
                }
                table.line(f"{case} {run}", runs, apart=ways if case == "limit10" else ())
    return table.end()


def _visit(store: Any, cache: Path, name: str, given: dict[str, Any], sql: str) -> dict[str, Taken]:
    """Two runs in a process of its own, which begins without a cache."""
    runs = {}
    with tempfile.TemporaryDirectory() as folder:
        side = opened(cache, name, {**given, "cache": folder}, "stores")
        for run in ("first", "second"):
            store.clear()
            runs[run] = attempted(partial(side, sql)) | {
                "requests": len(store.requests),
                "of data": len(store.data_requests),
                "rounds": store.rounds,
                "MB sent": sum(each.sent for each in store.requests) / 1e6,
            }
        side.end()
    return runs


def _made(folder: Path, lineitem: Path) -> None:
    """The bucket ``lake`` with lineitem and 800 small files, and a catalog in SQLite."""
    from pyiceberg.catalog.sql import SqlCatalog

    import icesql
    from tests.stores.server import Store

    (folder / "lake").mkdir()
    places = {"uri": _catalog(folder), "warehouse": "s3://lake"}
    SqlCatalog("c", **places)
    with Store(folder).running() as store:
        properties = store.properties()
        with icesql.connect(**places, properties=properties, files=True) as connection:
            connection.execute("CREATE SCHEMA s")
            connection.execute("USE s")
            connection.execute(f"CREATE TABLE lineitem AS SELECT * FROM '{lineitem}'")
            connection.execute(EVENTS)


def _catalog(folder: Path) -> str:
    return f"sqlite:///{folder}/catalog.db"


def _metadata(folder: Path) -> dict[str, str]:
    with sqlite3.connect(folder / "catalog.db") as catalog:
        sql = "SELECT table_name, metadata_location FROM iceberg_tables"
        return dict(catalog.execute(sql).fetchall())
