"""What is killed: statements by name, and the table that each of them changes."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from msgspec import Struct

MANY = 1 << 40


class Statement(Struct, frozen=True):
    """SQL to kill on a table of one kind: cow2, mor2 or mor3 (mode and format version)."""

    name: str
    table: str
    sql: tuple[str, ...]
    changes_rows: bool = True


_MERGE = (
    "MERGE INTO ns.t USING ns.src AS s ON t.id = s.id WHEN MATCHED AND s.p = 0 THEN DELETE "
    "WHEN MATCHED THEN UPDATE SET v = s.v || '*', x = s.x "
    "WHEN NOT MATCHED THEN INSERT (id, p, v, x) VALUES (s.id, s.p, s.v, s.x)"
)
_UPDATE = "UPDATE ns.t SET v = v || '!', x = x + 1 WHERE id % 3 = 0"
_REWRITE = (
    "CALL system.rewrite_data_files(table => 'ns.t', {}options => map('rewrite-all', 'true'{}))"
)
_PARTIAL = ", 'partial-progress.enabled', 'true', 'partial-progress.max-commits', '4'"

STATEMENTS = (
    Statement("insert select", "mor2", ("INSERT INTO ns.t SELECT id + 1000000, p, v, x FROM ns.src",)),
    Statement(
        "insert that grows", "mor2",
        (
            "INSERT WITH SCHEMA EVOLUTION INTO ns.t BY NAME "
            "SELECT id + 1000000 AS id, p, v, x, id AS more FROM ns.src",
        ),
    ),
    Statement("update copy-on-write", "cow2", (_UPDATE,)),
    Statement("update position deletes", "mor2", (_UPDATE,)),
    Statement("update vectors", "mor3", (_UPDATE,)),
    Statement("merge copy-on-write", "cow2", (_MERGE,)),
    Statement("merge position deletes", "mor2", (_MERGE,)),
    Statement("merge vectors", "mor3", (_MERGE,)),
    Statement(
        "merge that grows", "mor3",
        (
            "MERGE WITH SCHEMA EVOLUTION INTO ns.t USING (SELECT *, id AS more FROM ns.src) AS s "
            "ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *",
        ),
    ),
    Statement("delete vectors", "mor3", ("DELETE FROM ns.t WHERE id % 5 = 1",)),
    Statement(
        "transaction", "mor2",
        (
            "BEGIN", "INSERT INTO ns.t SELECT id + 2000000, p, v, x FROM ns.src",
            "DELETE FROM ns.t WHERE id % 7 = 1", "COMMIT",
        ),
    ),
    Statement("compaction", "mor2", (_REWRITE.format("", ""),), False),
    Statement("compaction of vectors", "mor3", (_REWRITE.format("", ""),), False),
    Statement(
        "compaction sorted", "mor3",
        (_REWRITE.format("strategy => 'sort', sort_order => 'x DESC, id', ", ""),), False,
    ),
    Statement("compaction in parts", "mor2", (_REWRITE.format("", _PARTIAL),), False),
    Statement(
        "rewrite position deletes", "mor2",
        (
            "CALL system.rewrite_position_delete_files(table => 'ns.t', "
            "options => map('rewrite-all', 'true'))",
        ), False,
    ),
    Statement("rewrite manifests", "cow2", ("CALL system.rewrite_manifests('ns.t')",), False),
    Statement(
        "expire snapshots", "mor2",
        ("CALL system.expire_snapshots('ns.t', older_than => now(), retain_last => 2)",), False,
    ),
    Statement("remove orphans", "mor3", ("CALL system.remove_orphan_files('ns.t')",), False),
)  # fmt: skip
NAMED = {each.name: each for each in STATEMENTS}


def build(con: Any, table: str, rows: int, parts: int = 5) -> None:
    """The table ns.t with some history, and the rows ns.src that INSERT and MERGE take."""
    version, mode = table[-1], "copy-on-write" if table.startswith("cow") else "merge-on-read"
    modes = ", ".join(f"'write.{each}.mode' = '{mode}'" for each in ("update", "delete", "merge"))
    con.execute(
        "CREATE TABLE ns.t (id BIGINT, p INT, v VARCHAR, x DOUBLE) PARTITIONED BY (p) "
        f"TBLPROPERTIES ('format-version' = '{version}', {modes})"
    )
    con.execute("CREATE TABLE ns.src (id BIGINT, p INT, v VARCHAR, x DOUBLE)")
    columns = "i AS id, (i % 4)::INT AS p, 'value ' || i AS v, i / 8 AS x"
    for part in range(parts):
        start, end = part * rows // parts, (part + 1) * rows // parts
        con.execute(f"INSERT INTO ns.t SELECT {columns} FROM range({start}, {end}) r(i)")
        if part == 1:
            con.execute("ALTER TABLE ns.t CREATE TAG kept")
    con.execute("DELETE FROM ns.t WHERE id % 10 = 3")
    con.execute("DELETE FROM ns.t WHERE id % 10 = 4 AND p < 2")
    columns = columns.replace("i AS id", f"i * 2 + {rows // 2} AS id")
    con.execute(f"INSERT INTO ns.src SELECT {columns} FROM range({rows // 2}) r(i)")


def plant(folder: Path, count: int = 30) -> None:
    """Files that nothing names, of all the shapes that writers leave."""
    names = (
        "data/p=1/00000-0-{}-0-00001.parquet", "metadata/{}-m0.avro", "metadata/snap-1-1-{}.avro",
        "data/p=2/.00000-0-{}.parquet.0123456789ab.part",
    )  # fmt: skip
    for number in range(count):
        place = folder / names[number % len(names)].format(f"orphan{number}")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(b"x" * 100)


def age(folder: Path, days: float = 9) -> None:
    """Let every file below ``folder`` be ``days`` old."""
    then = time.time() - days * 86_400
    for at, _, names in os.walk(folder):
        for name in names:
            os.utime(os.path.join(at, name), (then, then))
