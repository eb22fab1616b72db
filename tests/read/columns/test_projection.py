"""Columns by field id: evolution at every depth, defaults, constants, files without ids."""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from icesql.errors import CorruptFileError, UnsupportedTableError
from icesql.iceberg.metadata.name_mapping import MappedField, NameMapping
from icesql.iceberg.partitioning import PartitionField, PartitionSpec
from icesql.iceberg.types import (
    BINARY,
    DATE,
    DOUBLE,
    INTEGER,
    LONG,
    STRING,
    TIME,
    TIMESTAMP,
    TIMESTAMP_NS,
    TIMESTAMPTZ,
    UNKNOWN,
    UUID,
    DecimalType,
    FixedType,
    ListType,
    MapType,
    StructType,
)
from tests.read.read_tables import (
    arrow_field,
    column,
    context,
    data_file,
    rows,
    values,
    whole,
    write_parquet,
)


def read_one(
    folder: Path, stored: pa.Field, stored_values: Any, wanted: Any, **more: Any
) -> list[Any]:
    """Values of the column ``wanted`` from a file that holds ``stored`` alone."""
    path = write_parquet(folder, [stored], [stored_values], **more)
    return values(context([wanted]), whole(data_file(path)))


def test_columns_are_found_by_id_not_by_name_or_place(tmp_path: Path) -> None:
    path = write_parquet(
        tmp_path,
        [arrow_field("a", pa.int64(), 1), arrow_field("b", pa.string(), 2)],
        [[1, 2], ["x", "y"]],
    )
    renamed = context([column(2, "a", STRING), column(1, "b", LONG)])
    assert rows(renamed, whole(data_file(path))) == [{"a": "x", "b": 1}, {"a": "y", "b": 2}]


def test_a_column_added_again_does_not_bring_back_old_values(tmp_path: Path) -> None:
    path = write_parquet(tmp_path, [arrow_field("a", pa.int64(), 1)], [[7]])
    scan = context([column(3, "a"), column(1, "old")])
    assert rows(scan, whole(data_file(path))) == [{"a": None, "old": 7}]


def test_initial_default_fills_missing_columns_but_never_stored_nulls(tmp_path: Path) -> None:
    path = write_parquet(tmp_path, [arrow_field("a", pa.int64(), 1)], [[7, None]])
    scan = context(
        [
            column(1, "a", initial_default=-1),
            column(2, "b", STRING, initial_default="new"),
            column(3, "c", DecimalType(9, 2), initial_default=Decimal("1.50")),
            column(4, "d", DATE, initial_default=1),
            column(5, "e", TIMESTAMPTZ, initial_default=1),
            column(6, "f", ListType(7, LONG), initial_default=[]),
            column(8, "g", UUID, initial_default=bytes(16)),
        ]
    )
    found = rows(scan, whole(data_file(path)))
    assert [row["a"] for row in found] == [7, None]
    assert {str(value) for value in (found[1]["b"], found[1]["c"], found[1]["g"])} == {
        "new",
        "1.50",
        "00000000-0000-0000-0000-000000000000",
    }
    assert found[1]["d"] == date(1970, 1, 2)
    assert found[1]["e"] == datetime(1970, 1, 1, 0, 0, 0, 1, tzinfo=UTC)
    assert found[1]["f"] == []


def test_a_missing_required_column_without_default_names_file_and_column(tmp_path: Path) -> None:
    path = write_parquet(tmp_path, [arrow_field("a", pa.int64(), 1)], [[7]])
    scan = context([column(1, "a"), column(2, "must", required=True)])
    with pytest.raises(CorruptFileError, match='required column "must"') as raised:
        rows(scan, whole(data_file(path)))
    assert raised.value.path == path


