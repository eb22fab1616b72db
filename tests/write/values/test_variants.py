"""Values of SQL as variants."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from icesql.iceberg.variant import decode_node, read_dictionary
from icesql.read.columns.variant import to_text
from icesql.write.binary_values import variant_array
from icesql.write.casts import Misfit
from tests.tables import read_table


def texts(values: pa.Array) -> list[str | None]:
    return [
        None
        if each is None
        else to_text(decode_node(each["value"], read_dictionary(each["metadata"])))
        for each in variant_array(values).to_pylist()
    ]


@pytest.mark.parametrize(("text", "kind"), read_table(__file__, "numbers.tsv"))
def test_numbers_of_json_are_as_narrow_as_they_can_be(text: str, kind: str) -> None:
    (found,) = variant_array(pa.array([text])).to_pylist()
    assert found["value"][0] >> 2 == int(kind)
    assert found["value"][0] & 3 == 0


def test_a_text_is_json_and_reads_as_it_was_written() -> None:
    given = ['{"a":[1,2.50,null,"x"],"é":{"t":true}}', None, '"q\\n"', "[]", "{}", " 1 "]
    assert texts(pa.array(given)) == [*given[:5], "1"]


@pytest.mark.parametrize(
    ("text", "reason"), [*read_table(__file__, "no_json.tsv"), ("[" * 100000, "too deeply")]
)
def test_what_is_no_json_is_refused(text: str, reason: str) -> None:
    with pytest.raises(Misfit, match=reason) as caught:
        variant_array(pa.array(["1", text]))
    assert caught.value.row == 1


def test_other_values_keep_their_types() -> None:
    day = datetime.date(2020, 2, 29)
    kind = pa.struct([("d", pa.date32()), ("n", pa.decimal128(9, 2)), ("l", pa.list_(pa.string()))])
    given = [{"d": day, "n": Decimal("1.50"), "l": ["a", None]}, None, {"d": None}]
    made = variant_array(pa.array(given, kind))
    assert b"\x2c" + (18321).to_bytes(4, "little") in made[0].as_py()["value"]
    assert texts(pa.array(given, kind)) == [
        '{"d":"2020-02-29","l":["a",null],"n":1.50}',
        None,
        '{"d":null,"l":null,"n":null}',
    ]
    pairs = pa.array([[("k", 1), ("a", 2)], [], None], pa.map_(pa.string(), pa.int64()))
    assert texts(pairs) == ['{"a":2,"k":1}', "{}", None]
    sliced = pa.array([["no"], ["a", "b"], None, ["c"]]).slice(1)
    assert texts(sliced) == ['["a","b"]', None, '["c"]']


@pytest.mark.parametrize(
    ("kind", "given"),
    [(pa.map_(pa.int32(), pa.int32()), [(1, 2)]), (pa.duration("us"), 5)],
)
def test_types_that_no_variant_has(kind: pa.DataType, given: Any) -> None:
    with pytest.raises(Misfit) as caught:
        variant_array(pa.array([given], kind))
    assert caught.value.row == -1


def test_a_name_that_is_twice_among_many_is_found_in_one_pass() -> None:
    many = ", ".join(f'"name {number}": {number}' for number in range(100_000))
    with pytest.raises(Misfit, match="'name 99999' is there twice"):
        variant_array(pa.array([f'{{{many}, "name 99999": 0}}']))
