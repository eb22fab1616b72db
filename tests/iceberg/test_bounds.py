"""Single-value serialization: the vectors of the Iceberg spec and the rules of promotion."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from icesql.iceberg import bounds
from icesql.iceberg.bounds import decode_bound, scaled
from icesql.iceberg.types import (
    INTEGER,
    UNKNOWN,
    DecimalType,
)
from tests.iceberg.text_forms import read_type, read_value
from tests.tables import read_table
from tests.writer.bounds import encode_bound


def read_bytes(text: str) -> bytes:
    """The bytes of a cell."""
    return bytes.fromhex(text.strip("-"))


@pytest.mark.parametrize(("kind", "value", "data"), read_table(__file__, "bounds.tsv"))
def test_vectors_decode_and_encode(kind: str, value: str, data: str) -> None:
    type_, stored = read_type(kind), read_bytes(data)
    given = read_value(type_, value)
    assert decode_bound(type_, stored) == given
    assert encode_bound(type_, given) == stored
    assert bounds.encode_bound(type_, given) == stored


@pytest.mark.parametrize(("kind", "data", "value"), read_table(__file__, "read_bounds.tsv"))
def test_bytes_of_writers(kind: str, data: str, value: str) -> None:
    type_ = read_type(kind)
    assert str(decode_bound(type_, read_bytes(data))) == str(read_value(type_, value))


def test_decimals_of_38_digits_stay_exact_under_the_default_context() -> None:
    unscaled = 10**38 - 1
    assert scaled(unscaled, 10) == Decimal("9" * 28 + "." + "9" * 10)
    assert encode_bound(DecimalType(38, 10), scaled(unscaled, 10)) == unscaled.to_bytes(16)


@given(st.integers(-(10**38) + 1, 10**38 - 1), st.integers(0, 38))
def test_decimals_survive_the_round_trip(unscaled: int, scale: int) -> None:
    type_ = DecimalType(38, scale)
    value = scaled(unscaled, scale)
    encoded = encode_bound(type_, value)
    assert decode_bound(type_, encoded) == value
    assert int.from_bytes(encoded, "big", signed=True) == unscaled
    assert len(encoded) == 1 or abs(unscaled) >= 1 << (8 * len(encoded) - 9)


def test_values_outside_their_type_do_not_encode() -> None:
    with pytest.raises(ValueError):
        encode_bound(INTEGER, 1 << 31)
    with pytest.raises(ValueError):
        encode_bound(DecimalType(9, 2), Decimal("1.005"))
    with pytest.raises(TypeError):
        encode_bound(UNKNOWN, 1)
