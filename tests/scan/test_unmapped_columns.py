"""Files without field ids whose metrics are about columns that the name mapping leaves out."""

from __future__ import annotations

import json

import icesql
from tests.writer.table import TableWriter

FIELDS = [
    {"id": 1, "name": "a", "required": False, "type": "int"},
    {"id": 2, "name": "b", "required": False, "type": "int"},
]


def test_metrics_of_an_unmapped_column_prune_nothing(tmp_path):
    mapping = json.dumps([{"field-id": 1, "names": ["a"]}])
    table = TableWriter(tmp_path, FIELDS, properties={"schema.name-mapping.default": mapping})
    table.commit([table.data_file([{"a": 1, "b": 2}], ids=False)])
    with icesql.connect() as con:
        con.register_table("t", table.metadata_path)
        assert con.execute("SELECT a, b FROM t WHERE b IS NULL").fetchall() == [(1, None)]
        assert con.execute("SELECT a FROM t WHERE b = 2").fetchall() == []
        cursor = con.execute("SELECT a FROM t WHERE a = 5")
        assert cursor.fetchall() == []
        assert cursor.scan_reports[0].skipped_data_files == 1
