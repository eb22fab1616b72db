"""Files that a task writes: their rows, their metrics, their names, and none of them after a failure."""

from __future__ import annotations

import base64
import math
import pickle
import random
from ast import literal_eval
from collections.abc import Iterator, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import quote_plus
from uuid import UUID

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from icesql.config import Settings
from icesql.context import QueryContext
from icesql.errors import DataError, OperationalError, QueryCancelledError, UnsupportedTableError
from icesql.iceberg import types as t
from icesql.iceberg.bounds import decode_bound
from icesql.iceberg.manifest.data_file import DataFile
from icesql.iceberg.metadata.table_metadata import SortField, SortOrder, TableMetadata
from icesql.iceberg.partitioning import PartitionField, PartitionSpec
from icesql.iceberg.schema import Schema
from icesql.storage.open import Storage
from icesql.write.parquet_schema import parquet_schema
from icesql.write.write_task import WriteTask, write_task, write_task_for
from tests.columns import array, columns
from tests.tables import read_table

DAY = timedelta(days=1)


def metadata(
    tmp_path: Path,
    *fields: t.NestedField | str,
    spec: str = "",
    order: str = "",
    **properties: str,
) -> TableMetadata:
    parts = tuple(
        PartitionField((int(source),), 1000 + place, transform, name)
        for place, (source, transform, name) in enumerate(_words(spec))
    )
    sorting = tuple(SortField((int(source),), *rest) for source, *rest in _words(order))
    found = [
        field for each in fields for field in (columns(each) if isinstance(each, str) else [each])
    ]
    return TableMetadata(
        format_version=2,
        table_uuid="u",
        location=str(tmp_path / "db/t"),
        last_updated_ms=0,
        last_sequence_number=0,
        schemas={0: Schema(tuple(found))},
        current_schema_id=0,
        specs={0: PartitionSpec(0, parts)},
        default_spec_id=0,
        sort_orders={0: SortOrder(), 1: SortOrder(1, sorting)},
        default_sort_order_id=1 if order else 0,
        properties={key.replace("__", "-"): value for key, value in properties.items()},
    )


def _words(text: str) -> list[list[str]]:
    """The words of each part, such as ``1 identity p, 2 bucket[4] b``."""
    return [each.split() for each in text.split(", ") if each]


def column(field_id: int, name: str, type: t.IcebergType, **more: Any) -> t.NestedField:
    return t.NestedField(field_id, name, type, **more)


def task_of(table: TableMetadata) -> WriteTask:
    sources = tuple(range(len(table.schema.fields)))
    return write_task_for(table, Storage(), sources)


def written(
    table: TableMetadata, rows: pa.Table, *, size: int = 1000, **settings: Any
) -> list[DataFile]:
    query = QueryContext(Settings(**settings))
    result = write_task(task_of(table), rows.to_batches(max_chunksize=size), query, rows.schema)
    assert result.rows == rows.num_rows == sum(each.record_count for each in result.files)
    for each in result.files:
        assert each.file_size_in_bytes == Path(each.path).stat().st_size
        assert each.record_count == pq.read_metadata(each.path).num_rows > 0
    assert len({each.path for each in result.files}) == len(result.files)
    return list(result.files)


def rows_of(files: Sequence[DataFile]) -> Iterator[dict[str, Any]]:
    for each in files:
        yield from pq.ParquetFile(each.path).read().to_pylist()


def all_files(tmp_path: Path) -> list[Path]:
    return [each for each in tmp_path.rglob("*") if each.is_file()]


# ------------------------------------------------------------------ files


