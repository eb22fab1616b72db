"""Which properties of a catalog open files, and which only the catalog itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

_OF_CATALOG: Final = frozenset(
    {"uri", "warehouse", "type", "prefix", "token", "credential", "scope", "name", "auth", "ssl"}
)
_OF_CATALOG_TOO: Final = ("header.", "oauth2", "rest.", "rest-", "auth.", "ssl.")


def is_of_catalog(name: str) -> bool:
    """Whether a property says where a catalog is, or shows it who asks."""
    return name in _OF_CATALOG or name.startswith(_OF_CATALOG_TOO)


def of_storage(properties: Mapping[str, Any]) -> dict[str, str]:
    """The properties for files, as texts: these go to workers, the others stay here."""
    return {
        key: str(value)
        for key, value in properties.items()
        if value is not None and not is_of_catalog(key) and not isinstance(value, Mapping)
    }
