"""Partition values of every Avro spelling, in the internal form of their type."""

from __future__ import annotations

from typing import Any

import pytest

from icesql.iceberg.avro.schema import AvroNode
from icesql.iceberg.avro.values import BadAvro
from icesql.iceberg.manifest.partition_values import partition_converter
from icesql.iceberg.types import (
    UNKNOWN,
    IcebergType,
)
from tests.iceberg.text_forms import read_python, read_type
from tests.tables import read_table


def convert(node: AvroNode, type_: IcebergType, value: Any) -> Any:
    found = partition_converter(node, type_)
    return value if found is None else found(value)


@pytest.mark.parametrize(
    ("kind", "logical", "wanted", "stored", "value"), read_table(__file__, "partition_values.tsv")
)
def test_values_take_the_form_of_their_type(
    kind: str, logical: str, wanted: str, stored: str, value: str
) -> None:
    node = AvroNode(kind, logical=None if logical == "-" else logical, size=16)
    if value != "refused":
        assert convert(node, read_type(wanted), read_python(stored)) == read_python(value)
        return
    with pytest.raises(BadAvro):
        convert(node, read_type(wanted), read_python(stored))


def test_a_decimal_of_a_dropped_column_keeps_the_scale_of_the_file() -> None:
    node = AvroNode("bytes", logical="decimal", scale=3)
    assert str(convert(node, UNKNOWN, b"\x0b")) == "0.011"
