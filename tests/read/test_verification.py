"""``SET verify = 'full'`` finds damage that is not checked by default, and lists its checks."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fastavro
import pytest

import icesql
from tests.columns import json_columns
from tests.writer.table import TableWriter

FIELDS = json_columns("1 a long, 2 b string, 3 x double, 4 d date")
ROWS = [{"a": n, "b": f"text{n:04}" if n % 3 else None, "x": n / 7} for n in range(200)]


def run(table: TableWriter, verify: str = "full", sql: str = "SELECT a, b, x FROM t") -> Any:
    with icesql.connect(settings={"verify": verify}) as connection:
        connection.register_table("t", table.metadata_path)
        cursor = connection.execute(sql)
        return cursor.fetchall(), list(cursor.notes)


def refused(table: TableWriter, match: str) -> None:
    assert len(run(table, "normal")[0]) >= 198
    with pytest.raises(icesql.DataError, match=match):
        run(table)


@pytest.mark.parametrize("format", ["parquet", "orc", "avro"])
def test_a_whole_table_is_read_and_a_note_says_what_was_verified(tmp_path, format: str) -> None:
    table = TableWriter(tmp_path, FIELDS)
    first = table.data_file(ROWS, format=format)
    table.commit([first, table.data_file(ROWS[:5], format=format)])
    table.commit([table.position_deletes([(first, 0)]), table.equality_deletes([{"a": 1}], [1])])
    rows, notes = run(table)
    assert len(rows) == 202
    (note,) = [each for each in notes if each.startswith("verified")]
    assert "4 file(s)" in note
    assert "lengths, checksums, counts and bounds" in note
    assert not any("verified" in each for each in run(table, "normal")[1])


def test_a_file_is_verified_once(tmp_path) -> None:
    table = TableWriter(tmp_path, FIELDS)
    table.append(ROWS)
    with icesql.connect(settings={"verify": "full"}) as connection:
        connection.register_table("t", table.metadata_path)
        notes = [connection.execute("SELECT a FROM t").notes[-1] for _ in range(2)]
    assert "1 manifest(s); 1 file(s)" in notes[0]
    assert "0 file(s), 0 bytes" in notes[1]
    assert "1 known from before" in notes[1]


def test_count_is_no_longer_answered_by_metadata_alone(tmp_path) -> None:
    table = TableWriter(tmp_path, FIELDS)
    (file,) = table.append(ROWS)
    Path(file.record["file_path"]).write_bytes(b"PAR1")
    assert run(table, "normal", "SELECT count(*) FROM t")[0] == [(200,)]
    with pytest.raises(icesql.DataError, match="4 bytes long, the manifest says"):
        run(table, sql="SELECT count(*) FROM t")


def test_explain_says_that_everything_will_be_read(tmp_path) -> None:
    table = TableWriter(tmp_path, FIELDS)
    table.append(ROWS)
    lines = [line for (line,) in run(table, sql="EXPLAIN SELECT a FROM t")[0]]
    assert "verify full: every file is read in full before the query runs" in lines


def test_a_length_that_is_wrong(tmp_path) -> None:
    table = TableWriter(tmp_path, FIELDS)
    file = table.data_file(ROWS)
    file.record["file_size_in_bytes"] += 1
    table.commit([file])
    refused(table, r"bytes long, the manifest says")


def test_a_page_whose_checksum_is_wrong(tmp_path) -> None:
    table = TableWriter(tmp_path, FIELDS)
    options = {"compression": "none", "use_dictionary": False, "write_page_checksum": True}
    (file,) = table.append(ROWS, stats=False, **options)
    path = Path(file.record["file_path"])
    data = path.read_bytes()
    at = data.index(b"text0100")
    path.write_bytes(data[:at] + b"t3xt" + data[at + 4 :])
    refused(table, r"(?i)checksum")


@pytest.mark.parametrize(
    ("metrics", "match"),
    [
        ({"null_value_counts": {2: 1}}, "column b holds 67 nulls, the manifest counts 1"),
        ({"value_counts": {1: 7}}, "column a holds 200 values, the manifest counts 7"),
        ({"nan_value_counts": {3: 2}}, "column x holds 0 NaN, the manifest counts 2"),
        ({"lower_bounds": {1: (5).to_bytes(8, "little")}}, "column a holds 0, below the lower"),
        ({"upper_bounds": {2: b"text01"}}, "column b holds 'text0199', above the upper"),
    ],
)
def test_metrics_that_are_not_those_of_the_file(
    tmp_path, metrics: dict[str, Any], match: str
) -> None:
    table = TableWriter(tmp_path, FIELDS)
    file = table.data_file(ROWS)
    for name, values in metrics.items():
        file.record[name] = {**file.record[name], **values}
    table.commit([file])
    if "text01" in str(metrics):
        # Careless writers truncate an upper bound without raising it.
        assert len(run(table)[0]) == 200
        file.record["upper_bounds"][2] = b"text0"[:4] + b"0000"
        table.commit([], [file])
        table.commit([file])
    refused(table, match)


def test_a_deleted_row_that_the_file_does_not_have(tmp_path) -> None:
    table = TableWriter(tmp_path, FIELDS)
    (file,) = table.append(ROWS)
    table.commit([table.position_deletes([(file, 3), (file, 200)])])
    assert len(run(table, "normal")[0]) == 199
    refused(table, "row 200 is deleted, and the file has 200 rows")


def change_list(table: TableWriter, change: Callable[[dict[str, Any]], None]) -> None:
    metadata = json.loads(Path(table.metadata_path).read_text())
    path = Path(metadata["snapshots"][-1]["manifest-list"])
    with path.open("rb") as file:
        reader = fastavro.reader(file)
        schema, rows = reader.writer_schema, list(reader)
    for row in rows:
        change(row)
    with path.open("wb") as file:
        fastavro.writer(file, schema, rows)


@pytest.mark.parametrize(
    ("changed", "match"),
    [
        ({"manifest_length": 7}, "bytes long, its list says 7"),
        ({"added_rows_count": 3}, "200 added rows, its list says 3"),
        ({"sequence_number": 99}, "sequence number 99, that of its snapshot is 1"),
    ],
)
def test_a_list_that_is_wrong_about_a_manifest(
    tmp_path, changed: dict[str, Any], match: str
) -> None:
    table = TableWriter(tmp_path, FIELDS)
    table.append(ROWS)
    change_list(table, lambda row: row.update(changed))
    refused(table, match)


def test_totals_of_a_summary_that_are_not_those_of_the_snapshot(tmp_path) -> None:
    table = TableWriter(tmp_path, FIELDS)
    table.append(ROWS)
    path = Path(table.metadata_path)
    metadata = json.loads(path.read_text())
    metadata["snapshots"][-1]["summary"].update({"total-records": "199"})
    path.write_text(json.dumps(metadata))
    refused(table, "total-records is 200, the summary of snapshot .* says 199")
