"""The properties of a table that decide how its manifests are written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from icesql.errors import ProgrammingError
from icesql.iceberg.manifest.writing.container import manifest_codec

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
            _number(properties, _TARGET, 8 << 20),
            _number(properties, _LEAST, 100),
            properties.get(_MERGE, "true").lower() != "false",
            manifest_codec(properties),
            _number(properties, _PARTITIONS, 0),
        )


def _number(properties: Mapping[str, str], name: str, default: int) -> int:
    text = properties.get(name)
    if text is None:
        return default
    if not (text.isascii() and text.isdigit()):
        raise ProgrammingError(f"property {name} is {text!r}; it has to be a number from 0 on")
    return int(text)
