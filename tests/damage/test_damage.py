"""Damaged copies of real tables give the right rows, or an error of icesql that names the file.

Two hundred damages by default; ICESQL_DAMAGES=2000 does the whole series.
"""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import icesql
from tests.writer.table import TableWriter

WANTED = int(os.environ.get("ICESQL_DAMAGES", "200"))
SERIES = 2000
SECONDS = 60
BIGGEST = 3 << 20
WORKERS = 2
# Values of a page that no checksum covers may change, and a delete file deletes by its values.
NO_CHECKSUM = ("data", "delete")
NUMBERS = [{"id": 1, "name": "a", "required": False, "type": "long"}]


class Process:
    """A worker process that is started again after a crash or a hang."""

    def __init__(self):
        self.process = None

    def ask(self, job):
        if self.process is None:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tests.damage.worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                cwd=Path(__file__).parents[2],
                text=True,
            )
        self.process.stdin.write(json.dumps(job) + "\n")
        self.process.stdin.flush()
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ)
            ready = selector.select(SECONDS)
        line = self.process.stdout.readline() if ready else ""
        if line:
            return json.loads(line)
        verdict = "crash" if ready else "hang"
        self.close()
        return {"damage": str(job), "results": [[verdict, f"exit code {self.code}", "", ""]]}

    def close(self):
        if self.process is not None:
            self.process.stdin.close()
            self.process.kill()
            self.code = self.process.wait()
            self.process.stdout.close()
            self.process = None


def jobs(corpus):
    """One job per damage, those of a table next to each other."""
    rows = [json.loads(line) for line in (corpus / "tables.jsonl").read_text().splitlines()]
    tables = [
        str(corpus / row["metadata"])
        for row in rows
        if row["usability"] == "full" and size(corpus / row["table"]) <= BIGGEST
    ]
    healthy = next(each for each in tables if "no_deletes" in each)
    step = SERIES // WANTED if WANTED < SERIES else 1
    made = [
        {"metadata": tables[seed % len(tables)], "healthy": healthy, "seed": seed}
        for seed in range(0, WANTED * step, step)
    ]
    return sorted(made, key=lambda job: (job["metadata"], job["seed"]))


def size(folder):
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def run_share(share):
    process = Process()
    try:
        return [process.ask(job) for job in share]
    finally:
        process.close()


def excused(outcome, verdict):
    """Whether a wrong answer is one that no reader could have known to be wrong."""
    if verdict != "wrong":
        return False
    if outcome["kind"] == "swap":
        # Data files of as many rows, of one length or with lengths recorded wrongly all along.
        return outcome["role"] in NO_CHECKSUM and outcome["hidden"]
    return outcome["kind"] in ("flip", "zero") and (
        outcome["whole"] or outcome["role"] in NO_CHECKSUM
    )


@pytest.mark.timeout(3600)
def test_damage_is_found_or_harmless(corpus, record_property):
    todo = jobs(corpus)
    middle = len(todo) // WORKERS
    with ThreadPoolExecutor(WORKERS) as pool:
        shares = [todo[:middle], todo[middle:]]
        outcomes = [outcome for done in pool.map(run_share, shares) for outcome in done]
    assert len(outcomes) == WANTED
    counts = Counter()
    problems = []
    for outcome in outcomes:
        for verdict, text, reader, sql in outcome["results"]:
            counts[verdict] += 1
            if verdict in ("right", "named"):
                continue
            if excused(outcome, verdict):
                counts["other content"] += 1
            else:
                problems.append(f"{verdict} ({reader}: {sql}) {outcome['damage']}: {text}")
    record_property("outcomes", dict(counts))
    print(dict(counts))
    assert problems == [], "\n".join(problems)
    # Most damage must be found, and what a reader cannot know must stay rare.
    assert counts["named"] > counts.total() * 0.4
    assert counts["other content"] < counts.total() * 0.05


def test_a_bug_in_read_is_not_called_a_corrupt_file(tmp_path, monkeypatch):
    table = TableWriter(tmp_path, NUMBERS)
    table.commit([table.data_file([{"a": 1}])])

    def broken(*_, **__):
        raise TypeError("a bug on purpose")

    import icesql.read.task

    monkeypatch.setattr(icesql.read.task, "column_reader", broken)
    for reader in ("arrow", "auto"):
        with icesql.connect(settings={"local_reader": reader}) as connection:
            connection.register_table("t", table.metadata_path)
            if reader == "arrow":
                with pytest.raises(TypeError, match="a bug on purpose"):
                    connection.execute("SELECT a FROM t").fetchall()
            else:
                # DuckDB reads this file itself, past the bug.
                assert connection.execute("SELECT a FROM t").fetchall() == [(1,)]


@pytest.mark.parametrize("way", ["rows", "arrow"])
def test_a_bad_page_far_down_is_blamed_on_its_file(tmp_path, way):
    table = TableWriter(tmp_path, NUMBERS)
    files = [
        table.data_file(
            [{"a": number * 7919 % 100_003} for number in range(60_000)],
            compression="gzip",
            use_dictionary=False,
            row_group_size=10_000,
        )
        for _ in range(3)
    ]
    table.commit(files)
    bad = Path(files[1].record["file_path"])
    data = bytearray(bad.read_bytes())
    middle = len(data) * 5 // 6
    data[middle : middle + 64] = bytes(64)
    bad.write_bytes(data)
    with icesql.connect() as connection:
        connection.register_table("t", table.metadata_path)
        read = {"rows": icesql.Cursor.fetchall, "arrow": icesql.Cursor.arrow}[way]
        with pytest.raises(icesql.Error, match=bad.name):
            read(connection.execute("SELECT a FROM t"))
        assert connection.execute("SELECT count(*) FROM t").fetchall() == [(180_000,)]


@pytest.mark.parametrize("reader", ["auto", "arrow"])
def test_two_files_in_each_others_place_are_refused(tmp_path, reader):
    table = TableWriter(tmp_path, NUMBERS)
    short, long = (
        table.data_file([{"a": value}, {"a": 7}], compression=codec)
        for value, codec in ((1, "none"), (2, "gzip"))
    )
    assert short.record["file_size_in_bytes"] != long.record["file_size_in_bytes"]
    for each in (short, long):
        (chunk,) = pq.read_metadata(each.record["file_path"]).row_group(0).to_dict()["columns"]
        each.record["column_sizes"] = {1: chunk["total_compressed_size"]}
    table.commit([short, long])
    table.commit([table.position_deletes([(short, 0)])])
    first, second = (Path(each.record["file_path"]) for each in (short, long))
    first_bytes, second_bytes = first.read_bytes(), second.read_bytes()
    first.write_bytes(second_bytes)
    second.write_bytes(first_bytes)
    with icesql.connect(settings={"local_reader": reader}) as connection:
        connection.register_table("t", table.metadata_path)
        with pytest.raises(icesql.DataError, match="another file is in its place"):
            connection.execute("SELECT a FROM t").fetchall()


@pytest.mark.parametrize("reader", ["auto", "arrow"])
def test_a_file_of_other_rows_than_the_manifest_counts_is_refused(tmp_path, reader):
    table = TableWriter(tmp_path, NUMBERS)
    two, three = (table.data_file([{"a": n} for n in range(count)]) for count in (2, 3))
    table.commit([two])
    path = Path(two.record["file_path"])
    path.write_bytes(Path(three.record["file_path"]).read_bytes())
    with icesql.connect(settings={"local_reader": reader}) as connection:
        connection.register_table("t", table.metadata_path)
        with pytest.raises(icesql.DataError, match=path.name):
            connection.execute("SELECT a FROM t").fetchall()
