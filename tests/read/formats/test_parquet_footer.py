"""Counts of a Parquet file that contradict each other are seen, by both readers."""

from __future__ import annotations

import io
import os
import random
import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from msgspec.structs import replace

import icesql
from icesql.engine.duckdb.relations import footer
from icesql.engine.duckdb.relations.footer import FooterCache
from icesql.engine.duckdb.relations.opened_files import local_files
from icesql.read.formats import parquet_footer
from icesql.read.formats.parquet_footer import read_row_counts
from icesql.read.formats.thrift import BadThrift
from tests.columns import json_columns
from tests.damage.thrift_tree import chunks, read_footer, read_page, row_groups, with_footer, write
from tests.writer.table import TableWriter

FIELDS = json_columns("1 a long, 2 b string, 3 c list<4 long>")
ROWS = [{"a": n, "b": "AB"[n % 2] if n % 5 else None, "c": [n] * (n % 3)} for n in range(30)]


def table_of(folder: Path, **options: Any) -> tuple[TableWriter, Path]:
    table = TableWriter(folder, FIELDS)
    (file,) = table.append(ROWS, compression="none", row_group_size=10, **options)
    return table, Path(file.record["file_path"])


def change_footer(path: Path, change: Callable[[Any], None]) -> None:
    tree, pages = read_footer(path.read_bytes())
    change(tree)
    path.write_bytes(with_footer(pages, tree))


def ask(table: TableWriter, sql: str = "SELECT a, b FROM t", reader: str = "auto") -> Any:
    with icesql.connect(settings={"local_reader": reader}) as connection:
        connection.register_table("t", table.metadata_path)
        return connection.execute(sql).fetchall()


def fewer_rows(tree: Any) -> None:
    row_groups(tree)[0][3] = 6, 1


def repeated_groups(tree: Any) -> None:
    kind, (inner, groups) = tree[4]
    tree[4] = kind, (inner, groups * 5)


def no_chunks(tree: Any) -> None:
    for group in row_groups(tree)[1:]:
        kind, (inner, _) = group[1]
        group[1] = kind, (inner, [])


def one_chunk_fewer(tree: Any) -> None:
    kind, (inner, columns) = row_groups(tree)[0][1]
    row_groups(tree)[0][1] = kind, (inner, columns[:-1])


@pytest.mark.parametrize("reader", ["auto", "arrow"])
@pytest.mark.parametrize("change", [no_chunks, one_chunk_fewer])
@pytest.mark.parametrize(
    "sql", ["SELECT a, b FROM t", "SELECT c FROM t", "SELECT a FROM t WHERE a > 3"]
)
def test_row_groups_of_fewer_columns_are_no_foreign_error(
    tmp_path, change: Callable[[Any], None], reader: str, sql: str
) -> None:
    """Whatever the length of the file is: by another one it is compared with the manifest."""
    for grow in (0, 100):
        table, path = table_of(tmp_path / str(grow))
        right = ask(table, sql, reader)
        tree, pages = read_footer(path.read_bytes())
        change(tree)
        tree[5] = 9, (12, [{1: (8, b"k" * grow), 2: (8, b"v")}])
        path.write_bytes(with_footer(pages, tree))
        # The columns that are there may be read.
        found: Any = None
        with suppress(icesql.CorruptFileError):
            found = ask(table, sql, reader)
        all_there = change is one_chunk_fewer and " c " not in sql
        assert found is None or (all_there and found == right)


def fewer_values(tree: Any) -> None:
    chunks(row_groups(tree)[1])[0][5] = 6, 4


@pytest.mark.parametrize("reader", ["auto", "arrow"])
@pytest.mark.parametrize("change", [fewer_rows, repeated_groups])
def test_row_groups_that_contradict_the_file_are_refused(
    tmp_path, change: Callable[[Any], None], reader: str
) -> None:
    table, path = table_of(tmp_path)
    assert len(ask(table, reader=reader)) == 30
    change_footer(path, change)
    with pytest.raises(icesql.DataError, match=path.name):
        ask(table, reader=reader)


@pytest.mark.parametrize("reader", ["auto", "arrow"])
def test_a_chunk_of_other_values_than_its_pages_keeps_its_rows(tmp_path, reader: str) -> None:
    table, path = table_of(tmp_path)
    change_footer(path, fewer_values)
    assert sorted(ask(table, "SELECT a FROM t WHERE a >= 0", reader)) == [(n,) for n in range(30)]


