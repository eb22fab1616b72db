"""The properties of a table that decide how its manifests are written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from icesql.iceberg.manifest.writing.container import manifest_codec
from icesql.iceberg.metadata.property_numbers import number_property

_TARGET: Final = "commit.manifest.target-size-bytes"
_LEAST: Final = "commit.manifest.min-count-to-merge"
_MERGE: Final = "commit.manifest-merge.enabled"
_PARTITIONS: Final = "write.summary.partition-limit"


class ManifestSettings(Struct, frozen=True):
    """Sizes in bytes; ``least_to_merge`` manifests are merged with the newest one."""

    target_bytes: int = 8 << 20
    least_to_merge: int = 100
    merges: bool = True
    codec: str = "deflate"
    partition_limit: int = 0

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> ManifestSettings:
        """Raises ProgrammingError for a property with an invalid value."""
        return cls(
            number_property(properties, _TARGET, 8 << 20),
            number_property(properties, _LEAST, 100),
            properties.get(_MERGE, "true").lower() != "false",
            manifest_codec(properties),
            number_property(properties, _PARTITIONS, 0),
        )
