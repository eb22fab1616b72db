"""Tables at another place: copy_table and restore_table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, Literal

from msgspec.structs import replace

from icesql.catalog.open import open_table
from icesql.catalog.properties import of_storage, with_given
from icesql.catalog.rest.storage_properties import are_vended
from icesql.catalog.table import Table, table_from_metadata
from icesql.catalog.targets import new_place
from icesql.catalog.writes.register import register
from icesql.errors import AccessDeniedError
from icesql.maintain.procedures.plan import Plan, Rows, Step
from icesql.maintain.relocation.copy import Copied, CopyRequest, copy_table
from icesql.maintain.relocation.folder import target_location
from icesql.maintain.relocation.staged import PathRewrite, rewrite_table_path
from icesql.maintain.relocation.verify import CountRows, check_same, refs_of, verify
from icesql.modify.procedures.call import Call
from icesql.modify.rows.counting import live_rows
from icesql.scan.planner import plan
from icesql.scan.table_scan import TableScan
from icesql.storage.roots import Roots

if TYPE_CHECKING:
    from icesql.iceberg.metadata.snapshot import Snapshot

_LATEST: Final = "latest"


def copy(call: Call) -> Plan:
    """A table to another place, and what is new of it later."""
    confine = _check_access(call, call["location"])
    table, since = call.source(), _since(call)
    location = target_location(call["location"])
    request = CopyRequest(location, since, _properties(call, table, location), confine)
    query = call.services.query

    def run() -> Rows:
        done = copy_table(table, request, query)
        counts = (done.copied, done.copied_bytes, done.rewritten, done.present)
        verified = _verified(call, table, done) if call["verify"] else (None, None)
        return Rows([(done.metadata_location, done.snapshot_id, *counts, *verified)])

    step = Step("write", "table", location, f"a copy of {table.name} as it is now")
    return Plan([step], run, f"{len(table.metadata.snapshots)} snapshots")


def rewrite_paths(call: Call) -> Plan:
    """Metadata with another prefix in a folder of its own, and the list of what is to be copied."""
    staging = call["staging_location"]
    _check_access(call, staging or call["target_prefix"])
    for name in ("source_prefix", "target_prefix"):
        if not call[name].strip():
            raise call.wrong(name, "is empty")
    if call["source_prefix"] == call["target_prefix"]:
        raise call.wrong("target_prefix", "is the same as source_prefix")
    table, query = call.source(), call.services.query
    request = PathRewrite(
        call["source_prefix"],
        call["target_prefix"],
        call["start_version"],
        call["end_version"],
        None if staging is None else target_location(staging),
        call["create_file_list"] is not False,
    )

    def run() -> Rows:
        done = rewrite_table_path(table, request, query)
        listed = done.file_list or "N/A"
        return Rows([(done.latest_version, listed, done.manifests, done.delete_files)])

    step = Step("write", "metadata", staging or "(new)", f"below {request.target_prefix}")
    return Plan([step], run)


def _verified(call: Call, table: Table, done: Copied) -> tuple[int, int]:
    """Files that were found in a copy, and the rows of main."""
    query = call.services.query
    opened = table_from_metadata(
        table.identifier, done.metadata_location, properties=done.storage.properties,
        confine=done.storage.confine or False,
    )  # fmt: skip
    count = _counter(call)
    found = verify(opened, query, count)
    check_same(refs_of(table, query, count), found.refs, done.metadata_location)
    return found.files, sum(each.rows for each in found.refs if each.name == "main")


def restore(call: Call) -> Plan:
    """A table of a copy, once all of it was found and read."""
    confine = _check_access(call, call["location"])
    location, query = target_location(call["location"]), call.services.query
    own, lent = call.services.state.names.store_of(location)
    given = of_storage(call.services.state.names.given)
    properties = with_given(own, given, call["properties"] or {})
    table = open_table(location, properties=properties, confine=confine or lent)
    steps = [Step("read", "table", location, "every file that it names")]
    named = None
    if call["table"] is not None:
        named = new_place(call.services.state.names, call.table_name().parts)
        steps.append(Step("set", "table", ".".join(named[1]), f"its metadata lies in {location}"))

    def run() -> Rows:
        found = verify(table, query, _counter(call))
        if named is not None:
            register(*named, table.metadata_location, query)
        rows = [
            (each.name, each.kind, each.snapshot_id, each.data_files, each.delete_files, each.rows)
            for each in found.refs
        ]
        return Rows(rows, f"{found.files} files, {found.bytes} bytes")

    return Plan(steps, run)


def _counter(call: Call) -> CountRows:
    query = call.services.query

    def count(table: Table, snapshot: Snapshot) -> int:
        schema = table.metadata.schema
        planned = plan(TableScan(replace(table, planning=None), snapshot, schema, schema), query)
        return live_rows(planned.files, planned.context, query)

    return count


def _check_access(call: Call, location: str) -> Roots | None:
    """The roots that a place named in SQL has to lie below; raises AccessDeniedError."""
    access = call.services.state.access
    by_path = access.tables_by_path
    if access.service or access.confine is True:
        argument = "service" if access.service else "confine"
        raise AccessDeniedError("SQL cannot copy tables to another place", argument=argument)
    for allowed, argument in ((by_path, "tables_by_path"), (access.confine, "confine")):
        denied = allowed is False and argument == "tables_by_path"
        if denied or (isinstance(allowed, Roots) and not allowed.hold(target_location(location))):
            raise AccessDeniedError("SQL names no such paths", argument=argument)
    return access.confine if isinstance(access.confine, Roots) else None


def _since(call: Call) -> int | Literal["latest"] | None:
    text: str | None = call["since"]
    if text is None:
        return None
    if text.strip().lower() == _LATEST:
        return "latest"
    try:
        return int(text)
    except ValueError:
        problem = f"is {text!r}; it is the id of a snapshot, or {_LATEST!r}"
        raise call.wrong("since", problem) from None


def _properties(call: Call, table: Table, location: str) -> dict[str, str]:
    """How the store of a copy is opened: as the table's own is, unless told otherwise."""
    own, names = table.storage.properties, call.services.state.names
    if are_vended(own):  # what a catalog lends for one table opens no other place
        own, _ = names.store_of(location)
    return with_given(own, of_storage(names.given), call["properties"] or {})


PLANNERS: Final[Mapping[str, Callable[[Call], Plan]]] = {
    "copy_table": copy,
    "restore_table": restore,
    "rewrite_table_path": rewrite_paths,
}