@pytest.mark.parametrize("reader", ["auto", "arrow"])
@pytest.mark.parametrize("column", ["a", "b"])
def test_values_are_not_invented_for_a_page_that_counts_too_few(
    tmp_path, column: str, reader: str
) -> None:
    table, path = table_of(tmp_path)
    data = path.read_bytes()
    tree, _ = read_footer(data)
    at = chunks(row_groups(tree)[0])["ab".index(column)][9][1]
    header, end = read_page(data, at)
    header[5][1][1] = 5, 7
    changed = write(header)
    assert len(changed) == end - at
    path.write_bytes(data[:at] + changed + data[end:])
    with pytest.raises(icesql.DataError, match=path.name):
        ask(table, f"SELECT {column} FROM t", reader)
    # Pages of other columns are no part of the question.
    other = "b" if column == "a" else "a"
    assert len(ask(table, f"SELECT {other} FROM t", reader)) == 30


def test_a_chunk_called_null_throughout_keeps_its_values(tmp_path) -> None:
    table, path = table_of(tmp_path)

    def no_values(tree: Any) -> None:
        for group in row_groups(tree):
            chunks(group)[0][12][1][3] = 6, 10

    change_footer(path, no_values)
    assert sorted(ask(table, "SELECT a FROM t")) == [(n,) for n in range(30)]


@pytest.mark.parametrize("reader", ["auto", "arrow"])
def test_another_file_of_as_many_rows_in_its_place_is_refused(tmp_path, reader: str) -> None:
    table = TableWriter(tmp_path, FIELDS[:1])
    files = [
        table.data_file([{"a": n * 7 + first} for n in range(30)], compression=codec)
        for first, codec in ((1, "none"), (1000, "gzip"))
    ]
    for each in files:
        footer = pq.read_metadata(each.record["file_path"])
        each.record["column_sizes"] = {1: footer.row_group(0).column(0).total_compressed_size}
    table.commit(files)
    one, other = (Path(each.record["file_path"]) for each in files)
    one.write_bytes(other.read_bytes())
    with pytest.raises(icesql.DataError, match=rf"{one.name}: .*another file is in its place"):
        ask(table, "SELECT a FROM t", reader)


@pytest.mark.parametrize("reader", ["auto", "arrow"])
def test_a_wrong_length_alone_is_a_careless_writer(tmp_path, reader: str) -> None:
    table = TableWriter(tmp_path, FIELDS[:1])
    file = table.data_file([{"a": 1}])
    file.record["file_size_in_bytes"] += 40
    table.commit([file])
    assert ask(table, "SELECT a FROM t", reader) == [(1,)]


# ------------------------------------------------------------------ the reader itself


def written(**options: Any) -> tuple[bytes, Any]:
    sink = io.BytesIO()
    table = pa.table(
        {
            "a": pa.array(range(5000), pa.int64()),
            "b": pa.array([None if n % 3 else "x" * (n % 50) for n in range(5000)]),
            "s": pa.array([{"x": n, "l": [1] * (n % 4)} for n in range(5000)]),
        }
    )
    pq.write_table(table, sink, **options)
    return sink.getvalue(), pq.read_metadata(io.BytesIO(sink.getvalue()))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"row_group_size": 100, "compression": "zstd"},
        {"data_page_version": "2.0", "data_page_size": 500},
        {"data_page_size": 300, "use_dictionary": False, "write_page_index": True},
        {"write_statistics": False, "write_page_checksum": True},
    ],
)
def test_counts_are_those_that_another_reader_finds(options: dict[str, Any]) -> None:
    data, expected = written(**options)
    file = io.BytesIO(data)
    counts = read_row_counts(file, {})
    assert counts.rows == expected.num_rows
    assert counts.length == len(data)
    assert counts.footer == int.from_bytes(data[-8:-4], "little")
    assert counts.layout.flat == (True, True, True, False)
    assert counts.groups is not None
    assert len(counts.groups) == expected.num_row_groups
    for number, (rows, found) in enumerate(counts.groups):
        group = expected.row_group(number)
        assert rows == group.num_rows
        for leaf, chunk in enumerate(found):
            column = group.column(leaf)
            assert (chunk.values, chunk.size) == (column.num_values, column.total_compressed_size)
            if column.is_stats_set:
                assert chunk.nulls == column.statistics.null_count
    assert counts.problem is None
    layout = counts.layout._replace(columns={9: (0, 1, 2, 3)})
    every = replace(counts, schema=b"", layout=layout)
    assert every.page_problem(file, [9]) is None


