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
_WHERE: Final = Parameter("where", "condition")


def _required(name: str, kind: str) -> Parameter:
    return Parameter(name, kind, required=True)


_ALL: Final = (
    Procedure(
        "ancestors_of",
        "the snapshots that led to one, the latest first",
        (_TABLE, Parameter("snapshot_id", "bigint", default="the current one")),
        (("snapshot_id", "bigint"), ("timestamp", "bigint")),
    ),
    Procedure(
        "cherrypick_snapshot",
        "brings the change of one snapshot to main",
        (_TABLE, _required("snapshot_id", "bigint")),
        _PICKED,
    ),
    Procedure(
        "fast_forward",
        "moves a branch to the head of another one that it led to",
        (_TABLE, _required("branch", "string"), _required("to", "string")),
        (("branch_updated", "varchar"), ("previous_ref", "bigint"), ("updated_ref", "bigint")),
    ),
    Procedure(
        "publish_changes",
        "brings the snapshot that was staged with a wap.id to main",
        (_TABLE, _required("wap_id", "string")),
        _PICKED,
    ),
    Procedure(
        "rollback_to_snapshot",
        "sets main back to a snapshot that led to it",
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
    "rewrite_table_path": "icesql reads a table that was moved as it is",
}
