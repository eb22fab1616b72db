"""``icesql config``: the values in force, the origin of each, and which catalogs respond.

Secrets are masked by the rules of ``storage.credentials``, also in messages of a catalog.
"""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from icesql.access import Access, of_command
from icesql.catalog.configuration import configuration, origins
from icesql.catalog.open import open_catalog
from icesql.config import Settings, setting_key, setting_text
from icesql.context import BackgroundCall, QueryContext
from icesql.errors import Error, QueryCancelledError
from icesql.frozen import Frozen
from icesql.repl.preferences import ConfigFile, ShellPreferences
from icesql.storage.credentials import MASK, is_secret, redact, redact_urls, without_secrets
from icesql.storage.stores.blocks import default_folder

if TYPE_CHECKING:
    from argparse import Namespace

    from icesql.catalog.table import Catalog

COLUMNS: Final = ("name", "value", "from")
_PING_SECONDS: Final = 5.0

Row = tuple[str, str | None, str]


class _Place(Frozen):
    """A catalog: its name here, its properties, and how it is opened."""

    name: str
    properties: Mapping[str, Any]
    open: Callable[[], Catalog]


def config_report(
    options: Namespace, access: Mapping[str, Any], file: ConfigFile
) -> tuple[list[Row], bool]:
    """Rows of ``COLUMNS``, and whether every pinged catalog has responded.

    ``options`` are those of the command line, ``access`` its limits on SQL. Raises
    ProgrammingError for a setting that does not exist, CatalogError for a configuration file that
    cannot be read.
    """
    settings, origins_of_settings = _settings(options, file)
    rows: list[Row] = [*_versions(), *_of_file(file)]
    rows += _of_settings(settings, origins_of_settings)
    rows += _of_access(access)
    places = list(_places(options))
    rows += _of_catalogs(options, places)
    if options.no_ping or not places:
        return rows, True
    limit = settings.query_timeout or _PING_SECONDS
    answers = _pings(places, limit)
    rows += [
        (f"catalog.{place.name}", text, "ping")
        for place, (text, _) in zip(places, answers, strict=True)
    ]
    return rows, all(answered for _, answered in answers)


def _versions() -> Iterator[Row]:
    from importlib.metadata import version

    import icesql

    yield "version", icesql.__version__, os.path.dirname(os.path.abspath(icesql.__file__))
    yield "version.python", platform.python_version(), "the interpreter"
    for package in ("duckdb", "pyarrow"):
        yield f"version.{package}", version(package), "installed"


# ------------------------------------------------------------------ settings and access


def _of_file(file: ConfigFile) -> Iterator[Row]:
    yield "config", file.path, "ICESQL_CONFIG" if "ICESQL_CONFIG" in os.environ else "default"
    for name, text in file.connect.items():
        # An address may hold a password.
        yield f"config.{name}", redact_urls(text), file.path or ""
    plain = ShellPreferences()
    for name in plain.__struct_fields__:
        value = getattr(file.shell, name)
        known = value == getattr(plain, name)
        yield f"shell.{name}", setting_text(value), "default" if known else file.path or ""


def _settings(options: Namespace, file: ConfigFile) -> tuple[Settings, dict[str, str]]:
    """The settings in force, and the origin of each that is not a default."""
    settings, origin = Settings.from_environment(os.environ), dict[str, str]()
    for variable, value in os.environ.items():
        if variable.startswith("ICESQL_") and value:
            with suppress(Error):  # the command warns of these
                origin[setting_key(variable.removeprefix("ICESQL_"))] = variable
    for source, given in (
        (file.path or "", [("timezone", file.connect.get("timezone")), *file.settings.items()]),
        ("--timezone", [("timezone", options.timezone)]),
        ("--set", options.settings),
    ):
        for name, text in given:
            if text is not None:
                settings = settings.with_text(name, text)
                origin[setting_key(name)] = source
    return settings, origin