def test_the_schema_of_a_file(tmp_path) -> None:
    struct = t.StructType((column(20, "in side", t.STRING), column(21, "gone", t.UNKNOWN)))
    table = metadata(
        tmp_path,
        "1 i int!, 2 small decimal(9, 2), 3 middle decimal(18, 2), 4 wide decimal(19, 2), "
        "5 time time, 6 ts timestamp, 7 tz timestamptz, 8 ns timestamptz_ns, 9 u uuid, 10 f fixed[3]",
        column(11, "9.x", struct),
        "12 l list<30 long!>, 13 m map<31 string, 32 date>, 14 nothing unknown",
    )
    kinds = [pa.int32()] + [pa.null()] * 13
    rows = pa.table(
        [pa.array([1] if kind == pa.int32() else [None], kind) for kind in kinds],
        names=[f.name for f in table.schema.fields],
    )
    (file,) = written(table, rows)
    shown = str(pq.ParquetFile(file.path).schema)
    for line in [
        "required int32 field_id=1 i;",
        "optional int32 field_id=2 small (Decimal(precision=9, scale=2));",
        "optional int64 field_id=3 middle (Decimal(precision=18, scale=2));",
        "optional fixed_len_byte_array(9) field_id=4 wide (Decimal(precision=19, scale=2));",
        "optional int64 field_id=5 time (Time(isAdjustedToUTC=false, timeUnit=microseconds));",
        "field_id=6 ts (Timestamp(isAdjustedToUTC=false, timeUnit=microseconds",
        "field_id=7 tz (Timestamp(isAdjustedToUTC=true, timeUnit=microseconds",
        "field_id=8 ns (Timestamp(isAdjustedToUTC=true, timeUnit=nanoseconds",
        "optional fixed_len_byte_array(16) field_id=9 u (UUID);",
        "optional fixed_len_byte_array(3) field_id=10 f;",
        "optional group field_id=11 _9_x2Ex {",
        "optional binary field_id=20 in_x20side (String);",
        "optional group field_id=12 l (List) {",
        "required int64 field_id=30 element;",
        "required binary field_id=31 key (String);",
        "optional int32 field_id=32 value (Date);",
    ]:
        assert line in shown
    assert "gone" not in shown
    assert "nothing" not in shown
    assert b"ARROW:schema" not in (pq.read_metadata(file.path).metadata or {})
    assert set(file.value_counts or ()) == {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 20}
    assert set(file.column_sizes or ()) == {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 20, 30, 31, 32}


def test_types_that_are_not_written(tmp_path) -> None:
    table = metadata(tmp_path, "1 x list<2 unknown>")
    with pytest.raises(UnsupportedTableError, match="writing column x"):
        write_task(task_of(table), [])


def test_files_roll_at_the_target_size(tmp_path) -> None:
    draw = random.Random(1)
    rows = pa.table({"i": [draw.randrange(2**62) for _ in range(60_000)]})
    table = metadata(
        tmp_path, "1 i long", **{"write.target-file-size-bytes": "100000",
        "write.parquet.row-group-size-bytes": "40000"},
    )  # fmt: skip
    files = written(table, rows, threads=1)
    assert 4 <= len(files) <= 7
    assert all(100_000 <= each.file_size_in_bytes < 160_000 for each in files[:-1])
    assert list(rows_of(files)) == rows.to_pylist()
    for each in files:
        footer = pq.read_metadata(each.path)
        assert footer.num_row_groups > 1 or each is files[-1]
        starts = [
            min(filter(None, (c.dictionary_page_offset, c.data_page_offset)))
            for c in (footer.row_group(i).column(0) for i in range(footer.num_row_groups))
        ]
        assert list(each.split_offsets or ()) == starts == sorted(starts)
        assert starts[0] == 4
    several = written(table, rows, threads=3)
    assert sorted(r["i"] for r in rows_of(several)) == sorted(rows["i"].to_pylist())


def test_small_writes_make_one_file(tmp_path) -> None:
    table = metadata(tmp_path, "1 i long")
    (file,) = written(table, pa.table({"i": range(10)}), size=1, threads=4)
    assert file.path.startswith(f"{table.location}/data/00000-0-")
    assert file.path.endswith("-00001.parquet")
    assert (file.partition, file.spec_id, file.sort_order_id) == ((), 0, 0)
    assert written(table, pa.table({"i": pa.array([], pa.int64())})) == []


