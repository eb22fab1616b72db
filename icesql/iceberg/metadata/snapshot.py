"""Snapshots, refs and the snapshot log, as values parsed from metadata JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from msgspec import field

from icesql.errors import CorruptFileError
from icesql.frozen import Frozen
from icesql.iceberg.metadata.json_fields import (
    Malformed,
    as_list,
    as_number,
    as_object,
    as_text,
    as_time,
    optional_id,
    optional_int,
    optional_text,
    required,
    required_id,
    text_map,
)


class Snapshot(Frozen):
    """The state of a table at one commit.

    One of ``manifest_list`` and ``manifests`` is set; the latter only by v1 writers that kept
    the manifest paths inside the snapshot. ``operation`` is None when the writer gave none, and is
    not repeated in ``summary``. ``timestamp_ms`` counts from 1970 in UTC.
    """

    snapshot_id: int
    parent_snapshot_id: int | None = None
    sequence_number: int = 0
    timestamp_ms: int = 0
    manifest_list: str | None = None
    manifests: tuple[str, ...] | None = None
    operation: str | None = None
    summary: Mapping[str, str] = field(default_factory=dict)
    schema_id: int | None = None
    first_row_id: int | None = None
    added_rows: int | None = None
    key_id: str | None = None

    @property
    def id_in_manifests(self) -> int:
        """Its id as Avro has it: with a sign, in 64 bits. Some writers give ids above 2^63."""
        return (self.snapshot_id + (1 << 63)) % (1 << 64) - (1 << 63)


class SnapshotRef(Frozen):
    """A branch or a tag: a name for a snapshot; ages are milliseconds."""

    snapshot_id: int
    kind: Literal["branch", "tag"] = "branch"
    max_ref_age_ms: int | None = None
    min_snapshots_to_keep: int | None = None
    max_snapshot_age_ms: int | None = None


class SnapshotLogEntry(Frozen, gc=False):
    """``main`` pointed at this snapshot from ``timestamp_ms`` on."""

    timestamp_ms: int
    snapshot_id: int


class LazySnapshots(Mapping[int, Snapshot]):
    """Snapshots by id in file order, each parsed on first access.

    Tables keep thousands of snapshots and a query looks at one or two. Raises CorruptFileError
    on access to a malformed one.
    """

    __slots__ = ("_parsed", "_path", "_raw")

    def __init__(self, raw: list[Any], path: str) -> None:
        self._path = path
        self._raw: dict[int, dict[str, Any]] = {}
        self._parsed: dict[int, Snapshot] = {}
        for index, each in enumerate(raw):
            # Tables have thousands of them, and each commit and each open reads all.
            if type(each) is dict and type(snapshot_id := each.get("snapshot-id")) is int:
                self._raw[snapshot_id] = each
            else:
                where = f"snapshots[{index}]"
                fields = as_object(each, where)
                self._raw[required_id(fields, where)] = fields

    def __getitem__(self, snapshot_id: int) -> Snapshot:
        found = self._parsed.get(snapshot_id)
        if found is None:
            try:
                found = parse_snapshot(self._raw[snapshot_id])
            except Malformed as error:
                raise CorruptFileError(self._path, str(error)) from error
            self._parsed[snapshot_id] = found
        return found

    def __contains__(self, snapshot_id: object) -> bool:
        return snapshot_id in self._raw

    def __iter__(self) -> Iterator[int]:
        return iter(self._raw)

    def __len__(self) -> int:
        return len(self._raw)

    def __repr__(self) -> str:
        return f"LazySnapshots({list(self._raw)})"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (list(self._raw.values()), self._path)


def parse_snapshot(fields: Mapping[str, Any]) -> Snapshot:
    """A snapshot from its JSON object. Raises Malformed."""
    snapshot_id = required_id(fields, "snapshot")
    where = f"snapshot {snapshot_id}"
    summary = text_map(fields, "summary", where)
    manifest_list = optional_text(fields, "manifest-list", where) or None
    manifests = fields.get("manifests")
    if fields.get("manifest-list") == "" and manifests is None and not has_files(summary):
        manifests = []  # how some writers spell a snapshot without files
    if manifest_list is None and manifests is None:
        raise Malformed(f"{where} has neither manifest-list nor manifests")
    return Snapshot(
        snapshot_id=snapshot_id,
        parent_snapshot_id=optional_id(fields, "parent-snapshot-id", where),
        sequence_number=optional_int(fields, "sequence-number", where) or 0,
        timestamp_ms=as_time(required(fields, "timestamp-ms", where), f"{where} timestamp-ms"),
        manifest_list=manifest_list,
        manifests=None
        if manifest_list is not None
        else tuple(
            as_text(path, f"{where} manifests") for path in as_list(manifests, f"{where} manifests")
        ),
        operation=summary.pop("operation", None),
        summary=summary,
        schema_id=optional_int(fields, "schema-id", where, 32),
        first_row_id=optional_int(fields, "first-row-id", where),
        added_rows=optional_int(fields, "added-rows", where),
        key_id=optional_text(fields, "key-id", where),
    )


def has_files(summary: Mapping[str, str]) -> bool:
    """Whether a summary counts data files."""
    return any(
        summary.get(key, "0") not in ("0", "") for key in ("total-data-files", "added-data-files")
    )


def parse_ref(name: str, value: Any) -> SnapshotRef:
    """A branch or tag from its JSON object. Raises Malformed."""
    where = f"ref {name!r}"
    fields = as_object(value, where)
    kind = (optional_text(fields, "type", where) or "branch").lower()
    if kind not in ("branch", "tag"):
        raise Malformed(f"{where} is neither branch nor tag but {kind!r}")
    return SnapshotRef(
        snapshot_id=required_id(fields, where),
        kind="tag" if kind == "tag" else "branch",
        max_ref_age_ms=optional_int(fields, "max-ref-age-ms", where),
        min_snapshots_to_keep=optional_int(fields, "min-snapshots-to-keep", where),
        max_snapshot_age_ms=optional_int(fields, "max-snapshot-age-ms", where),
    )


def parse_snapshot_log(entries: Any) -> tuple[SnapshotLogEntry, ...]:
    """The snapshot log in file order, () when absent. Raises Malformed."""
    if entries is None:
        return ()
    log = []
    for each in as_list(entries, "snapshot-log"):
        fields = as_object(each, "snapshot-log entry")
        log.append(
            SnapshotLogEntry(
                as_time(fields.get("timestamp-ms"), "snapshot-log timestamp-ms"),
                as_number(fields.get("snapshot-id"), "snapshot-log snapshot-id"),
            )
        )
    return tuple(log)
