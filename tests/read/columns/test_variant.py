"""Variants as JSON text: the binary encoding and shredded columns."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from icesql.errors import CorruptFileError
from icesql.iceberg.types import VariantType
from icesql.iceberg.variant import BadVariant, decode_node, of_timestamp, read_dictionary
from icesql.read.columns.variant import to_text
from tests.read.read_tables import (
    arrow_field,
    column,
    context,
    values,
    write_parquet,
)
from tests.tables import read_table

EMPTY = b"\x01\x00\x00"


@pytest.mark.parametrize(("value", "text"), read_table(__file__, "variants.tsv"))
def test_each_primitive_has_its_text(value: str, text: str) -> None:
    raw = bytes.fromhex(value)
    if text == "bad":
        with pytest.raises(BadVariant):
            to_text(decode_node(raw, ()))
    else:
        assert to_text(decode_node(raw, ())) == text


def test_objects_take_names_from_the_dictionary() -> None:
    names = read_dictionary(b"\x11\x02\x00\x03\x07agename")
    value = b"\x02\x02\x00\x01\x00\x05\x0b\x14\x1e\x00\x00\x00\x15Alice"
    assert to_text(decode_node(value, names)) == '{"age":30,"name":"Alice"}'


def test_timestamps_reach_beyond_the_years_of_python() -> None:
    assert (
        to_text(of_timestamp(-(2**63), nanos=False, instant=False))
        == '"-290308-12-21T19:59:05.224192"'
    )
    assert to_text(of_timestamp(253_402_300_800_000_000, nanos=False, instant=True)) == (
        '"10000-01-01T00:00:00.000000+00:00"'
    )
    assert to_text(of_timestamp(-1, nanos=True, instant=False)) == '"1969-12-31T23:59:59.999999999"'


def test_cut_variants_are_bad_variants() -> None:
    value = b"\x02\x02\x00\x01\x00\x05\x0b\x14\x1e\x00\x00\x00\x15Alice"
    for size in range(len(value)):
        with pytest.raises(BadVariant):
            decode_node(value[:size], ("age", "name"))


def shredded(folder: Path, type: pa.DataType, stored: list[Any]) -> list[Any]:
    path = write_parquet(folder, [arrow_field("v", type, 1)], [stored])
    found = values("1 v variant", path)
    # Its bytes, as writers read them, give the same.
    as_bytes = values(context([column(1, "v", VariantType(binary=True))]), path)
    assert found == [
        None
        if each is None
        else to_text(decode_node(each["value"], read_dictionary(each["metadata"])))
        for each in as_bytes
    ]
    return found


def group(typed: pa.DataType, *, metadata: bool = False) -> pa.DataType:
    parts = [("value", pa.binary()), ("typed_value", typed)]
    return pa.struct([("metadata", pa.binary()), *parts] if metadata else parts)


def test_unshredded_variants_keep_null_apart_from_a_missing_variant(tmp_path) -> None:
    type = pa.struct([("metadata", pa.binary()), ("value", pa.binary())])
    stored = [{"metadata": EMPTY, "value": b"\x00"}, None, {"metadata": EMPTY, "value": b"\x04"}]
    assert shredded(tmp_path, type, stored) == ["null", None, "true"]


def test_shredded_leaves_fall_back_to_the_value(tmp_path) -> None:
    stored = [
        {"metadata": EMPTY, "value": None, "typed_value": 5},
        {"metadata": EMPTY, "value": b"\x05a", "typed_value": None},
        {"metadata": EMPTY, "value": None, "typed_value": None},
        None,
    ]
    assert shredded(tmp_path, group(pa.int32(), metadata=True), stored) == [
        "5",
        '"a"',
        "null",
        None,
    ]


def test_shredded_objects_merge_with_the_rest_of_the_value(tmp_path) -> None:
    names = b"\x11\x02\x00\x01\x02az"
    rest = b"\x02\x01\x01\x00\x05\x14\x07\x00\x00\x00"  # {"z": 7}
    inner = pa.struct([("b", group(pa.string())), ("c", group(pa.float64()))])
    missing = {"value": None, "typed_value": None}
    stored = [
        {
            "metadata": names,
            "value": rest,
            "typed_value": {"b": {"value": None, "typed_value": "x"}, "c": missing},
        },
        {
            "metadata": names,
            "value": None,
            "typed_value": {"b": {"value": b"\x00", "typed_value": None}, "c": missing},
        },
        {"metadata": names, "value": b"\x04", "typed_value": None},
    ]
    found = shredded(tmp_path, group(inner, metadata=True), stored)
    assert found == ['{"b":"x","z":7}', '{"b":null}', "true"]


def test_shredded_arrays_are_put_together(tmp_path) -> None:
    stored = [
        {
            "metadata": EMPTY,
            "value": None,
            "typed_value": [
                {"value": None, "typed_value": 1},
                {"value": b"\x04", "typed_value": None},
            ],
        },
        {"metadata": EMPTY, "value": None, "typed_value": []},
        {"metadata": EMPTY, "value": b"\x08", "typed_value": None},
    ]
    found = shredded(tmp_path, group(pa.list_(group(pa.int64())), metadata=True), stored)
    assert found == ["[1,true]", "[]", "false"]


def test_a_value_beside_a_shredded_leaf_is_an_error_of_the_file(tmp_path) -> None:
    stored = [{"metadata": EMPTY, "value": b"\x04", "typed_value": 5}]
    with pytest.raises(CorruptFileError, match='column "v": bad variant'):
        shredded(tmp_path, group(pa.int32(), metadata=True), stored)


def test_what_trino_wrote_is_json_that_matches_its_description(corpus: Path) -> None:
    (path,) = (corpus / "impala/iceberg_v3/trino_variant/data").glob("*.parquet")
    table = pq.read_table(path)
    texts = values("3 v variant", str(path))
    by_description = dict(zip(table["descr"].to_pylist(), texts, strict=True))
    assert by_description["NULL"] is None
    assert by_description["variant null"] == "null"
    assert json.loads(by_description["array of string"]) == ["iceberg", "string"]
    assert json.loads(by_description["obj escaped keys"]) == {'a"b': 1, "c\\d": 2, "e\nf": 3}
    assert json.loads(by_description["obj 6-field nested"]) == {
        "context": {"page": "home", "retries": 3},
        "device": "mobile",
        "int_array": [1, 2, 3, 4, 10],
        "user": "Alice",
    }
    assert by_description["ts tz micros"] == '"2024-11-07T12:33:54.123456+00:00"'
    parsed = [json.loads(text) for text in texts if text is not None]
    assert (len(texts), len(parsed)) == (55, 54)