def _of_settings(settings: Settings, origin: Mapping[str, str]) -> Iterator[Row]:
    for name in Settings.__struct_fields__:
        value = getattr(settings, name)
        if name == "cache_directory" and value is None:
            value = default_folder()
        yield name, setting_text(value), origin.get(name, "default")


def _of_access(given: Mapping[str, Any]) -> Iterator[Row]:
    access = Access.of(**of_command(given))
    for name in Access.__struct_fields__:
        if name == "service":
            continue  # the limits that it sets are reported instead
        option = f"--{name.replace('_', '-')}"
        is_given = given.get(name) is not None
        origin = option if is_given else "--service" if given.get("service") else "default"
        yield f"access.{name}", _access_text(getattr(access, name)), origin


def _access_text(value: Any) -> str:
    match value:
        case None:
            return "all"
        case bool():
            return "yes" if value else "no"
        case frozenset():
            return ", ".join(sorted(value)) or "none"
        case _:
            return ", ".join(value.texts)


# ------------------------------------------------------------------ catalogs


def _places(options: Namespace) -> Iterator[_Place]:
    """The catalog of the command line, then those that are configured."""
    config = configuration()
    own = not (options.catalog is options.uri is options.warehouse is None)
    name = options.catalog or config.default_name
    if own:
        given = dict(options.properties)
        said = {"uri": options.uri, "warehouse": options.warehouse, **given}
        properties = {**config.catalog(name), **{k: v for k, v in said.items() if v is not None}}
        opened = partial(
            open_catalog,
            options.catalog,
            uri=options.uri,
            warehouse=options.warehouse,
            properties=given,
        )
        yield _Place(name, properties, opened)
    for each in sorted(config.catalogs):
        if not (own and each == name.lower()):
            yield _Place(each, config.catalogs[each], partial(open_catalog, each))


def _of_catalogs(options: Namespace, places: list[_Place]) -> Iterator[Row]:
    file = configuration().file
    yield ".pyiceberg.yaml", file, "PYICEBERG_HOME, the home folder or the current one"
    origin = origins()
    for place in places:
        flat = dict(_flat(place.properties))
        for key in sorted(flat):
            shown = MASK if is_secret(key) else redact(flat[key], place.properties)
            first = key.partition(".")[0]
            source = origin.get((place.name.lower(), key)) or origin.get(
                (place.name.lower(), first)
            )
            if key in dict(options.properties):
                source = "--property"
            elif key in ("uri", "warehouse") and flat[key] == getattr(options, key):
                source = f"--{key}"
            yield f"catalog.{place.name}.{key}", shown, source or "the command line"


def _flat(properties: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, str]]:
    for key, value in properties.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{above}{key}.")
        elif value is not None:
            yield f"{above}{key}", str(value)


def _pings(places: list[_Place], seconds: float) -> list[tuple[str, bool]]:
    """The answer of each catalog and whether it came; all requests run at once."""
    end = time.monotonic() + seconds
    is_given = [(place, BackgroundCall(partial(_ping, place))) for place in places]
    answers = []
    for place, call in is_given:
        # Each call has a context of its own, so that a late one does not end the others.
        query = QueryContext(deadline=end)
        try:
            answers.append((call.result(query), True))
        except QueryCancelledError:
            answers.append((f"no answer within {seconds:g} s", False))
        except Exception as error:  # of any client: any error is a response
            text = str(error) if isinstance(error, Error) else f"{type(error).__name__}: {error}"
            answers.append((redact(" ".join(text.split()), place.properties), False))
    return answers


def _ping(place: _Place) -> str:
    began = time.monotonic()
    with without_secrets(place.properties):
        catalog = place.open()
        try:
            first = getattr(catalog, "namespaces_in", lambda _: catalog.namespaces())
            count = len(first(()))
        finally:
            catalog.close()
    took = time.monotonic() - began
    return f"answers: {count} namespace{'' if count == 1 else 's'}, {took * 1000:.0f} ms"