@pytest.mark.parametrize(
    ("stored", "stored_values", "wanted", "expected"),
    [
        (pa.int32(), [2**31 - 1, None], LONG, [2**31 - 1, None]),
        (pa.int8(), [-1], INTEGER, [-1]),
        (pa.uint16(), [65535], INTEGER, [65535]),
        (pa.uint32(), [2**32 - 1], LONG, [2**32 - 1]),
        (pa.float32(), [1.5, float("-inf")], DOUBLE, [1.5, float("-inf")]),
        (pa.decimal128(4, 2), [Decimal("1.23")], DecimalType(38, 2), [Decimal("1.23")]),
        (pa.date32(), [date(1969, 12, 31)], TIMESTAMP, [datetime(1969, 12, 31)]),
        (pa.date32(), [date(9999, 12, 31)], TIMESTAMP, [datetime(9999, 12, 31)]),
        (pa.timestamp("ms"), [datetime(2020, 1, 1)], TIMESTAMP, [datetime(2020, 1, 1)]),
        (pa.timestamp("us", tz="UTC"), [0], TIMESTAMP, [datetime(1970, 1, 1)]),
        (pa.timestamp("us"), [0], TIMESTAMPTZ, [datetime(1970, 1, 1, tzinfo=UTC)]),
        (pa.time32("ms"), [1], TIME, [datetime(1, 1, 1, 0, 0, 0, 1000).time()]),
        (pa.int64(), [1_000_000], TIMESTAMP, [datetime(1970, 1, 1, 0, 0, 1)]),
        (pa.binary(), [b"caf\xc3\xa9"], STRING, ["café"]),
        (pa.string(), ["x"], BINARY, [b"x"]),
        (pa.binary(2), [b"ab"], FixedType(2), [b"ab"]),
        (pa.binary(), [b"ab"], FixedType(2), [b"ab"]),
        (pa.int64(), [5], UNKNOWN, [None]),
        (pa.large_string(), ["x", None], STRING, ["x", None]),
        (pa.dictionary(pa.int32(), pa.string()), ["x", None, "x"], STRING, ["x", None, "x"]),
    ],
    ids=str,
)
def test_stored_types_become_the_table_type(
    tmp_path: Path, stored: pa.DataType, stored_values: Any, wanted: Any, expected: Any
) -> None:
    array = pa.array(stored_values, stored)
    assert (
        read_one(tmp_path, arrow_field("c", stored, 1), array, column(1, "c", wanted)) == expected
    )


def test_uuid_reads_with_and_without_annotation(tmp_path: Path) -> None:
    raw = bytes(range(16))
    plain = read_one(tmp_path, arrow_field("c", pa.binary(16), 1), [raw], column(1, "c", UUID))
    storage = pa.array([raw], pa.binary(16))
    annotated = read_one(
        tmp_path,
        arrow_field("c", pa.uuid(), 1),
        pa.ExtensionArray.from_storage(pa.uuid(), storage),
        column(1, "c", UUID),
    )
    assert plain == annotated
    assert plain[0].bytes == raw


def test_int96_keeps_years_that_nanoseconds_cannot_hold(tmp_path: Path) -> None:
    moments = [datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999999), None]
    stored = arrow_field("c", pa.timestamp("us"), 1)
    options = {"use_deprecated_int96_timestamps": True}
    naive = read_one(tmp_path, stored, moments, column(1, "c", TIMESTAMP), **options)
    zoned = read_one(tmp_path, stored, moments, column(1, "c", TIMESTAMPTZ), **options)
    assert naive == moments
    assert zoned == [each and each.replace(tzinfo=UTC) for each in moments]


def test_int96_keeps_nanoseconds_for_a_nanosecond_column(tmp_path: Path) -> None:
    path = write_parquet(
        tmp_path,
        [arrow_field("c", pa.timestamp("ns"), 1)],
        [pa.array([1_000_000_001], pa.timestamp("ns"))],
        use_deprecated_int96_timestamps=True,
    )
    from icesql.read.task import read_task
    from icesql.scan.tasks.task import CombinedScanTask

    scan = context([column(1, "c", TIMESTAMP_NS)])
    (batch,) = read_task(CombinedScanTask((whole(data_file(path)),), scan))
    assert batch.column(0).cast(pa.int64()).to_pylist() == [1_000_000_001]


