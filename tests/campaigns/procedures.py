"""Every procedure by Java and by icesql from the same state: the same rows, the same files left.

Two runs, since the Java side needs a PySpark and an Iceberg runtime that match each other:

    python procedures.py java FOLDER --jars A.jar:B.jar   # with PySpark 4.1, Iceberg 1.12
    python procedures.py icesql FOLDER

The jars are those of ``java_metadata_tables.py``. Java makes the tables; before each case their
folder and catalog are put back as they were. The second run prints what differs and exits with 1
if anything does.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sqlite3
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))
DAYS = 86_400

# A statement with {names} of the state, and the table whose rows are compared after it.
CASES = [
    ("CALL c.system.ancestors_of('n.t')", "t"),
    ("CALL c.system.ancestors_of('n.t', {second})", "t"),
    ("CALL c.system.rollback_to_snapshot('n.t', {second})", "t"),
    ("CALL c.system.rollback_to_snapshot(table => 'n.t', snapshot_id => {staged})", "t"),
    ("CALL c.system.rollback_to_timestamp('n.t', TIMESTAMP '{time}')", "t"),
    ("CALL c.system.set_current_snapshot('n.t', {first})", "t"),
    ("CALL c.system.set_current_snapshot(table => 'n.t', ref => 'audit')", "t"),
    ("CALL c.system.set_current_snapshot('n.t', 5)", "t"),
    ("CALL c.system.cherrypick_snapshot('n.t', {staged})", "t"),
    ("CALL c.system.cherrypick_snapshot('n.t', {second})", "t"),
    ("CALL c.system.publish_changes('n.t', 'wap-1')", "t"),
    ("CALL c.system.publish_changes('n.t', 'wap-2')", "t"),
    ("CALL c.system.fast_forward('n.t', 'main', 'audit')", "t"),
    ("CALL c.system.fast_forward('n.t', 'made', 'audit')", "t"),
    ("CALL c.system.fast_forward('n.t', 'audit', 'main')", "t"),
    ("CALL c.system.expire_snapshots('n.t', now(), 1)", "t"),
    ("CALL c.system.expire_snapshots(table => 'n.t', older_than => now(), retain_last => 3)", "t"),
    ("CALL c.system.expire_snapshots(table => 'n.t', older_than => TIMESTAMP '{time}')", "t"),
    ("CALL c.system.expire_snapshots(table => 'n.t', snapshot_ids => array({second}))", "t"),
    ("CALL c.system.expire_snapshots(table => 'n.t', snapshot_ids => array({first}, {second}))", "t"),
    ("CALL c.system.expire_snapshots('n.u', now(), 1, clean_expired_metadata => true)", "u"),
    ("CALL c.system.expire_snapshots('n.u', now(), 2)", "u"),
    ("CALL c.system.expire_snapshots('n.t')", "t"),
    ("CALL c.system.remove_orphan_files('n.t')", "t"),
    ("CALL c.system.remove_orphan_files(table => 'n.t', dry_run => true)", "t"),
    ("CALL c.system.remove_orphan_files(table => 'n.u', older_than => TIMESTAMP '2020-01-01')", "u"),
    ("CALL c.system.remove_orphan_files(table => 'n.t', location => '{folder}/n/t/data')", "t"),
    ("CALL c.system.remove_orphan_files(table => 'n.t', older_than => now())", "t"),
    ("CALL c.system.rewrite_manifests('n.t')", "t"),
    ("CALL c.system.rewrite_manifests('n.u')", "u"),
    ("CALL c.system.rewrite_manifests(table => 'n.u', spec_id => 0)", "u"),
    ("CALL c.system.rewrite_manifests(table => 'n.t', sort_by => array('nope'))", "t"),
    ("CALL c.system.register_table('n.copy', '{metadata}')", "copy"),
    ("CALL c.system.register_table('n.t', '{metadata}')", "t"),
    ("CALL c.system.add_files('n.t', '`parquet`.`{source}`')", "t"),
    ("CALL c.system.add_files('n.t', '`parquet`.`{source}`', map('p', 'b c'))", "t"),
    ("CALL c.system.add_files('n.plain', '`parquet`.`{source}/p=a`')", "plain"),
    ("CALL c.system.add_files('n.plain', '`parquet`.`{source}`')", "plain"),
    ("CALL c.system.rewrite_position_delete_files('n.t')", "t"),
    (
        "CALL c.system.rewrite_position_delete_files(table => 'n.t', options => map('rewrite-all', 'true'))",
        "t",
    ),
]  # fmt: skip
# How many columns are compared: Spark does not count the partitions of files that it imports, and
# delete files of the same rows have other sizes.
UNCOUNTED = {"add_files": 1, "rewrite_position_delete_files": 3}


def listing(folder: Path) -> list[str]:
    return sorted(str(each.relative_to(folder)) for each in folder.rglob("*") if each.is_file())


def kind(name: str) -> str:
    if name.endswith(".metadata.json"):
        return "metadata"
    if name.endswith(".avro"):
        return "list" if "/snap-" in name else "manifest"
    return "hidden" if name.rpartition("/")[2].startswith(".") else Path(name).suffix


def copy_catalog(source: Path, target: Path) -> None:
    """The rows alone: others have the file open."""
    with closing(sqlite3.connect(source)) as old, closing(sqlite3.connect(target)) as new:
        old.backup(new)


class State:
    """The warehouse and catalog, and what they were at first."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.live, self.kept = folder, folder / "live", folder / "kept"
        self.catalog, self.kept_catalog = folder / "c.db", folder / "kept.db"

    def keep(self) -> None:
        shutil.rmtree(self.kept, ignore_errors=True)
        shutil.copytree(self.live, self.kept)
        copy_catalog(self.catalog, self.kept_catalog)

    def restore(self) -> None:
        shutil.rmtree(self.live)
        shutil.copytree(self.kept, self.live)
        copy_catalog(self.kept_catalog, self.catalog)
        then = time.time() - 9 * DAYS
        for each in self.live.rglob("*"):
            os.utime(each, (then, then))

    def run(self, execute: Callable[[str], list[Any]], known: dict[str, str]) -> list[Any]:
        found = []
        for sql, table in CASES:
            self.restore()
            before = set(listing(self.live / "wh"))
            case: dict[str, Any] = {"sql": sql}
            try:
                case["answer"] = sorted(
                    (list(row) for row in execute(sql.format(**known))), key=str
                )
            except Exception as error:
                case["error"] = str(error)[:200]
            after = set(listing(self.live / "wh"))
            case["gone"] = sorted(name for name in before - after if kind(name) != "hidden")
            # Hadoop writes a checksum beside each file.
            made = Counter(map(kind, after - before))
            case["new"] = {each: made[each] for each in sorted(made) if each != "hidden"}
            case["rows"] = self._rows(execute, table)
            case["refs"] = self._rows(execute, f"{table}.refs", "name, type, snapshot_id")
            old = {*known.values()}
            if isinstance(case["refs"], list):
                case["refs"] = [
                    [*row[:2], row[2] if str(row[2]) in old else "new"] for row in case["refs"]
                ]
            found.append(case)
        return found

    def _rows(self, execute: Callable[[str], list[Any]], table: str, columns: str = "*") -> Any:
        try:
            return sorted((list(r) for r in execute(f"SELECT {columns} FROM c.n.{table}")), key=str)
        except Exception:
            return "none"


