"""Java's rewrite_data_files on twin tables: the same counts, and it reads what icesql rewrote.

Two runs, since the Java side needs a PySpark and an Iceberg runtime that match each other:

    python java_compaction.py make FOLDER                      # with icesql
    python java_compaction.py check FOLDER --jars A.jar:B.jar  # with PySpark 4.1, Iceberg 1.12

``make`` writes each table twice and rewrites one of the two by icesql, with several sets of options.
``check`` rewrites the other by Spark's procedure, compares the rows of both procedures and those of
both tables, row lineage included. Prints what differs and exits with 1 if anything does.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

FIELDS = [
    {"id": 1, "name": "id", "required": False, "type": "long"},
    {"id": 2, "name": "p", "required": False, "type": "string"},
    {"id": 3, "name": "x", "required": False, "type": "double"},
    {"id": 4, "name": "d", "required": False, "type": "decimal(12, 2)"},
    {"id": 5, "name": "ts", "required": False, "type": "timestamptz"},
]
BY_P = [{"name": "p", "transform": "identity", "source-id": 2, "field-id": 1000}]
# Bytes of a file of 1,000 rows, about.
SIZE = 24_000
FEW = "'target-file-size-bytes', '{}', 'min-input-files', '2'"
EVERY, ROLLED, FIRST = (0, 1, 2, 3, 4), (0, 2, 3, 4), (0,)
# Arguments of the procedure, and which counts are alike: Java rolls files by other estimates, and
# takes partitions in the order of a hash map.
CASES: dict[str, tuple[str, tuple[int, ...]]] = {
    "defaults": ("", EVERY),
    "all": ("options => map('rewrite-all', 'true')", EVERY),
    "where": ("where => 'p = \"a\"', options => map('rewrite-all', 'true')", EVERY),
    "three": (f"options => map({FEW.format(3 * SIZE)})", ROLLED),
    "groups": (
        "options => map('rewrite-all', 'true', 'max-file-group-size-bytes', '60000')", EVERY,
    ),
    "inputs": ("options => map('rewrite-all', 'true', 'max-file-group-input-files', '3')", EVERY),
    "few": ("options => map('rewrite-all', 'true', 'max-files-to-rewrite', '5')", FIRST),
    "deletes": (
        "options => map('min-file-size-bytes', '0', 'max-file-size-bytes', '1000000', "
        "'target-file-size-bytes', '500000', 'delete-file-threshold', '1')", EVERY,
    ),
    "ratio": (
        "options => map('min-file-size-bytes', '0', 'max-file-size-bytes', '1000000', "
        "'target-file-size-bytes', '500000', 'delete-ratio-threshold', '0.2')", EVERY,
    ),
    "progress": (
        "options => map('rewrite-all', 'true', 'partial-progress.enabled', 'true', "
        "'partial-progress.max-commits', '2')", EVERY,
    ),
    "dangling": (
        "options => map('rewrite-all', 'true', 'remove-dangling-deletes', 'true')", EVERY,
    ),
    "young": (
        "options => map('rewrite-all', 'true', 'use-starting-sequence-number', 'false')", EVERY,
    ),
    "sorted": ("strategy => 'sort', sort_order => 'x DESC NULLS LAST, id', "
               "options => map('rewrite-all', 'true')", EVERY),
    "zorder": ("strategy => 'sort', sort_order => 'zorder(id, ts)', "
               "options => map('rewrite-all', 'true')", EVERY),
}  # fmt: skip
VARIANTS = [(version, partitioned) for version in (2, 3) for partitioned in (False, True)]


def build(folder: Path, version: int, partitioned: bool) -> None:
    """Files of several sizes in up to three partitions, with every kind of delete."""
    import numpy as np
    import pyarrow as pa

    from tests.writer.table import TableWriter, arrow_schema

    chance = np.random.default_rng(11)
    spec = BY_P if partitioned else []
    table = TableWriter(str(folder), FIELDS, spec, version=version)
    data = []
    for number, count in enumerate((1000, 1000, 3000, 50, 1000, 700, 2500, 1000, 40, 1000)):
        p = "abc"[number % 3] if partitioned else "a"
        ids = np.arange(count) + 10_000 * number
        rows = pa.table(
            [
                pa.array(ids), pa.array([p] * count), pa.array(chance.random(count)),
                pa.array([None if n % 7 == 0 else n for n in range(count)]).cast(pa.decimal128(21, 2)).cast(pa.decimal128(12, 2)),
                pa.array(chance.integers(0, 10**15, count)).cast(pa.timestamp("us", "UTC")),
            ],
            schema=arrow_schema(FIELDS),
        )  # fmt: skip
        data.append(
            table.data_file(rows, partition=(p,) if partitioned else (), compression="zstd")
        )
    table.commit(data)
    gone = [(data[2], list(range(0, 3000, 3))), (data[4], list(range(0, 1000, 10)))]
    place = {"partition": ("c",)} if partitioned else {}
    if version == 3:
        table.commit(table.deletion_vectors(gone))
    else:
        other = {"partition": ("b",)} if partitioned else {}
        table.commit(
            [
                table.position_deletes([(gone[0][0], at) for at in gone[0][1]], **place),
                table.position_deletes([(gone[1][0], at) for at in gone[1][1]], **other),
            ]
        )
    keys = {"partition": ("a",)} if partitioned else {}
    table.commit([table.equality_deletes([{"id": 5}, {"id": 30_007}], [1], **keys)])
    late = [{"id": 5, "p": "a", "x": 0.5, "d": None, "ts": None}]
    table.commit([table.data_file(late, **keys)])


def make(folder: Path) -> None:
    import icesql

    told: dict[str, Any] = {}
    for version, partitioned in VARIANTS:
        for name in CASES:
            for twin in ("mine", "java"):
                build(
                    folder / "wh" / twin / f"{name}_{version}_{partitioned}", version, partitioned
                )
    with icesql.connect(warehouse=str(folder / "wh")) as con:
        for version, partitioned in VARIANTS:
            for name, (arguments, _) in CASES.items():
                table = f"{name}_{version}_{partitioned}"
                given = f", {arguments}" if arguments else ""
                given = given.replace('"', "''")
                done = con.execute(f"CALL system.rewrite_data_files('mine.{table}'{given})")
                told[table] = done.fetchall()[0]
    (folder / "told.json").write_text(json.dumps(told))


def check(folder: Path, jars: str) -> int:
    from tests.campaigns.java_session import java_session

    spark = java_session(jars, folder / "wh")
    told = json.loads((folder / "told.json").read_text())
    wrong = 0
    for version, partitioned in VARIANTS:
        for name, (arguments, alike) in CASES.items():
            table = f"{name}_{version}_{partitioned}"
            given = f", {arguments}" if arguments else ""
            done = spark.sql(f"CALL c.system.rewrite_data_files(table => 'java.{table}'{given})")
            theirs, ours = [*done.collect()[0]], told[table]
            compared = [[each[n] for n in alike] for each in (theirs, ours)]
            if compared[0] != compared[1]:
                wrong += 1
                print(f"{table}: Java gave {theirs}, icesql {ours}", flush=True)
            lineage = ", _row_id, _last_updated_sequence_number" if version == 3 else ""
            rows = [
                sorted(map(str, spark.sql(f"SELECT *{lineage} FROM c.{twin}.{table}").collect()))
                for twin in ("mine", "java")
            ]
            if rows[0] != rows[1]:
                wrong += 1
                print(f"{table}: the rows differ: {len(rows[0])} and {len(rows[1])}", flush=True)
    print(f"{len(told)} rewrites, {wrong} differ")
    return 1 if wrong else 0


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("what", choices=["make", "check"])
    arguments.add_argument("folder", type=Path)
    arguments.add_argument("--jars", default="")
    given = arguments.parse_args()
    if given.what == "make":
        make(given.folder.absolute())
        return 0
    return check(given.folder.absolute(), given.jars)


if __name__ == "__main__":
    sys.exit(main())
