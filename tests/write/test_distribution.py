"""Which distribution a table asks for. Expected values: Java's SparkWriteConf and SparkWriteUtil."""

from __future__ import annotations

import pytest

from icesql.errors import UnsupportedTableError
from icesql.iceberg.partitioning import PartitionField, PartitionSpec
from icesql.write.distribution import distribution

BY_KEY = PartitionSpec(0, (PartitionField((1,), 1000, "identity", "k"),))
VOID = PartitionSpec(0, (PartitionField((1,), 1000, "void", "k"),))
NONE = PartitionSpec()


@pytest.mark.parametrize(
    ("mode", "spec", "is_sorted", "expected"),
    [
        (None, NONE, False, "none"),
        (None, BY_KEY, False, "hash"),
        (None, VOID, False, "none"),
        (None, NONE, True, "range"),
        (None, BY_KEY, True, "range"),
        ("none", BY_KEY, True, "none"),
        ("hash", NONE, False, "none"),
        ("hash", NONE, True, "none"),
        ("HASH", BY_KEY, True, "hash"),
        ("range", NONE, False, "none"),
        ("range", BY_KEY, False, "hash"),
        ("range", NONE, True, "range"),
    ],
)
def test_modes(mode: str | None, spec: PartitionSpec, is_sorted: bool, expected: str) -> None:
    properties = {} if mode is None else {"write.distribution-mode": mode}
    assert distribution(properties, spec, is_sorted) == expected


def test_an_unknown_mode_is_refused() -> None:
    with pytest.raises(UnsupportedTableError, match=r"write\.distribution-mode = 'both'"):
        distribution({"write.distribution-mode": "both"}, NONE, False)
