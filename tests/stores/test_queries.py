"""Queries of tables in an object store: as few requests as there can be, and none twice."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import duckdb
import pytest

import icesql
from icesql.catalog import current_metadata
from icesql.config import Settings
from icesql.context import QueryContext
from icesql.engine.duckdb import instance
from icesql.engine.duckdb.relations import footer
from icesql.engine.duckdb.store_files import QueryFiles, StoreFiles
from icesql.errors import CorruptFileError, QueryCancelledError, StorageError
from icesql.storage import remote
from icesql.storage.cache import Blocks
from icesql.storage.remote import RemoteFiles
from icesql.storage.stores import files
from icesql.storage.stores.blocks import Shelf
from icesql.storage.stores.files import StoredFile, StoredStream
from icesql.storage.stores.pool import Request as PoolRequest
from icesql.storage.stores.pool import RequestPool
from tests import warm
from tests.sessions import fetched
from tests.stores.conftest import Connect
from tests.stores.lake import GROUP_ROWS, LARGE_FILES, LARGE_ROWS, SMALL_FILES
from tests.stores.server import Answer, Request, Store, at_random, error
from tests.waits import wait_until
from tests.warm import fresh_python

SMALL = {"whole_file_size": "8MB"}
LARGE = {"whole_file_size": "1kB"}
# Too small for all files at once, and too small to keep parts.
TINY_CACHE = {"cache_size": "60kB"}
# Seconds that a store hangs.
_STALL = 60


def expected(bucket: Path, sql: str) -> list[Any]:
    """DuckDB's result over the local files."""
    for name in ("small", "large"):
        sql = sql.replace(f"lake.{name}", f"'{bucket}/lake/{name}/data/*.parquet'")
    return duckdb.sql(sql).fetchall()


def answers(connection: icesql.Connection, bucket: Path, sql: str) -> icesql.Cursor:
    """The cursor of a query, whose rows must be DuckDB's."""
    cursor = connection.execute(sql)
    assert cursor.fetchall() == expected(bucket, sql)
    return cursor


def noted(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str) -> list[tuple[Any, ...]]:
    """The arguments of each call of a function from now on."""
    real, calls = getattr(owner, name), list[tuple[Any, ...]]()

    def call(*given: Any) -> Any:
        calls.append(given)
        return real(*given)

    monkeypatch.setattr(owner, name, call)
    return calls


def test_small_files_take_one_request_each_and_the_second_query_none(
    connect: Connect, store: Store, bucket: Path
) -> None:
    sql = "SELECT count(*), sum(id), max(name) FROM lake.small WHERE price >= 0"
    first = connect()
    answer = expected(bucket, sql)
    assert fetched(first, sql) == answer
    # And metadata, manifest list, manifest.
    assert [len(store.data_requests), len(store.requests)] == [SMALL_FILES, SMALL_FILES + 3]
    assert all(each.method == "GET" and each.range is None for each in store.requests)
    store.clear()
    assert fetched(first, sql) == answer
    assert fetched(connect(), sql) == answer
    assert store.requests == []


def test_a_fresh_process_plans_and_reads_from_the_disk(
    connect: Connect, store: Store, bucket: Path, tmp_path: Path
) -> None:
    sql = "SELECT sum(id) FROM lake.small"
    fetched(connect(), sql)
    store.clear()
    code = (
        "import icesql, sys\n"
        f"c = icesql.connect(uri='sqlite:///{bucket}/catalog.db', "
        f"properties={store.properties()!r}, settings={{'cache_directory': {str(tmp_path / 'cache')!r}}})\n"
        f"print(c.execute({sql!r}).fetchall(), 'pyarrow' in sys.modules)\n"
        "c.close()"
    )
    assert fresh_python(code).strip() == f"{expected(bucket, sql)} False"
    assert store.requests == []


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT sum(id), sum(price) FROM lake.large WHERE day >= DATE '2026-06-01'",
        "SELECT * FROM lake.large WHERE id = 12345",
        # A bloom filter that was not fetched must not lose the row.
        "SELECT * FROM lake.large WHERE name = 'name-0395950'",
        "SELECT count(*) FROM lake.large a JOIN lake.small b ON a.id = b.id * 70",
        "SELECT id, name FROM lake.large ORDER BY name LIMIT 3",
    ],
)
@pytest.mark.parametrize("settings", [SMALL, LARGE, TINY_CACHE, {**LARGE, "local_reader": "arrow"}])
def test_answers_are_those_of_the_files(
    connect: Connect, bucket: Path, sql: str, settings: dict[str, str]
) -> None:
    connection = connect(**settings)
    answer = expected(bucket, sql)
    assert answer
    for _ in range(2):
        assert fetched(connection, sql) == answer
    connection.execute("SET cache = off")
    assert fetched(connection, sql) == answer


