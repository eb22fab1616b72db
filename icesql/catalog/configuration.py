"""The properties of catalogs: where the user writes them, and which of them open files.

``.pyiceberg.yaml`` and PYICEBERG_* variables are read as PyIceberg reads them, without importing
it: the first file found in $PYICEBERG_HOME, the home folder and the current one;
``PYICEBERG_CATALOG__NAME__KEY_WITH_DASHES`` on top of it. Every value is a text, every name in
lower case.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from icesql.errors import CatalogError
from icesql.frozen import Frozen
from icesql.storage.credentials import redact
from icesql.storage.open import split_path

_FILE: Final = ".pyiceberg.yaml"
_PREFIX: Final = "pyiceberg_"
_LARGEST: Final = 1 << 20


class Configuration(Frozen):
    """The configured catalogs by name; ``file`` defines them, None if only variables do."""

    catalogs: Mapping[str, Mapping[str, Any]]
    default_name: str = "default"
    file: str | None = None

    def catalog(self, name: str) -> Mapping[str, Any]:
        """The properties of a catalog, empty for one that is not configured."""
        return self.catalogs.get(name.lower(), {})


def configuration() -> Configuration:
    """Read the configuration as it is now. Raises CatalogError for a file that cannot be read."""
    file = next(filter(os.path.isfile, _places()), None)
    content = {} if file is None else _content(file)
    for _, path, value in _variables():
        _put(content, path, value)
    catalogs = content.get("catalog", {})
    if not isinstance(catalogs, dict) or not all(isinstance(c, dict) for c in catalogs.values()):
        raise CatalogError(f"{file or 'PYICEBERG_CATALOG'}: catalog has to hold properties by name")
    return Configuration(catalogs, str(content.get("default-catalog") or "default"), file)


def origins() -> dict[tuple[str, str], str]:
    """Where each property of each catalog is from, by both names: a file or a variable.

    Raises CatalogError for a file that cannot be read.
    """
    config = configuration()
    found = {
        (name, key): config.file or ""
        for name, properties in config.catalogs.items()
        for key in properties
    }
    for variable, path, _ in _variables():
        if len(path) == 3 and path[0] == "catalog":
            found[path[1], path[2]] = variable
    return found


def kind_of(properties: Mapping[str, Any]) -> str:
    """The kind of catalog that properties describe: ``rest``, ``sql``, ``glue`` …"""
    given = str(properties.get("type") or "").lower()
    if given:
        return given
    if properties.get("py-catalog-impl"):
        return str(properties["py-catalog-impl"])
    uri = str(properties.get("uri") or "")
    return "rest" if uri.startswith(("http://", "https://")) else "sql"


def _places() -> Iterator[str]:
    for folder in (os.environ.get("PYICEBERG_HOME"), os.path.expanduser("~"), os.getcwd()):
        if folder:
            yield os.path.join(folder, _FILE)


def _content(file: str) -> dict[str, Any]:
    import yaml

    try:
        with open(file, encoding="utf-8") as opened:
            text = opened.read(_LARGEST)
        # Aliases can expand a small file to an enormous document, so anchors are refused.
        for token in yaml.scan(text):
            if isinstance(token, yaml.AliasToken | yaml.AnchorToken):
                raise CatalogError(f"{_FILE} cannot be read: anchors and aliases are not supported")
        # BaseLoader creates only strings, lists and dicts; it ignores tags that create objects.
        content = yaml.load(text, Loader=yaml.BaseLoader)
    except (yaml.YAMLError, ValueError, OSError, RecursionError) as error:
        first = " ".join(redact(str(error), {}).split())
        raise CatalogError(f"{_FILE} cannot be read: {first}") from error
    if content in (None, ""):
        return {}
    if not isinstance(content, dict):
        raise CatalogError(f"{_FILE} cannot be read: it holds no properties by name")
    return _lowered(content)


def _lowered(content: Mapping[str, Any]) -> dict[str, Any]:
    return {
        str(key).lower(): _lowered(value) if isinstance(value, dict) else value
        for key, value in content.items()
    }


def _variables() -> Iterator[tuple[str, list[str], str]]:
    for name, value in os.environ.items():
        lowered = name.lower()
        if lowered.startswith(_PREFIX) and lowered != "pyiceberg_home":
            parts = lowered.removeprefix(_PREFIX).split("__", maxsplit=2)
            yield name, [part.replace("__", ".").replace("_", "-") for part in parts], value


def _put(content: dict[str, Any], path: list[str], value: str) -> None:
    for part in path[:-1]:
        below = content.setdefault(part, {})
        if not isinstance(below, dict):
            raise CatalogError(
                f"the variable PYICEBERG_{'__'.join(path).upper()} names properties of {part}, "
                "which has a single value"
            )
        content = below
    content[path[-1]] = value


# ------------------------------------------------------------------ properties that open files


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
