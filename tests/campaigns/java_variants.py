"""Variants between icesql and Java: Java reads what icesql wrote, and icesql changes what Java wrote.

    python java_variants.py make FOLDER                       # with icesql
    python java_variants.py check FOLDER --jars A.jar:B.jar   # with PySpark 4.1
    python java_variants.py change FOLDER                     # with icesql
    python java_variants.py check FOLDER --jars A.jar:B.jar   # with PySpark 4.1

The jars are those of ``java_metadata_tables.py``. The first ``check`` also makes a table of shredded
variants, which ``change`` updates, merges, deletes from and compacts: their types have to stay. Each
run prints what differs and exits with 1 if anything does. Spark reads row by row here, since its
vectorized reader refuses files that hold a list of variants beside the column that it reads.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

KINDS = ("copy-on-write", "merge-on-read")
SLOW = "TBLPROPERTIES ('read.parquet.vectorization.enabled' = 'false'"
OBJECT = "{'a': id, 'd': DATE '2020-02-29', 'n': 2.50, 'l': ['x', NULL], 'o': {'k': id % 3}}"
TYPES = "OBJECT<a: BIGINT, d: DATE, l: ARRAY<STRING>, n: DECIMAL(2,1), o: OBJECT<k: BIGINT>>"
SHREDDED = "OBJECT<a: BIGINT, d: DATE, f: DOUBLE, n: DECIMAL(2,1), s: STRING>"


def make(folder: Path) -> int:
    import icesql

    folder.mkdir(parents=True, exist_ok=True)
    with icesql.connect(warehouse=str(folder), read_only=False) as con:
        con.execute("CREATE SCHEMA ns")
        for kind in KINDS:
            name = "ns." + kind.replace("-", "_")
            modes = ", ".join(f"'write.{each}.mode' = '{kind}'" for each in ("update", "merge"))
            con.execute(
                f"CREATE TABLE {name} (id BIGINT, v VARIANT, l LIST<VARIANT>) "
                f"{SLOW}, 'format-version' = '3', {modes})"
            )
            con.execute(
                f"INSERT INTO {name} SELECT id, {OBJECT}, ['1', '\"x\"', NULL] "
                "FROM range(1000) r(id)"
            )
            _change(con, name)
    return 0


def change(folder: Path) -> int:
    import icesql

    with icesql.connect(warehouse=str(folder), read_only=False) as con:
        _change(con, "ns.shredded")
    return 0


def _change(con: object, name: str) -> None:
    """Rows 0 to 9 get other ids, 10 is merged, 11 goes, and some files are compacted."""
    run = con.execute  # type: ignore[attr-defined]
    run(f"UPDATE {name} SET id = id + 5000 WHERE id < 10")
    run(
        f"MERGE INTO {name} t USING (SELECT 10 AS id) s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET id = 6000"
    )
    run(f"DELETE FROM {name} WHERE id = 11")
    if "merge" not in name:
        run(f"CALL system.rewrite_data_files('{name}', options => map('rewrite-all', 'true'))")


def check(folder: Path, jars: str) -> int:
    from tests.campaigns.java_session import java_session

    spark = java_session(jars, folder)
    wrong = 0

    def same(name: str, columns: str, wanted: tuple[object, ...]) -> int:
        found = tuple(spark.sql(f"SELECT {columns} FROM c.{name}").first())
        if found != wanted:
            print(f"{name}: {found}, not {wanted}")
        return int(found != wanted)

    # Of the rows 0 to 999 without 11, by what the variants say.
    total = sum(range(1000)) - 11
    for kind in KINDS:
        name = "ns." + kind.replace("-", "_")
        wrong += same(
            name,
            "count(*), sum(variant_get(v, '$.a', 'long')), min(schema_of_variant(v)), "
            "max(schema_of_variant(v)), min(to_json(l[1]))",
            (999, total, TYPES, TYPES, '"x"'),
        )
    shredded = folder / "ns" / "shredded"
    if not shredded.exists():
        spark.sql(
            f"CREATE TABLE c.ns.shredded (id BIGINT, v VARIANT) USING iceberg {SLOW}, "
            "'format-version' = '3', 'write.parquet.shred-variants' = 'true')"
        )
        spark.sql(
            "INSERT INTO c.ns.shredded SELECT id, to_variant_object(named_struct('a', id, "
            "'d', date'2020-02-29', 's', concat('x', id), 'f', cast(1.5 AS double), "
            "'n', cast(2.50 AS decimal(9, 2)))) FROM range(1000)"
        )
        return wrong
    wrong += same(
        "ns.shredded",
        "count(*), sum(variant_get(v, '$.a', 'long')), min(schema_of_variant(v)), "
        "max(schema_of_variant(v)), count(DISTINCT variant_get(v, '$.s', 'string'))",
        (999, total, SHREDDED, SHREDDED, 999),
    )
    print("wrong:", wrong)
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("make", "check", "change"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--jars", default="")
    given = parser.parse_args()
    if given.what == "check":
        return int(check(given.folder, given.jars) > 0)
    return make(given.folder) if given.what == "make" else change(given.folder)


if __name__ == "__main__":
    raise SystemExit(main())
