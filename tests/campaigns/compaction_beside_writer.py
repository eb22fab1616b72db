"""Compact a table again and again while another process changes its rows; compare with a ledger.

    python tests/campaigns/compaction_beside_writer.py [--seconds 120] [--version 3] [--seed 1]
        [--files 200] [--rows 400000] [--strategy binpack|sort] [--pause 0.2]
        [--lineitem LINEITEM.parquet] [--keep FOLDER]
    python tests/campaigns/compaction_beside_writer.py --check FOLDER --jars A.jar:B.jar

The writer appends, deletes and updates merge-on-read, and deletes and upserts by equality as Flink
does, one commit after the other, and notes what each did once it is there. Rewrites of all files
run beside it the whole time, with a conversion of equality deletes now and then. At the end the
rows of the table, without caches and pruning, are those of the ledger. Prints how many commits of
each there were, how many rows the compactions carried over and how many files they left alone.

With ``--lineitem`` the rows are those of TPC-H's table, with its columns. ``--keep`` leaves the
table in a folder, with what icesql reads of each snapshot; ``--check`` compares that with what Java
reads, in a Python that has the PySpark of its Iceberg runtime.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import subprocess
import sys
import tempfile
import time
import uuid
from collections import Counter
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

PROPERTIES = (
    "'format-version' = '{version}', 'write.delete.mode' = 'merge-on-read', "
    "'write.update.mode' = 'merge-on-read', 'commit.retry.num-retries' = '100', "
    "'commit.retry.min-wait-ms' = '5', 'write.target-file-size-bytes' = '{size}'"
)
# Of a snapshot: enough to tell rows from each other, and quick to add up.
SUMS = "count(*), sum(id), sum(v), sum((id % 10007) * (v % 1009))"
PLAINLY = {"caches": False, "prune": False, "local_reader": "arrow"}
KINDS = ("insert", "delete", "update", "equality delete", "upsert")
AT_ONCE = 200


# ------------------------------------------------------------------ the writer


class Ledger:
    """What each row is: ``changed`` beside the rows that were there at first; None for deleted."""

    def __init__(self, folder: Path) -> None:
        import numpy as np

        self.ids, self.values = np.load(folder / "ids.npy"), np.load(folder / "values.npy")
        self.changed: dict[int, int | None] = {}
        self._new: list[int] = []
        self._next = int(self.ids.max()) + 1

    def value(self, at: int) -> tuple[int, int | None]:
        """The id and the value at a place of the rows of the beginning and those that came."""
        many = len(self.ids)
        row = int(self.ids[at]) if at < many else self._new[at - many]
        if row in self.changed:
            return row, self.changed[row]
        return row, int(self.values[at])

    def sample(self, chance: random.Random, count: int = AT_ONCE) -> dict[int, int]:
        """Some live rows that lie in a few files, with their values."""
        many = len(self.ids) + len(self._new)
        first = chance.randrange(many)
        places = range(first, min(many, first + max(count * 4, many // 20)))
        picked = chance.sample(places, min(count, len(places)))
        rows = dict(map(self.value, picked))
        return {row: value for row, value in rows.items() if value is not None}

    def new_rows(self, count: int) -> dict[int, int]:
        """Rows of ids that no row had."""
        first, self._next = self._next, self._next + count
        return {each: each for each in range(first, first + count)}

    def note(self, rows: dict[int, int | None]) -> None:
        """Rows that were committed."""
        self._new += [each for each in rows if each > self.ids.max() and each not in self.changed]
        self.changed |= rows


class Flink:
    """Commits equality deletes of ids, and rows with them, as Flink's writer does."""

    def __init__(self, folder: Path) -> None:
        from icesql.catalog.directory import DirectoryCatalog

        self._catalog = DirectoryCatalog(str(folder))

    def commit(self, ids: list[int], rows: dict[int, int]) -> None:
        """Delete what has these ids, and add rows, which are younger."""
        import pyarrow as pa

        from icesql.commit.rows import commit_row_delta
        from icesql.iceberg.manifest.data_file import FileContent
        from icesql.write.write_task import write_task, write_task_for

        table = self._catalog.load(("s", "t"))
        head = table.metadata.current_snapshot
        key = {b"PARQUET:field_id": b"1"}
        schema = pa.schema([pa.field("id", pa.int64(), metadata=key)])
        deletes = self._file(table, pa.table({"id": pa.array(sorted(ids))}, schema=schema))
        added: tuple[Any, ...] = ()
        if rows:
            fields = len(table.metadata.schema.fields)
            sources = (0, 1, *([None] * (fields - 2)))
            batch = pa.RecordBatch.from_pydict(
                {"id": pa.array([*rows]), "v": pa.array([*rows.values()])}
            )
            write = write_task_for(table.metadata, table.storage, sources)
            added = write_task(write, [batch]).files
        assert deletes.content is FileContent.EQUALITY_DELETES
        commit_row_delta(
            self._catalog,
            table,
            added=added,
            deletes=[deletes],
            start_id=None if head is None else head.snapshot_id,
            command="delete",
            isolation="snapshot",
        )

    @staticmethod
    def _file(table: Any, keys: Any) -> Any:
        import pyarrow.parquet as pq

        from icesql.iceberg.manifest.data_file import DataFile, FileContent
        from icesql.write.locations import data_locations

        path = data_locations(table.metadata).path(f"{uuid.uuid4()}-eq-deletes.parquet")
        place = path.removeprefix("file://")
        Path(place).parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(keys, place)
        ids = keys["id"].to_pylist()
        return DataFile(
            FileContent.EQUALITY_DELETES, path, "PARQUET", 0, (), len(ids),
            Path(place).stat().st_size, equality_ids=(1,),
            lower_bounds={1: min(ids).to_bytes(8, "little", signed=True)},
            upper_bounds={1: max(ids).to_bytes(8, "little", signed=True)},
            value_counts={1: len(ids)}, null_value_counts={1: 0},
        )  # fmt: skip