def test_properties_are_kept(tmp_path) -> None:
    properties = {
        "write.parquet.compression-codec": "SNAPPY",
        "write.parquet.bloom-filter-enabled.column.s": "true",
        "write.parquet.dict-encoding-enabled.column.s": "false",
        "write.data.path": f"{tmp_path}/elsewhere/",
    }
    table = metadata(tmp_path, "1 s string", **properties)
    (file,) = written(table, pa.table({"s": ["a", "b"]}))
    assert file.path.startswith(f"{tmp_path}/elsewhere/00000-0-")
    chunk = pq.read_metadata(file.path).row_group(0).column(0)
    assert chunk.compression == "SNAPPY"
    assert not chunk.has_dictionary_page
    default = metadata(tmp_path, "1 s string")
    (file,) = written(default, pa.table({"s": ["a"]}))
    assert pq.read_metadata(file.path).row_group(0).column(0).compression == "GZIP"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("write.format.default", "orc"),
        ("write.parquet.compression-codec", "lzo"),
        ("write.target-file-size-bytes", "0"),
        ("write.parquet.row-group-size-bytes", "many"),
        ("write.location-provider.impl", "com.example.Provider"),
        ("encryption.key-id", "k"),
        ("write.parquet.compression-level", "best"),
    ],
)
def test_properties_that_cannot_be_kept(tmp_path, key: str, value: str) -> None:
    with pytest.raises(UnsupportedTableError):
        task_of(metadata(tmp_path, "1 s string", **{key: value}))


# ------------------------------------------------------------------ metrics


def metrics_of(file: DataFile, field_id: int, type: t.IcebergType) -> str:
    counts = (file.value_counts, file.null_value_counts, file.nan_value_counts)
    bounds = [each.get(field_id) for each in (file.lower_bounds, file.upper_bounds)]
    decoded = [None if each is None else decode_bound(type, each) for each in bounds]
    return repr((*(each.get(field_id) for each in counts), *decoded))


@pytest.mark.parametrize(
    ("schema", "mode", "values", "field_id", "metrics"), read_table(__file__, "metrics.tsv")
)
def test_metrics_are_those_of_the_rows(
    tmp_path, schema: str, mode: str, values: str, field_id: str, metrics: str
) -> None:
    kind, number = schema.partition(" c ")[2], int(field_id)
    rows = pa.table({"c": array(kind, literal_eval(values))})
    for key in ("default", "column.c"):
        properties = {f"write.metadata.metrics.{key}": mode} if mode else {}
        table = metadata(tmp_path, schema, **properties)
        (file,) = written(table, rows)
        assert metrics_of(file, number, table.schema.type_of(number)) == metrics
        assert (number in file.column_sizes) is (mode != "none")


