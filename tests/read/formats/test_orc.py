"""ORC data and delete files."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from msgspec.structs import replace
from pyarrow import orc

from icesql.errors import CorruptFileError
from icesql.iceberg.manifest.data_file import DataFile, FileContent
from icesql.iceberg.metadata.name_mapping import MappedField, NameMapping
from icesql.iceberg.schema import POS
from icesql.scan.tasks import FileScanTask
from tests.columns import type_of
from tests.read.read_tables import (
    column,
    context,
    data_file,
    leaf,
    numbers,
    position_deletes,
    rows,
    values,
    whole,
)


def orc_field(name: str, type: pa.DataType, field_id: int | None = None) -> pa.Field:
    metadata = None if field_id is None else {"iceberg.id": str(field_id)}
    return pa.field(name, type, metadata=metadata)


def write_orc(
    folder: Path, fields: Sequence[pa.Field], columns: Sequence[Any], **more: Any
) -> DataFile:
    schema = pa.schema(fields)
    arrays = [
        each if isinstance(each, pa.Array) else pa.array(each, field.type)
        for each, field in zip(columns, schema, strict=True)
    ]
    path = folder / f"{len(list(folder.iterdir()))}.orc"
    orc.write_table(pa.Table.from_arrays(arrays, schema=schema), str(path), **more)
    return data_file(str(path), file_format="ORC", record_count=len(arrays[0]))


A = orc_field("a", pa.int64(), 1)


def test_types_become_the_tables(tmp_path) -> None:
    moment = datetime(2020, 1, 2, 3, 4, 5, 6)
    file = write_orc(
        tmp_path,
        [
            orc_field("a", pa.int8(), 1),
            orc_field("b", pa.float32(), 2),
            orc_field("c", pa.decimal128(9, 2), 3),
            orc_field("d", pa.timestamp("us"), 4),
            orc_field("e", pa.timestamp("us", tz="UTC"), 5),
            orc_field("f", pa.int64(), 6),
            orc_field("g", pa.binary(), 7),
        ],
        [
            [1, None],
            [1.5, None],
            [Decimal("-1.25"), None],
            [moment, None],
            [moment.replace(tzinfo=UTC), None],
            [1_000_000, None],
            [bytes(16), None],
        ],
    )
    scan = context(
        "1 a long, 2 b double, 3 c decimal(20, 2), 4 d timestamp, 5 e timestamptz, 6 f time, 7 g uuid"
    )
    first, second = rows(scan, file)
    assert (first["a"], first["b"], first["c"]) == (1, 1.5, Decimal("-1.25"))
    assert (first["d"], first["e"]) == (moment, moment.replace(tzinfo=UTC))
    assert (first["f"].second, first["g"].int) == (1, 0)
    assert set(second.values()) == {None}


def test_nanoseconds_are_cut_down_to_microseconds_but_kept_for_nanosecond_columns(
    tmp_path,
) -> None:
    stamps = pa.array([1999, -1, -1000], pa.timestamp("ns"))
    file = write_orc(tmp_path, [orc_field("a", pa.timestamp("ns"), 1)], [stamps])
    assert numbers("1 a timestamp", file) == [[1, -1, -1]]
    assert numbers("1 a timestamp_ns", file) == [[1999, -1, -1000]]


def test_nested_fields_are_found_by_id(tmp_path) -> None:
    inner = pa.struct([orc_field("old", pa.int32(), 3)])
    file = write_orc(
        tmp_path,
        [orc_field("l", pa.list_(orc_field("element", inner, 2)), 1)],
        [[[{"old": 1}, None], None, []]],
    )
    wanted = type_of("list<2 struct<3 new long, 4 added string>>")
    assert values([column(1, "l", wanted)], file) == [
        [{"new": 1, "added": None}, None],
        None,
        [],
    ]


def test_defaults_and_name_mapping(tmp_path) -> None:
    file = write_orc(tmp_path, [orc_field("a", pa.int64())], [[1]])
    scan = context(
        [column(5, "b"), column(6, "c", initial_default=7)],
        name_mapping=NameMapping((MappedField(5, ("a",)),)),
    )
    assert rows(scan, file) == [{"b": 1, "c": 7}]


def test_splits_take_stripes_by_their_first_byte_and_keep_positions(tmp_path) -> None:
    count = 200_000
    file = write_orc(
        tmp_path,
        [A],
        [[(n * 7919) % 1_000_003 for n in range(count)]],
        stripe_size=1024,
        compression="uncompressed",
    )
    assert orc.ORCFile(file.path).nstripes > 1
    size = file.file_size_in_bytes
    scan = context([column(1, "a"), POS])
    for step in (size // 7, size // 2, size):
        tasks = [FileScanTask(file, at, min(step, size - at)) for at in range(0, size, step)]
        found = rows(scan, *tasks)
        assert len(found) == count
        assert all(row["a"] == (row["_pos"] * 7919) % 1_000_003 for row in found)


def test_residuals_and_deletes_apply(tmp_path) -> None:
    from icesql.iceberg.expressions.predicate import Operation

    file = write_orc(tmp_path, [A], [[0, 1, 2, 3]])
    deletes = position_deletes(tmp_path, [(file.path, 3)])
    task = whole(file, [deletes], leaf(Operation.GT, 1, 0))
    assert values("1 a long", task) == [1, 2]


def test_delete_files_may_be_orc(tmp_path) -> None:
    file = write_orc(tmp_path, [A], [[0, 1, 2]])
    positions = write_orc(
        tmp_path,
        [orc_field("file_path", pa.string(), 2147483546), orc_field("pos", pa.int64(), 2147483545)],
        [[file.path], [0]],
    )
    keys = write_orc(tmp_path, [A], [[2]])
    deletes = [
        replace(positions, content=FileContent.POSITION_DELETES),
        replace(keys, content=FileContent.EQUALITY_DELETES, equality_ids=(1,), sequence_number=1),
    ]
    assert values("1 a long", whole(file, deletes)) == [1]


def test_a_damaged_tail_is_a_corrupt_file(tmp_path) -> None:
    file = write_orc(tmp_path, [A], [[0, 1, 2]])
    path = Path(file.path)
    path.write_bytes(path.read_bytes()[:-5])
    with pytest.raises(CorruptFileError) as raised:
        rows("1 a long", file)
    assert raised.value.path == file.path


def test_a_file_of_another_length_is_refused(tmp_path) -> None:
    file = write_orc(tmp_path, [A], [[1, 2]])
    wrong = replace(file, file_size_in_bytes=file.file_size_in_bytes + 1)
    assert rows("1 a long", file)
    with pytest.raises(CorruptFileError, match="bytes long, the manifest says"):
        rows("1 a long", wrong)
