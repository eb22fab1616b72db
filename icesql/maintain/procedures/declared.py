"""Every procedure of ``system``: parameters, defaults and columns as Spark's procedures have them.

Source: Java ``org.apache.iceberg.spark.procedures``.
"""

from __future__ import annotations

from typing import Final

from icesql.maintain.procedures.procedure import Parameter, Procedure

_TABLE: Final = Parameter("table", "table", required=True)
_MOVED: Final = (("previous_snapshot_id", "bigint"), ("current_snapshot_id", "bigint"))
_PICKED: Final = (("source_snapshot_id", "bigint"), ("current_snapshot_id", "bigint"))
_OPTIONS: Final = Parameter("options", "map<string, string>")
_PROPERTIES: Final = Parameter("properties", "map<string, string>")
_AT_ONCE: Final = Parameter("max_concurrent_deletes", "int")
_WHERE: Final = Parameter("where", "condition")
# After all of Spark's.
_BELOW: Final = Parameter("delete_below", "array<string>", default="the setting delete_below")
_OUTSIDE: Final = Parameter("delete_outside", "boolean", default="false")


def _required(name: str, kind: str) -> Parameter:
    return Parameter(name, kind, required=True)


_ALL: Final = (
    Procedure(
        "add_files",
        "makes the Parquet files of a folder part of a table, without a copy",
        (
            _TABLE,
            _required("source_table", "string"),
            Parameter("partition_filter", "map<string, string>"),
            Parameter("check_duplicate_files", "boolean", default="true"),
            Parameter("parallelism", "int"),
        ),
        (("added_files_count", "bigint"), ("changed_partition_count", "bigint")),
    ),
    Procedure(
        "ancestors_of",
        "the snapshots that led to one, the latest first",
        (_TABLE, Parameter("snapshot_id", "bigint", default="the current one")),
        (("snapshot_id", "bigint"), ("timestamp", "bigint")),
        changes=False,
    ),
    Procedure(
        "cherrypick_snapshot",
        "brings the change of one snapshot to main",
        (_TABLE, _required("snapshot_id", "bigint")),
        _PICKED,
    ),
    Procedure(
        "convert_equality_deletes",
        "makes position deletes or deletion vectors of equality deletes; no data file is written",
        (_TABLE, _WHERE, Parameter("branch", "string", default="main")),
        (
            ("removed_equality_delete_files_count", "integer"),
            ("added_delete_files_count", "integer"),
            ("converted_rows_count", "bigint"),
            ("remaining_equality_delete_files_count", "integer"),
        ),
    ),
    Procedure(
        "compute_partition_stats",
        "writes the statistics of a snapshot's partitions",
        (_TABLE, Parameter("snapshot_id", "bigint", default="the current one")),
        (("partition_statistics_file", "varchar"),),
    ),
    Procedure(
        "compute_table_stats",
        "counts the distinct values of columns: sketches in a statistics file",
        (
            _TABLE,
            Parameter("snapshot_id", "bigint", default="the current one"),
            Parameter("columns", "array<string>", default="all but nested ones"),
        ),
        (("statistics_file", "varchar"),),
    ),
    Procedure(
        "copy_table",
        "copies a table to another place, and later what is new of it",
        (
            Parameter("table", "place", required=True),
            _required("location", "string"),
            Parameter("since", "snapshot"),
            Parameter("verify", "boolean", default="false"),
            _PROPERTIES,
        ),
        (
            ("metadata_location", "varchar"),
            ("snapshot_id", "bigint"),
            ("copied_files_count", "bigint"),
            ("copied_bytes_count", "bigint"),
            ("rewritten_files_count", "bigint"),
            ("present_files_count", "bigint"),
            ("verified_files_count", "bigint"),
            ("verified_rows_count", "bigint"),
        ),
    ),
    Procedure(
        "expire_snapshots",
        "forgets old snapshots and deletes the files that only they need",
        (
            _TABLE,
            Parameter(
                "older_than",
                "timestamp",
                default="by history.expire.max-snapshot-age-ms, else 5 days ago",
            ),
            Parameter(
                "retain_last", "int", default="by history.expire.min-snapshots-to-keep, else 1"
            ),
            _AT_ONCE,
            Parameter("stream_results", "boolean"),
            Parameter("snapshot_ids", "array<bigint>"),
            Parameter("clean_expired_metadata", "boolean", default="false"),
            _BELOW,
            _OUTSIDE,
        ),
        tuple(
            (f"deleted_{each}_count", "bigint")
            for each in (
                "data_files",
                "position_delete_files",
                "equality_delete_files",
                "manifest_files",
                "manifest_lists",
                "statistics_files",
            )
        ),
    ),
    Procedure(
        "fast_forward",
        "moves a branch to the head of another one that it led to",
        (_TABLE, _required("branch", "string"), _required("to", "string")),
        (("branch_updated", "varchar"), ("previous_ref", "bigint"), ("updated_ref", "bigint")),
    ),
    Procedure(
        "maintain",
        "does what a table needs: compaction, conversion of deletes, manifests, expiry and more",
        (
            _TABLE,
            Parameter(
                "actions",
                "array<string>",
                default="convert, compact, deletes, manifests, expire",
            ),
            Parameter("policy", "map<string, string>"),
            Parameter("dry_run", "boolean", default="false"),
        ),
        (
            ("action", "varchar"),
            ("status", "varchar"),
            ("predicted", "varchar"),
            ("reached", "varchar"),
            ("seconds", "double"),
            ("statement", "varchar"),
            ("note", "varchar"),
        ),
    ),
    Procedure(
        "publish_changes",
        "brings the snapshot that was staged with a wap.id to main",
        (_TABLE, _required("wap_id", "string")),
        _PICKED,
    ),
    Procedure(
        "register_table",
        "gives a metadata file that is there already a name in the catalog",
        (_TABLE, Parameter("metadata_file", "string", default="an error that names it")),
        (
            ("current_snapshot_id", "bigint"),
            ("total_records_count", "bigint"),
            ("total_data_files_count", "bigint"),
        ),
    ),
    Procedure(
        "remove_orphan_files",
        "removes files in the folder of a table that nothing of the table names",
        (
            _TABLE,
            Parameter("older_than", "timestamp", default="3 days ago"),
            Parameter("location", "string", default="that of the table"),
            Parameter("dry_run", "boolean", default="false"),
            _AT_ONCE,
            Parameter("file_list_view", "string"),
            Parameter("equal_schemes", "map<string, string>"),
            Parameter("equal_authorities", "map<string, string>"),
            Parameter("prefix_mismatch_mode", "string", default="ERROR"),
            Parameter("prefix_listing", "boolean"),
            Parameter("stream_results", "boolean"),
            _BELOW,
        ),
        (("orphan_file_location", "varchar"),),
    ),
    Procedure(
        "restore_table",
        "finds and reads every file of a copy, and gives it a name in the catalog",
        (_required("location", "string"), Parameter("table", "table"), _PROPERTIES),
        (
            ("ref", "varchar"),
            ("type", "varchar"),
            ("snapshot_id", "bigint"),
            ("data_files_count", "bigint"),
            ("delete_files_count", "bigint"),
            ("rows_count", "bigint"),
        ),
    ),
    Procedure(
        "rewrite_data_files",
        "makes few files of the target size of small ones and of those with many deletes",
        (
            _TABLE,
            Parameter("strategy", "string", default="binpack"),
            Parameter("sort_order", "string"),
            _OPTIONS,
            _WHERE,
            Parameter("branch", "string", default="main"),
        ),
        (
            ("rewritten_data_files_count", "integer"),
            ("added_data_files_count", "integer"),
            ("rewritten_bytes_count", "bigint"),
            ("failed_data_files_count", "integer"),
            ("removed_delete_files_count", "integer"),
        ),
    ),
    Procedure(
        "rewrite_manifests",
        "writes manifests anew, with the files of a partition together",
        (
            _TABLE,
            Parameter("use_caching", "boolean", default="false"),
            Parameter("spec_id", "int", default="the current one"),
            Parameter("sort_by", "array<string>", default="all partition fields"),
        ),
        (("rewritten_manifests_count", "integer"), ("added_manifests_count", "integer")),
    ),
    Procedure(
        "rewrite_position_delete_files",
        "makes few position delete files of many, without deletes of files that are gone",
        (_TABLE, _OPTIONS, _WHERE),
        (
            ("rewritten_delete_files_count", "integer"),
            ("added_delete_files_count", "integer"),
            ("rewritten_bytes_count", "bigint"),
            ("added_bytes_count", "bigint"),
        ),
    ),
    Procedure(
        "rewrite_table_path",
        "writes metadata with another prefix of its paths, and lists what is to be copied",
        (
            Parameter("table", "place", required=True),
            _required("source_prefix", "string"),
            _required("target_prefix", "string"),
            Parameter("start_version", "string"),
            Parameter("end_version", "string", default="the current one"),
            Parameter("staging_location", "string", default="a new folder beside its metadata"),
            Parameter("create_file_list", "boolean", default="true"),
        ),
        (
            ("latest_version", "varchar"),
            ("file_list_location", "varchar"),
            ("rewritten_manifest_file_paths_count", "integer"),
            ("rewritten_delete_file_paths_count", "integer"),
        ),
    ),
    Procedure(
        "rollback_to_snapshot",
        "sets main back to a snapshot that led to it; -1 is one commit back, also of t.branch_x",
        (_TABLE, _required("snapshot_id", "bigint")),
        _MOVED,
    ),
    Procedure(
        "rollback_to_timestamp",
        "sets main back to its latest snapshot before an instant",
        (_TABLE, _required("timestamp", "timestamp")),
        _MOVED,
    ),
    Procedure(
        "set_current_snapshot",
        "sets main to any snapshot of the table, or to the head of a branch or tag",
        (_TABLE, Parameter("snapshot_id", "bigint"), Parameter("ref", "string")),
        _MOVED,
    ),
)

PROCEDURES: Final = {each.name: each for each in sorted(_ALL, key=lambda each: each.name)}

# Those of Spark that are not here, and why.
REFUSED: Final = {
    "snapshot": "it reads the files of a Hive table, and icesql opens no Hive tables; "
    "add_files adds the Parquet files of a folder to a table",
    "migrate": "it turns a Hive table into an Iceberg table, and icesql opens no Hive tables; "
    "add_files adds the Parquet files of a folder to a table",
    "create_changelog_view": "SELECT * FROM t CHANGES … gives the same rows",
    "unregister_table": "DROP TABLE t takes it out of the catalog and leaves its files",
}
