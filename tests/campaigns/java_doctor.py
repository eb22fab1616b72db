"""Spark follows the doctor's advice: each statement is accepted, and brings what was promised.

Three runs, since the Java side needs a PySpark and an Iceberg runtime that match each other:

    python java_doctor.py make FOLDER
    python java_doctor.py java FOLDER --jars A.jar:B.jar   # with PySpark 4.1, Iceberg 1.12
    python java_doctor.py check FOLDER

The jars are those of ``java_metadata_tables.py``. ``make`` writes sick tables, with names that
need quotes, and what the doctor says of them; ``check`` looks at them again and ends with code 1
where a promise was not kept.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

FAST = "'commit.manifest-merge.enabled' = 'false'"
# Table, columns with properties, rows of an insert, how many inserts, what else is done.
SICK: list[tuple[str, str, str, int, str]] = [
    ("small files", f"(id BIGINT) TBLPROPERTIES ({FAST})", "range FROM range(9)", 12, ""),
    ("deletes", "(id BIGINT) TBLPROPERTIES ('write.delete.mode' = 'merge-on-read')",
     "range + 100 * $i FROM range(100)", 3, "DELETE FROM $t WHERE id % 10 = 3"),
    ("overlap", '("it\'s `odd`" BIGINT, v VARCHAR) TBLPROPERTIES ('
     "'write.target-file-size-bytes' = '40000', 'write.parquet.row-group-size-bytes' = '20000')",
     "hash(range * 31 + $i) % 1000000, md5(range::VARCHAR) FROM range(4000)", 8, ""),
    ("no bounds", "(id BIGINT, \"v'w\" VARCHAR) TBLPROPERTIES "
     "('write.metadata.metrics.column.v''w' = 'none')", "range, 'x' FROM range(9)", 2, ""),
    ("manifests", f"(id BIGINT) TBLPROPERTIES ({FAST})", "range FROM range(9)", 12, ""),
    ("manifest clustering", "(id BIGINT, p BIGINT) PARTITIONED BY (p) TBLPROPERTIES "
     f"({FAST}, 'commit.manifest.target-size-bytes' = '5000')", "range, range FROM range(20)", 12, ""),
    ("old snapshots", "(id BIGINT) TBLPROPERTIES ('history.expire.max-snapshot-age-ms' = '1')",
     "$i", 8, ""),
    ("many snapshots", f"(id BIGINT) TBLPROPERTIES ({FAST})", "$i", 105, ""),
    ("orphans", "(id BIGINT)", "$i", 2, "orphans"),
]  # fmt: skip


def make(folder: Path) -> int:
    """Sick tables, and ``advice.json`` beside them."""
    import os

    import icesql

    shutil.rmtree(folder, ignore_errors=True)
    (folder / "wh").mkdir(parents=True)
    told: list[dict[str, Any]] = []
    with icesql.connect(warehouse=str(folder / "wh"), read_only=False) as connection:
        connection.execute("CREATE SCHEMA ns")
        for number, (name, columns, rows, count, then) in enumerate(SICK):
            table = f'ns."t{number} it\'s"'
            connection.execute(f"CREATE TABLE {table} {columns}")
            for each in range(count):
                connection.execute(f"INSERT INTO {table} SELECT {rows.replace('$i', str(each))}")
            if then == "orphans":
                kept = next((folder / "wh" / "ns" / f"t{number} it's").rglob("*.parquet"))
                for left in range(3):
                    place = kept.with_name(f"left-{left}.parquet")
                    place.write_bytes(b"x")
                    os.utime(place, (0, 0))
            elif then:
                connection.execute(then.replace("$t", table))
            found = [each for each in connection.doctor(table).findings if each.name == name]
            assert found, (name, str(connection.doctor(table)))
            rows_now = connection.execute(f"SELECT count(*) FROM {table}").fetchone()
            told.append({"table": table, "rows": rows_now, **found[0].to_dict()})
    (folder / "advice.json").write_text(json.dumps(told), encoding="utf-8")
    print(f"{len(told)} sick tables")
    return 0


def java(folder: Path, jars: str) -> int:
    """Run each statement in Spark; how many it refused."""
    from java_session import java_session

    spark = java_session(jars, folder / "wh", name="catalog")
    refused = 0
    for each in json.loads((folder / "advice.json").read_text(encoding="utf-8")):
        for statement in each["spark_statement"].split("; "):
            try:
                print(each["name"], spark.sql(statement).collect())
            except Exception as error:
                refused += 1
                print(each["name"], "REFUSED", statement, str(error)[:400])
    spark.stop()
    return refused


def check(folder: Path) -> int:
    """How many findings are there still, or have other rows."""
    import icesql

    wrong = 0
    with icesql.connect(warehouse=str(folder / "wh")) as connection:
        for each in json.loads((folder / "advice.json").read_text(encoding="utf-8")):
            again = [
                found
                for found in connection.doctor(each["table"]).findings
                if found.name == each["name"] and found.measure == each["measure"]
            ]
            rows = connection.execute(f"SELECT count(*) FROM {each['table']}").fetchone()
            # Some findings promise no number: their statement only has to be accepted.
            kept = (not again or each["now"] is None) and [*(rows or ())] == each["rows"]
            wrong += not kept
            print("kept" if kept else f"NOT KEPT {again}", each["name"], each["now"], each["after"])
    return wrong


def main() -> int:
    """Exit code 1 if something was refused or not kept."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("step", choices=["make", "java", "check"])
    arguments.add_argument("folder", type=Path)
    arguments.add_argument("--jars", default="")
    given = arguments.parse_args()
    folder = given.folder.absolute()
    match given.step:
        case "make":
            return make(folder)
        case "java":
            return bool(java(folder, given.jars))
        case _:
            return bool(check(folder))


if __name__ == "__main__":
    sys.exit(main())
