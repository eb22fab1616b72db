"""A query that is cancelled or out of time does not wait for stores and catalogs."""

from __future__ import annotations

import _thread
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
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
from tests.catalog.rest_server import Server
from tests.sessions import fetched
from tests.waits import wait_until

# No test waits so long, unless a call waits for its server.
HANGS = 60


class Silent(Server):
    """A server that accepts requests and does not respond until it is released."""

    def __init__(self) -> None:
        super().__init__()
        self.heard, self.gate = threading.Event(), threading.Event()

    def answer(self, request: Any) -> None:
        self.heard.set()
        self.gate.wait(HANGS)
        request.send_error(503)


@pytest.fixture
def silent() -> Iterator[Silent]:
    with closing(Silent()) as made:
        yield made
        made.gate.set()


@pytest.fixture(autouse=True)
def nothing_stays() -> Iterator[None]:
    yield
    wait_until(lambda: not waiting._abandoned)


def gone_in(seconds: float, run: Callable[[], object], error: type[BaseException]) -> None:
    started = time.monotonic()
    with pytest.raises(error):
        run()
    assert time.monotonic() - started < seconds


@pytest.mark.parametrize("sql", ["SELECT * FROM a.t", "SHOW TABLES", "USE a", "DESCRIBE a.t"])
def test_a_time_limit_ends_the_wait_for_a_catalog(silent: Silent, sql: str) -> None:
    with icesql.connect(uri=silent.uri, settings={"query_timeout": 0.5}) as connection:
        gone_in(20, lambda: connection.execute(sql), QueryCancelledError)
        connection.execute("SET query_timeout = 60")
        assert fetched(connection, "SELECT 1") == [(1,)]
        silent.gate.set()


@pytest.mark.parametrize("error", [QueryCancelledError, KeyboardInterrupt])
def test_cancel_and_ctrl_c_end_the_wait_for_a_catalog(
    silent: Silent, error: type[BaseException]
) -> None:
    with icesql.connect(uri=silent.uri) as connection:
        cursor = connection.cursor()

        def stop() -> None:
            silent.heard.wait(HANGS)
            if error is KeyboardInterrupt:
                _thread.interrupt_main()
            else:
                cursor.cancel()

        thread = threading.Thread(target=stop)
        thread.start()
        gone_in(20, lambda: cursor.execute("SELECT * FROM a.t"), error)
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
        assert fetched(connection, "SELECT 1") == [(1,)]
        assert time.monotonic() - started < HANGS / 2
        gate.set()


@pytest.mark.parametrize("step", ["metadata.json", "snap", "-m0.avro"])
def test_a_time_limit_ends_the_wait_for_metadata_of_a_store(
    warehouse: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """The warehouse as a store that does not deliver one of the files."""
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
    monkeypatch.setattr(RemoteFiles, "read_whole", lambda self, uri, most: read(self, uri, 0, None))
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
    assert late.closed.wait(600)


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
    assert made.closed.wait(600)
    assert names._catalog is None