def test_nanoseconds_under_a_type_of_microseconds_are_the_microsecond_below(
    tmp_path: Path,
) -> None:
    stored = arrow_field("c", pa.timestamp("ns"), 1)
    values = pa.array([1000, 1, -1, None], pa.timestamp("ns"))
    assert read_one(tmp_path, stored, values, column(1, "c", TIMESTAMP)) == [
        datetime(1970, 1, 1, 0, 0, 0, 1),
        datetime(1970, 1, 1),
        datetime(1969, 12, 31, 23, 59, 59, 999999),
        None,
    ]
    stored = arrow_field("c", pa.time64("ns"), 1)
    times = read_one(tmp_path, stored, pa.array([1999], pa.time64("ns")), column(1, "c", TIME))
    assert times == [time(0, 0, 0, 1)]


def test_a_type_that_cannot_be_the_tables_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(CorruptFileError, match="stored as string, which cannot be read as long"):
        read_one(tmp_path, arrow_field("c", pa.string(), 1), ["1"], column(1, "c", LONG))


def test_text_that_is_not_utf8_is_an_error_of_the_file(tmp_path: Path) -> None:
    bad = pa.array([b"\xff"], pa.binary()).view(pa.string())
    with pytest.raises(CorruptFileError, match='column "c"'):
        read_one(tmp_path, arrow_field("c", pa.string(), 1), bad, column(1, "c", STRING))


# ------------------------------------------------------------------ nested


def struct_field(*children: pa.Field) -> pa.Field:
    return arrow_field("s", pa.struct(list(children)), 1)


def test_struct_children_are_found_by_id(tmp_path: Path) -> None:
    stored = struct_field(arrow_field("a", pa.int64(), 2), arrow_field("b", pa.int64(), 3))
    swapped = column(
        1,
        "s",
        StructType((column(3, "a"), column(2, "b"), column(4, "c", STRING, initial_default="new"))),
    )
    found = read_one(tmp_path, stored, [{"a": 1, "b": 2}, None], swapped)
    assert found == [{"a": 2, "b": 1, "c": "new"}, None]


def test_a_struct_of_nulls_stays_apart_from_a_null_struct(tmp_path: Path) -> None:
    stored = struct_field(arrow_field("a", pa.int64(), 2))
    only_new = column(1, "s", StructType((column(9, "n"),)))
    found = read_one(tmp_path, stored, [{"a": None}, None, {"a": 1}], only_new)
    assert found == [{"n": None}, None, {"n": None}]


def test_a_required_child_under_a_null_struct_is_no_error(tmp_path: Path) -> None:
    stored = struct_field(arrow_field("a", pa.int32(), 2, nullable=False))
    wanted = column(1, "s", StructType((column(2, "a", LONG, required=True),)))
    assert read_one(tmp_path, stored, [None, {"a": 1}], wanted) == [None, {"a": 1}]


def test_lists_of_structs_evolve_inside(tmp_path: Path) -> None:
    element = pa.struct([arrow_field("old", pa.int32(), 3)])
    stored = arrow_field("l", pa.list_(arrow_field("element", element, 2)), 1)
    wanted = column(
        1, "l", ListType(2, StructType((column(4, "added", STRING), column(3, "renamed", LONG))))
    )
    found = read_one(tmp_path, stored, [[{"old": 1}, None], None, [], [{"old": 2}]], wanted)
    one, two = {"added": None, "renamed": 1}, {"added": None, "renamed": 2}
    assert found == [[one, None], None, [], [two]]


