"""JSON single values: the examples of the spec's table and what must be refused."""

from __future__ import annotations

import json

import pytest

from icesql.iceberg.metadata.json_fields import Malformed
from icesql.iceberg.single_value import parse_single_value
from icesql.iceberg.types import (
    DATE,
    INTEGER,
    STRING,
    ListType,
    MapType,
    NestedField,
    StructType,
)
from tests.iceberg.text_forms import read_python, read_type
from tests.tables import read_table


@pytest.mark.parametrize(("kind", "form", "value"), read_table(__file__, "single_values.tsv"))
def test_values_become_their_internal_form_or_are_refused(kind: str, form: str, value: str) -> None:
    if value == "refused":
        with pytest.raises(Malformed):
            parse_single_value(read_type(kind), json.loads(form))
        return
    parsed = parse_single_value(read_type(kind), json.loads(form))
    assert parsed == read_python(value)
    assert type(parsed) is type(read_python(value))


def test_nested_values_follow_ids_elements_and_pairs() -> None:
    struct = StructType((NestedField(1, "a", INTEGER), NestedField(2, "b", DATE)))
    assert parse_single_value(struct, {"1": 1, "2": "1970-01-02"}) == {1: 1, 2: 1}
    assert parse_single_value(ListType(3, DATE), ["1970-01-02", None]) == [1, None]
    mapping = MapType(4, STRING, 5, INTEGER)
    assert parse_single_value(mapping, {"keys": ["a", "b"], "values": [1, 2]}) == [
        ("a", 1),
        ("b", 2),
    ]
