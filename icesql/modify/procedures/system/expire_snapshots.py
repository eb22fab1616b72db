"""expire_snapshots: remove old snapshots, and the files that only they need."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from icesql.modify.procedures.procedure import (
    AT_ONCE,
    BELOW,
    TABLE,
    Parameter,
    Plan,
    Rows,
    Step,
    procedure,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from icesql.maintain.expire import Expired
    from icesql.modify.procedures.call import Call

_COUNTED: Final = (
    "data file", "position delete file", "equality delete file", "manifest", "manifest list",
    "statistics file",
)  # fmt: skip
_WAYS: Final = ("delete_below => array('folder')", "delete_outside => true")
_WHERE: Final = {
    "own": "in the table's location",
    "named": "in a folder that delete_below names",
    "elsewhere": "outside of the table's location",
}


@procedure(
    "forgets old snapshots and deletes the files that only they need",
    TABLE,
    Parameter("older_than", "timestamp", "by history.expire.max-snapshot-age-ms, else 5 days ago"),
    Parameter("retain_last", "int", "by history.expire.min-snapshots-to-keep, else 1"),
    AT_ONCE,
    Parameter("stream_results", "boolean"),
    Parameter("snapshot_ids", "array<bigint>"),
    Parameter("clean_expired_metadata", "boolean", "false"),
    BELOW,
    Parameter("delete_outside", "boolean", "false"),
    rows="deleted_data_files_count bigint, deleted_position_delete_files_count bigint, "
    "deleted_equality_delete_files_count bigint, "
    "deleted_manifest_files_count bigint, deleted_manifest_lists_count bigint, "
    "deleted_statistics_files_count bigint",
)
def expire_snapshots(call: Call) -> Plan:
    """Remove old snapshots, and the files that only they need."""
    from icesql.commit.deletion import kept_note
    from icesql.maintain.expire import expire_snapshots as expire
    from icesql.modify.procedures.call import at_once_of, folders_below

    catalog, table = call.target()
    call.services.state.access.check_removal(
        everything=bool(call["delete_outside"]), named=bool(call["delete_below"])
    )
    at_once = at_once_of(call)
    given: dict[str, Any] = {
        "older_than_ms": call["older_than"],
        "retain_last": call["retain_last"],
        "snapshot_ids": call["snapshot_ids"] or (),
        "clean_metadata": bool(call["clean_expired_metadata"]),
        "delete_below": folders_below(call),
        "delete_outside": bool(call["delete_outside"]),
        "query": call.query,
    }

    def run() -> Rows:
        done = expire(catalog, table, at_once=at_once, **given)
        counts = tuple(map(done.count, _COUNTED))
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
        _steps(planned),
        run,
        f"{count} snapshots and {len(planned.files.paths)} files would go, {kept} snapshots stay"
        + (f"; {outside}" if outside else ""),
    )


def _steps(planned: Expired) -> Iterator[Step]:
    from icesql.modify.procedures.call import moment

    metadata = planned.table.metadata
    for name in planned.expiry.refs:
        ref = metadata.refs[name]
        reason = f"the snapshot {ref.snapshot_id} is older than the {ref.kind} may be"
        yield Step("remove", ref.kind, name, reason)
    for snapshot_id in planned.expiry.snapshot_ids:
        snapshot = metadata.snapshots[snapshot_id]
        when = moment(snapshot.timestamp_ms)
        reason = f"{snapshot.operation} of {when}: no branch or tag keeps it"
        yield Step("remove", "snapshot", str(snapshot_id), reason)
    for files, action in ((planned.files, "remove"), (planned.kept, "keep")):
        for what, paths in files.files.items():
            for path in paths:
                where = _WHERE[planned.places.class_of(path)]
                reason = f"no snapshot that stays needs it; {where}"
                yield Step(action, what, path, reason, files.bytes.get(path))
