"""Parts of metadata as JSON: reading them back gives the same values."""

from __future__ import annotations

import gzip
import json
import math
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from icesql.errors import DataError
from icesql.iceberg import types as t
from icesql.iceberg.metadata.json_fields import Malformed, load_json
from icesql.iceberg.metadata.schema_json import parse_schema
from icesql.iceberg.metadata.writing import metadata_bytes, schema_json
from icesql.iceberg.schema import Schema
from icesql.iceberg.single_value import parse_single_value, single_value_json
from tests.iceberg.text_forms import read_python, read_type
from tests.tables import read_table


@pytest.mark.parametrize(("kind", "value"), read_table(__file__, "defaults.tsv"))
def test_a_default_is_read_as_it_was_written(kind, value) -> None:
    type_, given = read_type(kind), read_python(value)
    written = json.loads(json.dumps(single_value_json(type_, given)))
    assert parse_single_value(type_, written) == given


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_number_that_json_lacks_is_no_default(value) -> None:
    with pytest.raises(DataError, match="cannot be the default"):
        single_value_json(t.DOUBLE, value)


def test_a_schema_is_read_as_it_was_written() -> None:
    inner = t.StructType((t.NestedField(3, "x", t.DecimalType(9, 2), doc="how much"),))
    schema = Schema(
        (
            t.NestedField(1, "id", t.LONG, True, initial_default=3, write_default=4),
            t.NestedField(2, "s", inner),
            t.NestedField(4, "l", t.ListType(5, t.BINARY, True)),
            t.NestedField(6, "m", t.MapType(7, t.STRING, 8, t.GeographyType("x", "karney"), True)),
        ),
        7,
        (1,),
    )
    assert parse_schema(json.loads(json.dumps(schema_json(schema)))) == schema
    assert "identifier-field-ids" not in schema_json(Schema(()))


def test_a_file_is_one_line_of_utf_8_or_gzip_of_it() -> None:
    data = metadata_bytes({"é": 1 << 62})
    assert data == '{"é":4611686018427387904}'.encode()
    assert gzip.decompress(metadata_bytes({"a": 1}, gzipped=True)) == b'{"a":1}'
    assert json.loads(metadata_bytes({"a": "\ud800"})) == {"a": "\ud800"}


def test_schemas_of_other_writers_are_written_as_they_were() -> None:
    corpus = os.environ.get("ICESQL_CORPUS")
    if not corpus:
        pytest.skip("needs $ICESQL_CORPUS")
    files = sorted(Path(corpus).rglob("*.metadata.json"))[::7]
    seen = 0
    for file in files:
        try:
            schemas = json.loads(file.read_bytes()).get("schemas", [])
            parsed = [parse_schema(each) for each in schemas]
        except Exception:
            continue
        for one, raw in zip(parsed, schemas, strict=True):
            assert parse_schema(schema_json(one)) == one
            assert names_and_types(schema_json(one)) == names_and_types(raw)
            seen += 1
    assert seen > 20


def names_and_types(node):
    if isinstance(node, dict):
        return {
            key: names_and_types(each)
            for key, each in node.items()
            if each is not None and each != [] and key not in ("initial-default", "write-default")
        }
    if isinstance(node, list):
        return [names_and_types(each) for each in node]
    return node.replace(" ", "") if isinstance(node, str) else node


TEXTS = read_table(__file__, "json_texts.tsv")
BORDERS = [
    *(text for text, verdict in TEXTS if verdict == "read"),
    "1" * 4000, " [ 1 , {} ]\n", "\ufeff1", "[" * 500 + "]" * 500,
]  # fmt: skip
WRONG = [
    *(text for text, verdict in TEXTS if verdict == "refused"),
    "", '"\t"', "1" * 5000, "[" * 200_000 + "]" * 200_000,
]  # fmt: skip


@pytest.mark.parametrize("as_bytes", [True, False])
def test_json_is_read_as_the_standard_library_reads_it(as_bytes) -> None:
    for text in BORDERS:
        data = text.encode() if as_bytes else text.lstrip("\ufeff")
        assert repr(load_json(data)) == repr(json.loads(data)), text
    for text in WRONG:
        with pytest.raises(Malformed):
            load_json(text.encode() if as_bytes else text)
    # Half of a surrogate pair as json takes it: its three bytes.
    assert load_json(b'"\xed\xa0\x80"') == "\ud800"
    for data in (b'"\xff"', b'"\xc0\xaf"', b'{"a": "\xe9"}'):
        with pytest.raises(Malformed, match="UTF-8"):
            load_json(data)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
        | st.text(),
        lambda each: st.lists(each, max_size=4) | st.dictionaries(st.text(), each, max_size=4),
    )
)  # fmt: skip
def test_json_of_any_kind_comes_back_as_it_was(value) -> None:
    assert repr(load_json(metadata_bytes({"a": value}))) == repr({"a": value})
    assert repr(load_json(json.dumps(value).encode())) == repr(value)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_no_number_that_json_lacks_is_written_as_null(value) -> None:
    with pytest.raises(ValueError, match="JSON compliant"):
        metadata_bytes({"a": [1, {"b": value}]})


def test_what_a_document_may_hold_is_written_whole() -> None:
    document = {"null": None, "text": "null", "half": "\ud800", "large": 2**200, "pair": (1, 2)}
    for key, value in document.items():
        written = metadata_bytes({key: value})
        assert json.loads(written) == json.loads(json.dumps({key: value})), key