@pytest.mark.parametrize("settings", [SMALL, LARGE, TINY_CACHE])
@pytest.mark.parametrize(
    "sql", ["SELECT * FROM lake.large WHERE id = ?", "SELECT sum(id) FROM lake.small WHERE id > ?"]
)
def test_a_query_that_comes_again_and_again_is_read_in_the_same_way(
    connect: Connect, store: Store, bucket: Path, sql: str, settings: dict[str, str]
) -> None:
    connection = connect(**settings)
    for values in ([700], None):
        text = sql if values else sql.replace("?", "700")
        for number in range(6):
            cursor = connection.execute(text, values)
            assert cursor.fetchall() == expected(bucket, sql.replace("?", "700")), number
            assert (cursor.notes, set(cursor.scan_groups)) == ([], {"duckdb"}), number


def test_copies_that_are_gone_are_fetched_again(
    connect: Connect, store: Store, bucket: Path, tmp_path: Path
) -> None:
    connection, sql = connect(), "SELECT sum(id) FROM lake.small"
    for _ in range(5):
        answers(connection, bucket, sql)
    for each in (tmp_path / "cache").rglob("*"):
        if each.is_file() and each.stat().st_size > 500:
            each.unlink()
    assert answers(connection, bucket, sql).notes == []


def test_of_large_files_come_footers_and_the_columns_asked_for_once(
    connect: Connect, store: Store, bucket: Path
) -> None:
    connection = connect(**LARGE)
    sql = "SELECT sum(price) FROM lake.large WHERE id < 5000"
    answer = fetched(connection, sql)
    assert answer == expected(bucket, sql)
    assert all(each.method == "GET" and each.range is not None for each in store.data_requests)
    whole = sum(each.stat().st_size for each in bucket.glob("lake/large/data/*"))
    assert sum(each.sent for each in store.data_requests) < whole / 2
    store.clear()
    for again in (connection, connect(**LARGE)):
        assert fetched(again, sql) == answer
    assert store.requests == []


@pytest.mark.parametrize("cached", [True, False])
def test_bytes_on_their_way_to_the_disk_are_fetched_once(
    store: Store, bucket: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cached: bool
) -> None:
    # A reader closes the file while the disk is slow to write the fetched bytes.
    put, is_free = Shelf.put_part, threading.Event()

    def slow(*given: Any) -> None:
        assert is_free.wait(600)
        put(*given)

    monkeypatch.setattr(Shelf, "put_part", slow)
    place = next(iter(bucket.glob("lake/large/data/*")))
    data, uri = place.read_bytes(), f"s3://{place.relative_to(bucket)}"
    settings = Settings(cache_directory=str(tmp_path / "cache"))
    blocks = Blocks(settings) if cached else None
    file = StoredFile(RemoteFiles(store.properties(), blocks), uri, len(data))
    assert bytes(file.read_at(len(data) - 1000, 1000)) == data[-1000:]
    file.leave()
    assert bytes(file.read_at(len(data) - 3000, 3000)) == data[-3000:]
    is_free.set()
    # Without a disk the fetched bytes are lost. The server counts sent bytes a moment later.
    wanted = 3000 if cached else 4000
    wait_until(lambda: sum(each.sent for each in store.data_requests) >= wanted)
    assert sum(each.sent for each in store.data_requests) == wanted