# ------------------------------------------------------------------ Java


def java(folder: Path, jars: str) -> int:
    from tests.campaigns.java_session import java_session

    state = State(folder)
    shutil.rmtree(folder, ignore_errors=True)
    (state.live / "wh").mkdir(parents=True)
    spark = java_session(
        jars, state.live / "wh", state.catalog,
        settings={
            "spark.sql.shuffle.partitions": "1", "spark.sql.catalog.c.cache-enabled": "false",
        },
    )  # fmt: skip
    spark.sparkContext.setLogLevel("OFF")

    def execute(sql: str) -> list[Any]:
        return [tuple(row) for row in spark.sql(sql).collect()]

    known = make(spark, state)
    state.keep()
    (folder / "java.json").write_text(
        json.dumps({"known": known, "cases": state.run(execute, known)}, default=str)
    )
    spark.stop()
    return 0


def make(spark: Any, state: State) -> dict[str, str]:
    sql = spark.sql
    for name, version, merges in (("t", 2, "false"), ("u", 3, "true")):
        sql(
            f"CREATE TABLE c.n.{name} (id BIGINT, p STRING) USING iceberg PARTITIONED BY (p) TBLPROPERTIES "
            f"('format-version'='{version}', 'write.delete.mode'='merge-on-read', 'write.wap.enabled'='true', "
            f"'commit.manifest-merge.enabled'='{merges}', 'write.distribution-mode'='hash')"
        )
        for number in range(3):
            values = ", ".join(f"({number * 10 + k}, '{'ab'[k % 2]}')" for k in range(6))
            sql(f"INSERT INTO c.n.{name} VALUES {values}")
        sql(f"ALTER TABLE c.n.{name} CREATE TAG v1")
        sql(f"DELETE FROM c.n.{name} WHERE id IN (0, 11)")
        sql(f"DELETE FROM c.n.{name} WHERE id IN (2, 3)")
        sql(
            f"CALL c.system.rewrite_data_files(table => 'n.{name}', where => 'p = \"a\"', options => map('rewrite-all', 'true'))"
        )
        sql(f"ALTER TABLE c.n.{name} CREATE BRANCH audit")
        sql(f"INSERT INTO c.n.{name}.branch_audit VALUES (100, 'c')")
    sql("ALTER TABLE c.n.u ADD COLUMN x INT")
    sql("ALTER TABLE c.n.u ADD PARTITION FIELD bucket(4, id)")
    sql("INSERT INTO c.n.u VALUES (200, 'a', 1), (201, 'b', 2)")
    sql("CALL c.system.compute_table_stats('n.t')")
    spark.conf.set("spark.wap.id", "wap-1")
    sql("INSERT INTO c.n.t VALUES (300, 'd')")
    spark.conf.unset("spark.wap.id")
    sql("INSERT INTO c.n.t VALUES (301, 'd')")
    sql("CREATE TABLE c.n.plain (id BIGINT, name STRING) USING iceberg")
    ids = [
        row[0]
        for row in sql("SELECT snapshot_id FROM c.n.t.snapshots ORDER BY committed_at").collect()
    ]
    times = [
        row[0]
        for row in sql("SELECT committed_at FROM c.n.t.snapshots ORDER BY committed_at").collect()
    ]
    staged = sql(
        "SELECT snapshot_id FROM c.n.t.snapshots WHERE summary['wap.id'] = 'wap-1'"
    ).first()[0]
    source = state.folder / "source"
    import pyarrow as pa
    import pyarrow.parquet as pq

    for number, name in enumerate(("a", "b c", "__HIVE_DEFAULT_PARTITION__")):
        (source / f"p={name}").mkdir(parents=True)
        pq.write_table(pa.table({"id": [number, number + 900]}), source / f"p={name}" / "f.parquet")
    wh = state.live / "wh" / "n" / "t"
    for orphan in (
        "data/p=zz/x.parquet",
        "data/_hidden",
        "metadata/left.avro",
        "loose",
        ".dot/x",
        "data/p=a/é ü.parquet",
    ):
        (wh / orphan).parent.mkdir(parents=True, exist_ok=True)
        (wh / orphan).write_text("x")
    metadata = max((wh / "metadata").glob("*.metadata.json"))
    named = dict(zip(("first", "second", "third"), map(str, ids), strict=False))
    named |= {f"id{number}": str(each) for number, each in enumerate(ids)}
    found = sql("SELECT snapshot_id FROM c.n.u.snapshots").collect()
    named |= {f"u{number}": str(row[0]) for number, row in enumerate(found)}
    return {
        **named, "staged": str(staged), "time": str(times[2]), "folder": str(state.live / "wh"),
        "source": str(source), "metadata": str(metadata),
    }  # fmt: skip


