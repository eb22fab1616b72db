"""Which manifests may have the files of a partition, by their summaries."""

from __future__ import annotations

import uuid

from icesql.commit.manifests.existing import may_hold
from icesql.iceberg import types as t
from icesql.iceberg.manifest.manifest import FieldSummary


def test_uuids_in_javas_order() -> None:
    """Java compares the halves of UUIDs as signed numbers: ff… comes before 00…."""
    low, high = uuid.UUID(int=(1 << 128) - 1), uuid.UUID(int=5)
    summary = FieldSummary(False, False, low.bytes, high.bytes)
    for each in (low, high, uuid.UUID(int=0)):
        assert may_hold([summary], [t.UUID], {(each,)})
    assert not may_hold([summary], [t.UUID], {(None,)})


def test_numbers_outside_of_the_bounds() -> None:
    summary = FieldSummary(True, None, (1).to_bytes(4, "little"), (3).to_bytes(4, "little"))
    found = [may_hold([summary], [t.INTEGER], {(each,)}) for each in (0, 1, 3, 4, None)]
    assert found == [False, True, True, False, True]
