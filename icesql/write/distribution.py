"""How the rows of one statement are spread over several tasks: ``write.distribution-mode``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, TypeAlias, cast

from icesql.errors import UnsupportedTableError
from icesql.iceberg.partitioning import PartitionSpec

Distribution: TypeAlias = Literal["none", "hash", "range"]
_KEY: Final = "write.distribution-mode"


def distribution(
    properties: Mapping[str, str], spec: PartitionSpec, is_sorted: bool
) -> Distribution:
    """``hash`` brings the rows of a partition to one task, ``range`` gives a task a range of them.

    Unset it is ``range`` for a table with a sort order, else ``hash`` for one with partitions. A
    mode for which the table has no key is ``none``. Raises UnsupportedTableError for any other.
    """
    partitioned = not spec.is_unpartitioned
    default = "range" if is_sorted else "hash"
    mode = properties.get(_KEY, default).lower()
    if mode not in ("none", "hash", "range"):
        raise UnsupportedTableError(f"the table property {_KEY} = {mode!r}: none, hash or range")
    if mode == "range" and not is_sorted:
        mode = "hash"
    if mode == "hash" and not partitioned:
        mode = "none"
    return cast("Distribution", mode)
