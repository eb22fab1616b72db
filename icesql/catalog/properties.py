"""Which properties of a catalog open files, and which only the catalog itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

_OF_CATALOG: Final = frozenset(
    {"uri", "warehouse", "type", "prefix", "token", "credential", "scope", "name", "auth", "ssl"}
)
_OF_CATALOG_TOO: Final = ("header.", "oauth2", "rest.", "rest-", "auth.", "ssl.")


def is_of_catalog(name: str) -> bool:
    """Whether a property is the address of a catalog, or a credential for it."""
    return name in _OF_CATALOG or name.startswith(_OF_CATALOG_TOO)


def of_storage(properties: Mapping[str, Any]) -> dict[str, str]:
    """The properties for files, as texts: these go to workers, the others stay here."""
    return {
        key: str(value)
        for key, value in properties.items()
        if value is not None and not is_of_catalog(key) and not isinstance(value, Mapping)
    }


# What a server may say of its stores; which of this machine's users asks, it may not.
_OF_STORES: Final = ("s3.", "client.", "gcs.", "adls.")
_OF_MACHINE: Final = frozenset({"s3.profile-name", "client.profile-name"})


def names_code(name: str) -> bool:
    """Whether the value of a property is a class of Python's or Java's, which runs when loaded."""
    return name.startswith("py-") or name.endswith(("-impl", ".impl"))


def of_server(properties: Mapping[str, Any]) -> dict[str, str]:
    """The properties for files in an answer of a server: those of stores, and no other."""
    return {
        key: value
        for key, value in of_storage(properties).items()
        if key.startswith(_OF_STORES) and key not in _OF_MACHINE and not names_code(key)
    }
