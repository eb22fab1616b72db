"""A small lake: a table of each kind of trouble, and some that have none."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import icesql
from tests.maintain.rewrite.tables import BY_P, FIELDS, rows
from tests.writer.table import TableWriter

DAY = 86_400
DAMAGED = "ns.damaged"
# What a run with default actions has to do something for.
TROUBLED = {
    'ns."odd [1]"', "ns.old", "ns.partitioned", "ns.positions", "ns.small", "ns.upserts_v2",
    "ns.upserts_v3",
}  # fmt: skip
QUIET = {"ns.empty", "ns.fine", "ns.kept"}


def connect(folder: Path, **settings: Any) -> Any:
    return icesql.connect(warehouse=str(folder), read_only=False, settings=settings)


def build(folder: Path) -> Path:
    """The warehouse at ``folder``."""
    folder.mkdir()
    with connect(folder) as con:
        con.execute("CREATE SCHEMA ns")
        con.execute("CREATE TABLE ns.empty (id BIGINT)")
        con.execute("CREATE TABLE ns.fine AS SELECT range AS id FROM range(100)")
        for name in ("small", '"odd [1]"', "kept", "damaged"):
            con.execute(f"CREATE TABLE ns.{name} (id BIGINT, p VARCHAR)")
        for name, count in (("small", 7), ('"odd [1]"', 6), ("damaged", 5), ("kept", 2)):
            for n in range(count):
                con.execute(f"INSERT INTO ns.{name} SELECT range, 'p' FROM range({n}, {n + 5})")
        con.execute("CREATE TABLE ns.partitioned (id BIGINT, p VARCHAR) PARTITIONED BY (p)")
        for n in range(6):
            con.execute(f"INSERT INTO ns.partitioned VALUES ({n}, 'a'), ({n}, 'b')")
        con.execute(
            "CREATE TABLE ns.positions AS SELECT range AS id FROM range(200)",
        )
        con.execute(
            "ALTER TABLE ns.positions SET TBLPROPERTIES ('write.delete.mode' = 'merge-on-read')"
        )
        for n in range(5):
            con.execute(f"DELETE FROM ns.positions WHERE id % 10 = {n}")
        con.execute(
            "CREATE TABLE ns.old (id BIGINT) "
            "TBLPROPERTIES ('history.expire.max-snapshot-age-ms' = '1')"
        )
        for n in range(3):
            con.execute(f"INSERT INTO ns.old VALUES ({n})")
        con.execute("ALTER TABLE ns.kept SET TBLPROPERTIES ('gc.enabled' = 'false')")
    for version in (2, 3):
        upserts(folder / "ns" / f"upserts_v{version}", version)
    lost = sorted((folder / "ns" / "damaged" / "data").rglob("*.parquet"))[0]
    lost.unlink()
    return folder


def upserts(folder: Path, version: int, commits: int = 6, partitioned: bool = False) -> TableWriter:
    """A stream that deletes the keys of the commit before by equality."""
    folder.mkdir(parents=True)
    table = TableWriter(
        str(folder), FIELDS, BY_P if partitioned else [], version=version,
        properties={"commit.retry.min-wait-ms": "1"}, start_ms=int(time.time() * 1000) - 60_000,
    )  # fmt: skip
    for n in range(commits):
        added = [table.data_file(rows(10 * n, 20))]
        if n:
            added.append(table.equality_deletes([{"id": 10 * n + k} for k in range(5)], [1]))
        table.commit(added)
    return table


def many_deletes(folder: Path) -> None:
    """One file, with a position delete file for each of some rows."""
    folder.mkdir(parents=True)
    table = TableWriter(str(folder), FIELDS, [], version=2)
    file = table.data_file(rows(0, 100))
    table.commit([file])
    for row in range(6):
        table.commit([table.position_deletes([(file, row)])])


def contents(folder: Path, but: str = DAMAGED) -> dict[str, list[Any]]:
    """The rows of each table that can be read."""
    with connect(folder, caches="off") as con:
        return {
            name: sorted(con.execute(f"SELECT * FROM {_quoted(name)}").fetchall(), key=repr)
            for name in con.tables()
            if name != but
        }


def leave_orphan(folder: Path, table: str, age_days: float) -> Path:
    """A file in the folder of a table that it does not need."""
    orphan = folder / "ns" / table / "data" / f"orphan-{age_days}.parquet"
    orphan.write_bytes(b"x" * 10)
    then = time.time() - age_days * DAY
    os.utime(orphan, (then, then))
    return orphan


def _quoted(name: str) -> str:
    if name.startswith('"'):
        return name
    return ".".join('"' + each + '"' for each in name.split("."))