def test_metrics_of_random_rows(tmp_path) -> None:
    draw = random.Random(3)
    nan = math.nan
    struct = t.StructType((column(20, "d", t.DOUBLE), column(21, "s", t.STRING)))
    kinds: dict[str, tuple[t.IcebergType, list[Any]]] = {
        "b": (t.BOOLEAN, [True, False]),
        "i": (t.INTEGER, [-5, 3, 2**31 - 1]),
        "l": (t.LONG, [-(2**63), 7]),
        "f": (t.FLOAT, [nan, 1.5, -0.0, 0.0]),
        "d": (t.DOUBLE, [nan, -math.inf, 3.5]),
        "n": (t.DOUBLE, [nan]),
        "p": (t.DecimalType(9, 2), [Decimal("-1.28"), Decimal("0.01")]),
        "q": (t.DecimalType(38, 2), [Decimal("-1.28"), Decimal(10) ** 30 / 100]),
        "day": (t.DATE, [date(1969, 12, 31), date(2026, 1, 1)]),
        "ts": (t.TIMESTAMP, [datetime(1960, 1, 1), datetime(2026, 1, 1)]),
        "s": (t.STRING, ["abcdefghijklmnopqrstuvwxyz", "é", "", "\U0010ffff" * 20]),
        "x": (t.BINARY, [b"\xff" * 20, b"\x00", b"a" * 17]),
        "u": (t.UUID, [UUID(int=1), UUID(int=2**127 + 5)]),
        "k": (t.FixedType(3), [b"\xff\xff\xff", b"abc"]),
        "st": (struct, [{"d": nan, "s": None}, {"d": 1.0, "s": "q"}]),
        "z": (t.STRING, [None]),
    }
    fields = [column(place, name, type) for place, (name, (type, _)) in enumerate(kinds.items(), 1)]
    given = {
        name: [draw.choice([*values, None]) for _ in range(300)]
        for name, (_, values) in kinds.items()
    }
    arrays = {
        name: pa.array(
            [v.bytes if isinstance(v, UUID) else v for v in values],
            pa.binary(16) if name == "u" else pa.decimal128(38, 2) if name == "q" else None,
        )
        for name, values in given.items()
    }
    small = {
        "write.parquet.row-group-size-bytes": "1000",
        "write.metadata.metrics.column.z": "full",
    }
    table = metadata(tmp_path, *fields, **small)
    (file,) = written(table, pa.table(arrays), threads=1)
    assert pq.read_metadata(file.path).num_row_groups == 1
    leaves = {f.field_id: given[f.name] for f in fields if f.name != "st"}
    leaves[20] = [None if v is None else v["d"] for v in given["st"]]
    leaves[21] = [None if v is None else v["s"] for v in given["st"]]
    by_id = {**{f.field_id: f.type for f in fields}, 20: t.DOUBLE, 21: t.STRING}
    for field_id, values in leaves.items():
        there = [v for v in values if v is not None]
        nans = [v for v in there if v != v]
        assert file.value_counts[field_id] == 300
        assert file.null_value_counts[field_id] == 300 - len(there)
        assert file.nan_value_counts.get(field_id) == (
            len(nans) if t.is_floating(by_id[field_id]) else None
        )
        rest = [v for v in there if v == v]
        lower, upper = file.lower_bounds.get(field_id), file.upper_bounds.get(field_id)
        if not rest:
            assert lower is upper is None
            continue
        assert lower is not None
        low = decode_bound(by_id[field_id], lower)
        high = None if upper is None else decode_bound(by_id[field_id], upper)
        for value in rest:
            plain = _internal(value)
            assert low <= plain, field_id
            assert high is None or plain <= high, field_id
        if by_id[field_id] not in (t.STRING, t.BINARY):
            assert (low, high) == (min(map(_internal, rest)), max(map(_internal, rest)))
    names = {f.name: f.field_id for f in fields}
    assert file.lower_bounds[names["s"]] == b""
    assert names["s"] not in file.upper_bounds  # nothing is above U+10FFFF
    assert names["x"] not in file.upper_bounds
    assert file.upper_bounds[names["f"]] == bytes.fromhex("0000c03f")
    assert file.lower_bounds[names["f"]] == bytes.fromhex("00000080")  # -0.0
    assert names["n"] not in file.lower_bounds


def _internal(value: Any) -> Any:
    match value:
        case datetime():
            return (value - datetime(1970, 1, 1)) // timedelta(microseconds=1)
        case date():
            return (value - date(1970, 1, 1)).days
        case UUID():
            return value.bytes
        case _:
            return value


