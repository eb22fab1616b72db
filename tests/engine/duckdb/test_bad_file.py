"""An unreadable file is named once, without a read of the whole table to find it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import icesql
import icesql.read.task
from icesql.catalog.open import open_table
from icesql.context import QueryContext
from icesql.engine.duckdb.errors import check_named_file, name_bad_file
from icesql.errors import CorruptFileError, DataError
from icesql.scan.plan import TableScan
from icesql.scan.planner import plan
from icesql.scan.tasks import CombinedScanTask
from tests.writer.fields import fields
from tests.writer.table import TableWriter

NUMBERS = fields("a long")


def table_of(folder: Path, files: int) -> TableWriter:
    table = TableWriter(folder, NUMBERS)
    table.commit([table.data_file([{"a": number}]) for number in range(files)])
    return table


def combined(table: TableWriter) -> CombinedScanTask:
    opened = open_table(str(table.metadata_path))
    metadata = opened.metadata
    scan = TableScan(opened, metadata.current_snapshot, metadata.schema, metadata.schema)
    planned = plan(scan, QueryContext())
    return CombinedScanTask(planned.files, planned.context)


@pytest.fixture
def files_read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    read: list[str] = []
    original = icesql.read.task.read_file

    def counted(task: Any, *rest: Any) -> Any:
        read.append(task.data_file.path)
        return original(task, *rest)

    monkeypatch.setattr(icesql.read.task, "read_file", counted)
    return read


def reading_problem(text: str) -> DataError:
    error = DataError(text)
    error.while_reading = True
    return error


@pytest.mark.parametrize("reader", ["auto", "arrow"])
@pytest.mark.parametrize("others", [0, 3])
def test_a_vanished_file_is_no_corrupt_file(tmp_path: Path, reader: str, others: int) -> None:
    table = table_of(tmp_path, 1 + others)
    task = combined(table).tasks[-1]
    with icesql.connect(settings={"local_reader": reader}) as connection:
        connection.register_table("t", table.metadata_path)
        cursor = connection.execute("SELECT a FROM t")
        Path(task.data_file.path).unlink()
        if reader == "auto":  # the other reader has already read so small a table
            with pytest.raises(icesql.StorageError, match="no such file; expired or removed"):
                cursor.fetchall()
        else:
            assert len(cursor.fetchall()) == 1 + others


@pytest.mark.parametrize("metadata", [True, False])
def test_a_vanished_file_is_named_where_it_is_opened(tmp_path: Path, metadata: bool) -> None:
    scan = combined(table_of(tmp_path, 1))
    task, storage = scan.tasks[0], scan.context.storage
    storage.location(task.data_file.path)  # found, and then deleted
    Path(task.data_file.path).unlink()

    def read() -> object:
        if metadata:
            return storage.read(task.data_file.path)
        return list(icesql.read.task.read_file(task, scan.context, QueryContext()))

    with pytest.raises(icesql.StorageError, match=r"\.parquet: no such file; expired or removed"):
        read()


def test_the_file_that_the_engine_named_is_all_that_is_read(
    tmp_path: Path, files_read: list[str]
) -> None:
    table = TableWriter(tmp_path, NUMBERS)
    files = [
        table.data_file([{"a": number} for number in range(2000)], compression="none")
        for _ in range(5)
    ]
    table.commit(files)
    scan = combined(table)
    bad = Path(scan.tasks[3].data_file.path)
    bad.write_bytes(bad.read_bytes()[:-400])
    named = CorruptFileError(str(bad), "what the engine says")
    with pytest.raises(CorruptFileError, match=bad.name):
        check_named_file(named, [scan], QueryContext())
    assert files_read == [scan.tasks[3].data_file.path]
    check_named_file(CorruptFileError(scan.tasks[0].data_file.path, "?"), [scan], QueryContext())
    check_named_file(DataError("no file in sight"), [scan], QueryContext())
    assert len(files_read) == 2


def test_few_files_are_read_to_find_the_bad_one(tmp_path: Path, files_read: list[str]) -> None:
    scan = combined(table_of(tmp_path, 1))
    many = CombinedScanTask(scan.tasks * 1000, scan.context)
    name = Path(scan.tasks[0].data_file.path).name
    with pytest.raises(DataError, match=rf"TProtocolException .*while reading {name}, .*…\)"):
        name_bad_file(reading_problem("TProtocolException"), [many], QueryContext())
    assert len(files_read) == 100


def test_another_error_is_left_alone(tmp_path: Path, files_read: list[str]) -> None:
    scan = combined(table_of(tmp_path, 1))
    name_bad_file(DataError("division by zero"), [scan], QueryContext())
    assert files_read == []
