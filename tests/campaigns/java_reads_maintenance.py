"""Java reads what compaction beside a writer, and the conversion of equality deletes, left behind.

Two runs, since the Java side needs a PySpark and an Iceberg runtime that match each other:

    python java_reads_maintenance.py make FOLDER                      # with icesql
    python java_reads_maintenance.py check FOLDER --jars A.jar:B.jar  # with PySpark 4.1, Iceberg 1.12

``make`` lets others delete rows between the reading and the commit of a rewrite (bin-packed, sorted,
z-ordered) or a conversion, of tables of version 2 and 3 with deletes of all kinds, and notes the
rows of every snapshot as icesql reads them without caches and pruning. ``check`` reads every
snapshot by Java. Prints what differs and exits with 1 if anything does.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

OTHERS = (
    "DELETE FROM ns.t WHERE id % 7 = 1",
    "INSERT INTO ns.t VALUES (4, 'a', 1)",
    "UPDATE ns.t SET x = -1 WHERE id IN (12, 102)",
    "DELETE FROM ns.t WHERE id % 11 = 2",
)


def made(folder: Path, version: int, partitioned: bool, how: str) -> None:
    import icesql
    from icesql.context import QueryContext
    from icesql.maintain.rewrite.run import rewrite
    from tests.maintain.rewrite.tables import catalog_of, planned
    from tests.maintain.rewrite.test_meanwhile import (
        ORDERS,
        after_reading,
        execute,
        set_merge_on_read,
    )
    from tests.maintain.rewrite.test_run import with_deletes
    from tests.maintain.test_convert import converted

    folder.mkdir(parents=True)
    catalog = catalog_of(with_deletes(folder, version, partitioned=partitioned))
    set_merge_on_read(catalog)

    def others() -> None:
        execute(catalog, *OTHERS)

    if how == "convert":
        done: Any = converted(catalog, others)
        assert done.removed
        others()
    else:
        plan = planned(catalog, how, ORDERS[how], rewrite_all=True)
        done = rewrite(catalog, plan, QueryContext(), run=after_reading(others))
        assert done.carried_rows
    execute(catalog, "DELETE FROM ns.t WHERE id % 5 = 3")
    plainly = {"caches": False, "prune": False, "local_reader": "arrow"}
    lineage = ", _row_id, _last_updated_sequence_number" if version > 2 else ""
    with icesql.connect(warehouse=catalog.folder, settings=plainly) as con:
        ids = [row[0] for row in con.execute("SELECT snapshot_id FROM ns.t.snapshots").fetchall()]
        rows = {
            each: sorted(
                con.execute(f"SELECT *{lineage} FROM ns.t VERSION AS OF {each}").fetchall(),
                key=repr,
            )
            for each in ids
        }
    (folder / "rows.json").write_text(json.dumps({"lineage": lineage, "rows": rows}))


def check(folder: Path, jars: str) -> int:
    from tests.campaigns.java_session import java_session

    spark = java_session(jars, folder)
    wrong = snapshots = 0
    for case in sorted(folder.iterdir()):
        expected = json.loads((case / "rows.json").read_text())
        name = case.name.replace("-", "_")
        for key, value in (
            ("", "org.apache.iceberg.spark.SparkCatalog"),
            (".type", "hadoop"),
            (".warehouse", str(case / "wh")),
        ):
            spark.conf.set(f"spark.sql.catalog.{name}{key}", value)
        for snapshot, rows in expected["rows"].items():
            snapshots += 1
            found = spark.sql(
                f"SELECT *{expected['lineage']} FROM {name}.ns.t VERSION AS OF {snapshot}"
            ).collect()
            if sorted(map(repr, map(list, found))) != sorted(map(repr, rows)):
                wrong += 1
                print(case.name, snapshot, len(found), len(rows))
    print(f"{snapshots} snapshots, {wrong} that Java reads differently")
    return bool(wrong)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("step", choices=["make", "check"])
    arguments.add_argument("folder", type=Path)
    arguments.add_argument("--jars", default="")
    given = arguments.parse_args()
    if given.step == "check":
        sys.exit(check(given.folder.absolute(), given.jars))
    for version in (2, 3):
        for partitioned in (False, True):
            for how in ("binpack", "sort", "zorder", "convert"):
                name = f"v{version}-{'parts' if partitioned else 'whole'}-{how}"
                made(given.folder.absolute() / name, version, partitioned, how)


if __name__ == "__main__":
    main()
