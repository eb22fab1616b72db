"""Random histories of INSERT, UPDATE, DELETE and MERGE: icesql and Java take turns on each table.

Java reads every snapshot that icesql made, with row ids and sequence numbers, runs the same
statements on a twin, and then goes on with icesql's table by position deletes and vectors of its
own, which icesql changes in turn:

    python java_reads_changes.py make FOLDER [--histories 24] [--seed 1]     # with icesql
    python java_reads_changes.py check FOLDER --jars A.jar:B.jar             # with PySpark 4.1
    python java_reads_changes.py again FOLDER                                # with icesql
    python java_reads_changes.py check FOLDER --jars A.jar:B.jar             # with PySpark 4.1

The jars are those of ``java_metadata_tables.py``. ``make`` and ``again`` also read with PyIceberg
what it reads (versions 1 and 2); with ``--engine spark`` DELETE, UPDATE and MERGE run in tasks of
Spark on ``local[2]``. Each run prints what differs and exits with 1 if anything does.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

KINDS = [
    (1, "copy-on-write"), (2, "copy-on-write"), (2, "merge-on-read"), (3, "copy-on-write"),
    (3, "merge-on-read"),
]  # fmt: skip
PARTITIONS = ["", "p", "bucket(4, id)", "truncate(1, p)"]
COLUMNS = "id, p, n, x, s.a AS a, s.b AS b"
LINEAGE = "_row_id, _last_updated_sequence_number"
ROUND = 7


# ------------------------------------------------------------------ statements in both dialects


def statement(chance: random.Random, table: str) -> str:
    kind = chance.choices(("insert", "update", "delete", "merge", "spec"), (4, 6, 4, 3, 1))[0]
    match kind:
        case "insert":
            rows = ", ".join(_row(chance) for _ in range(chance.randint(1, 12)))
            return f"INSERT INTO {table} VALUES {rows}"
        case "update":
            values = chance.sample(
                [
                    "n = n + 1", "n = NULL", "p = 'moved'", "p = NULL", "x = -x", "s.b = p",
                    "s.a = n", f"n = (SELECT CAST(max(id) AS INT) FROM {table} u WHERE u.id < 50)",
                    "x = CASE WHEN n > 3 THEN CAST(1.5 AS DOUBLE) ELSE x END",
                ],
                chance.randint(1, 2),
            )  # fmt: skip
            if len({each.split()[0] for each in values}) < len(values):
                values = values[:1]
            return f"UPDATE {table} SET {', '.join(values)} WHERE {_condition(chance, table)}"
        case "delete":
            return f"DELETE FROM {table} WHERE {_condition(chance, table)}"
        case "merge":
            keys = sorted(chance.sample(range(60), chance.randint(1, 10)))
            source = " UNION ALL ".join(
                f"SELECT CAST({key} AS BIGINT) AS id, 'm{key % 4}' AS p, CAST({key} AS INT) AS n"
                for key in keys
            )
            return (
                f"MERGE INTO {table} t USING ({source}) u ON t.id = u.id "
                f"WHEN MATCHED AND t.n > {chance.randint(0, 9)} THEN DELETE "
                "WHEN MATCHED THEN UPDATE SET p = u.p, n = u.n "
                "WHEN NOT MATCHED THEN INSERT (id, p, n) VALUES (u.id, u.p, u.n)"
            )
        case _:
            return f"ALTER TABLE {table} ADD PARTITION FIELD bucket({chance.randint(2, 9)}, id)"


def _row(chance: random.Random) -> str:
    p = chance.choice(["'a'", "'b'", "'bc'", "'é/ ='", "NULL"])
    n = chance.choice(["NULL", str(chance.randint(-5, 9))])
    x = chance.choice(["NULL", str(chance.randint(-50, 50) / 4)])
    a, kind = chance.choice(["NULL", "7", "8"]), "STRUCT<a: INT, b: STRING>"
    s = f"CAST(named_struct('a', CAST({a} AS INT), 'b', CAST({p} AS STRING)) AS {kind})"
    s = chance.choice([f"CAST(NULL AS {kind})", s, s])
    return f"({chance.randint(0, 59)}, {p}, {n}, {x}, {s})"


def _condition(chance: random.Random, table: str) -> str:
    """Not ``p <> 'a'``: Java's DELETE by metadata removes a partition that is NULL by it."""
    low = chance.randint(0, 60)
    return chance.choice(
        [
            f"id BETWEEN {low} AND {low + chance.randint(0, 20)}", "p = 'a'", "coalesce(p, 'a') <> 'a'",
            "p IS NULL", f"n > {chance.randint(-2, 9)}", f"NOT (x > {chance.randint(-9, 9)})",
            f"id IN (SELECT id FROM {table} v WHERE v.n IS NULL)", "p LIKE 'b%' AND id % 2 = 0",
            f"id = {low} OR n IS NULL", "s.a = 7", "id >= 0", f"id < {low} AND p IS NOT NULL",
        ]
    )  # fmt: skip


