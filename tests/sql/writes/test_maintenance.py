"""Procedures in the words of other systems."""

from __future__ import annotations

from typing import Any

import pytest

from icesql.errors import SqlSyntaxError, UnsupportedSqlError
from icesql.sql.parse import parse
from icesql.sql.writes.procedures.call import (
    CallProcedure,
    Duration,
    ListValue,
    MapValue,
    TimestampText,
)

DAY = 86_400_000
TRINO = (("min-input-files", 2), ("delete-file-threshold", 1))


def read(sql: str, dialect: str | None = None) -> tuple[str, dict[str, Any]]:
    (found,) = parse(sql, dialect=dialect)
    assert isinstance(found, CallProcedure)
    assert found.name[0] == "system"
    given = {each.name: each.value for each in found.arguments}
    assert given.pop("table").parts == ("a", "t")
    return found.name[1], given


@pytest.mark.parametrize("dialect", [None, "spark", "trino"])
@pytest.mark.parametrize(
    ("sql", "name", "given"),
    [
        ("OPTIMIZE a.t", "rewrite_data_files", {}),
        ("OPTIMIZE TABLE a.t REWRITE MANIFESTS", "rewrite_manifests", {}),
        ("OPTIMIZE a.t REWRITE DATA USING BIN_PACK WHERE d = DATE '2026-01-31' AND s LIKE 'a)%'",
            "rewrite_data_files", {"where": "d = DATE '2026-01-31' AND s LIKE 'a)%'"}),
        ("optimize a.t where (a = 1) zorder by (a, s.b)", "rewrite_data_files",
            {"where": "(a = 1)", "strategy": "sort", "sort_order": "zorder(a,s.b)"}),
        ("OPTIMIZE TABLE a.t REWRITE DATA USING BIN_PACK (TARGET_FILE_SIZE_MB = 256, MIN_INPUT_FILES=3)",
            "rewrite_data_files",
            {"options": MapValue((("target-file-size-bytes", 256 << 20), ("min-input-files", 3)))}),
        ("VACUUM TABLE a.t EXPIRE SNAPSHOTS OLDER_THAN '2026-01-31 00:00:00' RETAIN_LAST 5",
            "expire_snapshots",
            {"older_than": TimestampText("2026-01-31 00:00:00"), "retain_last": 5}),
        ("VACUUM TABLE a.t REMOVE ORPHAN FILES OLDER_THAN = '2026-01-31' LOCATION '/x'",
            "remove_orphan_files", {"older_than": TimestampText("2026-01-31"), "location": "/x"}),
        ("ROLLBACK TABLE a.t TO SNAPSHOT '812'", "rollback_to_snapshot", {"snapshot_id": 812}),
        ("ROLLBACK TABLE a.t TO VERSION -1", "rollback_to_snapshot", {"snapshot_id": -1}),
        ("RESTORE TABLE a.t TO VERSION AS OF -1", "rollback_to_snapshot", {"snapshot_id": -1}),
        ("RESTORE a.t TO VERSION AS OF 812", "rollback_to_snapshot", {"snapshot_id": 812}),
        ("ROLLBACK TABLE a.t TO TIMESTAMP '2026-01-31'", "rollback_to_timestamp",
            {"timestamp": TimestampText("2026-01-31")}),
        ("ALTER TABLE a.t EXECUTE optimize", "rewrite_data_files", {"options": MapValue(TRINO)}),
        ("ALTER TABLE a.t EXECUTE optimize(file_size_threshold => '128MB') WHERE p = 'x'",
            "rewrite_data_files",
            {"options": MapValue((*TRINO, ("min-file-size-bytes", 128 << 20))), "where": "p = 'x'"}),
        ("ALTER TABLE a.t EXECUTE optimize('10MB')", "rewrite_data_files",
            {"options": MapValue((*TRINO, ("min-file-size-bytes", 10 << 20)))}),
        ("ALTER TABLE a.t EXECUTE optimize_manifests", "rewrite_manifests", {}),
        ("ALTER TABLE a.t EXECUTE expire_snapshots(retention_threshold => '12h', retain_last => 3)",
            "expire_snapshots", {"older_than": Duration(DAY // 2), "retain_last": 3}),
        ("ALTER TABLE a.t EXECUTE expire_snapshots", "expire_snapshots",
            {"older_than": Duration(7 * DAY)}),
        ("ALTER TABLE a.t EXECUTE remove_orphan_files('1.5d')", "remove_orphan_files",
            {"older_than": Duration(DAY + DAY // 2)}),
        ("ALTER TABLE a.t EXECUTE rollback_to_snapshot(snapshot_id => 812)", "rollback_to_snapshot",
            {"snapshot_id": 812}),
        ("ALTER TABLE a.t EXECUTE rollback_to_snapshot(812)", "rollback_to_snapshot",
            {"snapshot_id": 812}),
    ],
)  # fmt: skip
def test_what_it_means(sql: str, name: str, given: dict[str, Any], dialect: str | None) -> None:
    assert read(sql, dialect) == (name, given)
    (found,) = parse(f"EXPLAIN {sql}", dialect=dialect)
    assert isinstance(found, CallProcedure)
    assert found.explain


@pytest.mark.parametrize("dialect", [None, "spark", "trino"])
@pytest.mark.parametrize(
    ("sql", "columns"),
    [
        ("ANALYZE a.t", None), ("ANALYZE TABLE a.t", None),
        ("ANALYZE TABLE a.t COMPUTE STATISTICS", None),
        ("ANALYZE TABLE a.t COMPUTE STATISTICS NOSCAN", None),
        ("ANALYZE TABLE a.t COMPUTE STATISTICS FOR ALL COLUMNS", None),
        ("ANALYZE TABLE a.t COMPUTE STATISTICS FOR COLUMNS x, s.y", ("x", "s.y")),
        ("ANALYZE a.t WITH (columns = ARRAY['x', 'y'])", ("x", "y")),
    ],
)  # fmt: skip
def test_analyze(sql: str, columns: tuple[str, ...] | None, dialect: str | None) -> None:
    name, given = read(sql, dialect)
    assert name == "compute_table_stats"
    assert given == ({} if columns is None else {"columns": ListValue(columns)})


@pytest.mark.parametrize(
    ("sql", "hint"),
    [
        ("VACUUM a.t", "expire_snapshots"), ("VACUUM a.t RETAIN 168 HOURS DRY RUN", "dry_run"),
        ("OPTIMIZE a.t FULL", "rewrite-all"), ("ANALYZE", "ANALYZE t"),
        ("ANALYZE TABLE a.t DELETE STATISTICS", "of a snapshot"),
        ("ANALYZE TABLE a.t PARTITION (p = 1) COMPUTE STATISTICS", "of a snapshot"),
        ("ALTER TABLE a.t EXECUTE drop_extended_stats", "ANALYZE t"),
        ("ALTER TABLE a.t CLUSTER BY (x)", "ZORDER"), ("ALTER TABLE a.t RECLUSTER", "ZORDER"),
        ("ALTER TABLE a.t ADD CONSTRAINT k PRIMARY KEY (x)", "IDENTIFIER FIELDS"),
        ("RESTORE TABLE a.t TO TIMESTAMP AS OF '2026-01-01'", "rollback_to_timestamp"),
        ("MSCK REPAIR TABLE a.t", "add_files"),
        ("REFRESH TABLE a.t", "as it is now"), ("CACHE TABLE a.t", "TEMP TABLE"),
        ("REPLACE INTO a.t VALUES (1)", "MERGE"), ("CREATE INDEX i ON a.t (x)", "Bloom"),
        ("EXPLAIN DELETE FROM a.t WHERE x = 1", "EXPLAIN SELECT"),
        ("EXPLAIN MERGE INTO a.t USING b ON a = b WHEN MATCHED THEN DELETE", "EXPLAIN SELECT"),
        ("ALTER TABLE a.t EXECUTE add_files(location => 'x', format => 'PARQUET')", "CALL"),
        ("CREATE VIEW a.v SECURITY INVOKER AS SELECT 1 AS x", "leave it out"),
        ("LOAD DATA INPATH 'x' INTO TABLE a.t", "COPY t FROM"),
        ("CREATE MATERIALIZED VIEW a.v AS SELECT 1", "CREATE TABLE t AS"),
        ("INSERT INTO a.t VALUES (1) RETURNING x", "CHANGES"),
        ("UPDATE a.t SET x = 1 RETURNING x", "CHANGES"),
        ("DELETE FROM a.t WHERE x = 1 RETURNING *", "CHANGES"),
        ("DELETE FROM a.t RETURNING *", "CHANGES"),
    ],
)  # fmt: skip
def test_what_is_not_here_says_what_to_do(sql: str, hint: str) -> None:
    with pytest.raises(UnsupportedSqlError, match=hint):
        parse(sql)


@pytest.mark.parametrize(
    ("sql", "error"),
    [
        ("OPTIMIZE", SqlSyntaxError), ("OPTIMIZE a.t WHERE", SqlSyntaxError),
        ("OPTIMIZE a.t REWRITE DATA USING SORT", SqlSyntaxError), ("OPTIMIZE a.t b", SqlSyntaxError),
        ("OPTIMIZE a.t (FILES = 3)", UnsupportedSqlError), ("VACUUM", UnsupportedSqlError),
        ("VACUUM a.t", UnsupportedSqlError), ("VACUUM TABLE a.t", SqlSyntaxError),
        ("VACUUM TABLE a.t EXPIRE SNAPSHOTS LOCATION 'x'", SqlSyntaxError),
        ("RESTORE TABLE a.t TO VERSION -1", SqlSyntaxError), ("RESTORE", SqlSyntaxError),
        ("ROLLBACK TABLE a.t TO VERSION 'x'", SqlSyntaxError),
        ("ROLLBACK TABLE a.t", SqlSyntaxError), ("ROLLBACK TABLE a.t TO SNAPSHOT 'x'", SqlSyntaxError),
        ("ALTER TABLE a.t EXECUTE", SqlSyntaxError),
        ("ALTER TABLE a.t EXECUTE drop_extended_stats", UnsupportedSqlError),
        ("ALTER TABLE a.t EXECUTE optimize(x => 1)", UnsupportedSqlError),
        ("ALTER TABLE a.t EXECUTE optimize(file_size_threshold => 5)", SqlSyntaxError),
        ("ALTER TABLE a.t EXECUTE expire_snapshots('7 days')", SqlSyntaxError),
        ("ALTER TABLE a.t EXECUTE expire_snapshots WHERE a = 1", SqlSyntaxError),
        ("EXPLAIN ALTER TABLE a.t RENAME TO b", UnsupportedSqlError), ("ANALYZE TABLE", SqlSyntaxError),
        ("ANALYZE a.t WITH (columns = 1 + x)", UnsupportedSqlError),
    ],
)  # fmt: skip
def test_what_it_does_not(sql: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        parse(sql)
