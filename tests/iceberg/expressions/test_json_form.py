"""Predicates as JSON, against the forms that Java's ``ExpressionParser`` writes and reads."""

from __future__ import annotations

import json

import pytest

from icesql.iceberg.expressions.predicate import Predicate
from icesql.iceberg.metadata.json_fields import Malformed
from icesql.iceberg.rest_json import parse_predicate, predicate_json
from tests.iceberg.text_forms import columns, read_predicate
from tests.tables import read_table

SCHEMA = columns(
    "i long", "s string", "d double", "n decimal(9, 2)", "u uuid", "b binary", "day date",
    "ts timestamp", "tz timestamptz", "ns timestamp_ns", "clock time", "a.b long",
    'st {"type": "struct", "fields": [{"id": 20, "name": "in", "type": "long", "required": false}]}',
    'l {"type": "list", "element-id": 21, "element": "long", "element-required": true}',
)  # fmt: skip


def read(text: str) -> Predicate:
    return read_predicate(text, SCHEMA)


@pytest.mark.parametrize(("text", "form"), read_table(__file__, "json_forms.tsv"))
def test_there_and_back(text: str, form: str) -> None:
    assert predicate_json(read(text), SCHEMA) == json.loads(form)
    assert parse_predicate(json.loads(form), SCHEMA) == read(text)


@pytest.mark.parametrize(
    "untold",
    [
        'b = "78"',
        "a.b = 1",
        "l.element = 1",
        'u < "00000000-0000-0000-0000-000000000000"',
        "day > 10000000",
        "d = Infinity",
        "d IN [0.0, 1.0]",
        r's = "\ud800"',
        "i IS NOT NAN",
        "year(day) = 50",
    ],
)
def test_what_has_no_form_is_left_out(untold: str) -> None:
    """Less is pruned then: a conjunct goes, a disjunction goes whole."""
    known = predicate_json(read("i = 5"), SCHEMA)
    assert predicate_json(read(f"{untold} AND i = 5"), SCHEMA) == known
    assert predicate_json(read(f"{untold} OR i = 5"), SCHEMA) is True


def test_zeros_are_one_number() -> None:
    """Java orders -0.0 before 0.0, so a filter on one zero would skip files with the other."""
    for zero in ("0.0", "-0.0"):
        equal = predicate_json(read(f"d = {zero}"), SCHEMA)
        assert (equal["left"]["type"], str(equal["left"]["value"])) == ("gt-eq", "-0.0")
        assert (equal["right"]["type"], str(equal["right"]["value"])) == ("lt-eq", "0.0")
        for operation, value in ((">=", "-0.0"), ("<=", "0.0"), (">", "0.0"), ("<", "-0.0")):
            asked = predicate_json(read(f"d {operation} {zero}"), SCHEMA)
            assert str(asked["value"]) == value


@pytest.mark.parametrize(("form", "text"), read_table(__file__, "json_spellings.tsv"))
def test_other_spellings_of_servers(form: str, text: str) -> None:
    if text != "-":
        assert str(parse_predicate(json.loads(form), SCHEMA)) == text
        return
    with pytest.raises(Malformed):
        parse_predicate(json.loads(form), SCHEMA)
