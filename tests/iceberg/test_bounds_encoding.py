"""Binary single values: what is decoded is what was encoded, as another writer encodes it."""

from __future__ import annotations

from decimal import Decimal

import pytest

from icesql.errors import DataError
from icesql.iceberg import types as t
from icesql.iceberg.bounds import decode_bound
from icesql.iceberg.bounds_encoding import encode_bound
from tests.writer.bounds import encode_bound as other_writer

VALUES = [
    (t.BOOLEAN, False), (t.BOOLEAN, True), (t.INTEGER, -5), (t.LONG, (1 << 63) - 1),
    (t.FLOAT, -0.5), (t.DOUBLE, 1e300), (t.DATE, -719162), (t.TIME, 1), (t.TIMESTAMP, -1),
    (t.TIMESTAMPTZ_NS, 1), (t.STRING, "é"), (t.UUID, bytes(range(16))), (t.FixedType(2), b"ab"),
    (t.BINARY, b""), *((t.DecimalType(38, 2), Decimal(number).scaleb(-2)) for number in
    (0, 1, -1, 127, 128, -128, -129, 255, 256, 32767, 32768, -(10**38) + 1, 10**38 - 1)),
]  # fmt: skip


@pytest.mark.parametrize(("type", "value"), VALUES, ids=lambda each: str(each)[:20])
def test_a_bound_is_read_as_it_was_written(type, value) -> None:
    assert encode_bound(type, value) == other_writer(type, value)
    assert decode_bound(type, encode_bound(type, value)) == value


@pytest.mark.parametrize(
    ("type", "value"),
    [(t.INTEGER, 1 << 31), (t.FixedType(2), b"a"), (t.UUID, b""), (t.DecimalType(9, 1), Decimal("1.23")),
     (t.STRING, 7), (t.VARIANT, b"x"), (t.ListType(1, t.LONG), [1])],
)  # fmt: skip
def test_a_value_of_another_type_is_refused(type, value) -> None:
    with pytest.raises(DataError):
        encode_bound(type, value)