# ------------------------------------------------------------------ icesql


def icesql(folder: Path) -> int:
    import icesql as own

    state = State(folder)
    told = json.loads((folder / "java.json").read_text())
    uri, warehouse = f"sqlite:///{state.catalog}", str(state.live / "wh")

    def execute(sql: str) -> list[Any]:
        # The files below a connection are replaced between cases.
        with own.connect("c", uri=uri, warehouse=warehouse, files=True, dialect="spark") as con:
            return list(con.execute(sql).fetchall())

    mine = json.loads(json.dumps(state.run(execute, told["known"]), default=str))
    wrong = 0
    for java_case, own_case in zip(told["cases"], mine, strict=True):
        problems = [*differences(java_case, own_case)]
        wrong += bool(problems)
        print("WRONG" if problems else "ok   ", java_case["sql"])
        for each in problems:
            print("       ", each)
    print(f"{len(mine)} cases, {wrong} wrong")
    return int(wrong > 0)


def differences(java_case: dict[str, Any], own_case: dict[str, Any]) -> Any:
    if ("error" in java_case) != ("error" in own_case):
        yield f"error: Java {java_case.get('error')}, icesql {own_case.get('error')}"
        return
    if "error" in java_case:
        return  # Java sets the name mapping first
    for key in ("gone", "new", "rows", "refs"):
        if java_case[key] != own_case[key]:
            yield f"{key}: Java {java_case[key]}, icesql {own_case[key]}"
    found, wanted = (plain(each.get("answer")) for each in (own_case, java_case))
    for name, count in UNCOUNTED.items():
        if name in java_case["sql"] and found and wanted:
            found, wanted = found[0][:count], wanted[0][:count]
    if found != wanted:
        yield f"answer: Java {wanted}, icesql {found}"


def plain(answer: Any) -> Any:
    """Ids of new snapshots as "new", paths without a scheme."""
    if answer is None:
        return None
    return [
        [
            value.removeprefix("file:") if isinstance(value, str)
            else "new" if isinstance(value, int) and value > 10**15 and str(value) not in _old
            else value
            for value in row
        ]
        for row in answer
    ]  # fmt: skip


_old: set[str] = set()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", choices=["java", "icesql"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--jars", default="")
    given = parser.parse_args()
    folder = given.folder.resolve()
    if given.run == "java":
        return java(folder, given.jars)
    _old.update(json.loads((folder / "java.json").read_text())["known"].values())
    return icesql(folder)


if __name__ == "__main__":
    sys.exit(main())
