"""One engine in one process: a query twice over tables in a store; prints what it took as JSON.

python stores_worker.py ENGINE FOLDER PORT SQL
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.request import urlopen

sys.path.insert(0, str(Path(__file__).parent))
from query_worker import digest  # type: ignore[import-not-found]

KEY, SECRET = "AKIATESTTESTTESTTEST", "wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLEKEY"
Run = Callable[[], list[Any]]


def locations(folder: Path) -> dict[str, str]:
    return {name: (folder / f"{name}.location").read_text() for name in ("lineitem", "events")}


def icesql_runner(folder: Path, port: int, sql: str) -> Run:
    import icesql

    connection = icesql.connect(
        uri=f"sqlite:///{folder}/catalog.db",
        properties={
            "s3.endpoint": f"http://127.0.0.1:{port}",
            "s3.access-key-id": KEY,
            "s3.secret-access-key": SECRET,
            "s3.region": "us-east-1",
        },
    )
    # As its peers have done by now: the engine is loaded, no table has been looked at.
    connection.execute("SELECT 1").fetchall()
    names = {name: f"lake.{name}" for name in locations(folder)}
    return lambda: connection.execute(sql.format(**names)).fetchall()


def duckdb_iceberg_runner(folder: Path, port: int, sql: str) -> Run:
    import duckdb

    connection = duckdb.connect(config={"allow_unsigned_extensions": "true"})
    site = Path(duckdb.__file__).parents[1]
    for extension in ("avro", "httpfs", "iceberg"):
        (path,) = site.glob(f"duckdb_extension_{extension}/**/*.duckdb_extension")
        connection.execute(f"LOAD '{path}'")
    connection.execute(
        f"CREATE SECRET (TYPE s3, KEY_ID '{KEY}', SECRET '{SECRET}', REGION 'us-east-1', "
        f"ENDPOINT '127.0.0.1:{port}', USE_SSL false, URL_STYLE 'path')"
    )
    names = {name: f"iceberg_scan('{each}')" for name, each in locations(folder).items()}
    return lambda: connection.execute(sql.format(**names)).fetchall()


def fsspec_runner(folder: Path, port: int, sql: str) -> Run:
    """DuckDB's own reader over the files themselves; it is told their names and lengths."""
    import threading

    import duckdb
    import obstore
    from fsspec import AbstractFileSystem
    from obstore.store import S3Store

    store = S3Store(
        "lake",
        endpoint=f"http://127.0.0.1:{port}",
        access_key_id=KEY,
        secret_access_key=SECRET,
        region="us-east-1",
        virtual_hosted_style_request=False,
        client_options={"allow_http": True},
    )
    sizes = {
        f"plain://{path.relative_to(folder / 'lake')}": path.stat().st_size
        for path in (folder / "lake").rglob("*.parquet")
    }

    class File:
        def __init__(self, path: str) -> None:
            self.key, self.size, self.here = (
                path.removeprefix("plain://"),
                sizes[path],
                threading.local(),
            )

        def seek(self, offset: int, whence: int = 0) -> int:
            self.here.at = offset + (0, self.tell(), self.size)[whence]
            return self.here.at

        def tell(self) -> int:
            return getattr(self.here, "at", 0)

        def read(self, size: int = -1) -> bytes:
            at = self.tell()
            end = self.size if size < 0 else min(at + size, self.size)
            self.here.at = end
            return bytes(obstore.get_range(store, self.key, start=at, end=end)) if end > at else b""

        def close(self) -> None:
            pass

    class Files(AbstractFileSystem):
        protocol = "plain"

        def open(self, path: str, *_: Any, **__: Any) -> File:
            return File(path)

        def info(self, path: str, **_: Any) -> dict[str, Any]:
            return {"name": path, "size": sizes[path], "type": "file"}

        def modified(self, path: str) -> datetime:
            return datetime(2026, 1, 1, tzinfo=UTC)

        def exists(self, path: str, **_: Any) -> bool:
            return path in sizes

        def glob(self, path: str, **_: Any) -> list[str]:
            return [path]

    connection = duckdb.connect()
    connection.register_filesystem(Files())
    names = {
        name: "read_parquet(["
        + ", ".join(f"'{path}'" for path in sorted(sizes) if path.startswith(f"plain://{name}/"))
        + "])"
        for name in ("lineitem", "events")
    }
    return lambda: connection.execute(sql.format(**names)).fetchall()


RUNNERS = {
    "icesql": icesql_runner,
    "duckdb-iceberg": duckdb_iceberg_runner,
    "fsspec": fsspec_runner,
}


def main() -> None:
    engine, folder, port, sql = sys.argv[1:]
    run = RUNNERS[engine](Path(folder), int(port), sql)
    results = []
    for _ in range(2):
        urlopen(f"http://127.0.0.1:{port}/!counts").read()
        started, began = time.perf_counter(), time.process_time()
        rows = run()
        seconds, cpu = time.perf_counter() - started, time.process_time() - began
        counts = json.loads(urlopen(f"http://127.0.0.1:{port}/!counts").read())
        name = "" if "LIMIT" in sql else digest(rows)
        results.append(
            {"seconds": seconds, "cpu": cpu, "digest": name, "rows": len(rows), **counts}
        )
    print(json.dumps(results))


if __name__ == "__main__":
    main()
