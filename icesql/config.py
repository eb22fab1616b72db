"""Settings: values that a user may choose, from arguments, environment and SET."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path
from typing import Any, Final

from msgspec import field
from msgspec.structs import replace

from icesql.errors import ProgrammingError, near_or_all, similar_names
from icesql.frozen import Frozen

_PREFIX: Final = "ICESQL_"
# Settings by their names in other systems, such as Spark.
_OTHER_NAMES: Final = {
    "time_zone": "timezone",
    "read_split_target_size": "split_target_size",
    "spark_wap_id": "wap_id",
    "spark_wap_branch": "wap_branch",
    "spark_sql_sources_partitionoverwritemode": "partition_overwrite_mode",
}
# Variables of icesql and its tests that are not settings.
_OTHER_VARIABLES: Final = frozenset(
    ("CONFIG", "TRACEBACK", "JVM_ARCHIVE", "CORPUS", "HISTORIES", "PREDICATES", "DAMAGES", "HALTS")
)
# The variables that Kubernetes sets in every pod near a service named icesql.
_OF_KUBERNETES: Final = r"(?:\w{1,200}_)?(?:SERVICE_HOST|SERVICE_PORT\w*|PORT(?:_\d+_\w+)?)"

# The limit of ``conflict_retries``: more would only hide that two writers never agree.
_MOST_RETRIES: Final = 100
_GROUPS: Final = "sys/fs/cgroup"
# Control groups of version 1 express "no limit" by a number of this size.
_UNLIMITED: Final = 1 << 60
_UNKNOWN: Final = 4 << 30

_FLAGS: Final = {"true": True, "on": True, "1": True, "false": False, "off": False, "0": False}
_UNITS: Final = {"": 1, **{unit: 1 << 10 * power for power, unit in enumerate("bkmgtp")}}


def parse_bytes(text: str) -> int:
    """Bytes of "512MB", "1.5 GiB" or "1048576"; units are powers of 1024, as in Spark's settings.

    >>> parse_bytes("1.5 GiB"), parse_bytes("64m"), parse_bytes("1pb"), parse_bytes("12")
    (1610612736, 67108864, 1125899906842624, 12)

    Raises ValueError for anything else.
    """
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([bkmgtp]?)(?:i?b)?\s*", str(text).lower())
    if not found:
        raise ValueError(f"{text!r} is not a size such as 512MB")
    return int(float(found[1]) * _UNITS[found[2]])


def one_of(*words: str, named: str = "") -> Callable[[Any], str]:
    """A function that reads one of the words, in any case. Its ValueError has their name."""

    def parse(value: Any) -> str:
        if str(value).lower() not in words:
            raise ValueError(f"{value!r} is not {named or 'one of ' + ', '.join(words)}")
        return str(value).lower()

    return parse


def flag(named: str) -> Callable[[Any], bool]:
    """A function that reads a flag, whose values its ValueError has ``named``."""
    parse = one_of(*_FLAGS, named=named)
    return lambda value: _FLAGS[parse(value)]


def _optional(parse: Callable[[str], Any]) -> Callable[[str], Any]:
    return lambda text: None if str(text).lower() in ("default", "none", "") else parse(text)


def _seconds(text: str) -> float:
    value = float(text)
    if value <= 0:
        raise ValueError(f"{text!r} is not a positive number of seconds")
    return value


def _positive(text: str) -> int:
    value = int(text)
    if value <= 0:
        raise ValueError(f"{text!r} is not a positive number")
    return value


def _retries(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text) <= _MOST_RETRIES):
        raise ValueError(f"{text!r} is no whole number from 0 to {_MOST_RETRIES}")
    return int(text)


def _time_zone(text: str) -> str:
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    if str(text).lower() in ("local", "default"):
        return "UTC"
    try:
        return str(ZoneInfo(str(text)).key)
    except (ZoneInfoNotFoundError, ValueError, IsADirectoryError) as error:
        raise ValueError(f"{text!r} is not a time zone name such as Europe/Berlin") from error


def _instant(text: str) -> str:
    """A time in ISO format with its zone, as UTC; only SQL accepts other forms."""
    text = str(text).strip()
    found = re.search(r"(?i)(?:UTC|Z)\Z", text)
    moment = datetime.fromisoformat(text[: found.start()].rstrip() if found else text)
    if moment.tzinfo is None and not found:
        raise ValueError(f"{text!r} names no zone; write it like '2026-01-31 12:00:00 UTC'")
    moment = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    return f"{moment.replace(tzinfo=None).isoformat(' ')} UTC"


def default_temp_directory() -> str:
    """The default folder for spilled data; it need not exist."""
    # As `tempfile.gettempdir` in all but odd cases, without its slow import.
    for name in ("TMPDIR", "TEMP", "TMP"):
        if folder := os.environ.get(name):
            return str(Path(folder) / "icesql")
    if os.path.isdir("/tmp"):
        return "/tmp/icesql"
    import tempfile

    return str(Path(tempfile.gettempdir()) / "icesql")


def config_path(environment: Mapping[str, str]) -> str:
    """The path of the configuration file, whether it exists or not; "" if none is wanted."""
    if "ICESQL_CONFIG" in environment:
        return environment["ICESQL_CONFIG"]
    base = environment.get("XDG_CONFIG_HOME") or os.path.join(
        environment.get("HOME") or os.path.expanduser("~"), ".config"
    )
    return os.path.join(base, "icesql", "config.toml")


def state_file(name: str) -> Path:
    """The path of a file in ``$XDG_STATE_HOME/icesql``, whether it exists or not."""
    state = os.environ.get("XDG_STATE_HOME")
    return (Path(state) if state else Path.home() / ".local" / "state") / "icesql" / name


def toml_document(path: str, data: bytes) -> dict[str, Any]:
    """The content of a TOML file. Raises ProgrammingError that names the file."""
    import tomllib

    try:
        return tomllib.loads(data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise ProgrammingError(f"{path}: it is not UTF-8 text") from error
    except ValueError as error:  # its message has the line
        raise ProgrammingError(f"{path}: {error}") from error


def time_zone(name: str) -> tzinfo:
    """The zone of a setting; UTC needs no zone files, which are slow to find."""
    if name == "UTC":
        return UTC
    from zoneinfo import ZoneInfo

    return ZoneInfo(name)


def available_memory(root: str = "/") -> int:
    """Memory in bytes: that of the machine, or of the smallest control group of this process.

    4 GiB if the system does not report it. ``root`` is the root of the file system.
    """
    try:
        machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):
        machine = _UNKNOWN
    return min([machine, *_limits(root)])


def _limits(root: str) -> list[int]:
    try:
        lines = _text(root, "proc/self/cgroup").splitlines()
    except OSError:
        return []
    found: list[int] = []
    for line in lines:
        _, _, rest = line.partition(":")
        controllers, _, group = rest.partition(":")
        if not controllers:
            base, name = _GROUPS, "memory.max"
        elif "memory" in controllers.split(","):
            base, name = f"{_GROUPS}/memory", "memory.limit_in_bytes"
        else:
            continue
        # Every parent group limits, too. A container that sees its own group as the root cannot see
        # this path.
        parts = [each for each in group.split("/") if each not in ("", ".", "..")]
        for depth in range(len(parts) + 1):
            found += _limit(root, "/".join([base, *parts[:depth], name]))
    return found


def _limit(root: str, path: str) -> list[int]:
    try:
        text = _text(root, path).strip()
    except OSError:
        return []
    return [int(text)] if text.isdigit() and 0 < int(text) < _UNLIMITED else []


def _text(root: str, path: str) -> str:
    return Path(root, path).read_text(encoding="utf-8", errors="replace")


class Settings(Frozen):
    """One value per setting; ``SET name = value`` makes a changed copy. Sizes are bytes.

    With ``caches`` off a statement uses nothing that earlier ones cached: bound texts, plans, how
    files are read, tables in memory, footers, metadata, manifests, deletes, tables from a catalog,
    and blocks on disk. A prepared statement stays, as a text. Values that depend on a text, a type
    or a schema alone (patterns, decoders) are still kept by the process, and so are connections to
    servers.
    """

    engine: str = "local"
    local_reader: str = "auto"
    timezone: str = "UTC"
    memory_limit: int = int(available_memory() * 0.6)
    temp_directory: str = field(default_factory=default_temp_directory)
    threads: int | None = None
    query_timeout: float | None = None
    split_target_size: int | None = None
    split_lookback: int | None = None
    split_open_file_cost: int | None = None
    delete_memory_limit: int = 1 << 30
    spark_threshold: int = 32 << 30
    prune: bool = True
    run_time_filters: bool = True
    verify: str = "normal"
    caches: bool = True
    cache: bool = True
    cache_directory: str | None = None
    cache_size: int | None = None
    whole_file_size: int = 8 << 20
    max_scan_files: int | None = None
    max_scan_bytes: int | None = None
    require_partition_filter: bool = False
    max_statement_size: int | None = None
    snapshot_time: str | None = None
    wap_id: str | None = None
    wap_branch: str | None = None
    partition_overwrite_mode: str = "static"
    snapshot_ref: str | None = None
    delete_below: str | None = None
    conflict_retries: int = 3

    @property
    def snapshot_pinned(self) -> bool:
        """Whether tables are read at a set time or ref unless a query names another one."""
        return self.snapshot_time is not None or self.snapshot_ref is not None

    @property
    def snapshot_micros(self) -> int | None:
        """``snapshot_time`` in microseconds since 1970 in UTC."""
        if self.snapshot_time is None:
            return None
        moment = datetime.fromisoformat(self.snapshot_time.removesuffix(" UTC"))
        return (moment - datetime(1970, 1, 1)) // timedelta(microseconds=1)

    def with_text(self, name: str, text: str) -> Settings:
        """A copy with one setting read from text.

        Raises ProgrammingError naming the setting for an unknown name or an unusable value.
        """
        key = setting_key(name)
        try:
            return replace(self, **{key: _PARSERS[key](text)})
        except ValueError as error:
            raise ProgrammingError(f'setting "{key}": {error}') from error

    def with_default(self, name: str, defaults: Settings) -> Settings:
        """A copy with one setting as it is in ``defaults``. Raises ProgrammingError."""
        key = setting_key(name)
        return replace(self, **{key: getattr(defaults, key)})

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Settings:
        """Defaults changed by ICESQL_<SETTING> variables; an empty variable counts as unset.

        Raises ProgrammingError that names the setting. ``unknown_variables`` has the others.
        """
        settings = cls()
        for variable, text in sorted(environment.items()):
            key = _key(variable.removeprefix(_PREFIX))
            if variable.startswith(_PREFIX) and text and key in _PARSERS:
                settings = settings.with_text(key, text)
        return settings


def unknown_variables(environment: Mapping[str, str]) -> list[str]:
    """One warning for each ICESQL_ variable that is not a setting, with the nearest setting."""
    unknown = []
    for variable, text in sorted(environment.items()):
        name = variable.removeprefix(_PREFIX)
        if name == variable or not text or name in _OTHER_VARIABLES or _key(name) in _PARSERS:
            continue
        if re.fullmatch(_OF_KUBERNETES, name):
            continue
        near = similar_names(_key(name), _PARSERS)
        hint = f"; did you mean {_PREFIX}{near[0].upper()}?" if near else ""
        unknown.append(f"the environment variable {variable} is not an icesql setting{hint}")
    return unknown


def property_text(value: Any) -> str:
    """A value in the form of the properties of tables and catalogs."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def setting_text(value: Any) -> str | None:
    """A value in the form that SET accepts; None is not set."""
    if isinstance(value, bool):
        return "on" if value else "off"
    return None if value is None else str(value)


