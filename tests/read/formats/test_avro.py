"""Avro data files: ids, logical types, unions, maps, codecs, splits and damage."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import pytest

from icesql.errors import CorruptFileError, UnsupportedTableError
from icesql.iceberg.manifest.data_file import DataFile, FileContent
from icesql.iceberg.metadata.name_mapping import MappedField, NameMapping
from icesql.iceberg.metadata_columns import POS
from icesql.iceberg.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    LONG,
    STRING,
    TIME,
    TIMESTAMP,
    TIMESTAMP_NS,
    TIMESTAMPTZ,
    UUID,
    DecimalType,
    FixedType,
    ListType,
    MapType,
    StructType,
)
from icesql.scan.tasks.task import FileScanTask
from tests.read.read_tables import column, context, data_file, position_deletes, rows, values, whole


def write_avro(
    folder: Path, fields: Sequence[dict[str, Any]], records: Sequence[Any], **more: Any
) -> DataFile:
    path = folder / f"{len(list(folder.iterdir()))}.avro"
    schema = {"type": "record", "name": "table", "fields": list(fields)}
    with path.open("wb") as stream:
        fastavro.writer(stream, schema, records, **more)
    return data_file(str(path), file_format="AVRO", record_count=len(records))


def field(field_id: int | None, name: str, type: Any) -> dict[str, Any]:
    ids = {} if field_id is None else {"field-id": field_id}
    return {"name": name, "type": type, **ids}


A = field(1, "a", ["null", "long"])


def test_every_type_is_read_from_its_avro_form(tmp_path: Path) -> None:
    decimal = {
        "type": "fixed",
        "name": "d",
        "size": 9,
        "logicalType": "decimal",
        "precision": 20,
        "scale": 2,
    }
    cases: list[tuple[Any, Any, Any, Any]] = [
        ("boolean", column(1, "c1", BOOLEAN), True, True),
        ("int", column(2, "c2", LONG), -5, -5),
        ("float", column(3, "c3", DOUBLE), 1.5, 1.5),
        ({"type": "int", "logicalType": "date"}, column(4, "c4", DATE), -1, date(1969, 12, 31)),
        (
            {"type": "int", "logicalType": "date"},
            column(5, "c5", TIMESTAMP),
            1,
            datetime(1970, 1, 2),
        ),
        (
            {"type": "long", "logicalType": "time-micros"},
            column(6, "c6", TIME),
            1,
            time(0, 0, 0, 1),
        ),
        (
            {"type": "long", "logicalType": "timestamp-millis"},
            column(7, "c7", TIMESTAMP),
            -1,
            datetime(1969, 12, 31, 23, 59, 59, 999000),
        ),
        (
            {"type": "long", "logicalType": "timestamp-micros", "adjust-to-utc": False},
            column(8, "c8", TIMESTAMPTZ),
            1,
            datetime(1970, 1, 1, 0, 0, 0, 1, tzinfo=UTC),
        ),
        (decimal, column(9, "c9", DecimalType(30, 2)), Decimal("-12.34"), Decimal("-12.34")),
        (
            {"type": "bytes", "logicalType": "decimal", "precision": 5, "scale": 1},
            column(10, "c10", DecimalType(5, 1)),
            Decimal("9.5"),
            Decimal("9.5"),
        ),
        (
            {"type": "fixed", "name": "f", "size": 3},
            column(11, "c11", FixedType(3)),
            b"abc",
            b"abc",
        ),
        ("bytes", column(12, "c12", BINARY), b"\x00", b"\x00"),
        ({"type": "enum", "name": "e", "symbols": ["X"]}, column(13, "c13", STRING), "X", "X"),
    ]
    fields = [field(key, f"n{key}", ["null", type]) for key, (type, *_) in enumerate(cases, 1)]
    record = {f"n{key}": stored for key, (_, _, stored, _) in enumerate(cases, 1)}
    file = write_avro(tmp_path, fields, [record, dict.fromkeys(record)])
    found = rows(context([wanted for _, wanted, _, _ in cases]), whole(file))
    assert list(found[0].values()) == [expected for *_, expected in cases]
    assert set(found[1].values()) == {None}


def test_uuids_are_read_from_fixed_and_from_text(tmp_path: Path) -> None:
    raw = bytes(range(16))
    fixed = {"type": "fixed", "name": "u", "size": 16, "logicalType": "uuid"}
    text = {"type": "string", "logicalType": "uuid"}
    import uuid

    value = uuid.UUID(bytes=raw)
    plain = {"type": "fixed", "name": "p", "size": 16}
    file = write_avro(
        tmp_path,
        [field(1, "a", plain), field(2, "b", text), field(3, "c", fixed)],
        [{"a": raw, "b": value, "c": raw}],
    )
    scan = context([column(1, "a", UUID), column(2, "b", UUID), column(3, "c", UUID)])
    assert rows(scan, whole(file)) == [{"a": value, "b": value, "c": value}]


def test_nanoseconds_and_years_beyond_python_survive(tmp_path: Path) -> None:
    from icesql.read.task import read_task
    from icesql.scan.tasks.task import CombinedScanTask

    far = 10**18
    nanos = {"type": "long", "logicalType": "timestamp-nanos"}
    micros = {"type": "long", "logicalType": "timestamp-micros"}
    schema = {
        "type": "record",
        "name": "t",
        "fields": [field(1, "a", nanos), field(2, "b", micros)],
    }
    path = tmp_path / "far.avro"
    with path.open("wb") as stream:
        # fastavro takes plain integers for timestamps as they are.
        fastavro.writer(stream, schema, [{"a": 1, "b": far}])
    file = data_file(str(path), file_format="AVRO", record_count=1)
    scan = context([column(1, "a", TIMESTAMP_NS), column(2, "b", TIMESTAMP)])
    (batch,) = read_task(CombinedScanTask((whole(file),), scan))
    import pyarrow as pa

    assert [each.view(pa.int64()).to_pylist() for each in batch.columns] == [[1], [far]]


def test_unions_hold_null_in_any_place(tmp_path: Path) -> None:
    file = write_avro(
        tmp_path,
        [field(1, "a", ["long", "null"]), field(2, "b", ["null", "string"])],
        [{"a": 1, "b": None}, {"a": None, "b": "x"}],
    )
    scan = context([column(2, "b", STRING), column(1, "a")])
    assert rows(scan, whole(file)) == [{"b": None, "a": 1}, {"b": "x", "a": None}]


def test_a_union_of_several_types_is_refused_only_when_it_is_read(tmp_path: Path) -> None:
    file = write_avro(
        tmp_path, [A, field(2, "b", ["null", "long", "string"])], [{"a": 1, "b": "x"}]
    )
    assert values(context([column(1, "a")]), whole(file)) == [1]
    with pytest.raises(UnsupportedTableError, match="union of several types"):
        rows(context([column(2, "b", STRING)]), whole(file))


def test_nested_types_carry_their_ids(tmp_path: Path) -> None:
    inner = {"type": "record", "name": "r", "fields": [field(3, "old", "int")]}
    fields = [
        field(1, "l", ["null", {"type": "array", "items": ["null", inner], "element-id": 2}]),
        field(4, "m", ["null", {"type": "map", "values": "int", "key-id": 5, "value-id": 6}]),
        field(
            7,
            "n",
            {
                "type": "array",
                "logicalType": "map",
                "items": {
                    "type": "record",
                    "name": "k8_v9",
                    "fields": [field(8, "key", "int"), field(9, "value", ["null", "string"])],
                },
            },
        ),
        field(
            10, "s", ["null", {"type": "record", "name": "q", "fields": [field(11, "x", "int")]}]
        ),
    ]
    records = [
        {"l": [{"old": 1}, None], "m": {"k": 2}, "n": [{"key": 3, "value": None}], "s": {"x": 4}},
        {"l": None, "m": None, "n": [], "s": None},
        {"l": [], "m": {}, "n": [{"key": 5, "value": "y"}], "s": {"x": 6}},
    ]
    file = write_avro(tmp_path, fields, records)
    element = StructType((column(3, "new"), column(12, "added", STRING)))
    scan = context(
        [
            column(1, "l", ListType(2, element)),
            column(4, "m", MapType(5, STRING, 6, LONG)),
            column(7, "n", MapType(8, LONG, 9, STRING)),
            column(10, "s", StructType((column(11, "y", LONG),))),
        ]
    )
    assert rows(scan, whole(file)) == [
        {"l": [{"new": 1, "added": None}, None], "m": [("k", 2)], "n": [(3, None)], "s": {"y": 4}},
        {"l": None, "m": None, "n": [], "s": None},
        {"l": [], "m": [], "n": [(5, "y")], "s": {"y": 6}},
    ]


def test_defaults_and_a_name_mapping_work_as_in_parquet(tmp_path: Path) -> None:
    file = write_avro(tmp_path, [field(None, "old_a", "long")], [{"old_a": 1}])
    mapping = NameMapping((MappedField(1, ("a", "old_a")),))
    scan = context(
        [column(1, "a"), column(2, "b", INTEGER, initial_default=7)], name_mapping=mapping
    )
    assert rows(scan, whole(file)) == [{"a": 1, "b": 7}]


@pytest.mark.parametrize("codec", ["null", "deflate", "bzip2", "xz"])
def test_codecs(tmp_path: Path, codec: str) -> None:
    file = write_avro(tmp_path, [A], [{"a": n} for n in range(50)], codec=codec)
    assert values(context([column(1, "a")]), whole(file)) == [*range(50)]


def test_every_row_belongs_to_exactly_one_split_and_keeps_its_position(tmp_path: Path) -> None:
    records = [{"a": n} for n in range(3000)]
    file = write_avro(tmp_path, [A], records, sync_interval=200)
    size = file.file_size_in_bytes
    scan = context([column(1, "a"), POS])
    for step in (1 if size < 500 else 37, 500, size // 3, size):
        tasks = [
            FileScanTask(file, start, min(step, size - start)) for start in range(0, size, step)
        ]
        found = rows(scan, *tasks)
        assert sorted(row["a"] for row in found) == [*range(3000)]
        assert all(row["a"] == row["_pos"] for row in found)


def test_position_deletes_apply_to_avro_rows(tmp_path: Path) -> None:
    file = write_avro(tmp_path, [A], [{"a": n} for n in range(5)], sync_interval=1)
    deletes = position_deletes(tmp_path, [(file.path, 3)])
    assert values(context([column(1, "a")]), whole(file, [deletes])) == [0, 1, 2, 4]


def test_delete_files_may_be_avro(tmp_path: Path) -> None:
    file = write_avro(tmp_path, [A], [{"a": n} for n in range(5)])
    positions = write_avro(
        tmp_path,
        [field(2147483546, "file_path", "string"), field(2147483545, "pos", "long")],
        [{"file_path": file.path, "pos": 0}],
    )
    keys = write_avro(tmp_path, [field(1, "a", "long")], [{"a": 4}])
    from msgspec.structs import replace

    deletes = [
        replace(positions, content=FileContent.POSITION_DELETES),
        replace(keys, content=FileContent.EQUALITY_DELETES, equality_ids=(1,), sequence_number=1),
    ]
    assert values(context([column(1, "a")]), whole(file, deletes)) == [1, 2, 3]


def test_damage_is_a_corrupt_file_error_that_names_the_file(tmp_path: Path) -> None:
    fields = [A, field(2, "b", "string"), field(3, "c", ["null", "double"])]
    records = [{"a": n, "b": "x" * (n % 9), "c": math.pi} for n in range(300)]
    file = write_avro(tmp_path, fields, records, sync_interval=300)
    path = Path(file.path)
    original = path.read_bytes()
    scan = context([column(1, "a"), column(2, "b", STRING)])
    dice = random.Random(3)
    refused = 0
    for _ in range(300):
        damaged = bytearray(original)
        at = dice.randrange(len(damaged))
        if dice.random() < 0.3:
            del damaged[at:]
        else:
            damaged[at] ^= 1 << dice.randrange(8)
        path.write_bytes(damaged)
        try:
            found = rows(scan, whole(file))
        except (CorruptFileError, UnsupportedTableError) as error:
            refused += str(path) in str(error)
        else:
            assert len(found) == 300
    assert refused > 100
