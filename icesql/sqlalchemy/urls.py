"""Parses URLs of the dialect, and renders them without secrets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from sqlalchemy import exc
from sqlalchemy.engine import URL

from icesql.errors import similar_names
from icesql.storage.credentials import MASK, masked

# Arguments of `connect` that a URL may set; other names are properties of the catalog.
_ARGUMENTS: Final = (
    "uri", "warehouse", "dialect", "timezone", "engine", "master", "remote", "locked",
    "tables_by_path", "catalogs", "files", "copy_to", "confine", "read_only", "service",
)  # fmt: skip
# One-word properties of catalogs; their other properties contain a dot or a hyphen.
_PROPERTIES: Final = frozenset({"type", "token", "credential", "scope", "prefix", "auth", "name"})
_OWN: Final = ("purge", "namespace")
# Properties that a URL may contain at the place of user and password.
_SECRETS: Final = ("token", "credential")
_BOOLEANS: Final = {
    "true": True, "1": True, "yes": True, "false": False, "0": False, "no": False,
}  # fmt: skip
_FLAGS: Final = frozenset({"read_only", "service"})
_FLAG_OR_PLACES: Final = frozenset({"locked", "tables_by_path", "files", "copy_to", "confine"})


def options_of(url: URL) -> tuple[dict[str, Any], bool | None]:
    """The arguments of ``connect``, and whether DROP TABLE deletes files; None if not set.

    Raises ArgumentError for an invalid URL.
    """
    arguments: dict[str, Any] = {}
    properties: dict[str, str] = {}
    purge = None
    if url.username is not None or url.password is not None:
        if url.username not in _SECRETS or not url.password:
            raise exc.ArgumentError(
                "a URL of icesql takes no user or password but token:… and credential:…; name what "
                "else the catalog asks for in the query or in .pyiceberg.yaml"
            )
        properties[url.username] = url.password
    for name, value in url.query.items():
        if not isinstance(value, str) or name in properties:
            raise exc.ArgumentError(f"{name} comes more than once in the URL")
        if name in _ARGUMENTS:
            arguments[name] = _argument(name, value)
        elif name == "purge":
            purge = _flag(name, value)
        elif name != "namespace":
            _check_property(name)
            properties[name] = value
    if url.host:
        arguments["catalog"] = url.host if url.port is None else f"{url.host}:{url.port}"
    elif url.database:
        if "warehouse" in arguments:
            raise exc.ArgumentError("the URL names a warehouse in its path and in its query")
        arguments["warehouse"] = url.database
    if properties:
        arguments["properties"] = properties
    return arguments, purge


def _check_property(name: str) -> None:
    """Raise ArgumentError for a misspelt argument, so that a wrong read_only is not ignored."""
    if name in _PROPERTIES or "." in name:
        return
    near = similar_names(name.replace("-", "_"), (*_ARGUMENTS, *_OWN), 1)
    same = [each for each in (*_ARGUMENTS, *_OWN) if each == name.replace("-", "_").lower()]
    if found := [*same, *near]:
        raise exc.ArgumentError(f"the URL's {name} is unknown; did you mean {found[0]}?")


def _argument(name: str, value: str) -> Any:
    """An argument of ``connect`` from its text. Raises ArgumentError."""
    if name in _FLAGS:
        return _flag(name, value)
    flag = _BOOLEANS.get(value.lower())
    if name in _FLAG_OR_PLACES and flag is not None:
        return flag
    if name in _FLAG_OR_PLACES or name == "catalogs":
        return value.split(",")
    return value


def _flag(name: str, value: str) -> bool:
    flag = _BOOLEANS.get(value.lower())
    if flag is None:
        raise exc.ArgumentError(f"{name} in the URL is {value!r}; write true or false")
    return flag


class MaskedURL(URL):
    """A URL that hides secrets in its query string like its password."""

    __slots__ = ()

    @classmethod
    def of(cls, url: URL) -> URL:
        """The same URL, with unchanged parts, as a MaskedURL."""
        made: URL = tuple.__new__(cls, url)
        return made

    def render_as_string(self, hide_password: bool = True) -> str:
        """The URL as text, without secrets unless ``hide_password`` is False."""
        plain: URL = tuple.__new__(URL, self)
        if hide_password:
            plain = plain.set(query=_masked(self.query))
        text = plain.render_as_string(hide_password=hide_password)
        return text.replace("%2A%2A%2A", MASK) if hide_password else text


def _masked(query: Mapping[str, Any]) -> dict[str, Any]:
    shown = masked({name: value for name, value in query.items() if isinstance(value, str)})
    return {name: shown.get(name, MASK) for name in query}
