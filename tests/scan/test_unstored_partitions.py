"""Manifests that leave partition values out: rows are neither lost to pruning nor changed."""

from __future__ import annotations

import glob
import io
from pathlib import Path

import fastavro
import pytest

import icesql
from tests.writer.table import TableWriter

FIELDS = [
    {"id": 1, "name": "p", "required": False, "type": "int"},
    {"id": 2, "name": "a", "required": False, "type": "long"},
]
SPEC = [
    {"source-id": 1, "field-id": 1000, "name": "p", "transform": "identity"},
    {"source-id": 2, "field-id": 1001, "name": "b", "transform": "truncate[1000]"},
]


def without_partition(folder: str, dropped: str) -> None:
    """Rewrite every manifest without one field of its partition records."""
    for name in glob.glob(f"{folder}/metadata/*.avro"):
        reader = fastavro.reader(io.BytesIO(Path(name).read_bytes()))
        schema, rows = reader.writer_schema, list(reader)
        if schema["name"] != "manifest_entry":
            continue
        record = next(each for each in schema["fields"] if each["name"] == "data_file")["type"]
        partition = next(each for each in record["fields"] if each["name"] == "partition")["type"]
        partition["fields"] = [each for each in partition["fields"] if each["name"] != dropped]
        with open(name, "wb") as out:
            fastavro.writer(out, schema, rows, metadata=dict(reader.metadata))


@pytest.mark.parametrize("reader", ["auto", "arrow"])
@pytest.mark.parametrize("dropped", ["p", "b"])
def test_what_a_manifest_does_not_say_prunes_nothing(tmp_path, reader, dropped):
    table = TableWriter(tmp_path, FIELDS, SPEC)
    rows = ((1, 10), (2, 20), (None, 30))
    table.commit([table.data_file([{"p": p, "a": a}], partition=(p, 0)) for p, a in rows])
    table.commit([table.equality_deletes([{"a": 20}], [2], partition=(2, 0))])
    without_partition(str(tmp_path), dropped)
    expected = {
        "SELECT p, a FROM t ORDER BY a": [(1, 10), (None, 30)],
        "SELECT a FROM t WHERE p = 1": [(10,)],
        "SELECT a FROM t WHERE p IS NULL": [(30,)],
        "SELECT a FROM t WHERE p IS NOT NULL": [(10,)],
        "SELECT a FROM t WHERE p <> 7 OR a = 30 ORDER BY a": [(10,), (30,)],
        "SELECT p FROM t WHERE a = 10": [(1,)],
        "SELECT p, count(*) FROM t GROUP BY p ORDER BY p": [(1, 1), (None, 1)],
    }
    with icesql.connect(settings={"local_reader": reader}) as connection:
        connection.register_table("t", table.metadata_path)
        found = {sql: connection.execute(sql).fetchall() for sql in expected}
        shown = connection.execute("EXPLAIN SELECT a FROM t WHERE p = 1").fetchall()
    assert found == expected
    assert shown