def test_bounds_of_several_row_groups(tmp_path) -> None:
    """Neither the last group's alone, nor those of decimals compared as bytes."""
    wide = t.DecimalType(38, 0)
    table = metadata(
        tmp_path, column(1, "q", wide), "2 s string, 3 d double",
        **{"write.parquet.row-group-size-bytes": "1000"},
    )  # fmt: skip
    count = 9000
    decimals = [Decimal(each - 4000) for each in range(count)]
    nans = [math.nan if each < 3000 else float(each) for each in range(count)]
    rows = pa.table(
        {
            "q": pa.array(decimals, pa.decimal128(38, 0)),
            "s": [f"{each:06}" for each in range(count)],
            "d": nans,
        }
    )
    (file,) = written(table, rows, threads=1, size=count)
    footer = pq.read_metadata(file.path)
    assert footer.num_row_groups >= 3
    assert decode_bound(wide, file.lower_bounds[1]) == -4000
    assert decode_bound(wide, file.upper_bounds[1]) == 4999
    assert (file.lower_bounds[2], file.upper_bounds[2]) == (b"000000", b"008999")
    assert decode_bound(t.DOUBLE, file.lower_bounds[3]) == 3000.0
    assert file.nan_value_counts == {3: 3000}


def test_values_too_long_for_the_footer_have_counts_alone(tmp_path) -> None:
    table = metadata(tmp_path, "1 s string")
    (file,) = written(table, pa.table({"s": ["x" * 10_000, "a", None]}))
    assert file.null_value_counts == {1: 1}
    assert file.value_counts == {1: 3}
    assert 1 not in file.lower_bounds or file.lower_bounds[1] == b"a"


# ------------------------------------------------------------------ partitions


def test_partitions(tmp_path) -> None:
    fields = "1 ts timestamptz, 2 s string, 3 i long, 4 st struct<5 d date>"
    spec = "1 day ts_day, 2 identity data#1, 3 bucket[4] i_bucket, 5 month d_month"
    table = metadata(tmp_path, fields, spec=spec)
    start = datetime(2026, 1, 1)
    draw = random.Random(5)
    rows = [
        {
            "ts": draw.choice([start, start + DAY, None]),
            "s": draw.choice(["val#1", "a b/c=é~", None, ""]),
            "i": draw.choice([34, 35, None]),
            "st": draw.choice([{"d": date(2026, 3, 1)}, None]),
        }
        for _ in range(400)
    ]
    files = written(table, pa.Table.from_pylist(rows, parquet_schema(table.schema)), size=37)
    assert len({each.partition for each in files}) == len(files)
    from mmh3 import hash as murmur3

    def bucket(value: int) -> int:
        return (murmur3(value.to_bytes(8, "little")) & 0x7FFFFFFF) % 4

    expected = {
        (
            r["ts"] and (r["ts"] - datetime(1970, 1, 1)).days,
            r["s"],
            r["i"] and bucket(r["i"]),
            r["st"] and 56 * 12 + 2,
        )
        for r in rows
    }
    assert {each.partition for each in files} == expected
    for each in files:
        for row in rows_of([each]):
            assert row["s"] == each.partition[1]
            assert (row["i"] and bucket(row["i"])) == each.partition[2]
    assert sum(each.record_count for each in files) == 400
    folders = {
        each.path.removeprefix(f"{table.location}/data/").rpartition("/")[0] for each in files
    }
    assert f"ts_day=2026-01-02/data%231=val%231/i_bucket={bucket(34)}/d_month=2026-03" in folders
    assert (
        f"ts_day=2026-01-01/data%231=a+b%2Fc%3D%C3%A9%7E/i_bucket={bucket(34)}/d_month=null"
        in folders
    )


@pytest.mark.parametrize("text", ["z" * 400, "\u00e9" * 60, "\u4f60" * 200, "a%" * 150])
def test_a_partition_of_a_text_longer_than_names_of_folders(tmp_path, text: str) -> None:
    table = metadata(tmp_path, "1 s string", spec="1 identity s")
    other = text + "!"
    files = written(table, pa.table({"s": [text, other, text]}))
    assert {each.partition: each.record_count for each in files} == {(text,): 2, (other,): 1}
    for each in files:
        folder = each.path.removeprefix(f"{table.location}/data/s=").partition("/")[0]
        assert len(folder) <= 200
        assert folder
        assert quote_plus(text).startswith(folder)


