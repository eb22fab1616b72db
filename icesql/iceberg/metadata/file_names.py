"""The place and the name of the next metadata file of a table.

Source: Java ``BaseMetastoreTableOperations``, ``TableMetadataParser``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from icesql.errors import ProgrammingError

_NUMBERED: Final = re.compile(r"(\d+)-", re.ASCII)
_CODEC: Final = "write.metadata.compression-codec"
_FOLDER: Final = "write.metadata.path"


def metadata_folder(location: str, properties: Mapping[str, str]) -> str:
    """The folder of metadata files, manifests and manifest lists, without a slash at its end."""
    return (properties.get(_FOLDER) or f"{location.rstrip('/')}/metadata").rstrip("/")


def is_gzipped(properties: Mapping[str, str]) -> bool:
    """Whether metadata files are to be compressed. Raises ProgrammingError for another codec."""
    codec = (properties.get(_CODEC) or "none").lower()
    if codec not in ("none", "gzip"):
        raise ProgrammingError(f"{_CODEC} is {codec!r}; it can be none or gzip")
    return codec == "gzip"


def wants_gzip(properties: Mapping[str, str]) -> bool:
    """The same, with an unknown codec as no compression.

    The statement that corrects such a property must be able to write a metadata file.
    """
    return (properties.get(_CODEC) or "none").lower() == "gzip"


def next_metadata_name(base: str | None, unique: str, *, gzipped: bool) -> str:
    """The name of the file after ``base``, a path; None begins with 00000.

    >>> next_metadata_name("s3://b/t/metadata/00041-x.gz.metadata.json", "u-1", gzipped=False)
    '00042-u-1.metadata.json'
    >>> next_metadata_name("/t/metadata/v7.metadata.json", "u-1", gzipped=True)
    '00000-u-1.gz.metadata.json'
    """
    found = _NUMBERED.match((base or "").rpartition("/")[2])
    version = int(found[1]) + 1 if found else 0
    return f"{version:05}-{unique}{'.gz' if gzipped else ''}.metadata.json"