def test_map_keys_and_values_are_widened(tmp_path: Path) -> None:
    stored = arrow_field(
        "m",
        pa.map_(
            arrow_field("key", pa.int32(), 2, nullable=False), arrow_field("value", pa.float32(), 3)
        ),
        1,
    )
    wanted = column(1, "m", MapType(2, LONG, 3, DOUBLE))
    found = read_one(tmp_path, stored, [[(1, 0.5), (2, None)], None, []], wanted)
    assert found == [[(1, 0.5), (2, None)], None, []]


def test_nested_columns_survive_many_batches_and_row_groups(tmp_path: Path) -> None:
    count = 150_000
    stored = [
        arrow_field("l", pa.list_(arrow_field("element", pa.int32(), 2)), 1),
        struct_field(arrow_field("a", pa.int32(), 4))
        .with_name("s")
        .with_metadata({"PARQUET:field_id": "3"}),
        arrow_field(
            "m",
            pa.map_(
                arrow_field("key", pa.int32(), 6, nullable=False),
                arrow_field("value", pa.int32(), 7),
            ),
            5,
        ),
    ]
    lists = [None if i % 7 == 0 else list(range(i % 4)) for i in range(count)]
    structs = [None if i % 5 == 0 else {"a": i} for i in range(count)]
    maps = [None if i % 3 == 0 else [(i, i + 1)] * (i % 2) for i in range(count)]
    path = write_parquet(tmp_path, stored, [lists, structs, maps], rows_per_group=70_001)
    scan = context(
        [
            column(1, "l", ListType(2, LONG)),
            column(3, "s", StructType((column(4, "a", LONG),))),
            column(5, "m", MapType(6, LONG, 7, LONG)),
        ]
    )
    found = rows(scan, whole(data_file(path)))
    assert [row["l"] for row in found] == lists
    assert [row["s"] for row in found] == structs
    assert [row["m"] for row in found] == maps


def test_a_column_whose_name_holds_a_dot_is_not_a_struct_child(tmp_path: Path) -> None:
    path = write_parquet(
        tmp_path,
        [
            arrow_field("a", pa.struct([arrow_field("b", pa.int64(), 2)]), 1),
            arrow_field("a.b", pa.int64(), 3),
        ],
        [[{"b": 1}], [2]],
    )
    scan = context([column(3, "x"), column(1, "y", StructType((column(2, "z"),)))])
    assert rows(scan, whole(data_file(path))) == [{"x": 2, "y": {"z": 1}}]


# ------------------------------------------------------------------ partition constants


def identity_spec(source_id: int) -> dict[int, PartitionSpec]:
    return {0: PartitionSpec(0, (PartitionField((source_id,), 1000, "identity", "p"),))}


def test_identity_partition_value_fills_an_absent_column_even_a_required_one(
    tmp_path: Path,
) -> None:
    path = write_parquet(tmp_path, [arrow_field("a", pa.int64(), 1)], [[7, 8]])
    scan = context([column(1, "a"), column(2, "p", STRING, required=True)], specs=identity_spec(2))
    found = rows(scan, whole(data_file(path, partition=("eu",))))
    assert found == [{"a": 7, "p": "eu"}, {"a": 8, "p": "eu"}]


def test_a_stored_column_wins_over_the_partition_value(tmp_path: Path) -> None:
    path = write_parquet(tmp_path, [arrow_field("p", pa.int64(), 1)], [[7, None]])
    scan = context([column(1, "p")], specs=identity_spec(1))
    assert values(scan, whole(data_file(path, partition=(99,)))) == [7, None]


def test_a_partition_value_comes_before_the_initial_default(tmp_path: Path) -> None:
    path = write_parquet(tmp_path, [arrow_field("a", pa.int64(), 1)], [[7]])
    scan = context([column(2, "p", initial_default=1)], specs=identity_spec(2))
    assert values(scan, whole(data_file(path, partition=(None,)))) == [None]
    assert values(scan, whole(data_file(path, partition=(5,)))) == [5]


