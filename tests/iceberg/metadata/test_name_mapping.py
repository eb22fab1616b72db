"""Name mappings: names at each level, taken literally."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import pytest

from icesql.errors import CorruptFileError
from icesql.iceberg.metadata.name_mapping import parse_name_mapping
from tests.tables import read_table

MAPPING = Path(__file__).with_name("name_mapping.json").read_text()


@pytest.mark.parametrize(("path", "field_id"), read_table(__file__, "mapped_names.tsv"))
def test_fields_are_found_by_a_name_per_level(path: str, field_id: str) -> None:
    assert parse_name_mapping(MAPPING).find(tuple(json.loads(path))) == json.loads(field_id)


def test_mappings_travel_to_other_processes() -> None:
    mapping = parse_name_mapping(MAPPING)
    assert pickle.loads(pickle.dumps(mapping)) == mapping


@pytest.mark.parametrize(
    "text",
    [
        "{",
        '{"field-id": 1}',
        '[{"field-id": "x", "names": ["a"]}]',
        '[{"field-id": 1, "names": "a"}]',
        '[{"field-id": 1, "names": [3]}]',
        '[{"field-id": 1, "names": ["a"]}, {"field-id": 2, "names": ["a"]}]',
        "[" * 5000,
        '[{"names": ["a"], "fields": ' * 500 + "[]" + "}]" * 500,
    ],
)
def test_malformed_mappings_are_refused_naming_the_property(text: str) -> None:
    with pytest.raises(CorruptFileError, match=r"schema\.name-mapping\.default"):
        parse_name_mapping(text)


def test_a_mapping_in_schema_form_is_understood() -> None:
    text = '{"type": "struct", "fields": [{"field-id": 1, "names": ["a", "A"]}]}'
    assert parse_name_mapping(text).find(("A",)) == 1