# ------------------------------------------------------------------ icesql


def make(folder: Path, histories: int, seed: int, engine: str) -> int:
    from icesql.catalog.sqlite import SqliteCatalog

    (folder / "wh").mkdir(parents=True)
    catalog = SqliteCatalog(
        str(folder / "c.db"), "c",
        properties={"warehouse": str(folder / "wh"), "init_catalog_tables": "true"},
    )  # fmt: skip
    catalog.create_namespace(("ns",))
    told: list[dict[str, Any]] = []
    for number in range(histories):
        version, mode = KINDS[number % len(KINDS)]
        modes = ", ".join(
            f"'write.{each}.mode' = '{mode}'" for each in ("delete", "update", "merge")
        )
        spec = PARTITIONS[number % len(PARTITIONS)]
        create = (
            "CREATE TABLE {} (id BIGINT, p STRING, n INT, x DOUBLE, s STRUCT<a: INT, b: STRING>) "
            f"USING iceberg {f'PARTITIONED BY ({spec})' if spec else ''} "
            f"TBLPROPERTIES ('format-version' = '{version}', {modes})"
        )
        told.append({"name": f"h{number}", "version": version, "create": create, "steps": []})
    return _go_on(folder, told, seed, engine, create=True)


def again(folder: Path, seed: int, engine: str) -> int:
    told = json.loads((folder / "told.json").read_text())
    return _go_on(folder, told, seed + 1, engine, create=False)


def _go_on(
    folder: Path, told: list[dict[str, Any]], seed: int, engine: str, *, create: bool
) -> int:
    import icesql

    wrong = 0
    with icesql.connect(
        uri=f"sqlite:///{folder}/c.db",
        warehouse=str(folder / "wh"),
        dialect="spark",
        master="local[2]",
    ) as connection:
        for each in told:
            chance, name = random.Random(f"{seed} {each['name']}"), f"ns.{each['name']}"
            if create:
                connection.execute(each["create"].format(name))
            else:
                wrong += _same(
                    f"{name} after Java", _rows(connection, name, each), each["steps"][-1]["rows"]
                )
            for _ in range(ROUND):
                text = statement(chance, "{}")
                if not create and "ADD PARTITION FIELD" in text:
                    continue
                changes = text.split()[0] in ("DELETE", "UPDATE", "MERGE")
                connection.execute(f"SET engine = '{engine if changes else 'local'}'")
                try:
                    connection.execute(text.replace("{}", name))
                except icesql.Error as error:
                    wrong += 1
                    print(f"WRONG {name}: {text}: {error}")
                    continue
                finally:
                    connection.execute("SET engine = 'local'")
                found = connection.execute(
                    f"SELECT snapshot_id FROM {name}.refs WHERE name = 'main'"
                ).fetchone()
                rows = _rows(connection, name, each)
                each["steps"].append(
                    {"sql": text, "snapshot": found and found[0], "rows": rows, "by": "icesql"}
                )
            if each["version"] < 3:
                wrong += _pyiceberg(connection, name, each)
    (folder / "told.json").write_text(json.dumps(told))
    return int(wrong > 0)


def _rows(connection: Any, name: str, each: dict[str, Any]) -> list[Any]:
    columns = COLUMNS + (f", {LINEAGE}" if each["version"] == 3 else "")
    found = connection.execute(f"SELECT {columns} FROM {name}").fetchall()
    return sorted(([*row] for row in found), key=str)


