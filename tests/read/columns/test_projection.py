"""Columns by field id: evolution at every depth, defaults, constants, files without ids."""

from __future__ import annotations

import re
from ast import literal_eval
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from icesql.errors import CorruptFileError, UnsupportedTableError
from icesql.iceberg.metadata.name_mapping import MappedField, NameMapping
from icesql.iceberg.partitioning import PartitionField, PartitionSpec
from icesql.iceberg.types import (
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMPTZ,
    UUID,
)
from tests.columns import array, columns
from tests.read.read_tables import (
    arrow_field,
    column,
    context,
    data_file,
    numbers,
    rows,
    values,
    whole,
    write_parquet,
)
from tests.tables import read_table


def read_one(
    folder: Path, stored: pa.Field, stored_values: Any, wanted: Any, **more: Any
) -> list[Any]:
    """Values of the column ``wanted`` from a file that holds ``stored`` alone."""
    path = write_parquet(folder, [stored], [stored_values], **more)
    return values(context([wanted]), path)


def shown(found: object) -> str:
    """As the tables spell values; a zone is one by any library."""
    return re.sub(r"zoneinfo\.ZoneInfo\(key='UTC'\)|datetime\.timezone\.utc", "<UTC>", repr(found))


@pytest.mark.parametrize(
    ("stored", "values", "wanted", "expected"), read_table(__file__, "types.tsv")
)
def test_stored_types_become_the_tables(
    tmp_path, stored: str, values: str, wanted: str, expected: str
) -> None:
    made = array(stored, literal_eval(values))
    field = arrow_field("c", made.type, 1)
    assert shown(read_one(tmp_path, field, made, *columns(f"1 c {wanted}"))) == expected


@pytest.mark.parametrize(
    ("stored", "values", "partition", "wanted", "expected"),
    [pytest.param(*each, id=name) for name, *each in read_table(__file__, "columns.tsv")],
)
def test_columns_of_a_file_become_the_tables(
    tmp_path, stored: str, values: str, partition: str, wanted: str, expected: str
) -> None:
    path = write_parquet(tmp_path, stored, literal_eval(values))
    source, _, value = partition.partition(" ")
    fields = [PartitionField((int(source),), 1000, "identity", "p")] if source else []
    file = data_file(path, partition=tuple(literal_eval(value) for _ in fields))
    scan = context(wanted, specs={0: PartitionSpec(0, tuple(fields))})
    assert shown([tuple(row.values()) for row in rows(scan, file)]) == expected


def test_a_missing_required_column_without_default_names_file_and_column(tmp_path) -> None:
    path = write_parquet(tmp_path, "1 a long", [[7]])
    scan = context("1 a long, 2 must long!")
    with pytest.raises(CorruptFileError, match='required column "must"') as raised:
        rows(scan, path)
    assert raised.value.path == path


def test_uuid_reads_with_and_without_annotation(tmp_path) -> None:
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


def test_int96_keeps_years_that_nanoseconds_cannot_hold(tmp_path) -> None:
    moments = [datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999999), None]
    stored = arrow_field("c", pa.timestamp("us"), 1)
    options = {"use_deprecated_int96_timestamps": True}
    naive = read_one(tmp_path, stored, moments, column(1, "c", TIMESTAMP), **options)
    zoned = read_one(tmp_path, stored, moments, column(1, "c", TIMESTAMPTZ), **options)
    assert naive == moments
    assert zoned == [each and each.replace(tzinfo=UTC) for each in moments]


def test_int96_keeps_nanoseconds_for_a_nanosecond_column(tmp_path) -> None:
    path = write_parquet(
        tmp_path,
        "1 c timestamp_ns",
        [pa.array([1_000_000_001], pa.timestamp("ns"))],
        use_deprecated_int96_timestamps=True,
    )
    assert numbers("1 c timestamp_ns", path) == [[1_000_000_001]]