def write_beside(folder: Path, seed: int, seconds: float, pause: float) -> None:
    """One change after the other until the time is over; then print what was done."""
    import icesql

    chance, ledger = random.Random(seed), Ledger(folder)
    warehouse = folder / "wh"
    flink, con = Flink(warehouse), icesql.connect(warehouse=str(warehouse))
    done, conflicts = Counter[str](), Counter[str]()
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        begun = time.monotonic()
        kind = chance.choice(KINDS)
        rows: dict[int, int | None] = dict(ledger.sample(chance))
        if kind in ("delete", "equality delete"):
            rows = dict.fromkeys(rows)
        elif kind == "insert":
            rows = dict(ledger.new_rows(500))
        else:
            rows = {row: -(value or 0) - 1 for row, value in rows.items()}
        listed = ", ".join(map(str, rows))
        values = {row: value for row, value in rows.items() if value is not None}
        try:
            if not rows:
                continue
            if kind == "insert":
                first = min(rows)
                con.execute(
                    "INSERT INTO s.t (id, v) SELECT range, range "
                    f"FROM range({first}, {first + len(rows)})"
                )
            elif kind == "delete":
                con.execute(f"DELETE FROM s.t WHERE id IN ({listed})")
            elif kind == "update":
                con.execute(f"UPDATE s.t SET v = -v - 1 WHERE id IN ({listed})")
            else:
                flink.commit([*rows], values)
        except icesql.CommitConflictError:
            conflicts[kind] += 1
            continue
        done[kind] += 1
        ledger.note(rows)
        time.sleep(max(0.0, pause - (time.monotonic() - begun)))
    print(json.dumps([done, conflicts, [*ledger.changed.items()]]))


# ------------------------------------------------------------------ the table


