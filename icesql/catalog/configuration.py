"""The catalogs of the user's ``.pyiceberg.yaml`` and of PYICEBERG_* variables.

Read as PyIceberg reads them, without importing it: the first file found in $PYICEBERG_HOME, the
home folder and the current one; ``PYICEBERG_CATALOG__NAME__KEY_WITH_DASHES`` on top of it. Every
value is a text, every name in lower case.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any, Final

from icesql.errors import CatalogError
from icesql.frozen import Frozen
from icesql.storage.credentials import redact

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