def test_a_type_that_cannot_be_the_tables_is_an_error(tmp_path) -> None:
    with pytest.raises(CorruptFileError, match="stored as string, which cannot be read as long"):
        read_one(tmp_path, arrow_field("c", pa.string(), 1), ["1"], column(1, "c", LONG))


def test_text_that_is_not_utf8_is_an_error_of_the_file(tmp_path) -> None:
    bad = pa.array([b"\xff"], pa.binary()).view(pa.string())
    with pytest.raises(CorruptFileError, match='column "c"'):
        read_one(tmp_path, arrow_field("c", pa.string(), 1), bad, column(1, "c", STRING))


def test_nested_columns_survive_many_batches_and_row_groups(tmp_path) -> None:
    count = 150_000
    stored = "1 l list<2 int>, 3 s struct<4 a int>, 5 m map<6 int, 7 int>"
    lists = [None if i % 7 == 0 else list(range(i % 4)) for i in range(count)]
    structs = [None if i % 5 == 0 else {"a": i} for i in range(count)]
    maps = [None if i % 3 == 0 else [(i, i + 1)] * (i % 2) for i in range(count)]
    path = write_parquet(tmp_path, stored, [lists, structs, maps], rows_per_group=70_001)
    scan = context("1 l list<2 long>, 3 s struct<4 a long>, 5 m map<6 long, 7 long>")
    found = rows(scan, path)
    assert [row["l"] for row in found] == lists
    assert [row["s"] for row in found] == structs
    assert [row["m"] for row in found] == maps


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


def test_a_name_mapping_gives_ids_at_every_depth(tmp_path) -> None:
    mapping = NameMapping(
        (
            MappedField(10, ("a", "A")),
            MappedField(11, ("s",), (MappedField(12, ("x",)),)),
            MappedField(13, ("l",), (MappedField(14, ("element",), (MappedField(15, ("x",)),)),)),
            MappedField(16, ("m",), (MappedField(17, ("key",)), MappedField(18, ("value",)))),
        )
    )
    scan = context(
        "10 a2 long, 11 s2 struct<12 x2 long>, 13 l2 list<14 struct<15 x3 long>>, 16 m2 map<17 string, 18 long>, 19 new long",
        name_mapping=mapping,
    )
    assert rows(scan, whole(data_file(without_ids(tmp_path)))) == [
        {"a2": 1, "s2": {"x2": 2}, "l2": [{"x3": 3}], "m2": [("k", 4)], "new": None}
    ]


def test_any_id_in_the_file_switches_the_name_mapping_off(tmp_path) -> None:
    path = write_parquet(
        tmp_path, [arrow_field("a", pa.int64(), 1), pa.field("b", pa.int64())], [[1], [2]]
    )
    mapping = NameMapping((MappedField(1, ("a",)), MappedField(2, ("b",))))
    scan = context("1 a long, 2 b long", name_mapping=mapping)
    assert rows(scan, path) == [{"a": 1, "b": None}]


def test_without_ids_and_mapping_names_decide_where_positions_agree(tmp_path) -> None:
    scan = context(
        "1 a long, 2 s struct<5 x long>, 3 l list<6 struct<7 x long>>, 4 m map<8 string, 9 long>, 10 later long"
    )
    assert rows(scan, whole(data_file(without_ids(tmp_path)))) == [
        {"a": 1, "s": {"x": 2}, "l": [{"x": 3}], "m": [("k", 4)], "later": None}
    ]


def test_names_and_positions_that_disagree_are_refused_with_both_readings(tmp_path) -> None:
    path = write_parquet(
        tmp_path, [pa.field("b", pa.int64()), pa.field("a", pa.int64())], [[1], [2]]
    )
    scan = context("1 a long, 2 b long")
    with pytest.raises(UnsupportedTableError, match='"b" by name and "a" by position'):
        rows(scan, path)


def test_two_columns_of_one_id_are_an_error(tmp_path) -> None:
    path = write_parquet(tmp_path, "1 a long, 1 b long", [[1], [2]])
    with pytest.raises(CorruptFileError, match="field id 1 is used twice"):
        rows("1 a long", path)
