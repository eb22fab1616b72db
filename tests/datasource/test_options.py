"""The options of ``format("icesql")``: known by name, checked, none ignored."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from icesql.errors import (
    ProgrammingError,
    UnsupportedSqlError,
)
from tests.datasource.reads import (
    numbers,
    planned,
    source,
    two_snapshots,
)
from tests.writer.table import TableWriter


@pytest.fixture
def table(tmp_path: Path) -> TableWriter:
    return two_snapshots(tmp_path / "t")


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"snapshot_id": 1, "branch": "main"}, "only one of snapshot-id and branch"),
        ({"tag": "a", "as_of_timestamp": 1}, "only one of"),
        ({"snapshot_id": 1, "start_snapshot_id": 1}, "only one of"),
        ({"tag": "t", "end_snapshot_id": 1}, "only one of"),
        ({"end_snapshot_id": 1}, "needs start-snapshot-id"),
        ({"snapshot_id": "x"}, "not a whole number"),
        ({"snapshot_id": "1_000"}, "not a whole number"),
        ({"as_of_timestamp": "2024-01-01"}, "not a whole number"),
        ({"snapshotid": 1}, "did you mean snapshot-id"),
        ({"banana": 1}, "there are: as-of-timestamp, "),
        ({"stream_from": "latest"}, "for readStream, not for read"),
        ({"max_rows_per_batch": 1}, "for readStream, not for read"),
        ({"on_delete": "skip"}, "reads with start-snapshot-id"),
        ({"split_size": "huge"}, "\"split-size\": 'huge' is not a size"),
        ({"columns": " , "}, "names no column"),
        ({"columns": "x, X"}, "twice"),
    ],
)
def test_options_are_checked(
    spark_here: None, table: TableWriter, options: dict[str, Any], text: str
) -> None:
    with pytest.raises(ProgrammingError, match=text):
        planned(table, **options)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("start-timestamp", "changelog"),
        ("versionAsOf", "snapshot-id"),
        ("paths", "one table"),
        ("owner", "VIEW"),
    ],
)
def test_options_of_other_readers_are_refused_by_name(
    spark_here: None, name: str, text: str
) -> None:
    from icesql.datasource.options import read_options

    with pytest.raises(UnsupportedSqlError, match=f"{name}.*{text}"):
        read_options({"path": "a/b", name: "1"})


def test_switches_for_speed_change_nothing(spark_here: None, table: TableWriter) -> None:
    assert numbers(table, vectorization_enabled="false", batch_size=7, locality="x") == [1, 2, 3, 4]
    assert numbers(table, lookback=1, file_open_cost="1MB") == [1, 2, 3, 4]


def test_values_of_unknown_options_are_not_repeated(spark_here: None, table: TableWriter) -> None:
    with pytest.raises(ProgrammingError, match="no option") as raised:
        source(table, secret_key="hush-hush")
    assert "hush-hush" not in str(raised.value)
    with pytest.raises(ProgrammingError, match="register_spark") as raised:
        source(table, uri="postgresql://me:hush-hush@host/db")
    assert "hush-hush" not in str(raised.value)


def test_options_win_over_what_was_registered(spark_here: None, warehouse: Path) -> None:
    from icesql.datasource.table import ReadRequest

    options = {"path": "shop.customers", "warehouse": str(warehouse)}
    found = ReadRequest.of(options, {"warehouse": "/nowhere", "name": "x"})
    assert found.table().identifier == ("shop", "customers")