def test_a_partition_value_reaches_a_struct_child(tmp_path: Path) -> None:
    stored = struct_field(arrow_field("a", pa.int64(), 2))
    path = write_parquet(tmp_path, [stored], [[{"a": 1}]])
    wanted = column(1, "s", StructType((column(2, "a"), column(3, "p"))))
    scan = context([wanted], specs=identity_spec(3))
    assert values(scan, whole(data_file(path, partition=(5,)))) == [{"a": 1, "p": 5}]


# ------------------------------------------------------------------ files without ids


def without_ids(folder: Path) -> str:
    nested = pa.struct([pa.field("x", pa.int64())])
    return write_parquet(
        folder,
        [
            pa.field("a", pa.int64()),
            pa.field("s", nested),
            pa.field("l", pa.list_(nested)),
            pa.field("m", pa.map_(pa.string(), pa.int64())),
        ],
        [[1], [{"x": 2}], [[{"x": 3}]], [[("k", 4)]]],
    )


def test_a_name_mapping_gives_ids_at_every_depth(tmp_path: Path) -> None:
    mapping = NameMapping(
        (
            MappedField(10, ("a", "A")),
            MappedField(11, ("s",), (MappedField(12, ("x",)),)),
            MappedField(13, ("l",), (MappedField(14, ("element",), (MappedField(15, ("x",)),)),)),
            MappedField(16, ("m",), (MappedField(17, ("key",)), MappedField(18, ("value",)))),
        )
    )
    scan = context(
        [
            column(10, "a2"),
            column(11, "s2", StructType((column(12, "x2"),))),
            column(13, "l2", ListType(14, StructType((column(15, "x3"),)))),
            column(16, "m2", MapType(17, STRING, 18, LONG)),
            column(19, "new"),
        ],
        name_mapping=mapping,
    )
    assert rows(scan, whole(data_file(without_ids(tmp_path)))) == [
        {"a2": 1, "s2": {"x2": 2}, "l2": [{"x3": 3}], "m2": [("k", 4)], "new": None}
    ]


def test_any_id_in_the_file_switches_the_name_mapping_off(tmp_path: Path) -> None:
    path = write_parquet(
        tmp_path, [arrow_field("a", pa.int64(), 1), pa.field("b", pa.int64())], [[1], [2]]
    )
    mapping = NameMapping((MappedField(1, ("a",)), MappedField(2, ("b",))))
    scan = context([column(1, "a"), column(2, "b")], name_mapping=mapping)
    assert rows(scan, whole(data_file(path))) == [{"a": 1, "b": None}]


def test_without_ids_and_mapping_names_decide_where_positions_agree(tmp_path: Path) -> None:
    scan = context(
        [
            column(1, "a"),
            column(2, "s", StructType((column(5, "x"),))),
            column(3, "l", ListType(6, StructType((column(7, "x"),)))),
            column(4, "m", MapType(8, STRING, 9, LONG)),
            column(10, "later"),
        ]
    )
    assert rows(scan, whole(data_file(without_ids(tmp_path)))) == [
        {"a": 1, "s": {"x": 2}, "l": [{"x": 3}], "m": [("k", 4)], "later": None}
    ]


def test_names_and_positions_that_disagree_are_refused_with_both_readings(tmp_path: Path) -> None:
    path = write_parquet(
        tmp_path, [pa.field("b", pa.int64()), pa.field("a", pa.int64())], [[1], [2]]
    )
    scan = context([column(1, "a"), column(2, "b")])
    with pytest.raises(UnsupportedTableError, match='"b" by name and "a" by position'):
        rows(scan, whole(data_file(path)))


def test_two_columns_of_one_id_are_an_error(tmp_path: Path) -> None:
    path = write_parquet(
        tmp_path, [arrow_field("a", pa.int64(), 1), arrow_field("b", pa.int64(), 1)], [[1], [2]]
    )
    with pytest.raises(CorruptFileError, match="field id 1 is used twice"):
        rows(context([column(1, "a")]), whole(data_file(path)))
