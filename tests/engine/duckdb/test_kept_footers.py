"""The engine caches the footers of unchanged files, within a part of its memory."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import icesql
from icesql.engine.duckdb.instance import SETTINGS
from tests.writer.fields import fields
from tests.writer.table import TableWriter

COLUMNS = fields("k long, s string")
ROWS, FILES = 400, 3
KEEP_FOOTERS, NO_PREFETCHING = SETTINGS
MOMENT = 1_700_000_000_000_000_000  # long ago, in whole seconds
TEXTS = ("SELECT sum(k) FROM t", "SELECT count(*) FROM t WHERE k < 0 AND s = 'a5'")


def pool(connection: Any) -> Any:
    return connection._session.engines.started["local"].pool


def is_kept(connection: Any) -> bool:
    """True if the next query's cursor caches footers."""
    instance = pool(connection)._current
    cursor = instance.cursor()
    try:
        return setting(cursor, KEEP_FOOTERS)
    finally:
        instance.release(cursor)


def setting(cursor: Any, name: str) -> bool:
    return bool(cursor.execute(f"SELECT current_setting('{name}')").fetchone()[0])


@pytest.fixture
def writer(tmp_path: Path) -> TableWriter:
    made = TableWriter(tmp_path / "t", COLUMNS)
    made.commit(
        [
            made.data_file([{"k": i * 10 - ROWS * 5, "s": f"a{i}"} for i in range(ROWS)])
            for _ in range(FILES)
        ]
    )
    for path in data_files(made):
        rewrite(path, 0, MOMENT)
    return made


def data_files(writer: TableWriter) -> list[Path]:
    return sorted(Path(writer.location.removeprefix("file://")).glob("**/*.parquet"))


@pytest.fixture
def connection(writer: TableWriter) -> Iterator[Any]:
    with icesql.connect() as opened:
        opened.register_table("t", str(writer.metadata_path))
        yield opened


def rewrite(path: Path, first: int, moment: int) -> None:
    """Write rows from ``first`` on to a file of the same size as before; only its bounds differ."""
    schema, size = pq.read_schema(path), path.stat().st_size
    rows = pa.table([range(first, first + ROWS), ["a5"] * ROWS], schema=schema)
    buffer = pa.BufferOutputStream()
    pq.write_table(rows, buffer, use_dictionary=["s"], store_schema=False)
    written = buffer.getvalue().to_pybytes()
    footer = 8 + int.from_bytes(written[-8:-4], "little")
    assert len(written) <= size
    path.write_bytes(written[:-footer].ljust(size - footer, b"\0") + written[-footer:])
    os.utime(path, ns=(moment, moment))


@pytest.mark.parametrize("later", [1, 999_999_999, 1_000_000_000])
@pytest.mark.parametrize("asked", [TEXTS[:1], TEXTS[1:], TEXTS])
def test_a_file_in_the_place_of_another_has_bounds_of_its_own(
    writer: TableWriter, connection: Any, later: int, asked: tuple[str, ...]
) -> None:
    total = ROWS * (ROWS - 1) // 2 * FILES
    for _ in range(3):
        assert connection.execute(TEXTS[0]).fetchall() == [(total,)]
        assert connection.execute(TEXTS[1]).fetchall() == [(0,)]
    assert is_kept(connection)
    for path in data_files(writer):
        rewrite(path, -ROWS, MOMENT + later)
    expected = {TEXTS[0]: [(-total - ROWS * FILES,)], TEXTS[1]: [(ROWS * FILES,)]}
    for _ in range(5):
        for text in asked:
            assert connection.execute(text).fetchall() == expected[text]
    for text in TEXTS:
        assert connection.execute(text).fetchall() == expected[text]


def test_nothing_is_kept_with_caches_off(connection: Any) -> None:
    first = connection.execute(TEXTS[0]).fetchall()
    assert is_kept(connection)
    connection.execute("SET caches = off")
    assert connection.execute(TEXTS[0]).fetchall() == first
    assert not is_kept(connection)
    assert pool(connection)._current.footers is None
    connection.execute("SET caches = on")
    assert connection.execute(TEXTS[0]).fetchall() == first
    assert is_kept(connection)


def test_more_than_a_part_of_the_memory_is_not_kept(connection: Any) -> None:
    first = [connection.execute(each).fetchall() for each in TEXTS]
    kept = pool(connection)._current.footers
    assert len(kept._files) == FILES
    assert kept._bytes > 0
    # There is room for no footer, and the instance is kept.
    kept._files.clear()
    kept._most = kept._bytes - 1
    kept._bytes = 0
    instance = pool(connection)._current
    for _ in range(5):
        assert [connection.execute(each).fetchall() for each in TEXTS] == first
    assert pool(connection)._current is instance
    assert not kept._files
    # There is room, but others use it: the next query starts a new instance.
    kept._bytes, kept._most = 1 << 20, 1 << 20
    assert connection.execute(TEXTS[0]).fetchall() == first[0]
    assert pool(connection)._current is None
    assert connection.execute(TEXTS[0]).fetchall() == first[0]
    assert len(pool(connection)._current.footers._files) == FILES


def test_files_are_read_as_needed_once_they_are_in_memory(connection: Any) -> None:
    chosen = []
    for _ in range(3):
        cursor = connection.execute("SELECT k, s FROM t")
        chosen.append(setting(cursor._result._open.cursor, NO_PREFETCHING))
        cursor.close()
    assert chosen == [False, True, True]
    pool(connection)._current.footers._most_read = 100
    cursor = connection.execute("SELECT s, k FROM t")
    assert not setting(cursor._result._open.cursor, NO_PREFETCHING)
    cursor.close()


def test_one_query_that_keeps_none_leaves_others_alone(connection: Any) -> None:
    connection.execute(TEXTS[0]).fetchall()
    instance = pool(connection)._current
    cursor = instance.cursor()
    cursor.execute(f"SET SESSION {KEEP_FOOTERS} = false")
    assert is_kept(connection)
    instance.release(cursor)