def test_the_arrow_reader_asks_ahead_and_for_nothing_twice(
    connect: Connect, store: Store, bucket: Path
) -> None:
    store.latency = 0.1
    connection = connect(local_reader="arrow", threads="1")
    sql = "SELECT count(*), sum(id) FROM lake.small"
    answers(connection, bucket, sql)
    assert len(store.data_requests) == SMALL_FILES
    assert store.most_at_once >= SMALL_FILES // 2
    store.clear()
    answers(connect(local_reader="arrow"), bucket, sql)
    assert store.requests == []


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks smaller than the files, which DuckDB would read whole otherwise."""
    monkeypatch.setitem(instance._OF_STORES, "external_file_cache_local_max_block_size", 1 << 18)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize(
    ("sql", "rounds"),
    [
        # Metadata, manifest list, manifest, footers, columns.
        ("SELECT sum(price) FROM lake.large", 5),
        ("SELECT * FROM lake.large WHERE id BETWEEN 12000 AND 52000 ORDER BY id LIMIT 3", 5),
        ("SELECT count(*) FROM lake.large WHERE day > DATE '2026-03-01' AND id < 9000", 5),
        # Bloom filters are fetched with footers, and none of the bytes beside them before.
        ("SELECT * FROM lake.large WHERE name = 'name-0395950'", 5),
        ("SELECT sum(id) FROM lake.small", 4),
    ],
)
def test_what_can_be_known_early_is_asked_for_at_once(
    connect: Connect, store: Store, bucket: Path, tmp_path: Path, sql: str, rounds: int
) -> None:
    store.latency = 0.3
    settings = LARGE if "large" in sql else SMALL
    found = []
    # A machine that halts may send requests late; none is sent before its range is known.
    while len(found) < 5 and rounds not in found:
        store.clear()
        folder = str(tmp_path / f"cache-{len(found)}")
        connection = connect(**settings, threads="1", cache_directory=folder)
        answers(connection, bucket, sql)
        found.append(store.rounds)
    assert min(found) == rounds


@pytest.mark.usefixtures("small_blocks")
def test_what_is_asked_for_ahead_is_what_comes(
    connect: Connect, store: Store, bucket: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No request ends before the engine reads, which would then request its own blocks."""
    asked: set[tuple[str, int]] = set()
    fetch = StoredFile.fetch

    def noted(file: StoredFile, ranges: Any, *gap: int) -> None:
        wanted = [*ranges]
        for first, end in files.coalesced(wanted, *gap):
            parts = files.split(first, end)
            asked.update((file.uri.removeprefix("s3:/"), begin) for begin, _ in parts)
        fetch(file, wanted, *gap)

    monkeypatch.setattr(StoredFile, "fetch", noted)
    sql = "SELECT count(*), max(name), sum(price) FROM lake.large WHERE id >= 0"
    answers(connect(**LARGE), bucket, sql)
    assert {(each.path, (each.range or (0, 0))[0]) for each in store.data_requests} == asked


