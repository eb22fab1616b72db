"""A query that is cancelled or out of time does not wait for stores and catalogs."""

from __future__ import annotations

import _thread
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

import icesql
from icesql import context as waiting
from icesql.catalog.search_path import SearchPath
from icesql.config import Settings
from icesql.context import BackgroundCall, QueryContext
from icesql.errors import CatalogError, OperationalError, QueryCancelledError
from icesql.storage.remote import RemoteFiles

# Nothing here waits so long; a call that waited for its server would.
HANGS = 60


class Silent:
    """A server that takes requests and answers none until it is let go."""

    def __init__(self) -> None:
        self.asked, self.gate = threading.Event(), threading.Event()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.asked.set()
                outer.gate.wait(HANGS)
                self.send_error(503)

            do_HEAD = do_POST = do_GET

            def log_message(self, *_: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.uri = f"http://127.0.0.1:{self.server.server_address[1]}"


@pytest.fixture
def silent() -> Iterator[Silent]:
    made = Silent()
    yield made
    made.gate.set()
    made.server.shutdown()
    made.server.server_close()


@pytest.fixture(autouse=True)
def nothing_stays() -> Iterator[None]:
    yield
    end = time.monotonic() + 60
    while waiting._abandoned and time.monotonic() < end:
        time.sleep(0.01)
    assert not waiting._abandoned


def gone_in(seconds: float, run: Callable[[], object], error: type[BaseException]) -> None:
    started = time.monotonic()
    with pytest.raises(error):
        run()
    assert time.monotonic() - started < seconds


@pytest.mark.parametrize("sql", ["SELECT * FROM a.t", "SHOW TABLES", "USE a", "DESCRIBE a.t"])
def test_a_time_limit_ends_the_wait_for_a_catalog(silent: Silent, sql: str) -> None:
    with icesql.connect(
        "lake", uri=silent.uri, properties={"type": "rest"}, settings={"query_timeout": 0.5}
    ) as connection:
        gone_in(20, lambda: connection.execute(sql), QueryCancelledError)
        connection.execute("SET query_timeout = 60")
        assert connection.execute("SELECT 1").fetchall() == [(1,)]
        silent.gate.set()


def test_cancel_ends_the_wait_for_a_catalog(silent: Silent) -> None:
    with icesql.connect("lake", uri=silent.uri, properties={"type": "rest"}) as connection:
        cursor = connection.cursor()

        def cancel() -> None:
            silent.asked.wait(HANGS)
            cursor.cancel()

        thread = threading.Thread(target=cancel)
        thread.start()
        gone_in(20, lambda: cursor.execute("SELECT * FROM a.t"), QueryCancelledError)
        thread.join()
        silent.gate.set()


def test_ctrl_c_ends_the_wait_for_a_catalog(silent: Silent) -> None:
    with icesql.connect("lake", uri=silent.uri, properties={"type": "rest"}) as connection:

        def interrupt() -> None:
            silent.asked.wait(HANGS)
            _thread.interrupt_main()

        thread = threading.Thread(target=interrupt)
        thread.start()
        gone_in(20, lambda: connection.execute("SELECT * FROM a.t"), KeyboardInterrupt)
        thread.join()
        silent.gate.set()


def test_a_parser_that_nobody_waits_for_stops_no_statement(monkeypatch: pytest.MonkeyPatch) -> None:
    from icesql.engine.duckdb import engine

    gate, real = threading.Event(), engine.serialized

    def slow(cursor: Any, text: str) -> str:
        if len(text) > 20_000:
            gate.wait(HANGS)
        return real(cursor, text)

    monkeypatch.setattr(engine, "serialized", slow)
    with icesql.connect(settings={"query_timeout": 2}) as connection:
        sql = "SELECT " + "1+" * 10_000 + "1"
        gone_in(30, lambda: connection.execute(sql), QueryCancelledError)
        connection.execute("SET query_timeout = 60")
        started = time.monotonic()
        assert connection.execute("SELECT 1").fetchall() == [(1,)]
        assert time.monotonic() - started < HANGS / 2
        gate.set()


@pytest.mark.parametrize("step", ["metadata.json", "snap", "-m0.avro"])
def test_a_time_limit_ends_the_wait_for_metadata_of_a_store(
    warehouse: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """The warehouse as a store, one of whose files does not come."""
    gate, asked = threading.Event(), threading.Event()

    def read(self: RemoteFiles, uri: str, offset: int, length: int | None, **_: Any) -> bytes:
        if step in uri:
            asked.set()
            gate.wait(HANGS)
        data = Path(uri.removeprefix("s3://there")).read_bytes()
        return data[offset:] if length is None else data[offset : offset + length]

    folder = next(warehouse.rglob("orders")) / "metadata"
    newest = max(folder.glob("*.metadata.json"))
    text = newest.read_text().replace("file://", "s3://there")
    copy = newest.with_name("copy.metadata.json")
    monkeypatch.setattr(RemoteFiles, "read", read)
    from icesql.storage.open import Storage

    real = Storage.location
    monkeypatch.setattr(
        Storage,
        "location",
        lambda self, path: path if path.startswith("s3://") else "s3://there" + real(self, path),
    )
    copy.write_text(text)
    try:
        with icesql.connect(settings={"query_timeout": 0.7}) as connection:
            sql = f"SELECT * FROM iceberg_scan('s3://there{copy}')"
            gone_in(20, lambda: connection.execute(sql), QueryCancelledError)
            assert asked.is_set()
    finally:
        gate.set()
        copy.unlink()


# ---------------------------------------------------------------------------- background calls


class Closing:
    def __init__(self) -> None:
        self.closed = threading.Event()

    def close(self) -> None:
        self.closed.set()


def test_what_comes_late_is_closed() -> None:
    gate, late = threading.Event(), Closing()

    def slow() -> Closing:
        gate.wait(HANGS)
        return late

    query = QueryContext(deadline=time.monotonic() + 0.1)
    with pytest.raises(QueryCancelledError):
        query.wait_for(slow)
    assert query.cancel.is_set()
    assert not late.closed.is_set()
    gate.set()
    assert late.closed.wait(60)


def test_a_call_gives_or_raises_what_it_does() -> None:
    query = QueryContext()
    assert query.wait_for(lambda: 7) == 7
    assert query.wait_for(lambda: None) is None
    with pytest.raises(CatalogError, match="away"):
        query.wait_for(lambda: (_ for _ in ()).throw(CatalogError("away")))
    query.cancel.set()
    with pytest.raises(QueryCancelledError):
        query.wait_for(lambda: pytest.fail("it was called"))


def test_so_many_calls_and_no_more_hang(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "_MOST_ABANDONED", 3)
    gate = threading.Event()
    for _ in range(3):
        BackgroundCall(lambda: gate.wait(HANGS)).abandon()
    with pytest.raises(OperationalError, match="3 abandoned requests"):
        QueryContext().wait_for(lambda: 1)
    gate.set()


def test_a_catalog_that_opens_late_is_closed() -> None:
    from icesql.access import Access
    from icesql.storage.cache import BoundedCache

    gate, made = threading.Event(), Closing()

    def slow(_: Any) -> Any:
        gate.wait(HANGS)
        return made

    names = SearchPath(slow, BoundedCache(), Access())
    query = QueryContext(settings=Settings(), deadline=time.monotonic() + 0.1)
    with pytest.raises(QueryCancelledError):
        query.wait_for(lambda: names.catalog)
    names.close()
    gate.set()
    assert made.closed.wait(60)
    assert names._catalog is None
