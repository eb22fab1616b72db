"""The columns of a manifest as stored, before values are inherited."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct, field

from icesql.iceberg.manifest.entries import IntKeyedColumn


class ManifestColumns(Struct):
    """The columns that a decoder returns; None in the three id columns means "inherit"."""

    status: list[int]
    snapshot_id: list[int | None]
    sequence_number: list[int | None]
    file_sequence_number: list[int | None]
    content: list[int]
    path: list[str]
    file_format: list[str]
    partition: list[tuple[Any, ...]]
    record_count: list[int]
    file_size_in_bytes: list[int]
    maps: dict[str, IntKeyedColumn] = field(default_factory=dict)
    rare: dict[str, Mapping[int, Any]] = field(default_factory=dict)
