"""The engine name and version in the summaries of icesql's snapshots."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

# The package stands above this room, which may not import it.
_VERSION: Final = str(getattr(sys.modules[__name__.partition(".")[0]], "__version__", ""))

SUMMARY: Final[Mapping[str, str]] = MappingProxyType(
    {"engine-name": "icesql", "engine-version": _VERSION}
)
