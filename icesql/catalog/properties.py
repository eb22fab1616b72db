"""Which properties of a catalog open files, and which only the catalog itself."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from icesql.storage.open import split_path

_OF_CATALOG: Final = frozenset(
    {"uri", "warehouse", "type", "prefix", "token", "credential", "scope", "name", "auth", "ssl",
     "catalog"}
)  # fmt: skip
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


# Properties that a server may set for its stores. It must not choose a credentials profile of this
# machine.
_OF_STORES: Final = ("s3.", "client.", "gcs.", "adls.")
_OF_MACHINE: Final = frozenset({"s3.profile-name", "client.profile-name"})

_BY_SCHEME: Final = {
    **dict.fromkeys(("s3", "s3a", "s3n"), ("s3.", "client.")),
    **dict.fromkeys(("gs", "gcs"), ("gcs.",)),
    **dict.fromkeys(("abfs", "abfss", "wasb", "wasbs"), ("adls.",)),
    "hdfs": ("hdfs.",),
}
# A catalog signs for its own tables only.
_OF_SIGNERS: Final = ("s3.signer", "s3.remote-signing-enabled")
# Properties that identify a store and the account that reads it.
_PLACES: Final = (
    "s3.endpoint", "s3.access-key-id", "client.access-key-id", "s3.profile-name",
    "client.profile-name", "gcs.service.host", "gcs.oauth2.token", "adls.account-name",
    "adls.account-host", "adls.connection-string", "adls.blob-storage-authority",
    "adls.dfs-storage-authority", "hdfs.host",
)  # fmt: skip
# Without these, the store's vendor would be contacted instead.
ENDPOINTS: Final = (".endpoint", ".host", "-authority", "-host", ".connection-string")
_AZURE: Final = r"\.(dfs|blob)\.core\.(windows\.net|usgovcloudapi\.net|chinacloudapi\.cn)"


def of_store(properties: Mapping[str, Any], path: str) -> dict[str, str]:
    """The properties of a catalog that open ``path`` in its store.

    Empty for a path of another scheme, or for a path that names another account or host.
    """
    scheme, authority, _ = split_path(path)
    names, host = _BY_SCHEME.get(scheme, ()), authority.rpartition("@")[2].lower()
    found = {
        key: value
        for key, value in of_storage(properties).items()
        if key.startswith(names) and not key.startswith(_OF_SIGNERS) and not names_code(key)
    }
    own = split_path(str(properties.get("warehouse") or ""))[1].rpartition("@")[2].lower()
    if scheme == "hdfs":
        node, port = found.get("hdfs.host", "").lower(), found.get("hdfs.port")
        return found if host in {"", own, f"{node}:{port}" if port else node} else {}
    if names == ("adls.",):
        said = re.search(r"(?i)(?:^|;)AccountName=([^;]+)", found.get("adls.connection-string", ""))
        account = found.get("adls.account-name") or (said[1] if said else "")
        is_own = (
            host == own
            or host == found.get("adls.account-host", "").lower()
            or bool(account and re.fullmatch(re.escape(account.lower()) + _AZURE, host))
        )
        return found if is_own or ("@" not in authority and account) else {}
    return found


def with_given(
    own: Mapping[str, str], given: Mapping[str, str], more: Mapping[str, str]
) -> dict[str, str]:
    """``own`` updated with ``more``; ``given`` instead of ``own`` if ``more`` changes the store."""
    is_other = any(key in more and more[key] != own.get(key) for key in _PLACES)
    return {**(given if is_other else own), **more}


def names_code(name: str) -> bool:
    """True if the value of a property names a Python or Java class, which runs when loaded."""
    return name.startswith("py-") or name.endswith(("-impl", ".impl"))


def of_server(properties: Mapping[str, Any]) -> dict[str, str]:
    """The properties for files in an answer of a server: those of stores, and no other."""
    return {
        key: value
        for key, value in of_storage(properties).items()
        if key.startswith(_OF_STORES) and key not in _OF_MACHINE and not names_code(key)
    }
