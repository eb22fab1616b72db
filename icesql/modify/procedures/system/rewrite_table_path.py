"""rewrite_table_path: write metadata with another prefix in its paths."""

from __future__ import annotations

from typing import TYPE_CHECKING

from icesql.modify.procedures.procedure import (
    PLACE,
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
    "writes metadata with another prefix of its paths, and lists what is to be copied",
    PLACE,
    required("source_prefix", "string"),
    required("target_prefix", "string"),
    Parameter("start_version", "string"),
    Parameter("end_version", "string", "the current one"),
    Parameter("staging_location", "string", "a new folder beside its metadata"),
    Parameter("create_file_list", "boolean", "true"),
    rows="latest_version varchar, file_list_location varchar, "
    "rewritten_manifest_file_paths_count integer, "
    "rewritten_delete_file_paths_count integer",
)
def rewrite_table_path(call: Call) -> Plan:
    """Write metadata with another path prefix to a folder, and list the files to copy."""
    from icesql.maintain.relocation.staged import PathRewrite
    from icesql.maintain.relocation.staged import rewrite_table_path as rewrite
    from icesql.maintain.relocation.target import target_location
    from icesql.modify.procedures.call import check_place

    staging = call["staging_location"]
    for name in ("source_prefix", "target_prefix"):
        if not call[name].strip():
            raise call.wrong(name, "is empty")
    if call["source_prefix"] == call["target_prefix"]:
        raise call.wrong("target_prefix", "is the same as source_prefix")
    check_place(call, staging or call["target_prefix"])
    table, query = call.source(), call.query
    request = PathRewrite(
        call["source_prefix"],
        call["target_prefix"],
        call["start_version"],
        call["end_version"],
        None if staging is None else target_location(staging),
        call["create_file_list"] is not False,
    )

    def run() -> Rows:
        done = rewrite(table, request, query)
        listed = done.file_list or "N/A"
        return Rows([(done.latest_version, listed, done.manifests, done.delete_files)])

    step = Step("write", "metadata", staging or "(new)", f"below {request.target_prefix}")
    return Plan([step], run)
