"""Parse policy files and arguments of CALL: which actions are done for which tables, and when."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from fnmatch import fnmatchcase
from typing import Annotated, Any, Final

from msgspec import Meta, ValidationError, convert, field
from msgspec.structs import replace

from icesql.config import parse_bytes, property_text, toml_document
from icesql.errors import ProgrammingError, near_or_all
from icesql.frozen import Frozen

# ------------------------------------------------------------------ durations, sizes and windows


_UNITS: Final = {
    "s": 1, "sec": 1, "second": 1, "m": 60, "min": 60, "minute": 60, "h": 3600, "hour": 3600,
    "d": 86_400, "day": 86_400, "w": 604_800, "week": 604_800,
}  # fmt: skip
_DURATION: Final = re.compile(r"\s*(\d{1,9}(?:\.\d{1,6})?)\s*([a-z]+?)s?\s*")
_DAYS: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_DAY: Final = "(?:mon|tue|wed|thu|fri|sat|sun)"
_WINDOW: Final = re.compile(
    rf"\s*(?:({_DAY}(?:[-,]{_DAY})*)\s+)?(\d\d?):(\d\d)\s*-\s*(\d\d?):(\d\d)\s*"
)


def parse_seconds(text: str) -> float:
    """The seconds of "20min", "1.5 h" or "7 days".

    >>> parse_seconds("20min"), parse_seconds("7 days")
    (1200.0, 604800.0)

    Raises ValueError for anything else.
    """
    read = _DURATION.fullmatch(str(text).lower())
    if read is None or read[2] not in _UNITS:
        raise ValueError(f"{text!r} is not a duration such as 20min or 7 days")
    return float(read[1]) * _UNITS[read[2]]


class Budget(Frozen):
    """Limits of seconds, and of bytes of rewritten data files, after which no action starts."""

    seconds: float | None = None
    bytes: int | None = None

    @classmethod
    def of(cls, text: str) -> Budget:
        """Parse "20min", "500GB" or both with a comma between. Raises ValueError."""
        seconds: float | None = None
        size: int | None = None
        for part in text.split(","):
            try:
                seconds = parse_seconds(part)
            except ValueError:
                try:
                    size = parse_bytes(part)
                except ValueError:
                    raise ValueError(
                        f"{text!r} is not a budget such as 20min, 500GB or 20min,500GB"
                    ) from None
        return cls(seconds, size)


class Window(Frozen):
    """Minutes of the day in UTC, ``end`` excluded; it spans midnight if it ends before its start.

    ``days`` are the weekdays on which it starts; Monday is 0.
    """

    start: int
    end: int
    days: frozenset[int]

    @classmethod
    def of(cls, text: str) -> Window:
        """Parse "22:00-06:00", "Sat,Sun 00:00-24:00" or "Mon-Fri 20:00-23:30". ValueError."""
        read = _WINDOW.fullmatch(text.lower())
        if read is None:
            raise ValueError(f"{text!r} is not a window such as 22:00-06:00 or Sat,Sun 00:00-24:00")
        start, end = (int(read[n]) * 60 + int(read[n + 1]) for n in (2, 4))
        if max(int(read[3]), int(read[5])) > 59 or start >= 1440 or end > 1440 or start == end:
            raise ValueError(f"{text!r} is not a window of a day")
        return cls(start, end, _days(read[1]))

    def holds(self, moment: datetime) -> bool:
        """True if a UTC time is in the window."""
        minute, day = moment.hour * 60 + moment.minute, moment.weekday()
        if self.start < self.end:
            return day in self.days and self.start <= minute < self.end
        before = (day - 1) % 7
        return (day in self.days and minute >= self.start) or (
            before in self.days and minute < self.end
        )


def is_open(windows: Sequence[Window], moment: datetime) -> bool:
    """True if a window contains the moment, or there are no windows."""
    return not windows or any(each.holds(moment) for each in windows)


def _days(text: str | None) -> frozenset[int]:
    if text is None:
        return frozenset(range(7))
    days: set[int] = set()
    for part in text.split(","):
        names = part.split("-")
        first, last = _DAYS.index(names[0]), _DAYS.index(names[-1])
        days |= {each % 7 for each in range(first, last + 1 + 7 * (last < first))}
    return frozenset(days)


# ------------------------------------------------------------------ policies


# In the order in which they are carried out.
ACTIONS: Final = (
    "convert", "compact", "deletes", "manifests", "statistics", "partition_statistics", "expire",
    "orphans",
)  # fmt: skip
DEFAULT_ACTIONS: Final = ("convert", "compact", "deletes", "manifests", "expire")
DAY: Final = 86_400.0
LEAST_ORPHAN_AGE: Final = 3 * DAY


class TablePolicy(Frozen):
    """The policy for a table. Sizes are bytes, durations seconds; None: the table's own setting.

    ``wants_expiry``: the policy names the action or a retention; otherwise snapshots expire only if
    the table's own properties configure it.
    """

    actions: tuple[str, ...] = DEFAULT_ACTIONS
    wants_expiry: bool = False
    skip: bool = False
    target_file_size: int | None = None
    compact_options: Mapping[str, str] = field(default_factory=dict)
    retention: float | None = None
    short_retention: bool = False
    min_snapshots: int | None = None
    orphan_age: float = LEAST_ORPHAN_AGE
    windows: tuple[Window, ...] = ()


class Rule(Frozen):
    """One ``[[tables]]`` of a file: values for the tables whose names match a pattern."""

    patterns: tuple[str, ...]
    values: Mapping[str, Any]

    def matches(self, name: str) -> bool:
        """True if a name, its parts joined by dots, matches a pattern; case matters."""
        return any(name == each or fnmatchcase(name, each) for each in self.patterns)


class Policy(Frozen):
    """Defaults, then rules in their order: a later matching rule overrides earlier values.

    ``actions`` of the command line override both. ``source`` is the path of the file, "" if none.
    """

    defaults: Mapping[str, Any] = field(default_factory=dict)
    rules: tuple[Rule, ...] = ()
    history: str | None = None
    source: str = ""
    actions: tuple[str, ...] | None = None

    def of(self, parts: Sequence[str]) -> TablePolicy:
        """The policy for a table."""
        name = ".".join(parts)
        values = dict(self.defaults)
        for rule in self.rules:
            if rule.matches(name):
                values |= rule.values
        if self.actions is not None:
            values["actions"] = self.actions
        return table_policy(values)

    def unmatched(self, tables: Sequence[Sequence[str]]) -> list[str]:
        """A warning for each rule that matches none of the tables."""
        names = [".".join(each) for each in tables]
        return [
            f"{self.source}: [[tables]] {number + 1}: no table is like "
            f"{', '.join(map(repr, rule.patterns))}"
            for number, rule in enumerate(self.rules)
            if not any(map(rule.matches, names))
        ]

    @property
    def digest(self) -> str:
        """Equal for policies with equal contents."""
        shown = repr((sorted(self.defaults.items()), self.rules, self.actions))
        return hashlib.sha256(shown.encode()).hexdigest()[:16]


def table_policy(values: Mapping[str, Any]) -> TablePolicy:
    """Build the policy from parsed values by key."""
    asks = any(each in values for each in ("retention", "min_snapshots"))
    asks = asks or "expire" in values.get("actions", ())
    return replace(TablePolicy(wants_expiry=asks), **values)


def read_policy(path: str) -> Policy:
    """Read the policy of a TOML file.

    Raises ProgrammingError that names the file, and the key or line, for a file that cannot be
    read, for an unknown key and for an invalid value.
    """
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError as error:
        raise ProgrammingError(f"cannot read the policy {path}: {error.strerror}") from error
    document = toml_document(path, data)
    return _policy(path, data.decode("utf-8-sig"), document)


def _policy(path: str, text: str, document: dict[str, Any]) -> Policy:
    tables, history = document.pop("tables", []), document.pop("history", None)
    if history is not None and not (isinstance(history, str) and history):
        raise _wrong(path, text, "history", "is the path of a file in quotes", history)
    if not isinstance(tables, list) or not all(isinstance(each, dict) for each in tables):
        raise ProgrammingError(f"{path}: tables are written as [[tables]], each with a match")
    defaults = _values(path, text, "", document, ("tables", "history"))
    _check_retention(f"{path}: ", defaults)
    rules = []
    for number, given in enumerate(tables, 1):
        where = f"[[tables]] {number}: "
        patterns = given.pop("match", None)
        listed = [patterns] if isinstance(patterns, str) else patterns
        if not (
            isinstance(listed, list) and listed and all(isinstance(each, str) for each in listed)
        ):
            raise ProgrammingError(
                f"{path}: {where}match is a pattern of names such as 'sales.*', or a list of them"
            )
        values = _values(path, text, where, given, ("match",))
        _check_retention(f"{path}: {where}", {**defaults, **values})
        rules.append(Rule(tuple(listed), values))
    return Policy(defaults, tuple(rules), history, path)


def values_of_texts(given: Mapping[str, str]) -> dict[str, Any]:
    """Parse values given as strings, lists with commas. Raises ProgrammingError."""
    values: dict[str, Any] = {}
    for key, text in given.items():
        value: Any = text
        if key in ("actions", "windows"):
            value = [each.strip() for each in text.split(",") if each.strip()]
        elif key == "min_snapshots" and text.strip().isdigit():
            value = int(text)
        elif key in ("skip", "short_retention") and text.lower() in ("true", "false"):
            value = text.lower() == "true"
        values |= _values("policy", "", "", {key: value}, ())
    _check_retention("policy: ", values)
    return values


def _check_retention(where: str, values: Mapping[str, Any]) -> None:
    retention = values.get("retention")
    if retention is not None and retention < DAY and not values.get("short_retention"):
        raise ProgrammingError(
            f"{where}retention is less than a day: the snapshots that undo the mistakes of today "
            "would go; short_retention = true allows it"
        )


def read_actions(names: Sequence[str]) -> tuple[str, ...]:
    """The actions with these names, in the order in which they are done. Raises ValueError."""
    for each in names:
        if each not in ACTIONS:
            raise ValueError(f"{each!r} is no action; {near_or_all(each, ACTIONS)}")
    return tuple(each for each in ACTIONS if each in names)


def _size(text: str) -> int:
    size = parse_bytes(text)
    if size < 1 << 20:
        raise ValueError(f"{text!r} is less than 1MB")
    return size


def _orphan_age(text: str) -> float:
    age = parse_seconds(text)
    if age < LEAST_ORPHAN_AGE:
        raise ValueError(
            f"{text!r} is less than 3 days: files of writers that are still at work would go"
        )
    return age


def _options(given: dict[str, Any]) -> dict[str, str]:
    return {key: property_text(each) for key, each in given.items()}


def _windows(texts: list[str]) -> tuple[Window, ...]:
    return tuple(map(Window.of, texts))


# For each key the type of its values, a parser of them, and a description for users.
_KEYS: Final[Mapping[str, tuple[Any, Callable[[Any], Any], str]]] = {
    "actions": (list[str], read_actions, f"a list of {', '.join(ACTIONS)}"),
    "skip": (bool, bool, "true or false"),
    "target_file_size": (str, _size, 'a size in quotes such as "256MB"'),
    "compact_options": (
        dict[str, bool | int | float | str], _options, "a table of options of rewrite_data_files",
    ),
    "retention": (str, parse_seconds, 'a duration in quotes such as "7 days"'),
    "short_retention": (bool, bool, "true or false"),
    "min_snapshots": (Annotated[int, Meta(ge=1)], int, "a number from 1 on"),
    "orphan_age": (str, _orphan_age, 'a duration in quotes such as "7 days", 3 days at least'),
    "windows": (list[str], _windows, 'a list of windows in quotes such as "22:00-06:00"'),
}  # fmt: skip


def _values(
    path: str, text: str, where: str, given: Mapping[str, Any], others: Sequence[str]
) -> dict[str, Any]:
    values = {}
    for key, value in given.items():
        if key not in _KEYS:
            hint = near_or_all(key, (*_KEYS, *others))
            raise ProgrammingError(f"{path}{_line(text, key)}: {where}unknown key {key!r}; {hint}")
        kind, read, about = _KEYS[key]
        try:
            values[key] = read(convert(value, kind))
        except ValueError as error:
            # What the type says, the description says already.
            reason = "" if isinstance(error, ValidationError) else str(error)
            raise _wrong(path, text, f"{where}{key}", f"is {about}", value, reason) from error
    return values


def _wrong(
    path: str, text: str, key: str, kind: str, value: Any, reason: str = ""
) -> ProgrammingError:
    said = f" ({reason})" if reason else ""
    line = _line(text, key.rpartition(" ")[2])
    return ProgrammingError(f"{path}{line}: {key} {kind}, not {value!r}{said}")


def _line(text: str, key: str) -> str:
    """The line of a key as ``:3``; "" unless exactly one line has the key."""
    pattern = re.compile(rf"""\s*["']?{re.escape(key)}["']?\s*=""")
    lines = [number for number, line in enumerate(text.splitlines(), 1) if pattern.match(line)]
    return f":{lines[0]}" if len(lines) == 1 else ""


def with_actions(policy: Policy, names: Sequence[str]) -> Policy:
    """The policy with other actions. Raises ProgrammingError for an unknown one."""
    try:
        return replace(policy, actions=read_actions(names))
    except ValueError as error:
        raise ProgrammingError(f"actions: {error}") from error


def policy_of_texts(actions: Sequence[str] | None, given: Mapping[str, str]) -> TablePolicy:
    """The policy for one table from the arguments of a CALL. Raises ProgrammingError."""
    policy = Policy(values_of_texts(given))
    return (policy if actions is None else with_actions(policy, actions)).of(())
