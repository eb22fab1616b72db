"""register_table: give an existing metadata file a name in the catalog."""

from __future__ import annotations

from typing import TYPE_CHECKING

from icesql.modify.procedures.procedure import TABLE, Parameter, Plan, Rows, Step, procedure

if TYPE_CHECKING:
    from icesql.modify.procedures.call import Call


@procedure(
    "gives a metadata file that is there already a name in the catalog",
    TABLE,
    Parameter("metadata_file", "string", "an error that names it"),
    rows="current_snapshot_id bigint, total_records_count bigint, total_data_files_count bigint",
)
def register_table(call: Call) -> Plan:
    """Register a metadata file under a new name; without the file, an error suggests one."""
    from icesql.catalog.targets import new_place, register
    from icesql.iceberg.metadata.json_fields import whole_number
    from icesql.modify.procedures.call import check_path

    name, place = call.table_name(), call["metadata_file"]
    if place is None:
        from icesql.modify.procedures.refs import no_file

        raise no_file(*new_place(call.services.state.names, name.parts), name.text)
    check_path(call, place)
    catalog, identifier = new_place(call.services.state.names, name.parts)
    steps = [Step("set", "table", ".".join(identifier), f"its metadata is {place}")]

    def run() -> Rows:
        table = register(catalog, identifier, place, call.query)
        snapshot = table.metadata.current_snapshot
        if snapshot is None:
            return Rows([(None, None, None)])
        counts = (snapshot.summary.get(each) for each in ("total-records", "total-data-files"))
        numbers = map(whole_number, counts)
        return Rows([(snapshot.snapshot_id, *numbers)])

    return Plan(steps, run)
