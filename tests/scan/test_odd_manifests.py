"""Other writers' values in manifest entries beside the paths: the rows stay the same."""

from __future__ import annotations

import glob
import io
from decimal import Decimal
from pathlib import Path

import fastavro
import pytest

import icesql
from tests.writer.table import TableWriter

FIELDS = [
    {"id": n, "name": name, "required": False, "type": type_}
    for n, (name, type_) in enumerate(
        {"i": "int", "s": "string", "d": "decimal(10,2)", "b": "boolean", "f": "double"}.items(), 1
    )
]
ROWS = [
    {"i": n, "s": "é" * n, "d": Decimal(n) - 5, "b": n % 2 == 0, "f": float("nan") if n == 3 else n}
    for n in range(8)
] + [dict.fromkeys("isdbf")]
QUESTIONS = {
    "SELECT count(*) FROM t": 9,
    "SELECT count(*) FROM t WHERE i >= 3": 5,
    "SELECT count(*) FROM t WHERE i IS NULL": 1,
    "SELECT count(i) FROM t WHERE i IS NOT NULL": 8,
    "SELECT count(*) FROM t WHERE s > 'é'": 6,
    "SELECT count(*) FROM t WHERE s LIKE 'éé%'": 6,
    "SELECT count(*) FROM t WHERE d < 0": 5,
    "SELECT count(*) FROM t WHERE b": 4,
    "SELECT count(*) FROM t WHERE f > 2": 5,
    "SELECT max(i) FROM t": 7,
}


def pairs(change):
    def changed(old):
        made = [change(each["key"], each["value"]) for each in old or ()]
        return [{"key": key, "value": value} for key, value in made]

    return changed


def longer_decimal(key, value):
    return key, (b"\xff" if value[0] & 128 else b"\0") * 20 + value if key == 3 else value


BOTH = ("lower_bounds", "upper_bounds")
NO_COUNTS = ("value_counts", "null_value_counts", "nan_value_counts", "column_sizes")
ODD = {
    "empty keys": {"key_metadata": b""},
    "unknown order": {"sort_order_id": 99},
    "unsorted splits": {"split_offsets": [900, 4]},
    "splits outside": {"split_offsets": [4, 10**9, -1]},
    "no splits": {"split_offsets": []},
    "cut bounds": dict.fromkeys(BOTH, pairs(lambda key, value: (key, value[:-1]))),
    "long bounds": dict.fromkeys(BOTH, pairs(lambda key, value: (key, value + b"\0"))),
    "long decimals": dict.fromkeys(BOTH, pairs(longer_decimal)),
    "empty lists of bounds": {key: [] for key in BOTH},
    "no bounds": dict.fromkeys(BOTH),
    "upper bounds only": {"lower_bounds": None},
    "lower bounds only": {"upper_bounds": None},
    "bounds of unknown fields": dict.fromkeys(BOTH, pairs(lambda key, value: (key + 90, value))),
    "counts of -1": dict.fromkeys(NO_COUNTS, pairs(lambda key, _: (key, -1))),
    "no counts": dict.fromkeys(NO_COUNTS),
    "more nulls than values": {"null_value_counts": pairs(lambda key, _: (key, 10**6))},
    "unknown record count": {"record_count": -1},
    "format in lower case": {"file_format": "parquet"},
    "equality ids of data": {"equality_ids": []},
    "path with a scheme": {"file_path": lambda old: f"file://{old}"},
    "path with two slashes": {"file_path": lambda old: old.replace("/data/", "//data/")},
}


def rewrite(folder, changes):
    for name in glob.glob(f"{folder}/metadata/*.avro"):
        reader = fastavro.reader(io.BytesIO(Path(name).read_bytes()))
        schema, rows = reader.writer_schema, list(reader)
        if schema["name"] != "manifest_entry":
            continue
        for row in rows:
            for key, value in changes.items():
                file = row["data_file"]
                file[key] = value(file[key]) if callable(value) else value
        header = {k: v for k, v in reader.metadata.items() if not k.startswith("avro.")}
        with open(name, "wb") as out:
            fastavro.writer(out, schema, rows, metadata=header)


@pytest.mark.parametrize("odd", ODD)
def test_the_rows_are_the_same(tmp_path, odd):
    table = TableWriter(tmp_path, FIELDS)
    table.commit([table.data_file(ROWS[:5]), table.data_file(ROWS[5:])])
    rewrite(tmp_path, ODD[odd])
    for reader in ("auto", "arrow"):
        with icesql.connect(settings={"local_reader": reader}) as connection:
            connection.register_table("t", table.metadata_path)
            found = {sql: connection.execute(sql).fetchone()[0] for sql in QUESTIONS}
        assert found == QUESTIONS, reader