def test_damaged_footers_give_counts_or_an_error_of_ours() -> None:
    data, _ = written(row_group_size=1000)
    chance = random.Random(5)
    for _ in range(3000):
        bad = bytearray(data)
        for _ in range(chance.choice((1, 1, 3))):
            bad[chance.randrange(len(data) - 4000, len(data))] = chance.randrange(256)
        file = io.BytesIO(bytes(bad))
        try:
            counts = read_row_counts(file, {})
            assert counts.problem or counts.page_problem(file, range(10)) != ""
        except BadThrift:
            continue


def test_a_schema_is_asked_of_the_engine_once(tmp_path, monkeypatch) -> None:
    table = TableWriter(tmp_path, FIELDS)
    files = [table.data_file(ROWS) for _ in range(5)]

    class Cursor:
        asked = 0

        def execute(self, *_: Any) -> Any:
            self.asked += 1
            return self

        def fetchall(self) -> list[Any]:
            return [("root", None, None, None, 0, None, None, None, None, None)]

    cursor, footers = Cursor(), FooterCache()
    keys = [(each.record["file_path"], each.record["file_size_in_bytes"]) for each in files]
    footers.load(cursor, keys, [1], local_files())
    assert cursor.asked == 1
    with monkeypatch.context() as patched:
        patched.setattr(footer, "read_row_counts", None)  # known: not read again
        footers.load(cursor, keys, [1], local_files())
    assert cursor.asked == 1
    assert all(footers.facts(*key) is not None for key in keys)
    for path, _ in keys:
        os.unlink(path)
    footers.load(cursor, keys, [2], local_files())
    assert all(footers.facts(*key) is None for key in keys)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"use_dictionary": False, "write_statistics": False},
        {"data_page_version": "2.0", "write_page_index": True},
        {"write_page_checksum": True, "data_page_size": 100, "write_page_index": True},
    ],
)
def test_usual_structures_are_read_as_integer_by_integer(
    options: dict[str, Any], monkeypatch
) -> None:
    table = pa.table(
        {
            "a": [*range(300)],
            "b": [None, "x", "y"] * 100,
            "c": [[1], [], None] * 100,
            "d": pa.array([{"e": n} for n in range(300)]),
            "f": pa.array([n / 7 for n in range(300)]),
        }
    )
    fields = [
        each.with_metadata({"PARQUET:field_id": str(n)}) for n, each in enumerate(table.schema)
    ]
    table = table.cast(pa.schema(fields))
    sink = io.BytesIO()
    pq.write_table(table, sink, row_group_size=200, **options)
    whole = sink.getvalue()

    def found(data: bytes) -> Any:
        file = io.BytesIO(data)
        try:
            counts = read_row_counts(file, {})
            every = [*counts.layout.columns]
            assert every == [0, 1, 2, 3, 4] or data != whole
            return counts, counts.problem, counts.page_problem(file, every)
        except BadThrift as error:
            return str(error)

    chance = random.Random(3)
    footer_length = int.from_bytes(whole[-8:-4], "little")
    damaged = [whole]
    for number in range(1500):
        data = bytearray(whole)
        start = 0 if number % 3 else len(whole) - 8 - footer_length
        place = chance.randrange(start, len(whole))
        data[place] = chance.choice(
            [chance.randrange(256), data[place] ^ 1 << chance.randrange(8), 0, 0x15, 0x16, 0x1C]
        )
        damaged.append(bytes(data))
    quick = [found(each) for each in damaged]
    assert quick[0][1:] == (None, None)
    never = re.compile(b"(?!)")
    for pattern in ("_DATA_HEADER", "_DICTIONARY_HEADER", "_COLUMN_START", "_ENCODING_COUNTS"):
        monkeypatch.setattr(parquet_footer, pattern, never)
    assert quick == [found(each) for each in damaged]


@pytest.mark.parametrize("place", [-58, 1 << 62])
def test_a_page_outside_of_its_file_is_a_problem(tmp_path, place: int) -> None:
    table, path = table_of(tmp_path)

    def moved(tree: Any) -> None:
        for chunk in chunks(row_groups(tree)[0]):
            chunk[9] = 6, place
            chunk.pop(11, None)

    change_footer(path, moved)
    with path.open("rb") as file:
        counts = read_row_counts(file, {})
        assert counts.page_problem(file, [1]) == "pages of 0 values in a column chunk of 10"
    with pytest.raises(icesql.Error, match=path.name):
        ask(table)
