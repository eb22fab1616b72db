"""Sets and restores branches for procedures: the change, and descriptions of it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from icesql.catalog.current_metadata import find_current_metadata
from icesql.catalog.table import Catalog, Table
from icesql.catalog.writes.change import TableChange
from icesql.commit import refs
from icesql.commit.branches import branch_head
from icesql.commit.file_changes import MakeUpdates, change_table
from icesql.context import QueryContext
from icesql.errors import (
    DataError,
    NotSupportedError,
    ProgrammingError,
    SnapshotNotFoundError,
    StorageError,
)
from icesql.iceberg.metadata.changes.updates import SetSnapshotRef, Update
from icesql.iceberg.metadata.json_fields import whole_number
from icesql.iceberg.metadata.snapshot import Snapshot
from icesql.iceberg.metadata.table_metadata import MAIN, TableMetadata
from icesql.modify.procedures.call import Call, moment
from icesql.modify.procedures.procedure import Plan, Rows, Step
from icesql.query.snapshot_selection import instant_text
from icesql.quoting import literal
from icesql.scan.changes import REPLACE
from icesql.sql.table_name import name_text
from icesql.storage.open import Storage


def moved(call: Call, make: MakeUpdates) -> Plan:
    """Set ``main`` to another snapshot: one step, from the previous id to the new one."""
    catalog, table = call.target()
    metadata = table.metadata
    wanted = [each.ref.snapshot_id for each in make(metadata) if isinstance(each, SetSnapshotRef)]
    before = metadata.current_snapshot_id
    after = wanted[0] if wanted else before
    steps = [Step("set", "branch", MAIN, from_to(before, after, moment_of(metadata, after)))]

    def run() -> Rows:
        seen, done = changed(call, catalog, table, make)
        return Rows([(seen.current_snapshot_id, done.metadata.current_snapshot_id)])

    return Plan(steps if wanted else [], run, nothing_to_do(not wanted))


def picked_snapshot(call: Call, catalog: Catalog, table: Table, picked: Snapshot) -> Plan:
    """Plan to apply the change of a snapshot to ``main``."""
    metadata = table.metadata
    refs.check_pick(table, picked)
    if picked.parent_snapshot_id == metadata.current_snapshot_id:
        description = from_to(
            metadata.current_snapshot_id, picked.snapshot_id, ", which follows it"
        )
        steps = [Step("set", "branch", MAIN, description)]
    else:
        reason = f"the files that snapshot {picked.snapshot_id} added are added to main"
        records, size = map(picked.summary.get, ("added-records", "added-files-size"))
        steps = [
            Step(
                "write", "snapshot", "(a new one)", reason,
                whole_number(size), whole_number(records),
            )
        ]  # fmt: skip

    def run() -> Rows:
        done = refs.cherry_pick(catalog, table, picked.snapshot_id, query=call.query)
        current = done.table.metadata.current_snapshot_id
        return Rows([(picked.snapshot_id, current)], snapshot_id=current)

    return Plan(steps, run)


def changed(
    call: Call, catalog: Catalog, table: Table, make: MakeUpdates
) -> tuple[TableMetadata, Table]:
    """Commit the change; return the metadata that it was computed from, and the new table."""
    seen: list[TableMetadata] = []

    def updates(base: TableMetadata) -> Sequence[Update]:
        seen.append(base)
        return make(base)

    done = change_table(catalog, table, updates, query=call.query)
    return seen[-1], done.table


def moment_of(metadata: TableMetadata, snapshot_id: int | None) -> str:
    """The time of a snapshot, as " of …"; "" for an unknown one."""
    snapshot = None if snapshot_id is None else metadata.snapshot(snapshot_id)
    if snapshot is None:
        return ""
    return f" of {moment(snapshot.timestamp_ms)}"


def from_to(before: int | None, after: int | None, more: str) -> str:
    """Describe the move of a branch from a snapshot to another one."""
    start = "it has no snapshot" if before is None else f"from snapshot {before}"
    return f"{start} to snapshot {after}{more}"


def nothing_to_do(nothing: bool) -> str:
    """The summary of a plan that may have no steps."""
    return "nothing is to be done: it is there already" if nothing else ""


# ------------------------------------------------------------------ commits undone


_ROWS: Final = (
    ("added-records", "added"),
    ("deleted-records", "deleted"),
    ("added-position-deletes", "deleted by position"),
    ("added-equality-deletes", "deletes by key"),
)


def taken_back(table: Table, name: str, branch: str, commits: int) -> tuple[Snapshot, ...]:
    """The last commits of a branch, latest first, followed by the snapshot before them.

    ``name`` is the table's name as SQL writes it. Raises ProgrammingError and
    SnapshotNotFoundError, with a remedy, if there is no snapshot before them.
    """
    history = (*table.metadata.ancestry(branch_head(table.metadata, branch)[0]),)
    if len(history) > commits:
        return history[: commits + 1]
    first = history[-1] if history else None
    if first is not None and first.parent_snapshot_id is not None:
        raise SnapshotNotFoundError(
            f"snapshot {first.parent_snapshot_id}, which is before {first.snapshot_id},",
            table=table.name,
            hint=f"it has expired, so nothing goes back to it; {_kept(table, first)}",
        )
    before = _replaced(table, first)
    if before is not None:
        raise ProgrammingError(
            f"{table.name} was replaced (CREATE OR REPLACE TABLE), which is no commit to take "
            f"back, or what was before has expired. CREATE OR REPLACE TABLE {name} AS SELECT * "
            f"FROM {name} VERSION AS OF {before.snapshot_id} makes it of the rows of that snapshot"
        )
    if first is None:
        raise ProgrammingError(f"{table.name} has no snapshot yet: there is nothing to take back")
    raise ProgrammingError(
        f"{table.name} has no earlier snapshot than {first.snapshot_id}: DELETE FROM takes its "
        "rows away, and DROP TABLE the table"
    )


def described(
    table: Table, name: str, branch: str, found: tuple[Snapshot, ...], query: QueryContext
) -> str:
    """A text: the change to undo, what stays, and the CALL that redoes it."""
    *undone, target = found
    texts = [f"takes back {_described(table, each, query)}" for each in undone]
    head = undone[0].snapshot_id
    if all(each.operation == REPLACE for each in undone):
        texts.append("it wrote files anew, as compaction does, so no row changes")
        for number, each in enumerate(table.metadata.ancestry(target), 1):
            if each.operation != REPLACE:
                commits = "1 commit" if number == 1 else f"{number} commits"
                texts.append(
                    f"the last change of rows lies below it, {commits} further back: "
                    f"{_described(table, each, query)}"
                )
                break
    forward = f"CALL system.set_current_snapshot({literal(name)}, {head})"
    if branch != MAIN:
        forward = f"ALTER TABLE {name} REPLACE BRANCH {name_text([branch])} AS OF VERSION {head}"
    texts += (
        f"{branch} goes to snapshot {target.snapshot_id}",
        "columns and properties stay as they are",
        f"forward again: {forward}",
    )
    return "; ".join(texts)


def _described(table: Table, snapshot: Snapshot, query: QueryContext) -> str:
    """Such as ``delete of 2026-11-19 14:02:11 UTC by icesql 0.1 (rows 9 → 7: 2 deleted), …``."""
    summary = snapshot.summary
    counts = [f"{summary[key]} {what}" for key, what in _ROWS if summary.get(key, "0") != "0"]
    rows = "no row changed" if snapshot.operation == REPLACE else ", ".join(counts)
    parent = snapshot.parent_snapshot_id
    before = None if parent is None else table.metadata.snapshot(parent)
    totals = [_live_rows(each) for each in (before, snapshot) if each is not None]
    if len(totals) == 2 and None not in totals and counts and snapshot.operation != REPLACE:
        rows = f"rows {totals[0]} → {totals[1]}: {rows}"
    engine = " ".join(filter(None, map(summary.get, ("engine-name", "engine-version"))))
    when = instant_text(snapshot.timestamp_ms, query)
    return (
        f"{snapshot.operation or 'a commit'} of {when} by {engine or 'an unnamed engine'} "
        f"({rows or 'no count of rows'}), snapshot {snapshot.snapshot_id}"
    )


def _live_rows(snapshot: Snapshot) -> int | None:
    """The live rows of a snapshot by its summary; None where the summary does not give them."""
    total, by_position, by_key = (
        snapshot.summary.get(f"total-{each}", "")
        for each in ("records", "position-deletes", "equality-deletes")
    )
    if by_key.strip("0") or not re.fullmatch(r"\d{1,19} \d{1,19}", f"{total} {by_position}"):
        return None
    return int(total) - int(by_position)


def _replaced(table: Table, first: Snapshot | None) -> Snapshot | None:
    """The snapshot of main before CREATE OR REPLACE started a new history with ``first``."""
    log = [entry.snapshot_id for entry in table.metadata.snapshot_log]
    if first is not None:
        log = log[: log.index(first.snapshot_id)] if first.snapshot_id in log else []
    known = filter(None, map(table.metadata.snapshot, reversed(log)))
    return next(known, None)


def _age(snapshot: Snapshot) -> tuple[int, int]:
    return snapshot.sequence_number, snapshot.timestamp_ms


def _kept(table: Table, first: Snapshot) -> str:
    """A text on the older snapshots that refs keep from before ``first``."""
    kept = {name: table.metadata.snapshot(each.snapshot_id) for name, each in
            table.metadata.refs.items()}  # fmt: skip
    names = [repr(name) for name, each in kept.items() if each and _age(each) < _age(first)]
    if names:
        return f"kept from before are {', '.join(names)}: set_current_snapshot takes one"
    return "a copy has the rows of its time: icesql restore"


def no_file(catalog: Catalog, identifier: Sequence[str], name: str) -> ProgrammingError:
    """The error for register_table without a file, with the CALL that brings the table back."""
    file = _left_behind(catalog, identifier)
    given = f"{literal(name)}, {literal(file or 'FILE')}"
    text = f"CALL system.register_table({given}) brings the table back; "
    if file is None:
        text += (
            "FILE is the newest ….metadata.json in its folder metadata, which DROP TABLE has named"
        )
    else:
        text += "that is the newest metadata where such a table lies"
    return ProgrammingError(f"which metadata file {name} had is not recorded: {text}")


def _left_behind(catalog: Catalog, identifier: Sequence[str]) -> str | None:
    """The newest metadata file where CREATE would put the table; None if it is not known.

    Raises CatalogError where there is a table of the name, or no such namespace.
    """
    if catalog.kind == "rest":  # its server gives a location only for a table that it creates
        return None
    name = identifier[-1]
    with suppress(DataError, NotSupportedError, StorageError):
        place = catalog.place_new(identifier, TableChange((), (), Storage(), 0))
        # If the folder has files already, a new table's location gets a suffix.
        folder, is_taken, _ = place.location.rpartition(f"/{name}-")
        if is_taken:
            found = find_current_metadata(f"{folder}/{name}/metadata", place.storage)
            others = map(catalog.load, catalog.tables(identifier[:-1]))
            if found not in {each.metadata_location for each in others}:  # else: a renamed table's
                return found
    return None