def test_partitions_of_odd_values(tmp_path) -> None:
    fields = "1 d double, 2 x binary, 3 b boolean"
    spec = "1 identity d, 2 identity x, 3 void b"
    table = metadata(tmp_path, fields, spec=spec)
    rows = pa.table(
        {"d": [math.nan, math.nan, 1.0, None], "x": [b"\xff", b"\xff", None, None], "b": [True] * 4}
    )
    files = written(table, rows, size=1)
    found = {str(each.partition): each.record_count for each in files}
    assert found == {"(nan, b'\\xff', None)": 2, "(1.0, None, None)": 1, "(None, None, None)": 1}
    text = base64.b64encode(b"\xff").decode().replace("/", "%2F").replace("=", "%3D")
    assert any(f"/x={text}/b=null/" in each.path for each in files)


def test_partitions_of_both_zeros(tmp_path) -> None:
    """Java reads a column of an identity partition from the tuple, so the signs stay apart."""
    table = metadata(tmp_path, "1 d double", spec="1 identity d")
    rows = pa.table({"d": [0.0, -0.0, 0.0, math.nan, -0.0, math.nan]})
    for size in (1, 1 << 20):
        files = written(table, rows, size=size)
        found = {str(each.partition): each.record_count for each in files}
        assert found == {"(0.0,)": 2, "(-0.0,)": 2, "(nan,)": 2}
        for each in files:
            assert {str(row["d"]) for row in rows_of([each])} == {str(each.partition[0])}


def test_more_partitions_than_memory(tmp_path) -> None:
    """What does not fit waits on disk, and nothing of that is left."""
    draw = random.Random(9)
    table = metadata(tmp_path, "1 p int, 2 s string", spec="1 identity p")
    count = 40_000
    rows = pa.table(
        {"p": [draw.randrange(50) for _ in range(count)], "s": [f"{n:0200}" for n in range(count)]}
    )
    folder = tmp_path / "spill"
    query = QueryContext(Settings(memory_limit=8 << 20, temp_directory=str(folder), threads=2))
    result = write_task(task_of(table), rows.to_batches(max_chunksize=1000), query)
    # The folder is there: rows were spilled to it.
    assert list(folder.iterdir()) == []
    assert len(result.files) == 50
    by_partition: dict[int, list[str]] = {}
    for row in rows.to_pylist():
        by_partition.setdefault(row["p"], []).append(row["s"])
    for each in result.files:
        # In the order in which they came.
        assert [row["s"] for row in rows_of([each])] == by_partition[each.partition[0]]


def test_sorted_rows(tmp_path) -> None:
    nan = math.nan
    order = "1 truncate[2] asc nulls-last, 2 identity desc nulls-last"
    table = metadata(tmp_path, "1 s string, 2 d double", order=order)
    rows = pa.table({
        "s": ["b1", None, "aax", "aa", "aa", "aa", "aay", "aa"],
        "d": [1.0, 2.0, nan, -0.0, 0.0, None, -1.0, math.inf],
    })  # fmt: skip
    (file,) = written(table, rows)
    assert file.sort_order_id == 1
    found = [(r["s"], str(r["d"])) for r in rows_of([file])]
    assert found == [
        ("aax", "nan"), ("aa", "inf"), ("aa", "0.0"), ("aa", "-0.0"), ("aay", "-1.0"),
        ("aa", "None"), ("b1", "1.0"), (None, "2.0"),
    ]  # fmt: skip


def test_each_sorted_file_is_sorted_whole(tmp_path) -> None:
    draw = random.Random(2)
    order = "1 identity asc nulls-first"
    table = metadata(tmp_path, "1 i long, 2 s string", order=order)
    rows = pa.table(
        {"i": [draw.choice([None, *range(1000)]) for _ in range(30_000)], "s": ["x" * 200] * 30_000}
    )
    files = written(table, rows, memory_limit=8 << 20, temp_directory=str(tmp_path / "tmp"))
    assert len(files) > 1
    for each in files:
        keys = [-1 if r["i"] is None else r["i"] for r in rows_of([each])]
        assert keys == sorted(keys)
    kept = sorted(-1 if r["i"] is None else r["i"] for r in rows_of(files))
    assert kept == sorted(-1 if v is None else v for v in rows["i"].to_pylist())


