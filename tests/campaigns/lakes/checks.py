"""What must hold of a lake after maintenance. Each check gives a line for each thing that is wrong."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tests.campaigns.lakes.lake import GeneratedTable, Lake, is_old
from tests.campaigns.lakes.seen import Seen, metadata_of, rows_at, seen, sizes

NEAR = 0.1
# In the order in which their gains are computed.
FOLLOWED = (
    "small files", "deletes", "manifests", "manifest clustering", "old snapshots", "orphans",
)  # fmt: skip
COUNTED = ("data_files", "delete_files", "equality_delete_files", "manifests")


def follow_doctor(lake: Lake) -> Iterator[str]:
    """Run the doctor's statements table by table, and compare what they save with their gain.

    Bytes may be more: what a rewrite has replaced is old by the time of the expiry. Of files of
    older partition specs nothing is promised.
    """
    with lake.connect() as connection:
        promised = {each.table: each for each in connection.doctor().tables}
        for table in lake.tables:
            diagnosis = promised[table.name]
            before, files = _seen(connection, table), sizes(lake)
            for name in FOLLOWED:
                for finding in diagnosis.findings:
                    if finding.name == name and finding.statement:
                        connection.execute(finding.statement).fetchall()
            after, left = _seen(connection, table), sizes(lake)
            freed = sum(size for path, size in files.items() if path not in left)
            gain = diagnosis.gain
            open_ended = table.kind == "evolved"
            yield from _reached(table, "files", gain.files, before.files - after.files, open_ended)
            yield from _reached(
                table, "requests", gain.requests, before.requests - after.requests, open_ended
            )
            yield from _reached(table, "bytes", gain.bytes, freed, True)
            yield from rows_are_those_of_the_stream(lake, [table])
            yield from orphans_are_gone(table)


def _reached(
    table: GeneratedTable, what: str, promised: int, came: int, open_ended: bool
) -> Iterator[str]:
    too_few = came < promised * (1 - NEAR)
    if too_few or (not open_ended and came > promised * (1 + NEAR)):
        yield f"{table.name}: {promised:,} {what} fewer were promised, {came:,} came"


def _seen(connection: Any, table: GeneratedTable) -> Seen:
    return seen(metadata_of(connection, table))


def rows_are_those_of_the_stream(
    lake: Lake, tables: list[GeneratedTable] | None = None
) -> Iterator[str]:
    """Of each snapshot that is left, of the head, and of each ref; what is gone was old."""
    with lake.connect(caches="off") as connection:
        for table in lake.tables if tables is None else tables:
            stream = table.stream
            now = _seen(connection, table)
            refs = dict(now.refs)
            for snapshot_id, rows in stream.at.items():
                if snapshot_id in now.snapshots:
                    found = rows_at(connection, table, snapshot_id)
                    if found != sorted(rows, key=repr):
                        yield f"{table.name}: other rows in snapshot {snapshot_id}"
                elif not is_old(stream, snapshot_id, 5):
                    yield f"{table.name}: snapshot {snapshot_id} is gone and was young"
            for name, ref in stream.writer.refs.items():
                if refs.get(name) != ref["snapshot-id"]:
                    yield f"{table.name}: {ref['type']} {name} is elsewhere"
            found = rows_at(connection, table, refs["main"])
            if found != sorted(stream.rows.values(), key=repr):
                yield f"{table.name}: {len(found)} rows and not {len(stream.rows)}, or others"


def orphans_are_gone(table: GeneratedTable) -> Iterator[str]:
    """The old ones, and no young one."""
    for each in table.stream.orphans:
        if each.exists():
            yield f"{table.name}: the orphan {each.name} is still there"
    for each in table.stream.young:
        if not each.exists():
            yield f"{table.name}: {each.name} was too young to go"


def promises_are_kept(
    lake: Lake, before: Mapping[str, Seen], report: Mapping[str, Any]
) -> Iterator[str]:
    """What a run of maintenance promised, by each action and before the first, and what came.

    The table may come to more than was promised before the first action, as what one has replaced
    is old by the time of another. The last action of a measure is compared with the manifests.
    """
    tables = {each.name: each for each in lake.tables}
    with lake.connect() as connection:
        for each in report["tables"]:
            table = tables[each["table"]]
            now, then = _seen(connection, table), before[each["table"]]
            for name, value in each["predicted"].items():
                if name in COUNTED:
                    promised = getattr(then, name) - value
                    came = getattr(then, name) - getattr(now, name)
                    yield from _reached(table, name, promised, came, True)
            for name in COUNTED:
                told = [one["reached"][name] for one in each["actions"] if name in one["reached"]]
                # A commit after it may write a manifest more, but no file.
                if told and name != "manifests" and told[-1] != getattr(now, name):
                    yield f"{table.name}: {name} are {getattr(now, name)}, not {told[-1]} as told"
            for one in each["actions"]:
                for name, value in one["predicted"].items():
                    reached = one["reached"].get(name)
                    gain = getattr(then, name, value)
                    gain = value if name not in COUNTED else gain - value
                    if reached is None or abs(reached - value) > NEAR * abs(gain):
                        yield f"{table.name}: {one['action']} told {name} {value}, not {reached}"


def rows_of_the_writer(
    lake: Lake,
    tables: list[GeneratedTable],
    wanted: Mapping[str, Mapping[int, float]],
    unsure: set[str],
) -> Iterator[str]:
    """The rows of the stream and those of its ledger, in tables whose last statement is known."""
    with lake.connect(caches="off") as connection:
        for table in tables:
            if table.name in unsure:
                continue
            sql = f"SELECT id, x FROM {table.name}"
            found = dict(connection.execute(sql).fetchall())
            own = {each: value for each, value in found.items() if each >= 1_000_000}
            expected = wanted[table.name]
            lost, more = len(expected.keys() - own.keys()), len(own.keys() - expected.keys())
            other = sum(own[each] != value for each, value in expected.items() if each in own)
            if lost or more or other:
                yield f"{table.name}: {lost} rows of the writer lost, {more} too many, {other} old"
            older = {each: value for each, value in found.items() if each < 1_000_000}
            if older != {each: row[2] for each, row in table.stream.rows.items()}:
                yield f"{table.name}: other rows than those of the stream"
