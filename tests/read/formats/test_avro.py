"""Avro data files: ids, logical types, unions, maps, codecs, splits and damage."""

from __future__ import annotations

import json
import math
import random
from ast import literal_eval
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import pytest

from icesql.errors import CorruptFileError, UnsupportedTableError
from icesql.iceberg.manifest.data_file import DataFile, FileContent
from icesql.iceberg.metadata.name_mapping import MappedField, NameMapping
from icesql.iceberg.schema import POS
from icesql.iceberg.types import (
    INTEGER,
)
from icesql.scan.tasks import FileScanTask
from tests.read.read_tables import (
    column,
    context,
    data_file,
    numbers,
    position_deletes,
    rows,
    values,
    whole,
)
from tests.tables import read_table


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


def test_every_type_is_read_from_its_avro_form(tmp_path) -> None:
    """Each is a column of one file, with a row of values and one of NULLs."""
    cases = list(enumerate(read_table(__file__, "avro_types.tsv"), 1))
    fields, record = [], {}
    for key, (avro, _, stored, _) in cases:
        fields.append(field(key, f"n{key}", ["null", json.loads(avro)]))
        record[f"n{key}"] = Decimal(stored) if "decimal" in avro else literal_eval(stored)
    file = write_avro(tmp_path, fields, [record, dict.fromkeys(record)])
    wanted = ", ".join(f"{key} c{key} {type}" for key, (_, type, _, _) in cases)
    values, nulls = rows(wanted, file)
    expected = [each for _, (*_, each) in cases]
    assert [str(each) for each in values.values()] == expected
    assert set(nulls.values()) == {None}


def test_uuids_are_read_from_fixed_and_from_text(tmp_path) -> None:
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
    scan = context("1 a uuid, 2 b uuid, 3 c uuid")
    assert rows(scan, file) == [{"a": value, "b": value, "c": value}]


def test_nanoseconds_and_years_beyond_python_survive(tmp_path) -> None:
    far = 10**18
    kinds = [{"type": "long", "logicalType": f"timestamp-{unit}"} for unit in ("nanos", "micros")]
    # fastavro writes plain integers for timestamps unchanged.
    file = write_avro(
        tmp_path, [field(1, "a", kinds[0]), field(2, "b", kinds[1])], [{"a": 1, "b": far}]
    )
    assert numbers("1 a timestamp_ns, 2 b timestamp", file) == [[1], [far]]


def test_unions_hold_null_in_any_place(tmp_path) -> None:
    file = write_avro(
        tmp_path,
        [field(1, "a", ["long", "null"]), field(2, "b", ["null", "string"])],
        [{"a": 1, "b": None}, {"a": None, "b": "x"}],
    )
    scan = context("2 b string, 1 a long")
    assert rows(scan, file) == [{"b": None, "a": 1}, {"b": "x", "a": None}]


def test_a_union_of_several_types_is_refused_only_when_it_is_read(tmp_path) -> None:
    file = write_avro(
        tmp_path, [A, field(2, "b", ["null", "long", "string"])], [{"a": 1, "b": "x"}]
    )
    assert values("1 a long", file) == [1]
    with pytest.raises(UnsupportedTableError, match="union of several types"):
        rows("2 b string", file)


def test_nested_types_carry_their_ids(tmp_path) -> None:
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
    scan = (
        "1 l list<2 struct<3 new long, 12 added string>>, 4 m map<5 string, 6 long>, "
        "7 n map<8 long, 9 string>, 10 s struct<11 y long>"
    )
    assert rows(scan, file) == [
        {"l": [{"new": 1, "added": None}, None], "m": [("k", 2)], "n": [(3, None)], "s": {"y": 4}},
        {"l": None, "m": None, "n": [], "s": None},
        {"l": [], "m": [], "n": [(5, "y")], "s": {"y": 6}},
    ]


def test_defaults_and_a_name_mapping_work_as_in_parquet(tmp_path) -> None:
    file = write_avro(tmp_path, [field(None, "old_a", "long")], [{"old_a": 1}])
    mapping = NameMapping((MappedField(1, ("a", "old_a")),))
    scan = context(
        [column(1, "a"), column(2, "b", INTEGER, initial_default=7)], name_mapping=mapping
    )
    assert rows(scan, file) == [{"a": 1, "b": 7}]


@pytest.mark.parametrize("codec", ["null", "deflate", "bzip2", "xz"])
def test_codecs(tmp_path, codec: str) -> None:
    file = write_avro(tmp_path, [A], [{"a": n} for n in range(50)], codec=codec)
    assert values("1 a long", file) == [*range(50)]


def test_every_row_belongs_to_exactly_one_split_and_keeps_its_position(tmp_path) -> None:
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


def test_position_deletes_apply_to_avro_rows(tmp_path) -> None:
    file = write_avro(tmp_path, [A], [{"a": n} for n in range(5)], sync_interval=1)
    deletes = position_deletes(tmp_path, [(file.path, 3)])
    assert values("1 a long", whole(file, [deletes])) == [0, 1, 2, 4]


def test_delete_files_may_be_avro(tmp_path) -> None:
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
    assert values("1 a long", whole(file, deletes)) == [1, 2, 3]


def test_damage_is_a_corrupt_file_error_that_names_the_file(tmp_path) -> None:
    fields = [A, field(2, "b", "string"), field(3, "c", ["null", "double"])]
    records = [{"a": n, "b": "x" * (n % 9), "c": math.pi} for n in range(300)]
    file = write_avro(tmp_path, fields, records, sync_interval=300)
    path = Path(file.path)
    original = path.read_bytes()
    scan = context("1 a long, 2 b string")
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
            found = rows(scan, file)
        except (CorruptFileError, UnsupportedTableError) as error:
            refused += str(path) in str(error)
        else:
            assert len(found) == 300
    assert refused > 100
