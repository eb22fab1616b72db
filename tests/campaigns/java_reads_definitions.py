"""Java reads what icesql's statements of definition write: refs, specs, orders, views, row ids.

Twin tables: the same statements in Spark's spelling, run by icesql and by Spark SQL on tables of
one SQLite catalog; then Java tells both tables, and what it tells of them is compared.

    python java_reads_definitions.py make FOLDER                       # with icesql
    python java_reads_definitions.py check FOLDER --jars A.jar:B.jar   # with PySpark 4.1

The jars are those of ``java_metadata_tables.py``. Each run prints what differs and exits with 1
if anything does.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

_COLUMNS = "(id BIGINT NOT NULL, c STRING, ts TIMESTAMP_NTZ, d DECIMAL(9, 2), s STRUCT<x: INT>)"
_ROWS = (
    "INSERT INTO {t} VALUES (1, 'a', TIMESTAMP_NTZ '2026-01-01 10:00:00', 1.5, NULL), "
    "(2, 'b', TIMESTAMP_NTZ '2026-02-01 10:00:00', 2.5, NULL)"
)
# {t} is the table, {first} its first snapshot.
STATEMENTS = [
    "CREATE TABLE {t} " + _COLUMNS + " USING iceberg PARTITIONED BY (c, days(ts)) "
    "TBLPROPERTIES ('format-version' = '{version}')",
    _ROWS,
    "ALTER TABLE {t} CREATE BRANCH b RETAIN 7 DAYS WITH SNAPSHOT RETENTION 3 SNAPSHOTS 2 DAYS",
    "ALTER TABLE {t} CREATE TAG v1 AS OF VERSION {first} RETAIN 30 DAYS",
    "INSERT INTO {t}.branch_b VALUES (3, 'b', TIMESTAMP_NTZ '2026-02-01 10:00:00', 3.5, NULL)",
    "ALTER TABLE {t} ADD PARTITION FIELD bucket(4, id)",
    _ROWS,
    "ALTER TABLE {t} DROP PARTITION FIELD c",
    "ALTER TABLE {t} REPLACE PARTITION FIELD ts_day WITH months(ts) AS m",
    "ALTER TABLE {t} ADD PARTITION FIELD truncate(2, c)",
    _ROWS,
    "ALTER TABLE {t} WRITE ORDERED BY c DESC NULLS FIRST, bucket(8, id)",
    _ROWS,
    "ALTER TABLE {t} WRITE LOCALLY ORDERED BY id",
    "ALTER TABLE {t} WRITE DISTRIBUTED BY PARTITION LOCALLY ORDERED BY id DESC",
    "ALTER TABLE {t} WRITE UNORDERED",
    "ALTER TABLE {t} WRITE DISTRIBUTED BY PARTITION",
    "ALTER TABLE {t} WRITE ORDERED BY d",
    "ALTER TABLE {t} SET IDENTIFIER FIELDS id",
    "ALTER TABLE {t} ADD PARTITION FIELD c",
    "ALTER TABLE {t} ALTER COLUMN c COMMENT 'a letter'",
    "INSERT OVERWRITE {t} PARTITION (c = 'a') SELECT id + 10, ts, d, s FROM {t} WHERE c = 'b'",
    "ALTER TABLE {t} REPLACE TAG v1",
    "ALTER TABLE {t} CREATE OR REPLACE BRANCH c AS OF VERSION {first}",
    "ALTER TABLE {t} DROP BRANCH c",
    "ALTER TABLE {t} SET TBLPROPERTIES ('format-version' = '{next}')",
    _ROWS,
]  # fmt: skip


def statements(table: str, version: int, first: Any) -> Any:
    for each in STATEMENTS:
        given = {"t": table, "version": version, "next": min(version + 1, 3)}
        if "{first}" in each:
            given["first"] = first()
        yield each.format(**given)


# ------------------------------------------------------------------ icesql writes


def make(folder: Path) -> None:
    import icesql

    (folder / "wh").mkdir(parents=True)
    told: dict[str, Any] = {}
    given = {"init_catalog_tables": "true"}
    with icesql.connect(
        "c", uri=f"sqlite:///{folder / 'c.db'}", warehouse=str(folder / "wh"), dialect="spark",
        properties=given,
    ) as con:  # fmt: skip
        con.execute("CREATE SCHEMA ns")
        for version in (1, 2, 3):
            name = f"ns.own{version}"

            def first(name: str = name) -> Any:
                sql = f"SELECT snapshot_id FROM {name}.snapshots ORDER BY committed_at LIMIT 1"
                return con.execute(sql).fetchone()[0]

            for sql in statements(name, version, first):
                con.execute(sql)
        con.execute("CREATE TABLE ns.like_it LIKE ns.own2")
        con.execute("CREATE VIEW ns.v AS SELECT c, count(*) AS n FROM ns.own2 GROUP BY c")
        con.execute(
            "CREATE OR REPLACE VIEW ns.v (letter COMMENT 'one', n) COMMENT 'all' AS "
            "SELECT c, count(*) AS number FROM ns.own2 GROUP BY c"
        )
        told["view"] = [list(row) for row in con.execute("SELECT * FROM ns.v ORDER BY letter, n")]
        con.execute("CREATE TABLE ns.transacted (a INT) TBLPROPERTIES ('format-version' = '3')")
        con.execute("BEGIN")
        con.execute("INSERT INTO ns.transacted VALUES (1), (2), (3)")
        con.execute("DELETE FROM ns.transacted WHERE a = 1")
        con.execute("INSERT INTO ns.transacted VALUES (4)")
        con.execute("COMMIT")
        sql = "SELECT a, _row_id FROM ns.transacted ORDER BY a"
        told["transacted"] = [list(row) for row in con.execute(sql)]
        con.execute("CREATE TABLE ns.empty (a INT)")
        con.execute("ALTER TABLE ns.empty CREATE BRANCH audit")
        con.execute("INSERT INTO ns.empty.branch_audit VALUES (1)")
    (folder / "told.json").write_text(json.dumps(told))


# ------------------------------------------------------------------ Java reads


def check(folder: Path, jars: str) -> int:
    from tests.campaigns.java_session import java_session

    spark = java_session(jars, folder / "wh", folder / "c.db")
    catalog = _catalog_name(folder)
    if catalog != "c":
        raise SystemExit(f"the catalog's rows are of {catalog!r}")
    failures: list[str] = []

    def same(what: str, found: Any, wanted: Any) -> None:
        if found != wanted:
            failures.append(f"{what}:\n  icesql {found}\n  Java   {wanted}")

    def rows(sql: str) -> list[list[Any]]:
        return [list(each) for each in spark.sql(sql).collect()]

    for version in (1, 2, 3):
        twin = f"c.ns.twin{version}"

        def first(twin: str = twin) -> Any:
            return rows(f"SELECT snapshot_id FROM {twin}.snapshots ORDER BY committed_at")[0][0]

        for sql in statements(twin, version, first):
            try:
                spark.sql(sql)
            except Exception as error:  # of Java, of any kind
                failures.append(f"Spark refuses {sql}: {str(error).splitlines()[0]}")
        own = f"c.ns.own{version}"
        same(f"rows of version {version}", *(_rows(spark, each) for each in (own, twin)))
        branches = (f"{each}.branch_b" for each in (own, twin))
        same(f"rows of branch b of {version}", *(_rows(spark, each) for each in branches))
        same(f"layout of version {version}", *(_layout(spark, each) for each in (own, twin)))
        same(f"partitions of {version}", *(_partitions(spark, each) for each in (own, twin)))
    same("LIKE", *(_partition_fields(spark, f"c.ns.{each}") for each in ("like_it", "own2")))
    told = json.loads((folder / "told.json").read_text())
    same("the view", told["view"], sorted(rows("SELECT letter, n FROM c.ns.v"), key=str))
    same("the transaction", told["transacted"],
         rows("SELECT a, _row_id FROM c.ns.transacted ORDER BY a"))  # fmt: skip
    same("its history", len(rows("SELECT * FROM c.ns.transacted.history")), 1)
    same("its snapshots", len(rows("SELECT * FROM c.ns.transacted.snapshots")), 3)
    same("an empty main", rows("SELECT * FROM c.ns.empty"), [])
    same("its branch", rows("SELECT * FROM c.ns.empty.branch_audit"), [[1]])
    spark.sql("INSERT INTO c.ns.transacted VALUES (9)")
    same("written by Java after it", rows("SELECT count(*) FROM c.ns.transacted"), [[4]])
    spark.sql("CREATE OR REPLACE VIEW c.ns.v AS SELECT 1 AS one")
    same("a view that Java replaces", rows("SELECT * FROM c.ns.v"), [[1]])
    for each in failures:
        print(each)
    print(f"{len(failures)} differences")
    return 1 if failures else 0


def _catalog_name(folder: Path) -> str:
    import sqlite3

    with sqlite3.connect(folder / "c.db") as database:
        return str(database.execute("SELECT min(catalog_name) FROM iceberg_tables").fetchone()[0])


def _rows(spark: Any, table: str) -> list[str]:
    found = spark.sql(f"SELECT id, c, ts, d, s FROM {table}").collect()
    return sorted(str(list(each)) for each in found)


def _partitions(spark: Any, table: str) -> list[str]:
    found = spark.sql(f"SELECT spec_id, partition, record_count FROM {table}.files").collect()
    return sorted(str(list(each)) for each in found)


def _partition_fields(spark: Any, table: str) -> list[str]:
    """Names and transforms, without the ids."""
    lines = _layout(spark, table)["spec"].splitlines()
    return [each.partition(": ")[2] for each in lines]


def _layout(spark: Any, table: str) -> dict[str, Any]:
    """What Java's own classes say of a table."""
    java = spark._jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(
        spark._jsparkSession, table
    )
    first = java.snapshots().iterator().next().snapshotId() if java.currentSnapshot() else None
    refs, known, specs = {}, java.refs(), java.specs()
    for name in known:
        ref = known[name]
        at_first = ref.snapshotId() == first
        refs[str(name)] = (
            ref.type().toString(), at_first, ref.maxRefAgeMs(), ref.minSnapshotsToKeep(),
            ref.maxSnapshotAgeMs(),
        )  # fmt: skip
    properties = {
        key: value
        for key, value in java.properties().items()
        if key in ("write.distribution-mode", "comment", "format-version")
    }
    return {
        "spec": java.spec().toString(),
        "specs": [specs[each].toString() for each in sorted(specs)],
        "order": java.sortOrder().toString(),
        "schema": java.schema().toString(),
        "identifiers": sorted(str(each) for each in java.schema().identifierFieldNames()),
        "version": java.operations().current().formatVersion(),
        "refs": refs,
        "properties": properties,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["make", "check"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--jars", default="")
    given = parser.parse_args()
    if given.what == "make":
        make(given.folder)
        return 0
    return check(given.folder, given.jars)


if __name__ == "__main__":
    sys.exit(main())