def test_a_footer_is_read_once_whatever_columns_are_asked_for(
    connect: Connect, bucket: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = noted(monkeypatch, footer, "read_row_counts")
    connection = connect(**LARGE)
    for columns in ("max(name)", "sum(price)", "sum(id), max(day)", "*"):
        sql = f"SELECT {columns} FROM lake.large WHERE id >= 79990 ORDER BY ALL"
        answers(connection, bucket, sql)
    sql = "SELECT max(a.name), sum(b.price) FROM lake.large a JOIN lake.large b ON a.id = b.id"
    answers(connection, bucket, sql)
    assert len(read) == LARGE_FILES


@pytest.mark.usefixtures("small_blocks")
def test_only_row_groups_that_may_match_are_asked_for(
    connect: Connect, store: Store, bucket: Path
) -> None:
    for where, most in (("id = 12345", 1), ("id > 79000 OR id < 100", 2), ("price >= 0", 16)):
        store.clear()
        sql = f"SELECT count(*), max(name) FROM lake.large WHERE {where}"
        fetched(connect(**LARGE, cache_directory=f"{bucket}/../{most}"), sql)
        size = sum(each.sent for each in store.data_requests)
        assert size < LARGE_FILES * (160 << 10) + most * 110_000, where


def test_the_engine_keeps_what_it_read_of_a_store_until_it_is_told_not_to(
    connect: Connect, bucket: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads = noted(monkeypatch, StoredStream, "view")
    connection = connect(**LARGE)
    sql = "SELECT count(*), sum(price), max(name) FROM lake.large WHERE id <> 7"
    answer = expected(bucket, sql)
    for number in range(5):
        reads.clear()
        assert fetched(connection, sql) == answer
        assert bool(reads) == (number == 0), number
    # Two queries at once do not end each other's requests.
    one, other = connection.cursor(), connection.cursor()
    one.execute("SELECT id FROM lake.large ORDER BY id")
    other.execute("SELECT id FROM lake.large ORDER BY id")
    assert one.fetchone() == other.fetchone() == (0,)
    one.close()
    assert len(other.fetchall()) == LARGE_FILES * LARGE_ROWS - 1
    connection.execute("SET caches = off")
    for _ in range(2):
        reads.clear()
        assert fetched(connection, sql) == answer
        assert reads


def test_wrong_bytes_do_not_stay_in_the_memory_of_the_engine(
    connect: Connect, store: Store, bucket: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote, "_WHOLE_BYTES", 1 << 10)
    spoilt = []

    def spoil(request: Request) -> Answer | None:
        if not request.is_data or request.range is None or spoilt:
            return None
        first, last = request.range
        assert first is not None
        assert last is not None
        size = (bucket / request.path.lstrip("/")).stat().st_size
        if last + 1 == size:
            return None  # a footer
        spoilt.append(request)
        headers = {"Content-Range": f"bytes {first}-{last}/{size}"}
        return Answer(206, bytes(last + 1 - first), headers)

    store.fault = spoil
    connection, sql = connect(**LARGE), "SELECT sum(id), max(name) FROM lake.large WHERE price >= 0"
    for _ in range(5):
        cursor = answers(connection, bucket, sql)
        assert set(cursor.scan_groups) == {"duckdb"}
    assert cursor.notes == []
    assert spoilt


def test_no_file_of_a_store_is_there_beyond_its_query() -> None:
    files = StoreFiles(lambda _: None)
    query, other = QueryFiles(files), QueryFiles(files)
    stored = StoredFile(RemoteFiles({}), "s3://lake/a", 10)
    path, second = query.announce(stored), other.announce(stored)
    assert path != second
    assert files.find(path) == (query, stored)
    query.close()
    assert files.find(second) == (other, stored)
    with pytest.raises(FileNotFoundError):
        files.find(path)


def test_a_query_that_is_over_leaves_its_names_to_the_next() -> None:
    files, stored = StoreFiles(lambda _: None), StoredFile(RemoteFiles({}), "s3://lake/a", 10)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(StoredFile, "kept_name", "kept")
        first, second, third = QueryFiles(files), QueryFiles(files), QueryFiles(files)
        path = first.announce(stored)
        first.is_over = True
        assert second.announce(stored) == path
        first.close()
        assert files.find(path) == (second, stored)
        assert third.announce(stored) != path


@pytest.mark.usefixtures("small_blocks")
def test_a_limit_reads_one_row_group_of_one_file(connect: Connect, store: Store) -> None:
    assert LARGE_FILES > 1
    connection = connect(**LARGE)
    rows = fetched(connection, "SELECT * FROM lake.large LIMIT 10")
    assert len(rows) == 10
    assert len({row[0] // GROUP_ROWS for row in rows}) == 1
    assert len({each.path for each in store.data_requests}) == 1
    spans = [each.range for each in store.data_requests]
    assert sum(last + 1 - first for first, last in spans) < 400_000 + 2 * (128 << 10)  # type: ignore[misc, operator]


def test_principals_do_not_see_what_others_fetched(connect: Connect, store: Store) -> None:
    sql = "SELECT sum(id) FROM lake.small"
    fetched(connect(), sql)
    store.clear()
    store.fault = lambda request: error(403, "AccessDenied", "Access Denied")
    with pytest.raises(StorageError, match="AccessDenied"):
        fetched(connect("AKIAOTHEROTHEROTHERO"), sql)
    assert len(store.requests) == 1


def test_without_a_cache_nothing_is_left_behind(
    connect: Connect, store: Store, tmp_path: Path
) -> None:
    connection = connect(cache="off")
    for settings in (SMALL, LARGE):
        connection.execute(f"SET whole_file_size = '{settings['whole_file_size']}'")
        fetched(connection, "SELECT sum(id) FROM lake.small")
    connection.close()
    del connection
    again = connect(cache="off")
    store.clear()
    fetched(again, "SELECT sum(id) FROM lake.small")
    assert len(store.data_requests) == SMALL_FILES
    assert not (tmp_path / "cache").exists()


def test_a_full_disk_makes_it_slower_and_no_more(
    connect: Connect, bucket: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.write

    def full(handle: int, data: Any) -> int:
        if len(data) > 1000:
            raise OSError(28, os.strerror(28))
        return real(handle, data)

    monkeypatch.setattr(os, "write", full)
    sql = "SELECT sum(id), count(DISTINCT name) FROM lake.{}"
    for settings in (SMALL, LARGE):
        connection = connect(**settings)
        for name in ("small", "large"):
            assert fetched(connection, sql.format(name)) == expected(
                bucket, sql.format(f"lake.{name}").replace("lake.lake", "lake")
            )


# ---------------------------------------------------------------------------- errors


@pytest.mark.parametrize("settings", [SMALL, LARGE, {"local_reader": "arrow"}])
@pytest.mark.parametrize(
    ("refusal", "told"),
    [
        (
            error(400, "ExpiredToken", "The provided token has expired."),
            r"ExpiredToken: The provided token has expired\. \(status 400\)",
        ),
        (
            error(404, "NoSuchKey", "The specified key does not exist."),
            "no such file; expired or removed while reading",
        ),
    ],
)
def test_the_store_says_why(
    connect: Connect, store: Store, refusal: Answer, told: str, settings: dict[str, str]
) -> None:
    store.fault = lambda request: refusal if request.is_data else None
    with pytest.raises(StorageError, match=rf"s3://lake/small/data/\S+: {told}"):
        fetched(connect(**settings), "SELECT sum(id) FROM lake.small")


@pytest.mark.parametrize("kind", ["error", "cut", "short", "other"])
def test_answers_that_are_wrong_once_are_asked_for_again(
    connect: Connect, store: Store, bucket: Path, kind: str
) -> None:
    seen: set[tuple[str, object]] = set()

    def once(request: Request) -> Answer | None:
        if (request.path, request.range) in seen:
            return None
        seen.add((request.path, request.range))
        match kind:
            case "error":
                return error(503, "SlowDown", "Please reduce your request rate.")
            case "cut":
                return Answer(cut=100)
            case _ if not request.is_data:
                return None  # the length of metadata is not recorded
            case "short":
                return Answer(headers={"Content-Length": "4"}, cut=4)
            case _:
                return Answer(206, b"x" * 50, {"Content-Range": "bytes 7-56/1000"})

    store.fault = once
    for settings, name in ((SMALL, "small"), (LARGE, "large")):
        sql = f"SELECT sum(id), count(DISTINCT name) FROM lake.{name}"
        answers(connect(**settings), bucket, sql)


@pytest.mark.parametrize("where", ["metadata.json", "snap-", "-m0.avro", ".parquet"])
@pytest.mark.parametrize("settings", [SMALL, LARGE, {"local_reader": "arrow"}])
def test_a_store_that_hangs_holds_nobody(
    connect: Connect, store: Store, where: str, settings: dict[str, str]
) -> None:
    store.fault = lambda request: Answer(stall=_STALL) if where in request.path else None
    connection = connect(**settings, query_timeout="1")
    started = time.monotonic()
    with pytest.raises(QueryCancelledError):
        fetched(connection, "SELECT sum(id) FROM lake.small")
    connection.close()
    assert time.monotonic() - started < _STALL / 2
    store.fault = None
    again = connect(**settings)
    assert len(fetched(again, "SELECT id FROM lake.small")) == SMALL_FILES * 40


def test_cancel_ends_a_query_that_waits_for_a_store(connect: Connect, store: Store) -> None:
    asked = threading.Event()

    def hang(request: Request) -> Answer | None:
        if not request.is_data:
            return None
        asked.set()
        return Answer(stall=_STALL)

    store.fault = hang
    cursor = connect(**LARGE).cursor()
    ended = threading.Event()

    def run() -> None:
        with pytest.raises(icesql.Error):
            cursor.execute("SELECT sum(id) FROM lake.large").fetchall()
        ended.set()

    thread = threading.Thread(target=run)
    thread.start()
    assert asked.wait(600)
    cursor.cancel()
    assert ended.wait(_STALL / 2)
    thread.join()


def test_a_store_that_fails_now_and_then_gives_right_rows_or_a_clear_error(
    connect: Connect, store: Store, bucket: Path, tmp_path: Path
) -> None:
    queries = (
        "SELECT count(*), sum(id), max(name) FROM lake.small",
        "SELECT sum(id), sum(price) FROM lake.large WHERE day >= DATE '2026-06-01'",
        "SELECT * FROM lake.large WHERE id = 12345",
        "SELECT count(*) FROM lake.large a JOIN lake.small b ON a.id = b.id * 70",
    )
    readers = ({}, LARGE, {"local_reader": "arrow"}, {"local_reader": "arrow", "cache": "off"})
    store.fault = at_random(11, errors=0.05, cuts=0.02, slow=0.02, stall=0.1)
    failed = []
    for number, (sql, reader) in enumerate(itertools.product(queries, readers)):
        folder = str(tmp_path / str(number))
        try:
            rows = fetched(connect(cache_directory=folder, **reader), sql)
        except (StorageError, CorruptFileError) as error:
            failed.append(error)
        else:
            assert rows == expected(bucket, sql)
    assert len(failed) <= 1


def test_the_command_shows_and_clears_the_cache(connect: Connect, tmp_path: Path) -> None:
    fetched(connect(), "SELECT sum(id) FROM lake.small")

    def run(*arguments: str) -> str:
        environment = {**os.environ, "ICESQL_CACHE_DIRECTORY": str(tmp_path / "cache")}
        done = warm.icesql("cache", *arguments, env=environment)
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert f"in {SMALL_FILES + 3} files" in run()
    assert "in 0 files" in run("clear")
    assert "kept             0 B of" in run()


@pytest.mark.parametrize("times", [1, 6])
@pytest.mark.parametrize("table", ["small", "large"])
def test_a_corrupt_file_of_the_cache_is_fetched_once_more(
    connect: Connect, store: Store, bucket: Path, tmp_path: Path, table: str, times: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """Also if its checksum matches: a disk may return other bytes than those that were checked."""
    from icesql.storage.stores import blocks

    monkeypatch.setattr(blocks, "_is_intact", lambda path, found: True)
    sql = f"SELECT count(*), sum(id), max(name) FROM lake.{table} WHERE price >= 0"
    answer = expected(bucket, sql)
    with connect() as first:
        for _ in range(times):
            assert fetched(first, sql) == answer
    kept = [each for each in (tmp_path / "cache" / "v1").rglob("*") if _is_block(each)]
    assert len(kept) >= 5
    for damaged in kept:
        if not damaged.exists():
            continue
        stat = damaged.stat()
        damaged.write_bytes(bytes(stat.st_size))
        os.utime(damaged, ns=(stat.st_atime_ns, stat.st_mtime_ns))
        for _ in range(2):
            with connect() as again:
                assert fetched(again, sql) == answer, damaged


def _is_block(path: Path) -> bool:
    return path.is_file() and (len(path.name) == 64 or path.parent.name.endswith(".d"))


def test_the_second_run_reads_and_decodes_nothing_again(
    connect: Connect, bucket: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor is the text parsed again; but a commit of another writer is seen, and so is its undo."""
    decoded = noted(monkeypatch, current_metadata, "parse_metadata")
    sql = "SELECT count(*), sum(id) FROM lake.small WHERE id >= 0"
    answer = expected(bucket, sql)
    connection = connect()
    assert fetched(connection, sql) == answer
    with monkeypatch.context() as patch:
        patch.setattr("icesql.sql.parse.parse", None)
        patch.setattr("icesql.query.bind.bind", None)
        assert fetched(connection, sql) == answer
    assert len(decoded) == 1
    with _committed(bucket, "small", _emptied):
        assert fetched(connection, sql) == [(0, None)]
        assert fetched(connection, sql) == [(0, None)]
        assert len(decoded) == 2
    assert fetched(connection, sql) == answer
    assert len(decoded) == 2
    connection.execute("SET caches = off")
    for number in range(2):
        assert fetched(connection, sql) == answer
        assert len(decoded) == 3 + number


def test_metadata_that_may_be_written_again_is_read_each_time(
    connect: Connect, store: Store, bucket: Path
) -> None:
    sql = "SELECT count(*), sum(id) FROM lake.small WHERE id >= 0"
    connection = connect()
    with _committed(bucket, "small", dict, "v7.metadata.json") as path:
        answers(connection, bucket, sql)
        path.write_text(json.dumps(_emptied(json.loads(path.read_text()))))
        assert fetched(connection, sql) == [(0, None)]


def test_what_is_loaded_meanwhile_may_fail(
    connect: Connect, bucket: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError("nothing to load")

    monkeypatch.setattr("icesql.session.pipeline.load_modules", fail)
    monkeypatch.setattr("icesql.engine.duckdb.engine.LocalEngine.get_ready", fail)
    sql = "SELECT sum(id) FROM lake.small WHERE id >= 0"
    answers(connect(), bucket, sql)


def _emptied(metadata: dict[str, Any]) -> dict[str, Any]:
    later = metadata["last-updated-ms"] + 1
    return metadata | {"current-snapshot-id": -1, "refs": {}, "last-updated-ms": later}


@contextmanager
def _committed(
    bucket: Path,
    name: str,
    change: Callable[[dict[str, Any]], dict[str, Any]],
    file: str = "00009-3f1d5c52-6f0e-4f3a-9d0e-0d6a3a4d7c11.metadata.json",
) -> Iterator[Path]:
    """The catalog names a changed metadata file of a table inside."""

    def point(location: str) -> None:
        with closing(sqlite3.connect(bucket / "catalog.db")) as catalog, catalog:
            catalog.execute(
                "UPDATE iceberg_tables SET metadata_location = ? WHERE table_name = ?",
                [location, name],
            )

    before = (bucket / f"{name}.location").read_text()
    old = bucket / "lake" / name / "metadata" / before.rpartition("/")[2]
    new = old.with_name(file)
    new.write_text(json.dumps(change(json.loads(old.read_text()))))
    point(f"{before.rpartition('/')[0]}/{file}")
    try:
        yield new
    finally:
        point(before)
        new.unlink()


@pytest.mark.parametrize("cached", [True, False])
def test_with_little_memory_a_long_read_is_fetched_bit_by_bit(
    store: Store, bucket: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cached: bool
) -> None:
    monkeypatch.setattr(files, "PART_BYTES", 10_000)
    path = min((bucket / "lake" / "large" / "data").glob("*.parquet"))
    data, uri = path.read_bytes(), f"s3://lake/large/data/{path.name}"
    settings = Settings().with_text("cache_directory", str(tmp_path / "cache"))
    asked = noted(monkeypatch, RequestPool, "submit")

    def size() -> int:
        return sum(given[2] for given in asked)

    waited: list[int] = []
    result = PoolRequest.result
    monkeypatch.setattr(
        PoolRequest, "result", lambda *given: waited.append(size()) or result(*given)
    )
    for limit, most in (("200MB", 40_000), ("2GB", len(data))):
        asked.clear()
        waited.clear()
        query = QueryContext(settings.with_text("memory_limit", limit))
        blocks = Blocks(settings) if cached else None
        file = StoredFile(RemoteFiles(store.properties(), blocks), uri, len(data), query=query)
        assert bytes(file.read_at(7, len(data) - 11)) == data[7:-4]
        assert waited[0] <= most
        assert size() == len(data) - 11
        for first, length in ((0, 25_000), (9_999, 20_002), (len(data) - 30_000, 99_999), (5, 3)):
            assert bytes(file.read_at(first, length)) == data[first : first + length]
        file.leave()
        shutil.rmtree(tmp_path / "cache", ignore_errors=True)