def _pyiceberg(connection: Any, name: str, each: dict[str, Any]) -> int:
    from pyiceberg.table import StaticTable

    from icesql.catalog.targets import table_to_change

    table = table_to_change(connection._session.state.names, tuple(name.split(".")))[1]
    found = StaticTable.from_metadata(table.metadata_location).scan().to_arrow().to_pylist()
    rows = [
        [row["id"], row["p"], row["n"], row["x"], *((row["s"] or {}).get(c) for c in "ab")]
        for row in found
    ]
    return _same(f"{name} by PyIceberg", sorted(rows, key=str), each["steps"][-1]["rows"])


def _same(what: str, found: Any, wanted: Any) -> int:
    if found == wanted:
        return 0
    lost = [row for row in wanted if row not in found]
    extra = [row for row in found if row not in wanted]
    print(f"WRONG {what}: {len(found)} rows of {len(wanted)}, lost {lost[:3]}, extra {extra[:3]}")
    return 1


# ------------------------------------------------------------------ Java


def check(folder: Path, jars: str, seed: int) -> int:
    from tests.campaigns.java_reads_commits import session

    spark = session(folder, jars)
    told = json.loads((folder / "told.json").read_text())
    wrong = steps = 0
    for each in told:
        name, twin = f"c.ns.{each['name']}", f"c.ns.{each['name']}_twin"
        try:
            if not each.get("checked"):
                spark.sql(each["create"].format(twin))
            for step in each["steps"][each.get("checked", 0) :]:
                steps += 1
                if step["by"] == "icesql" and step["snapshot"] is not None:
                    seen = _spark_rows(spark, f"{name} VERSION AS OF {step['snapshot']}", each)
                    wrong += _same(f"{name}: {step['sql']}", seen, step["rows"])
                if step["by"] == "icesql":
                    spark.sql(step["sql"].replace("{}", twin))
                    rows = _spark_rows(spark, twin, {**each, "version": 2})
                    wanted = sorted((row[:6] for row in step["rows"]), key=str)
                    wrong += _same(f"{twin}: {step['sql']}", rows, wanted)
            wrong += _same(name, _spark_rows(spark, name, each), each["steps"][-1]["rows"])
            for metadata in ("files", "entries", "manifests", "snapshots", "partitions"):
                spark.sql(f"SELECT * FROM {name}.{metadata}").collect()
            # A file has one vector at most, and none that is gone has any.
            vectors = spark.sql(
                f"SELECT count(*), count(DISTINCT referenced_data_file) FROM {name}.delete_files "
                f"WHERE file_format = 'PUFFIN'"
            ).first()
            wrong += _same(f"{name} vectors", vectors[0], vectors[1])
            chance = random.Random(f"{seed} java {each['name']}")
            for _ in range(3):
                text = statement(chance, "{}")
                spark.sql(text.replace("{}", name))
                spark.sql(text.replace("{}", twin))
            rows = _spark_rows(spark, name, each)
            wrong += _same(
                f"{twin} after Java",
                _spark_rows(spark, twin, {**each, "version": 2}),
                sorted((row[:6] for row in rows), key=str),
            )
            each["steps"].append({"sql": "by Java", "snapshot": None, "rows": rows, "by": "Java"})
            each["checked"] = len(each["steps"])
        except Exception as error:
            wrong += 1
            print(f"WRONG {name}: {str(error)[:600]}")
    (folder / "told.json").write_text(json.dumps(told))
    spark.stop()
    print(f"{len(told)} tables, {steps} statements, {wrong} wrong")
    return int(wrong > 0)


def _spark_rows(spark: Any, name: str, each: dict[str, Any]) -> list[Any]:
    columns = COLUMNS + (f", {LINEAGE}" if each["version"] == 3 else "")
    return sorted(([*row] for row in spark.sql(f"SELECT {columns} FROM {name}").collect()), key=str)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", choices=("make", "check", "again"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--jars", default="")
    parser.add_argument("--histories", type=int, default=24)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--engine", choices=("local", "spark"), default="local")
    given = parser.parse_args()
    match given.run:
        case "make":
            return make(given.folder, given.histories, given.seed, given.engine)
        case "check":
            return check(given.folder, given.jars, given.seed)
        case _:
            return again(given.folder, given.seed, given.engine)


if __name__ == "__main__":
    raise SystemExit(main())
