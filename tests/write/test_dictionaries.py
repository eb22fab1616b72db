from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import icesql
from icesql.write.parquet_file import PlainColumns, leaf_paths, unrepeated_columns


def test_columns_that_hardly_repeat_get_no_dictionary():
    count = 30_000
    rows = pa.table(
        {
            "key": np.arange(count),
            "few": np.arange(count) % 100,
            "word": [f"w{n % 500}" for n in range(count)],
            "text": [f"text {n}" for n in range(count)],
            "flag": [True] * count,
            "list": [[n] for n in range(count)],
        }
    )
    assert unrepeated_columns(rows) == {"key", "text"}
    assert unrepeated_columns(rows.slice(0, 100)) == frozenset()  # too few to tell
    uuids = pa.array([n.to_bytes(16, "big") for n in range(count)], pa.binary(16))
    assert unrepeated_columns(
        pa.table({"u": pa.ExtensionArray.from_storage(pa.uuid(), uuids)})
    ) == {"u"}


def test_partitions_that_agree_are_taken_to_be_alike_and_looked_at_again():
    unique = pa.table({"key": np.arange(30_000)})
    repeated = pa.table({"key": np.arange(30_000) % 9})
    columns = PlainColumns()
    assert [columns.of(unique) for _ in range(6)] == [{"key"}] * 6
    # Few rows have their dictionaries whatever others have.
    assert columns.of(unique.slice(0, 100)) == frozenset()
    assert [columns.of(repeated) for _ in range(7)] == [{"key"}] * 6 + [frozenset()]
    # They do not agree any more: each is judged by its own rows.
    assert [columns.of(each) for each in (unique, repeated)] == [{"key"}, frozenset()]


def test_leaves_are_named_as_parquet_names_them(tmp_path):
    kind = pa.struct([("x", pa.list_(pa.struct([("y", pa.int32())]))), ("z", pa.string())])
    schema = pa.schema(
        [("s", kind), ("m", pa.map_(pa.string(), pa.list_(pa.int64()))), ("i", pa.int8())]
    )
    pq.write_table(schema.empty_table(), tmp_path / "f.parquet")
    written = pq.ParquetFile(tmp_path / "f.parquet").schema
    names = [written.column(n).path for n in range(len(written))]
    assert [path for path, _ in leaf_paths(schema)] == names
    assert [top for _, top in leaf_paths(schema)] == ["s", "s", "m", "m", "i"]


def test_what_a_file_holds(tmp_path):
    with icesql.connect(warehouse=str(tmp_path)) as con:
        con.execute("CREATE SCHEMA s")
        con.execute(
            "CREATE TABLE s.t TBLPROPERTIES "
            "('write.parquet.dict-encoding-enabled.column.c' = 'false') AS "
            "SELECT i AS a, i % 10 AS b, i % 10 AS c, [i % 10] AS d FROM range(40000) r(i)"
        )
        assert con.execute("SELECT sum(a), sum(b), sum(c), sum(d[1]) FROM s.t").fetchall() == [
            (799980000, 180000, 180000, 180000)
        ]
    (file,) = tmp_path.rglob("*.parquet")
    group = pq.read_metadata(file).row_group(0)
    dictionaries = [group.column(n).has_dictionary_page for n in range(4)]
    assert dictionaries == [False, True, False, True]