def test_an_order_by_an_unknown_transform_is_not_claimed(tmp_path) -> None:
    order = "1 zorder asc nulls-first"
    table = metadata(tmp_path, "1 i long", order=order)
    (file,) = written(table, pa.table({"i": [2, 1]}))
    assert file.sort_order_id == 0


def test_object_storage_folders(tmp_path) -> None:
    import re

    properties = {"write.object-storage.enabled": "true"}
    table = metadata(tmp_path, "1 p string", spec="1 identity p", **properties)
    (file,) = written(table, pa.table({"p": ["a"]}))
    inner = file.path.removeprefix(f"{table.location}/data/")
    assert re.fullmatch(r"[01]{4}/[01]{4}/[01]{4}/[01]{8}/p=a/00000-0-[\w-]+-00001\.parquet", inner)
    plain = {**properties, "write.object-storage.partitioned-paths": "false"}
    table = metadata(tmp_path, "1 p string", spec="1 identity p", **plain)
    (file,) = written(table, pa.table({"p": ["a"]}))
    inner = file.path.removeprefix(f"{table.location}/data/")
    assert re.fullmatch(r"[01]{4}/[01]{4}/[01]{4}/[01]{8}-00000-0-[\w-]+-00001\.parquet", inner)
    away = {**properties, "write.data.path": f"{tmp_path}/bucket"}
    table = metadata(tmp_path, "1 p string", **away)
    (file,) = written(table, pa.table({"p": ["a"]}))
    assert re.match(
        rf"{tmp_path}/bucket/[01]{{4}}/[01]{{4}}/[01]{{4}}/[01]{{8}}/db/t/00000-", file.path
    )


# ------------------------------------------------------------------ failures


@pytest.mark.parametrize("spec", ["", "1 truncate[10000] p"], ids=["plain", "partitioned"])
def test_a_failure_leaves_no_file(tmp_path, spec: Any) -> None:
    table = metadata(tmp_path, "1 i int", spec=spec, **{"write.target-file-size-bytes": "5000"})
    good = pa.table({"i": range(50_000)}).to_batches(max_chunksize=5000)

    def batches() -> Iterator[pa.RecordBatch]:
        yield from good
        yield pa.record_batch({"i": [1, 2**40]})

    with pytest.raises(DataError, match=r'"i" \(int\), row 50,002: 1099511627776 does not fit'):
        write_task(task_of(table), batches())
    assert all_files(tmp_path) == []


def test_a_cancelled_write_leaves_no_file(tmp_path) -> None:
    table = metadata(tmp_path, "1 i long", **{"write.target-file-size-bytes": "5000"})
    query = QueryContext()

    def batches() -> Iterator[pa.RecordBatch]:
        for number in range(100):
            if number == 50:
                query.cancel.set()
            yield pa.record_batch({"i": range(10_000)})

    with pytest.raises(QueryCancelledError):
        write_task(task_of(table), batches(), query)
    assert all_files(tmp_path) == []


def test_a_folder_that_cannot_be_written(tmp_path) -> None:
    table = metadata(tmp_path, "1 i long")
    Path(table.location).parent.mkdir(parents=True)
    Path(table.location).write_text("a file, no folder")
    with pytest.raises(OperationalError, match=r"cannot write .*: cannot make its folder: "):
        write_task(task_of(table), [pa.record_batch({"i": [1]})])


def test_a_task_crosses_to_other_processes(tmp_path) -> None:
    table = metadata(tmp_path, "1 i long", spec="1 bucket[3] b")
    task = pickle.loads(pickle.dumps(task_of(table)))
    result = pickle.loads(pickle.dumps(write_task(task, [pa.record_batch({"i": range(100)})])))
    assert sum(each.record_count for each in result.files) == 100
