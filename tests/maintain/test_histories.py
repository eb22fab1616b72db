"""Random histories: what is retained reads as before after expiry, orphan removal and rewrites."""

from __future__ import annotations

import os
import random
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import icesql
from icesql import errors


class History:
    """A table with branches, tags, rollbacks, shared files and deletes, and its folder."""

    def __init__(self, con: icesql.Connection, folder: Path, seed: int) -> None:
        self.con, self.random, self.count = con, random.Random(seed), 0
        self.done = 0
        version = self.random.choice([2, 3, 3])
        con.execute(
            "CREATE TABLE s.t (i INT, p VARCHAR) PARTITIONED BY (p) TBLPROPERTIES "
            f"('format-version' = '{version}', 'write.delete.mode' = 'merge-on-read', "
            "'write.metadata.previous-versions-max' = '3', 'commit.manifest.min-count-to-merge' = '3')"
        )
        self.folder = folder

    def step(self) -> None:
        """One change; what does not fit the state of the table is nothing."""
        self.count += 1
        with suppress(errors.ProgrammingError, errors.NotSupportedError):
            self.con.execute(self._statement())
            self.done += 1

    def _statement(self) -> str:
        chance, number = self.random.random(), self.count
        branches = [name for name, kind in self.refs() if kind == "BRANCH"]
        target = self.random.choice(["s.t", *(f"s.t.branch_{name}" for name in branches)])
        if chance < 0.35:
            rows = ", ".join(f"({number * 10 + k}, '{'ab'[k % 2]}')" for k in range(4))
            return f"INSERT INTO {target} VALUES {rows}"
        if chance < 0.55:
            return f"DELETE FROM s.t WHERE i % {self.random.randrange(3, 7)} = 1"
        if chance < 0.6:
            return f"DELETE FROM s.t WHERE p = '{self.random.choice('ab')}'"
        if chance < 0.7:
            kind = self.random.choice(["BRANCH", "TAG"])
            return f"ALTER TABLE s.t CREATE OR REPLACE {kind} {kind[0]}{self.random.randrange(3)}"
        if chance < 0.75 and self.refs():
            name, kind = self.random.choice(self.refs())
            return f"ALTER TABLE s.t DROP {kind} {name}"
        ids = self.snapshots()
        if not ids:
            return "CALL system.ancestors_of('s.t')"
        some = self.random.choice(ids)
        return self.random.choice(
            [
                f"CALL system.rollback_to_snapshot('s.t', {some})",
                f"CALL system.set_current_snapshot('s.t', {some})",
                f"CALL system.cherrypick_snapshot('s.t', {some})",
                "CALL system.rewrite_manifests('s.t')",
                "CALL system.rewrite_data_files('s.t', options => map('rewrite-all', 'true'))",
                "CALL system.expire_snapshots('s.t', older_than => now(), retain_last => 3)",
                f"CALL system.expire_snapshots('s.t', snapshot_ids => array({some}))",
            ]
        )

    def refs(self) -> list[tuple[str, str]]:
        found = self.con.execute("SELECT name, type FROM s.t.refs ORDER BY name").fetchall()
        return [(name, kind) for name, kind in found if name != "main"]

    def snapshots(self) -> list[int]:
        found = self.con.execute("SELECT snapshot_id FROM s.t.snapshots ORDER BY committed_at")
        return [row[0] for row in found.fetchall()]

    def rows(self) -> dict[int, list[Any]]:
        """The rows of every snapshot."""
        return {
            each: self.con.execute(
                f"SELECT i, p FROM s.t VERSION AS OF {each} ORDER BY i, p"
            ).fetchall()
            for each in self.snapshots()
        }

    def files(self) -> set[str]:
        return {str(each) for each in self.folder.rglob("*") if each.is_file()}

    def age(self) -> None:
        then = time.time() - 9 * 86_400
        for each in self.folder.rglob("*"):
            os.utime(each, (then, then))


def plant(history: History) -> set[str]:
    """What killed writes leave: whole files that no commit names, and unfinished ones."""
    planted = set()
    data = [each for each in history.files() if each.endswith((".parquet", ".puffin", ".avro"))]
    for number, like in enumerate(history.random.sample(sorted(data), min(3, len(data)))):
        copy = Path(like).with_name(f"left-{number}-{Path(like).name}")
        copy.write_bytes(Path(like).read_bytes())
        planted.add(str(copy))
    half = history.folder / "data" / f".x.parquet.{'0' * 12}.part"
    half.parent.mkdir(exist_ok=True)
    half.write_bytes(b"half")
    return {*planted, str(half)}


def check(con: icesql.Connection, folder: Path, seed: int) -> None:
    history = History(con, folder, seed)
    for _ in range(history.random.randrange(10, 26)):
        history.step()
    assert history.done > history.count / 2
    history.age()
    con.execute("CALL system.remove_orphan_files('s.t')")
    whole, planted = history.files(), plant(history)
    history.age()
    before = history.rows()
    con.execute("SET local_reader = 'arrow'")
    assert history.rows() == before
    found = con.execute("CALL system.remove_orphan_files('s.t')").fetchall()
    assert {row[0] for row in found} == planted
    assert history.files() == whole
    assert history.rows() == before

    con.execute("CALL system.expire_snapshots('s.t', older_than => now(), retain_last => 1)")
    after = history.rows()
    assert after == {each: before[each] for each in after}
    heads = con.execute("SELECT snapshot_id FROM s.t.refs").fetchall()
    assert {row[0] for row in heads} <= after.keys()
    history.age()
    left = {row[0] for row in con.execute("CALL system.remove_orphan_files('s.t')").fetchall()}
    # Metadata files that fell out of the log are no snapshot's.
    assert {each for each in left if not each.endswith(".metadata.json")} == set()
    assert history.rows() == after


@pytest.mark.parametrize("seed", range(int(os.environ.get("ICESQL_HISTORIES", "2"))))
def test_every_retained_snapshot_reads_as_before(tmp_path: Path, seed: int) -> None:
    lake = tmp_path / "lake"
    lake.mkdir()
    with icesql.connect(warehouse=str(lake)) as con:
        con.execute("CREATE SCHEMA s")
        check(con, lake / "s" / "t", seed)
