"""Name mappings: names at each level, taken literally."""

from __future__ import annotations

import json
import pickle

import pytest

from icesql.errors import CorruptFileError
from icesql.iceberg.metadata.name_mapping import parse_name_mapping

MAPPING = json.dumps(
    [
        {"field-id": 1, "names": ["id", "record_id"]},
        {"field-id": 2, "names": ["a.b"]},
        {"names": ["ignored"]},
        {
            "field-id": 3,
            "names": ["location"],
            "fields": [
                {"field-id": 4, "names": ["latitude", "lat"]},
                {
                    "field-id": 5,
                    "names": ["tags"],
                    "fields": [
                        {"field-id": 6, "names": ["key"]},
                        {
                            "field-id": 7,
                            "names": ["value"],
                            "fields": [{"field-id": 8, "names": ["element"]}],
                        },
                    ],
                },
            ],
        },
    ]
)


@pytest.mark.parametrize(
    ("path", "field_id"),
    [
        (("id",), 1),
        (("record_id",), 1),
        (("ID",), None),
        (("a.b",), 2),
        (("a", "b"), None),
        (("ignored",), None),
        (("location", "lat"), 4),
        (("location", "tags", "key"), 6),
        (("location", "tags", "value", "element"), 8),
        (("latitude",), None),
        ((), None),
    ],
)
def test_fields_are_found_by_a_name_per_level(path: tuple[str, ...], field_id: int | None) -> None:
    assert parse_name_mapping(MAPPING).find(path) == field_id


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
