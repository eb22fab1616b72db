"""restore_table: verify every file of a copy, and register the copy as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from icesql.modify.procedures.procedure import (
    PROPERTIES,
    Parameter,
    Plan,
    Rows,
    Step,
    procedure,
    required,
)

if TYPE_CHECKING:
    from icesql.modify.procedures.call import Call


@procedure(
    "finds and reads every file of a copy, and gives it a name in the catalog",
    required("location", "string"),
    Parameter("table", "table"),
    PROPERTIES,
    rows="ref varchar, type varchar, snapshot_id bigint, data_files_count bigint, "
    "delete_files_count bigint, rows_count bigint",
)
def restore_table(call: Call) -> Plan:
    """Verify every file of a copy and, if ``table`` is given, register it under that name."""
    from icesql.catalog.configuration import of_storage, with_given
    from icesql.catalog.open import open_table
    from icesql.catalog.targets import new_place, register
    from icesql.maintain.referenced import verify
    from icesql.maintain.relocation.target import target_location
    from icesql.modify.procedures.call import check_place, row_counter

    confine = check_place(call, call["location"])
    location, query = target_location(call["location"]), call.query
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
        found = verify(table, query, row_counter(call))
        if named is not None:
            register(*named, table.metadata_location, query)
        rows = [
            (each.name, each.kind, each.snapshot_id, each.data_files, each.delete_files, each.rows)
            for each in found.refs
        ]
        return Rows(rows, f"{found.files} files, {found.bytes} bytes")

    return Plan(steps, run)