def check_folder(setting: str, folder: str) -> None:
    """Raise ProgrammingError for a folder named in SQL that cannot be written to.

    The folder, or its parent if it does not exist, must be writable: SQL creates no chain of
    folders with the rights of the process. The message is the same for all reasons.
    """
    try:
        there = os.path.isdir(folder)
        place = folder if there else os.path.dirname(os.path.abspath(folder))
        usable = os.path.isdir(place) and os.access(place, os.W_OK | os.X_OK)
        usable = usable and (there or not os.path.lexists(folder))
    except ValueError:
        usable = False
    if not usable:
        raise ProgrammingError(
            f'setting "{setting}": {folder!r} is not a folder that can be written to, '
            "nor one that can be made in such a folder"
        )


def setting_key(name: str) -> str:
    """The field of ``Settings`` that a name means in any spelling. Raises ProgrammingError."""
    key = _key(name)
    if key not in _PARSERS:
        raise ProgrammingError(
            f'unknown setting "{name}"; {near_or_all(key, Settings.__struct_fields__)}'
        )
    return key


def _key(name: str) -> str:
    key = name.lower().replace("-", "_").replace(".", "_")
    return _OTHER_NAMES.get(key, key)


# The settings whose values are words.
WORDS: Final[Mapping[str, tuple[str, ...]]] = {
    "engine": ("local", "spark", "auto"),
    "local_reader": ("auto", "arrow"),
    "verify": ("normal", "full"),
    "partition_overwrite_mode": ("static", "dynamic"),
}
SWITCHES: Final = ("prune", "run_time_filters", "caches", "cache", "require_partition_filter")
_PARSERS: Final[dict[str, Callable[[str], Any]]] = {
    **{name: one_of(*words) for name, words in WORDS.items()},
    **dict.fromkeys(SWITCHES, flag("on or off")),
    "timezone": _time_zone,
    "memory_limit": parse_bytes,
    "temp_directory": str,
    "threads": _optional(_positive),
    "query_timeout": _optional(_seconds),
    "split_target_size": _optional(parse_bytes),
    "split_lookback": _optional(_positive),
    "split_open_file_cost": _optional(parse_bytes),
    "delete_memory_limit": parse_bytes,
    "spark_threshold": parse_bytes,
    "cache_directory": _optional(str),
    "cache_size": _optional(parse_bytes),
    "whole_file_size": parse_bytes,
    "max_scan_files": _optional(_positive),
    "max_scan_bytes": _optional(parse_bytes),
    "max_statement_size": _optional(parse_bytes),
    "snapshot_time": _optional(_instant),
    "wap_id": _optional(str),
    "wap_branch": _optional(str),
    "snapshot_ref": _optional(str),
    "delete_below": _optional(str),
    "conflict_retries": _retries,
}
assert set(_PARSERS) == set(Settings.__struct_fields__)
