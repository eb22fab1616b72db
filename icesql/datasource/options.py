"""The options of ``format("icesql")``: read at ``load()``; an unknown one is an error.

    both           path · catalog, uri, warehouse (win over those of ``register_spark``) · branch
                   columns ("a, `b,c`, _file") · split-size · lookback · file-open-cost
                   on-overwrite, on-delete: fail (default) or skip such snapshots of a stream or an
                   incremental read; skipped changes are not seen
    batch          snapshot-id · as-of-timestamp (ms since 1970) · tag
                   start-snapshot-id (exclusive), end-snapshot-id (inclusive): appended rows
                   push-filters: true lets filters of Spark prune files; only for a DataFrame that
                   one query reads once (see ``BatchPlanning.push``)
    stream         stream-from: earliest (default) · latest · a snapshot id (itself included)
                   stream-from-timestamp: ms since 1970, the first snapshot at or after it
                   max-files-per-batch · max-rows-per-batch (one file may have more)

Names of Iceberg's Spark reader are accepted too, and its options for speed, which have no effect.
Source: Iceberg Java ``SparkReadOptions``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from msgspec import field

from icesql.config import Settings
from icesql.errors import ProgrammingError, UnsupportedSqlError, near_or_all
from icesql.frozen import Frozen

CONNECT: Final = ("catalog", "uri", "warehouse")
_SIZES: Final = {
    "split-size": "split_target_size",
    "lookback": "split_lookback",
    "file-open-cost": "split_open_file_cost",
}
_BOTH: Final = ("path", *CONNECT, "branch", "columns", *_SIZES, "on-overwrite", "on-delete")
_BATCH: Final = (
    "snapshot-id", "as-of-timestamp", "tag", "start-snapshot-id", "end-snapshot-id", "push-filters",
)  # fmt: skip
_STREAM: Final = (
    "stream-from", "stream-from-timestamp", "max-files-per-batch", "max-rows-per-batch",
)  # fmt: skip
# Iceberg's names for the same options.
_LIMITS: Final = {
    "streaming-max-files-per-micro-batch": "max-files-per-batch",
    "streaming-max-rows-per-micro-batch": "max-rows-per-batch",
}
_SKIPS: Final = {
    "streaming-skip-overwrite-snapshots": "on-overwrite",
    "streaming-skip-delete-snapshots": "on-delete",
}
_WITHOUT_EFFECT: Final = frozenset({
    "vectorization-enabled", "batch-size", "locality", "aggregate-push-down-enabled",
    "async-micro-batch-planning-enabled", "streaming-snapshot-polling-interval-ms",
    "async-queue-preload-file-limit", "async-queue-preload-row-limit",
})  # fmt: skip
_KNOWN: Final = (*_BOTH, *_BATCH, *_STREAM, *_LIMITS, *_SKIPS)
_REFUSED: Final = {
    "paths": "load() takes one table",
    "start-timestamp": "it belongs to changelog scans; start-snapshot-id reads what was appended",
    "end-timestamp": "it belongs to changelog scans; end-snapshot-id reads what was appended",
    "versionasof": "say snapshot-id, branch or tag",
    "owner": "CREATE TEMPORARY VIEW … USING icesql works, CREATE TABLE does not",
    "timestampasof": "say as-of-timestamp in milliseconds since 1970",
}
_LONG: Final = 1 << 63


class ReadOptions(Frozen):
    """The options of one ``load()``; None for an option that was not given."""

    path: str
    connect: Mapping[str, str] = field(default_factory=dict)
    settings: Settings = field(default_factory=Settings)
    columns: tuple[str, ...] | None = None
    branch: str | None = None
    tag: str | None = None
    snapshot_id: int | None = None
    as_of_timestamp: int | None = None
    start_snapshot_id: int | None = None
    end_snapshot_id: int | None = None
    stream_from: str | int = "earliest"
    stream_from_timestamp: int | None = None
    max_files_per_batch: int | None = None
    max_rows_per_batch: int | None = None
    skipped: frozenset[str] = frozenset()
    push_filters: bool = False
    given: frozenset[str] = frozenset()

    def check_batch(self) -> None:
        """Raises ProgrammingError for options of streams."""
        for name in sorted(self.given & set(_STREAM)):
            raise ProgrammingError(f'option "{name}" is for readStream, not for read')
        if self.start_snapshot_id is None:
            for name in sorted(self.given & {"on-overwrite", "on-delete"}):
                raise ProgrammingError(
                    f'option "{name}" is for readStream and reads with start-snapshot-id'
                )

    def check_stream(self) -> None:
        """Raises ProgrammingError for options of batch reads."""
        for name in sorted(self.given & set(_BATCH)):
            hint = "; stream-from says where a stream starts" if "snapshot" in name else ""
            raise ProgrammingError(f'option "{name}" is for read, not for readStream{hint}')


def read_options(options: Mapping[str, str]) -> ReadOptions:
    """Read options, whose names may have any case.

    Raises ProgrammingError for unknown options, invalid values and conflicting options. The values
    of unknown options, which may be secrets, are not in the error.
    """
    given = _named(options)
    _exclude(given, "snapshot-id", "as-of-timestamp", "branch", "tag")
    _exclude(given, "stream-from", "stream-from-timestamp")
    for name in ("snapshot-id", "as-of-timestamp", "tag"):
        for bound in ("start-snapshot-id", "end-snapshot-id"):
            _exclude(given, name, bound)
    if "end-snapshot-id" in given and "start-snapshot-id" not in given:
        raise ProgrammingError(
            'option "end-snapshot-id" needs start-snapshot-id; snapshot-id reads one snapshot'
        )
    if not given.get("path"):
        raise ProgrammingError('load() needs a table: "catalog.db.table" or a path')
    settings = Settings()
    for name, setting in _SIZES.items():
        if name in given:
            try:
                settings = settings.with_text(setting, given[name])
            except ProgrammingError as error:
                raise ProgrammingError(f'option "{name}": {given[name]!r} is not a size') from error
    parsed = {
        name.replace("-", "_"): parse(name, given[name])
        for name, parse in _PARSERS.items()
        if name in given
    }
    return ReadOptions(
        path=given["path"],
        connect=connect_options(given),
        settings=settings,
        branch=given.get("branch"),
        tag=given.get("tag"),
        skipped=frozenset(each for each in ("overwrite", "delete") if _skips(given, each)),
        given=frozenset(given),
        **parsed,
    )


def _named(options: Mapping[str, str]) -> dict[str, str]:
    """The options by icesql's names; Iceberg's names are translated."""
    given: dict[str, str] = {}
    for spelled, value in options.items():
        name, text = spelled.lower(), str(value)
        if name in _WITHOUT_EFFECT:
            continue
        if name in _REFUSED:
            raise UnsupportedSqlError(f'option "{spelled}"', hint=_REFUSED[name])
        if name not in _KNOWN:
            raise unknown_option(spelled, _KNOWN)
        if name in _SKIPS:
            name, text = _SKIPS[name], "skip" if flag(name, text) else "fail"
        name = _LIMITS.get(name, name)
        if given.setdefault(name, text) != text:
            raise ProgrammingError(f'option "{name}" is given twice, under two names')
    return given


def unknown_option(spelled: str, known: Sequence[str]) -> ProgrammingError:
    """The error for an option that is not in ``known``; its value may be a secret."""
    hint = near_or_all(spelled.lower(), sorted(known))
    return ProgrammingError(f'format("icesql") has no option "{spelled}"; {hint}')


def flag(name: str, text: str) -> bool:
    """A boolean option. Raises ProgrammingError."""
    if text.lower() not in ("true", "false"):
        raise ProgrammingError(f'option "{name}": {text!r} is not true or false')
    return text.lower() == "true"


def _exclude(given: Mapping[str, str], *names: str) -> None:
    both = [name for name in names if name in given]
    if len(both) > 1:
        raise ProgrammingError(f"give only one of {' and '.join(both)}")


def _whole(name: str, text: str) -> int:
    if not re.fullmatch(r"-?[0-9]{1,19}", text) or not -_LONG <= int(text) < _LONG:
        raise ProgrammingError(f'option "{name}": {text!r} is not a whole number')
    return int(text)


def _limit(name: str, text: str) -> int:
    number = _whole(name, text)
    if number <= 0:
        raise ProgrammingError(f'option "{name}": {number} is not a positive number')
    return number


def _start(name: str, text: str) -> str | int:
    if text.lower() in ("earliest", "latest"):
        return text.lower()
    if not re.fullmatch(r"[0-9]{1,19}", text):
        raise ProgrammingError(
            f'option "{name}": {text!r} is not earliest, latest or a snapshot id'
        )
    return int(text)


def _skips(given: Mapping[str, str], operation: str) -> bool:
    text = given.get(f"on-{operation}", "fail").lower()
    if text not in ("fail", "skip"):
        raise ProgrammingError(f'option "on-{operation}": {text!r} is not fail or skip')
    return text == "skip"


def connect_options(given: Mapping[str, str]) -> dict[str, str]:
    """The arguments of ``open_catalog`` from options. Raises ProgrammingError for a password."""
    if "@" in given.get("uri", ""):
        raise ProgrammingError(
            'option "uri" with a password would show in plans; give it to register_spark(uri=…)'
        )
    renamed = {"catalog": "name"}
    return {renamed.get(name, name): given[name] for name in CONNECT if name in given}


def _columns(option: str, text: str) -> tuple[str, ...]:
    """Names between commas; names that contain commas are in backticks."""
    names = []
    for quoted, plain in re.findall(r"\s*(?:`((?:[^`]|``)+)`|([^,]*))\s*(?:,|$)", text):
        name = quoted.replace("``", "`") if quoted else plain.strip()
        if name:
            names.append(name)
    if not names:
        raise ProgrammingError(f'option "{option}" names no column')
    return tuple(names)


_PARSERS: Final[Mapping[str, Callable[[str, str], Any]]] = {
    "columns": _columns,
    "snapshot-id": _whole,
    "as-of-timestamp": _whole,
    "start-snapshot-id": _whole,
    "end-snapshot-id": _whole,
    "stream-from": _start,
    "stream-from-timestamp": _whole,
    "max-files-per-batch": _limit,
    "max-rows-per-batch": _limit,
    "push-filters": flag,
}


def split_identifier(text: str) -> tuple[str, ...]:
    """The parts of "catalog.db.table"; parts that contain dots are in backticks."""
    if not re.fullmatch(r"(?:`(?:[^`]|``)+`|[^.`]+)(?:\.(?:`(?:[^`]|``)+`|[^.`]+))*", text):
        raise ProgrammingError(f'load("{text}"): neither "catalog.db.table" nor a path')
    parts = re.findall(r"`((?:[^`]|``)+)`|([^.`]+)", text)
    return tuple(quoted.replace("``", "`") or plain for quoted, plain in parts)
