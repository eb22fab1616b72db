"""Procedures that remove files: expire_snapshots and remove_orphan_files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final, cast

from icesql.commit.own_places import folders_of, kept_note
from icesql.errors import UnsupportedSqlError
from icesql.maintain.expire import Expired
from icesql.maintain.expire import expire_snapshots as expire
from icesql.maintain.orphans import DEFAULT_AGE_MS, LEAST_AGE_MS, Orphans, find_orphans
from icesql.maintain.procedures.plan import Plan, Rows, Step
from icesql.maintain.referenced import Mismatch, Prefixes
from icesql.modify.modified import in_bytes
from icesql.modify.procedures.call import Call
from icesql.storage.removal import remove_listed

_WAYS: Final = ("delete_below => array('folder')", "delete_outside => true")
_WHERE: Final = {
    "own": "in the table's location",
    "named": "in a folder that delete_below names",
    "elsewhere": "outside of the table's location",
}
_MODES: Final = ("ERROR", "IGNORE", "DELETE")


def expire_snapshots(call: Call) -> Plan:
    """Snapshots, and the files that only they need."""
    catalog, table = call.target()
    call.services.state.access.check_removal(
        everything=bool(call["delete_outside"]), named=bool(call["delete_below"])
    )
    at_once = _at_once(call)
    given: dict[str, Any] = {
        "older_than_ms": call["older_than"],
        "retain_last": call["retain_last"],
        "snapshot_ids": call["snapshot_ids"] or (),
        "clean_metadata": bool(call["clean_expired_metadata"]),
        "delete_below": _below(call),
        "delete_outside": bool(call["delete_outside"]),
        "query": call.services.query,
    }

    def run() -> Rows:
        done = expire(catalog, table, at_once=at_once, **given)
        files = done.files
        counts = tuple(
            done.count(each)
            for each in (
                files.data_files, files.position_delete_files, files.equality_delete_files,
                files.manifests, files.manifest_lists, files.statistics,
            )
        )  # fmt: skip
        left = f"{len(done.left)} files could not be deleted" if done.left else ""
        kept = kept_note(done.kept.paths, done.places, *_WAYS)
        return Rows([counts], "; ".join(filter(None, (left, kept))))

    if not call.explain:
        return Plan((), run)
    planned = expire(catalog, table, dry_run=True, **given)
    count = len(planned.expiry.snapshot_ids)
    kept = len(table.metadata.snapshots) - count
    outside = kept_note(planned.kept.paths, planned.places, *_WAYS)
    return Plan(
        _expiry_steps(planned),
        run,
        f"{count} snapshots and {len(planned.files.paths)} files would go, {kept} snapshots stay"
        + (f"; {outside}" if outside else ""),
    )


def _expiry_steps(planned: Expired) -> Iterator[Step]:
    metadata = planned.table.metadata
    for name in planned.expiry.refs:
        ref = metadata.refs[name]
        reason = f"the snapshot {ref.snapshot_id} is older than the {ref.kind} may be"
        yield Step("remove", ref.kind, name, reason)
    for snapshot_id in planned.expiry.snapshot_ids:
        snapshot = metadata.snapshots[snapshot_id]
        moment = _moment(snapshot.timestamp_ms)
        reason = f"{snapshot.operation} of {moment}: no branch or tag keeps it"
        yield Step("remove", "snapshot", str(snapshot_id), reason)
    for files, action in ((planned.files, "remove"), (planned.kept, "keep")):
        for what, paths in (
            ("data file", files.data_files),
            ("position delete file", files.position_delete_files),
            ("equality delete file", files.equality_delete_files),
            ("statistics file", files.statistics),
            ("manifest", files.manifests),
            ("manifest list", files.manifest_lists),
        ):
            for path in paths:
                where = _WHERE[planned.places.class_of(path)]
                reason = f"no snapshot that stays needs it; {where}"
                yield Step(action, what, path, reason, files.bytes.get(path))


def remove_orphan_files(call: Call) -> Plan:
    """Files that nothing of the table names."""
    if call["file_list_view"] is not None:
        raise UnsupportedSqlError(
            "file_list_view", hint="icesql lists the folder itself, in stores as well"
        )
    older_than = call["older_than"]
    dry_run = bool(call["dry_run"])
    if older_than is None:
        older_than = call.now_ms - DEFAULT_AGE_MS
    elif not dry_run and not call.explain and older_than > call.now_ms - LEAST_AGE_MS:
        raise call.wrong(
            "older_than", "is less than 24 hours ago, and may remove files of running writes"
        )
    call.services.state.access.check_removal(everything=False, named=bool(call["delete_below"]))
    at_once, prefixes = _at_once(call), _prefixes(call)
    catalog, table = call.target()
    found = find_orphans(
        catalog,
        table,
        older_than_ms=older_than,
        folder=call["location"],
        delete_below=_below(call),
        only_look=call.explain,
        prefixes=prefixes,
        query=call.services.query,
    )

    def run() -> Rows:
        rows = [(each.shown,) for each in found.files]
        if dry_run:
            return Rows(rows, f"dry run: {_summary(found)}")
        left = remove_listed(found.table.storage, found.files, call.services.query, at_once=at_once)
        remark = f"; {len(left)} of them could not be removed" if left else ""
        return Rows(rows, _summary(found) + remark)

    return Plan(_orphan_steps(found), run, _summary(found))


def _orphan_steps(found: Orphans) -> Iterator[Step]:
    for each in found.files:
        reason = (
            f"no snapshot, statistics or metadata names it; changed {_moment(each.modified_ms)}"
        )
        yield Step("remove", "file", each.shown, reason, each.size)


def _summary(found: Orphans) -> str:
    young = f", {found.young} more are too young" if found.young else ""
    return (
        f"{len(found.files)} of {found.listed} files in {found.folder} are orphans, "
        f"{in_bytes(found.bytes)}{young}"
    )


def _below(call: Call) -> tuple[str, ...]:
    """The folders beside a table's own that the statement, or else the session, names."""
    given: tuple[str, ...] | None = call["delete_below"]
    return tuple(folders_of(call.services.query.settings.delete_below)) if given is None else given


def _at_once(call: Call) -> int | None:
    count: int | None = call["max_concurrent_deletes"]
    if count is not None and count < 1:
        raise call.wrong("max_concurrent_deletes", "is less than 1")
    return None if count is None else min(count, 64)


def _prefixes(call: Call) -> Prefixes:
    """Which spellings of stores are one; keys may list several, ``s3a,s3n``."""
    mode = (call["prefix_mismatch_mode"] or "ERROR").upper()
    if mode not in _MODES:
        raise call.wrong("prefix_mismatch_mode", f"is {mode!r}; it can be {', '.join(_MODES)}")
    return Prefixes(
        {**Prefixes().schemes, **_flat(call["equal_schemes"])},
        _flat(call["equal_authorities"]),
        cast("Mismatch", mode.lower()),
    )


def _flat(given: Mapping[str, str] | None) -> dict[str, str]:
    found: dict[str, str] = {}
    for names, same in (given or {}).items():
        found |= dict.fromkeys((each.strip() for each in names.split(",")), same.strip())
    return found


def _moment(milliseconds: int) -> str:
    moment = datetime.fromtimestamp(milliseconds / 1000, UTC)
    return moment.isoformat(sep=" ", timespec="milliseconds")


PLANNERS: Final[Mapping[str, Callable[[Call], Plan]]] = {
    "expire_snapshots": expire_snapshots,
    "remove_orphan_files": remove_orphan_files,
}
