"""The logs of table metadata: earlier metadata files, and what ``main`` was.

Source: Iceberg spec, "Table Metadata Fields"; Java ``TableMetadata.Builder``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import Any, Final

from icesql.iceberg.metadata.property_numbers import whole_number

_PREVIOUS_VERSIONS: Final = "write.metadata.previous-versions-max"
_DEFAULT_PREVIOUS: Final = 100


def next_metadata_log(
    log: Sequence[Mapping[str, Any]],
    properties: Mapping[str, str],
    base_location: str | None,
    base_updated_ms: int,
) -> list[Mapping[str, Any]]:
    """The log of the next version: the newest entries, and after them the base's file.

    ``properties`` are those of the next version. Without a base file nothing is added.
    """
    if base_location is None:
        return [*log]
    most = max(_number(properties.get(_PREVIOUS_VERSIONS), _DEFAULT_PREVIOUS), 1)
    kept = [*log][len(log) - (most - 1) :] if len(log) > most - 1 else [*log]
    return [*kept, {"timestamp-ms": base_updated_ms, "metadata-file": base_location}]


def next_snapshot_log(
    log: Sequence[dict[str, Any]],
    *,
    snapshots: Set[int],
    passed: Set[int],
    removed: bool,
    current: int | None,
    now_ms: int,
) -> list[dict[str, Any]]:
    """The log without the snapshots that main only ``passed`` in this change.

    An entry of a snapshot that is gone takes all before it along: what main was between them is
    not known any more. The last entry is always the current snapshot.
    """
    found: list[dict[str, Any]] = []
    for entry in log:
        snapshot_id = entry.get("snapshot-id")
        if snapshot_id in snapshots:
            if snapshot_id not in passed:
                found.append(entry)
        elif removed:
            found.clear()
    if current is not None and (not found or found[-1].get("snapshot-id") != current):
        # Of a writer that kept no log; Java opens no table whose log ends elsewhere.
        found.append({"timestamp-ms": now_ms, "snapshot-id": current})
    return found


def _number(text: str | None, default: int) -> int:
    found = whole_number(text)
    return default if found is None else found
