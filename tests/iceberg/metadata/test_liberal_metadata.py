"""Metadata that other writers spell their own way, read where the answer is not in doubt."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import icesql
from icesql.errors import CorruptFileError
from icesql.iceberg.metadata.table_metadata import parse_metadata
from tests.tables import read_table
from tests.writer.table import TableWriter

FIELDS = [{"id": 1, "name": "a", "required": False, "type": "long"}]
DROP = object()


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    folder = tmp_path_factory.mktemp("liberal")
    table = TableWriter(folder, FIELDS)
    first = table.commit([table.data_file([{"a": 1}])])
    table.commit([table.data_file([{"a": 2}])])
    table.tag("first", first if isinstance(first, int) else table.snapshots[0]["snapshot-id"])
    return table


def changed(table, **changes):
    node = json.loads(Path(table.metadata_path).read_text())
    whole = dict(node)
    for key, value in changes.items():
        key = key.replace("_", "-")
        if value is DROP:
            node.pop(key, None)
        else:
            node[key] = value(whole) if callable(value) else value
    return node


def rows(tmp_path, node, sql="SELECT a FROM t ORDER BY a"):
    path = tmp_path / "x.metadata.json"
    path.write_bytes(node if isinstance(node, bytes) else json.dumps(node).encode())
    with icesql.connect() as connection:
        connection.register_table("t", str(path))
        return connection.execute(sql).fetchall()


def renumbered(table, ids):
    """The metadata with other snapshot ids, in order."""
    old = [snapshot["snapshot-id"] for snapshot in table.snapshots]
    other = dict(zip(old, ids, strict=True))
    return everywhere(changed(table), lambda value: other.get(value, value))


def test_a_branch_main_that_was_removed_by_pyiceberg(base, tmp_path):
    """It leaves out null fields, and keeps the log: after CREATE OR REPLACE TABLE, for example."""
    node = changed(base, current_snapshot_id=DROP, refs={})
    assert node["snapshot-log"]
    assert rows(tmp_path, node) == []
    with pytest.raises(CorruptFileError, match="current-snapshot-id is not set"):
        rows(tmp_path, changed(base, current_snapshot_id=DROP, refs=DROP))


@pytest.mark.parametrize("ids", [(2**64 - 5, 2**63), (2**127 + 1, 2**127 + 3), (-7, -(2**62))])
def test_snapshot_ids_of_any_length(base, tmp_path, ids):
    node = renumbered(base, ids)
    assert rows(tmp_path, node) == [(1,), (2,)]
    text = "SELECT a FROM t VERSION AS OF"
    assert rows(tmp_path, node, f"{text} '{ids[0]}'") == [(1,)]
    assert rows(tmp_path, node, f"{text} 'first'") == [(1,)]
    if ids[0] > 0:
        assert rows(tmp_path, node, f"{text} {ids[0]}") == [(1,)]
        assert rows(tmp_path, node, f"SELECT count(*) FROM t FOR VERSION AS OF {ids[1]}") == [(2,)]
    shown = rows(tmp_path, node, "SHOW SNAPSHOTS FROM t")
    assert [int(row[1]) for row in shown] == list(ids)
    path = tmp_path / "x.metadata.json"
    with icesql.connect() as connection:
        connection.register_table("t", str(path))
        assert connection.execute("SHOW SNAPSHOTS FROM t").arrow().num_rows == 2


def test_an_id_that_no_snapshot_has_is_not_found(base, tmp_path):
    with pytest.raises(icesql.SnapshotNotFoundError, match=str(2**64)):
        rows(tmp_path, changed(base), f"SELECT a FROM t VERSION AS OF {2**64}")


@pytest.mark.parametrize("none", [-1, 2**64 - 1, "-1", None, DROP])
def test_a_table_without_a_snapshot(base, tmp_path, none):
    node = changed(base, current_snapshot_id=none, refs=DROP, snapshots=[], snapshot_log=[])
    assert rows(tmp_path, node) == []


def everywhere(node, change):
    """The same JSON with every integer changed."""
    if isinstance(node, dict):
        return {key: everywhere(value, change) for key, value in node.items()}
    if isinstance(node, list):
        return [everywhere(value, change) for value in node]
    return change(node) if type(node) is int else node


def test_numbers_as_text_and_as_floats(base, tmp_path):
    assert rows(tmp_path, everywhere(changed(base), str)) == [(1,), (2,)]
    short = everywhere(changed(base), lambda value: float(value) if value < 2**53 else value)
    assert rows(tmp_path, short) == [(1,), (2,)]
    with pytest.raises(CorruptFileError):
        parse_metadata(json.dumps(changed(base, format_version=1.5)).encode(), "m")
    with pytest.raises(CorruptFileError):
        parse_metadata(json.dumps(changed(base, current_snapshot_id=1e300)).encode(), "m")


@pytest.mark.parametrize(
    "changes",
    [
        {"schemas": DROP, "current_schema_id": DROP, "schema": lambda node: node["schemas"][0]},
        {"schemas": DROP, "schema": lambda node: node["schemas"][0]},
        {"refs": lambda node: {"main": {"snapshot-id": node["current-snapshot-id"]}}},
        {"snapshots": lambda node: [
            {k: v for k, v in each.items() if k in ("snapshot-id", "timestamp-ms", "manifest-list")}
            for each in node["snapshots"]]},
        {"location": lambda node: node["location"] + "///"},
        {"schemas": lambda node: [{**node["schemas"][0], "fields": [
            {"id": "1", "name": "a", "type": "LONG", "required": "false", "write-default": "x"}]}]},
    ],
)  # fmt: skip
def test_what_no_answer_needs_may_be_odd(base, tmp_path, changes):
    assert rows(tmp_path, changed(base, **changes)) == [(1,), (2,)]


@pytest.mark.parametrize(("changes", "verdict"), read_table(__file__, "liberal.tsv"))
def test_what_no_answer_needs_may_be_missing(base, tmp_path, changes, verdict):
    made = {key: DROP if each is None else each for key, each in json.loads(changes).items()}
    if verdict == "read":
        assert rows(tmp_path, changed(base, **made)) == [(1,), (2,)]
        return
    # What is in doubt stays an error.
    with pytest.raises(icesql.DataError):
        rows(tmp_path, changed(base, **made))


def test_other_encodings_of_the_text(base, tmp_path):
    text = json.dumps(changed(base))
    for data in (b"\xef\xbb\xbf" + text.encode(), text.encode("utf-16"), b"\n \t" + text.encode()):
        assert rows(tmp_path, data) == [(1,), (2,)]


def test_an_empty_manifest_list_is_a_snapshot_without_files(base, tmp_path):
    empty = {"snapshot-id": 5, "timestamp-ms": 1, "manifest-list": "", "summary": {}}
    node = changed(base, snapshots=[empty], current_snapshot_id=5, refs=DROP, snapshot_log=[])
    assert rows(tmp_path, node) == []
    empty["summary"] = {"total-data-files": "1"}
    with pytest.raises(icesql.DataError):
        rows(tmp_path, node)
