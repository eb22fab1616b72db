"""Preferences of a person for the command and the shell: ``~/.config/icesql/config.toml``.

``$ICESQL_CONFIG`` names another file, or none where it is empty. The command line and ``ICESQL_``
variables win over the file; programs that call ``icesql.connect`` do not read it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

from msgspec import Meta, ValidationError, convert

from icesql.config import Settings, config_path, property_text, setting_key, toml_document
from icesql.errors import Error, ProgrammingError, near_or_all
from icesql.frozen import Frozen

# The arguments of ``connect`` that the top of the file may set.
CONNECT: Final = ("catalog", "uri", "warehouse", "dialect", "timezone")


class ShellPreferences(Frozen, forbid_unknown_fields=True):
    """The table ``[shell]``; ``rows`` are shown of a long result where no pager shows it."""

    keys: Literal["emacs", "vi"] = "emacs"
    format: Literal["table", "csv", "tsv", "json", "jsonl", "markdown", "html", "expanded"] = (
        "table"
    )
    expanded: Literal["on", "off", "auto"] = "off"
    pager: bool = True
    timing: bool = True
    suggestions: bool = True
    rows: Annotated[int, Meta(ge=1)] = 40


_SWITCH: Final = "true or false"
# The allowed values of each key, as messages show them.
_VALUES: Final[Mapping[str, str]] = {
    "keys": '"emacs" or "vi"',
    "format": '"table", "csv", "tsv", "json", "jsonl", "markdown", "html" or "expanded"',
    "expanded": '"on", "off" or "auto"',
    "pager": _SWITCH,
    "timing": _SWITCH,
    "suggestions": _SWITCH,
    "rows": "a number above 0",
}


class ConfigFile(Frozen):
    """The content of the file; ``path`` is None if there is no file."""

    path: str | None = None
    connect: Mapping[str, str] = {}
    settings: Mapping[str, str] = {}
    shell: ShellPreferences = ShellPreferences()


def read_config(environment: Mapping[str, str]) -> ConfigFile:
    """The file as written; an ``ICESQL_`` variable overrides a key of it.

    Raises ProgrammingError, naming the file and the key, for an unknown key, and for an unreadable
    file that ``$ICESQL_CONFIG`` names.
    """
    path = config_path(environment)
    if not path:
        return ConfigFile()
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError as error:
        named = "ICESQL_CONFIG" in environment
        if not named and isinstance(error, FileNotFoundError | NotADirectoryError):
            return ConfigFile()  # most people have none
        who = "ICESQL_CONFIG: " if named else ""
        raise ProgrammingError(f"{who}cannot read {path}: {error.strerror}") from error
    return _checked(path, toml_document(path, data), environment)


def _checked(path: str, given: dict[str, Any], environment: Mapping[str, str]) -> ConfigFile:
    shell, settings = given.pop("shell", {}), given.pop("settings", {})
    for name in given:
        if name not in CONNECT:
            hint = near_or_all(name, (*CONNECT, "shell", "settings"))
            raise ProgrammingError(f'{path}: unknown key "{name}"; {hint}')
    for name, table in (("shell", shell), ("settings", settings)):
        if not isinstance(table, dict):
            raise ProgrammingError(f"{path}: {name} is a table: [{name}]")
    for name, value in given.items():
        if not isinstance(value, str):
            raise ProgrammingError(f"{path}: {name} is a text in quotes")
    for name, value in settings.items():
        if not isinstance(value, str | int | float):
            raise ProgrammingError(f"{path}: [settings] {name} is one value, not {value!r}")
    preferences = _preferences(path, shell)
    connect = dict(given)
    texts = {name: property_text(value) for name, value in settings.items()}
    try:
        for name, text in texts.items():
            Settings().with_text(name, text)
    except Error as error:
        raise ProgrammingError(f"{path}: {error}") from error
    set_outside = {
        name.removeprefix("ICESQL_").lower() for name, text in environment.items() if text
    }
    texts = {name: text for name, text in texts.items() if setting_key(name) not in set_outside}
    if "timezone" in set_outside:
        connect.pop("timezone", None)
    return ConfigFile(path, connect, texts, preferences)


def _preferences(path: str, given: Mapping[str, Any]) -> ShellPreferences:
    for name, value in given.items():
        if name not in _VALUES:
            hint = near_or_all(name, _VALUES)
            raise ProgrammingError(f'{path}: unknown key "{name}" in [shell]; {hint}')
        try:
            convert({name: value}, ShellPreferences)
        except ValidationError as error:
            message = f"{path}: [shell] {name} is {_VALUES[name]}, not {value!r}"
            raise ProgrammingError(message) from error
    return convert(given, ShellPreferences)