def make(folder: Path, version: int, files: int, rows: int, lineitem: str | None) -> None:
    """The table, and its ids and values."""
    import duckdb
    import numpy as np

    import icesql

    size = 1 << 29
    if lineitem is not None:
        size = Path(lineitem).stat().st_size // files
    (folder / "wh").mkdir()
    properties = PROPERTIES.format(version=version, size=size)
    with icesql.connect(warehouse=str(folder / "wh"), files=True) as con:
        con.execute("CREATE SCHEMA s")
        if lineitem is not None:
            query = (
                "SELECT l_orderkey * 8 + l_linenumber AS id, CAST(l_partkey AS BIGINT) AS v, * "
                f"FROM '{lineitem}'"
            )
            con.execute(f"CREATE TABLE s.t TBLPROPERTIES ({properties}) AS {query}")
            found = duckdb.sql(f"SELECT id, v FROM ({query})").fetchnumpy()
            ids, values = found["id"], found["v"]
        else:
            con.execute(
                f"CREATE TABLE s.t (id BIGINT, v BIGINT, p VARCHAR) TBLPROPERTIES ({properties})"
            )
            step = rows // files
            for first in range(0, rows, step):
                con.execute(
                    f"INSERT INTO s.t SELECT range, range, 'x' FROM range({first}, {first + step})"
                )
            ids = values = np.arange(step * -(-rows // step))
    np.save(folder / "ids.npy", ids.astype(np.int64))
    np.save(folder / "values.npy", values.astype(np.int64))


def compared(folder: Path, changed: list[tuple[int, int | None]]) -> tuple[int, int, int]:
    """How many rows there should be, and how many are missing and are too many."""
    import numpy as np
    import pyarrow as pa

    import icesql

    ids, values = np.load(folder / "ids.npy"), np.load(folder / "values.npy")
    stays = ~np.isin(ids, np.array([each[0] for each in changed], np.int64))
    live = [(row, value) for row, value in changed if value is not None]
    pairs = np.array(live, np.int64).reshape(-1, 2)
    wanted = np.stack(
        [
            np.concatenate([ids[stays], pairs[:, 0]]),
            np.concatenate([values[stays], pairs[:, 1]]),
        ]
    )
    with icesql.connect(warehouse=str(folder / "wh"), settings=PLAINLY) as con:
        table: pa.Table = con.execute("SELECT id, v FROM s.t").arrow()
    found = np.stack([table["id"].to_numpy(), table["v"].to_numpy()])

    def keys(pairs: Any) -> Any:
        ordered = pairs[:, np.lexsort(pairs[::-1])].T.copy()
        return ordered.view([("id", np.int64), ("v", np.int64)]).ravel()

    right, there = keys(wanted), keys(found)
    if len(right) == len(there) and (right == there).all():
        return len(right), 0, 0
    lost, extra = np.setdiff1d(right, there), np.setdiff1d(there, right)
    print("lost", lost[:10], "back", extra[:10])
    return len(right), len(lost) or 1, len(extra) + max(0, len(there) - len(right))


def note_snapshots(folder: Path) -> int:
    """Note what icesql reads of every snapshot."""
    import icesql

    with icesql.connect(warehouse=str(folder / "wh"), settings={"caches": False}) as con:
        ids = con.execute("SELECT snapshot_id FROM s.t.snapshots ORDER BY committed_at").fetchall()
        noted = {}
        for (each,) in ids:
            row = con.execute(f"SELECT {SUMS} FROM s.t VERSION AS OF {each}").fetchone()
            noted[each] = [int(value) for value in row]
    (folder / "snapshots.json").write_text(json.dumps(noted))
    return len(noted)


def check(folder: Path, jars: str) -> int:
    """Whether Java reads any snapshot in another way."""
    from tests.campaigns.java_session import java_session

    spark = java_session(jars, folder / "wh", settings={"spark.driver.memory": "3g"})
    expected = json.loads((folder / "snapshots.json").read_text())
    wrong = 0
    for snapshot, sums in expected.items():
        (row,) = spark.sql(f"SELECT {SUMS} FROM c.s.t VERSION AS OF {snapshot}").collect()
        if [int(value) for value in row] != sums:
            wrong += 1
            print(snapshot, row, sums, flush=True)
    print(f"{len(expected)} snapshots, {wrong} that Java reads differently")
    return bool(wrong)


# ------------------------------------------------------------------ both


class Maintenance:
    """Rewrites and conversions, and what became of them."""

    def __init__(self, folder: Path, strategy: str, sizes: list[int], seed: int) -> None:
        import icesql

        self._con = icesql.connect(warehouse=str(folder / "wh"), settings={"threads": 2})
        self._conflict = icesql.CommitConflictError
        self._strategy, self._sizes, self._chance = strategy, sizes, random.Random(seed)
        self.done, self.conflicts, self.carried = Counter[str](), 0, 0

    def step(self) -> None:
        """One of them."""
        if self._chance.random() < 0.3:
            text, kind = "CALL system.convert_equality_deletes('s.t')", "conversions"
        else:
            order = ", sort_order => 'v DESC'" if self._strategy == "sort" else ""
            partial = self._chance.choice(["true", "false"])
            size = self._chance.choice(self._sizes)
            text = (
                f"CALL system.rewrite_data_files('s.t', strategy => '{self._strategy}'{order}, "
                f"options => map('rewrite-all', 'true', 'partial-progress.enabled', '{partial}', "
                f"'max-file-group-size-bytes', '{size}'))"
            )
            kind = "compactions"
        try:
            cursor = self._con.execute(text)
            cursor.fetchall()
        except self._conflict as error:
            self.conflicts += 1
            print("conflict:", str(error)[:300], flush=True)
            return
        self.done[kind] += 1
        for note in cursor.notes:
            if "others deleted" in note:
                words = note.split(" rows that others deleted")[0].split()
                self.carried += int(words[-1].replace(",", ""))
            if "not rewritten" in note:
                self.conflicts += 1
                print("left out:", note[-300:], flush=True)


def run(folder: Path, given: argparse.Namespace) -> int:
    """The whole campaign in a folder; 1 where a row is lost or too many."""
    make(folder, given.version, given.files, given.rows, given.lineitem)
    texts = [str(each) for each in (given.seed, given.seconds, given.pause)]
    writer = subprocess.Popen(
        [sys.executable, __file__, "--write", str(folder), *texts],
        stdout=subprocess.PIPE,
        text=True,
    )
    sizes = [200_000, 1_000_000] if given.lineitem is None else [30_000_000, 100_000_000]
    work = Maintenance(folder, given.strategy, [*sizes, 500_000_000], given.seed)
    while writer.poll() is None and time.monotonic() < given.begun + 3 * given.seconds:
        work.step()
    done, conflicts, changed = json.loads(writer.communicate()[0])
    rows, lost, extra = compared(folder, changed)
    print(
        f"{'WRONG' if lost or extra else 'right'}: {rows:,} rows, {lost:,} lost, {extra:,} too "
        f"many; writer {done}, conflicts {conflicts}; {dict(work.done)}, {work.conflicts} "
        f"conflicts, {work.carried:,} rows carried over",
        flush=True,
    )
    if given.keep:
        print(f"{note_snapshots(folder)} snapshots noted")
    return int(bool(lost or extra))


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--seconds", type=float, default=120)
    arguments.add_argument("--version", type=int, default=3)
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--files", type=int, default=200)
    arguments.add_argument("--rows", type=int, default=400_000)
    arguments.add_argument("--strategy", default="binpack")
    arguments.add_argument("--pause", type=float, default=0.2)
    arguments.add_argument("--lineitem")
    arguments.add_argument("--keep", type=Path)
    arguments.add_argument("--check", type=Path)
    arguments.add_argument("--jars", default="")
    arguments.add_argument("--write", nargs=4, help=argparse.SUPPRESS)
    given = arguments.parse_args()
    given.begun = time.monotonic()
    if given.write:
        folder, seed, seconds, pause = given.write
        write_beside(Path(folder), int(seed), float(seconds), float(pause))
    elif given.check:
        sys.exit(check(given.check.absolute(), given.jars))
    elif given.keep:
        shutil.rmtree(given.keep, ignore_errors=True)
        given.keep.mkdir(parents=True)
        sys.exit(run(given.keep.absolute(), given))
    else:
        with tempfile.TemporaryDirectory() as folder:
            sys.exit(run(Path(folder), given))


if __name__ == "__main__":
    main()
