"""Which distribution a table asks for. Expected values: Java's SparkWriteConf and SparkWriteUtil."""

from __future__ import annotations

import pytest

from icesql.errors import UnsupportedTableError
from icesql.iceberg.partitioning import PartitionField, PartitionSpec
from icesql.write.write_task import distribution
from tests.tables import read_table


@pytest.mark.parametrize(
    ("mode", "transform", "order", "expected"), read_table(__file__, "distribution.tsv")
)
def test_modes(mode: str, transform: str, order: str, expected: str) -> None:
    properties = {"write.distribution-mode": mode} if mode else {}
    fields = [PartitionField((1,), 1000, transform, "k")] if transform else []
    assert distribution(properties, PartitionSpec(0, tuple(fields)), bool(order)) == expected


def test_an_unknown_mode_is_refused() -> None:
    with pytest.raises(UnsupportedTableError, match=r"write\.distribution-mode = 'both'"):
        distribution({"write.distribution-mode": "both"}, PartitionSpec(), False)
