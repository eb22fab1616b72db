"""Java reads copies of tables that are gone, and lists the same files to be copied.

Two runs, since the Java side needs a PySpark and an Iceberg runtime that match each other:

    python java_reads_copies.py make FOLDER                      # with icesql
    python java_reads_copies.py check FOLDER --jars A.jar:B.jar  # with PySpark 4.1, Iceberg 1.12

``make`` copies tables of version 1 to 3 with deletes of all kinds, an import from elsewhere and a
second run, notes the rows of every snapshot and removes the tables. ``check`` reads every snapshot
of the copies by Java, writes to them, and compares what Java's ``rewrite_table_path`` lists for tables
that are still there with what icesql's listed. Prints what differs and exits with 1 if anything does.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

ELSEWHERE = "/to/another/place"


def made(folder: Path, version: int, partitioned: bool) -> None:
    import icesql
    from tests.maintain.relocation.test_copy import copied, history
    from tests.maintain.rewrite.tables import catalog_of, rows
    from tests.maintain.rewrite.test_run import with_deletes

    table = with_deletes(folder / "kept", version, partitioned=partitioned)
    listed(table, folder)
    table = with_deletes(folder / "gone", version, partitioned=partitioned)
    table.tag("first", table.snapshots[0]["snapshot-id"])
    target = folder / "copies" / "ns" / "t"
    copied(table.folder, target)
    place = ("a",) if partitioned else ()
    imported = table.data_file(rows(900, 5, "a"), partition=place)
    elsewhere = folder / "gone" / "elsewhere" / "x.parquet"
    elsewhere.parent.mkdir()
    shutil.move(imported.record["file_path"], elsewhere)
    imported.record["file_path"] = str(elsewhere)
    table.commit([imported])
    with icesql.connect(warehouse=catalog_of(table).folder) as con:
        con.execute("DELETE FROM ns.t WHERE id IN (901, 11)")
        if version > 1:
            mode = "'write.delete.mode' = 'merge-on-read'"
            con.execute(f"ALTER TABLE ns.t SET TBLPROPERTIES ({mode})")
            con.execute("DELETE FROM ns.t WHERE id = 903")
        con.execute("CALL system.compute_table_stats('ns.t')")
        if partitioned:
            con.execute("CALL system.compute_partition_stats('ns.t')")
    copied(table.folder, target)
    lineage = ", _row_id, _last_updated_sequence_number" if version > 2 else ""
    before = history(table.folder, timezone="UTC")
    (folder / "rows.json").write_text(json.dumps({"lineage": lineage, "rows": before}))
    shutil.rmtree(folder / "gone")


def listed(table: Any, folder: Path) -> None:
    """What ``rewrite_table_path`` lists: the new paths, and which of them are written anew."""
    from tests.maintain.relocation.test_rewrite_table_path import call, with_log

    with_log(table)
    staging = folder / "staging"
    _, path, *counts = call(table.folder, table.folder, ELSEWHERE, staging_location=str(staging))
    lines = [line.split(",") for line in Path(path).read_text().splitlines()]
    found = {new: old.startswith(f"{staging}/") for old, new in lines}
    (folder / "listed.json").write_text(json.dumps({"files": found, "counts": counts}))


def check(folder: Path, jars: str) -> int:
    from tests.campaigns.java_session import java_session

    spark = java_session(jars, folder)
    wrong = snapshots = 0
    for case in sorted(folder.iterdir()):
        name = case.name.replace("-", "_")
        for kind, place in (("copies", case / "copies"), ("kept", case / "kept" / "wh")):
            for key, value in (
                ("", "org.apache.iceberg.spark.SparkCatalog"),
                (".type", "hadoop"),
                (".warehouse", str(place)),
            ):
                spark.conf.set(f"spark.sql.catalog.{name}_{kind}{key}", value)
        expected = json.loads((case / "rows.json").read_text())
        table = f"{name}_copies.ns.t"
        for snapshot, rows in expected["rows"].items():
            snapshots += 1
            found = spark.sql(
                f"SELECT *{expected['lineage']} FROM {table} VERSION AS OF {snapshot}"
            )
            if sorted(repr(tuple(each)) for each in found.collect()) != rows:
                wrong += 1
                print(case.name, snapshot, "reads differently")
        count = spark.table(table).count()
        spark.sql(f"INSERT INTO {table} VALUES (7000, 'a', 1.0)")
        spark.sql(f"DELETE FROM {table} WHERE id = 7000")
        spark.sql(f"CALL {name}_copies.system.rewrite_data_files('ns.t')")
        if spark.table(table).count() != count:
            wrong += 1
            print(case.name, "is not what it was after writes")
        wrong += compare(spark, name, case)
    print(f"{snapshots} snapshots, {wrong} differences")
    return bool(wrong)


def compare(spark: Any, name: str, case: Path) -> int:
    """How many paths only one of Java and icesql lists."""
    ours = json.loads((case / "listed.json").read_text())
    source, staging = case / "kept" / "wh" / "ns" / "t", case / "java-staging"
    done = spark.sql(
        f"CALL {name}_kept.system.rewrite_table_path(table => 'ns.t', source_prefix => '{source}', "
        f"target_prefix => '{ELSEWHERE}', staging_location => '{staging}')"
    ).collect()[0]
    lines = [
        line.split(",")
        for part in Path(done[1].removeprefix("file:")).parent.glob("file-list*")
        if part.is_file()
        for line in part.read_text().splitlines()
    ]
    theirs = {new: f"{staging}/" in old for old, new in lines}
    for new in sorted(theirs.items() ^ ours["files"].items()):
        print(case.name, "listed by one alone:", new)
    if [*done[2:]] != ours["counts"]:
        print(case.name, "Java counts", [*done[2:]], "icesql", ours["counts"])
    return len(theirs.items() ^ ours["files"].items())


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("step", choices=["make", "check"])
    arguments.add_argument("folder", type=Path)
    arguments.add_argument("--jars", default="")
    given = arguments.parse_args()
    if given.step == "check":
        sys.exit(check(given.folder.absolute(), given.jars))
    for version in (1, 2, 3):
        for partitioned in (False, True):
            name = f"v{version}-{'parts' if partitioned else 'whole'}"
            made(given.folder.absolute() / name, version, partitioned)


if __name__ == "__main__":
    main()
