"""Untrusted writer schemas: those whose reading would never end are refused at once."""

from __future__ import annotations

import json

import pytest

from icesql.iceberg.avro.schema import OddSchema, parse_avro_schema


def nested(levels: int, width: int) -> bytes:
    """Records of which each names the one before ``width`` times."""
    inner: object = {"type": "record", "name": "r0", "fields": [{"name": "x", "type": "int"}]}
    for level in range(1, levels):
        fields = [{"name": "f0", "type": inner}]
        fields += [{"name": f"f{each}", "type": f"r{level - 1}"} for each in range(1, width)]
        inner = {"type": "record", "name": f"r{level}", "fields": fields}
    return json.dumps(inner).encode()


def test_names_that_stand_for_a_billion_types_are_refused() -> None:
    with pytest.raises(OddSchema, match="too many types"):
        parse_avro_schema(nested(levels=24, width=3))


def test_a_name_may_be_used_again() -> None:
    schema = parse_avro_schema(nested(levels=5, width=2))
    assert schema.fields[0].node == schema.fields[1].node


def test_a_chain_of_names_deeper_than_the_text_is_refused() -> None:
    records = [{"type": "record", "name": "r0", "fields": [{"name": "x", "type": "int"}]}]
    for level in range(1, 200):
        fields = [{"name": "f", "type": f"r{level - 1}"}]
        records.append({"type": "record", "name": f"r{level}", "fields": fields})
    text = {
        "type": "record",
        "name": "all",
        "fields": [{"name": f"f{n}", "type": each} for n, each in enumerate(records)],
    }
    with pytest.raises(OddSchema, match="too many types"):
        parse_avro_schema(json.dumps(text).encode())
