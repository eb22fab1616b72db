"""copy_table: copy a table to another place, and later only its new files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from icesql.modify.procedures.procedure import (
    PLACE,
    PROPERTIES,
    Parameter,
    Plan,
    Rows,
    Step,
    procedure,
    required,
)

if TYPE_CHECKING:
    from icesql.catalog.table import Table
    from icesql.maintain.relocation.copy import Copied
    from icesql.modify.procedures.call import Call

_LATEST: Final = "latest"


@procedure(
    "copies a table to another place, and later what is new of it",
    PLACE,
    required("location", "string"),
    Parameter("since", "snapshot"),
    Parameter("verify", "boolean", "false"),
    PROPERTIES,
    rows="metadata_location varchar, snapshot_id bigint, copied_files_count bigint, "
    "copied_bytes_count bigint, rewritten_files_count bigint, "
    "present_files_count bigint, verified_files_count bigint, "
    "verified_rows_count bigint",
)
def copy_table(call: Call) -> Plan:
    """Copy a table to another place, or add to a copy what is new in the table."""
    from icesql.maintain.relocation.copy import CopyRequest
    from icesql.maintain.relocation.copy import copy_table as copy
    from icesql.maintain.relocation.target import target_location
    from icesql.modify.procedures.call import check_place

    confine = check_place(call, call["location"])
    table, since = call.source(), _since(call)
    location = target_location(call["location"])
    request = CopyRequest(location, since, _properties(call, table, location), confine)
    query = call.query

    def run() -> Rows:
        done = copy(table, request, query)
        counts = (done.copied, done.copied_bytes, done.rewritten, done.present)
        verified = _verified(call, table, done) if call["verify"] else (None, None)
        return Rows([(done.metadata_location, done.snapshot_id, *counts, *verified)])

    step = Step("write", "table", location, f"a copy of {table.name} as it is now")
    return Plan([step], run, f"{len(table.metadata.snapshots)} snapshots")


def _verified(call: Call, table: Table, done: Copied) -> tuple[int, int]:
    """Verify a copy: the number of its files, and of the rows of main."""
    from icesql.catalog.table import table_from_metadata
    from icesql.maintain.referenced import check_same, refs_of, verify
    from icesql.modify.procedures.call import row_counter

    query = call.query
    opened = table_from_metadata(
        table.identifier, done.metadata_location, properties=done.storage.properties,
        confine=done.storage.confine or False,
    )  # fmt: skip
    count = row_counter(call)
    found = verify(opened, query, count)
    check_same(refs_of(table, query, count), found.refs, done.metadata_location)
    return found.files, sum(each.rows for each in found.refs if each.name == "main")


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
    """Properties that open the store of a copy: the table's own, unless ``properties`` differ."""
    from icesql.catalog.configuration import of_storage, with_given
    from icesql.catalog.rest.storage_properties import are_vended

    own, names = table.storage.properties, call.services.state.names
    if are_vended(own):  # credentials that a catalog lends for one table open no other place
        own, _ = names.store_of(location)
    return with_given(own, of_storage(names.given), call["properties"] or {})
