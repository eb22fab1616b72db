"""Damaged copies of real tables give the right rows, or an error of icesql that names the file.

A hundred damages by default; ICESQL_DAMAGES=2000 does the whole series.
"""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import icesql
from tests.campaigns import damage as campaign
from tests.writer.fields import fields
from tests.writer.table import TableWriter

WANTED = int(os.environ.get("ICESQL_DAMAGES", "100"))
SERIES = 2000
WANTED_STRUCTURED = int(os.environ.get("ICESQL_STRUCTURED_DAMAGES", "200"))
WORKERS = 2
# Values of a page that no checksum covers may change, and a delete file deletes by its values.
NO_CHECKSUM = ("data", "delete")
NUMBERS = fields("a long")


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
    tables = [*campaign.tables_of(corpus)]
    healthy = next(each for each in tables if "no_deletes" in each)
    step = SERIES // WANTED if WANTED < SERIES else 1
    outcomes = []
    todo = campaign.jobs(tables, healthy, range(0, WANTED * step, step), False)
    campaign.run(todo, WORKERS, lambda _, outcome: outcomes.append(outcome))
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


@pytest.fixture(scope="module")
def small_tables(tmp_path_factory):
    """Tables of each format and version, some with deletes; their metadata files."""
    made = []
    for version, format, by in (
        (2, "parquet", "none"),
        (2, "parquet", "positions"),
        (2, "parquet", "keys"),
        (2, "orc", "positions"),
        (2, "avro", "keys"),
        (3, "parquet", "vectors"),
        (1, "parquet", "none"),
    ):
        name = f"{format}-{by}-v{version}"
        # The copies that are damaged must not find the originals where the metadata says.
        folder, location = tmp_path_factory.mktemp(name), f"s3://warehouse/{name}"
        table = TableWriter(folder, fields("a long, s string"), version=version, location=location)
        rows = [{"a": n, "s": "abc"[n % 3] * (n % 7) if n % 5 else None} for n in range(40)]
        options = {"row_group_size": 16} if format == "parquet" else {}
        files = [table.data_file(part, format=format, **options) for part in (rows, rows[:9])]
        table.commit(files)
        table.commit([table.data_file(rows[3:7], format=format)])
        if by == "positions":
            table.commit([table.position_deletes([(files[0], 3), (files[1], 1)])])
        elif by == "keys":
            table.commit([table.equality_deletes([{"a": 4}, {"a": 30}], [1])])
        elif by == "vectors":
            table.commit(table.deletion_vectors([(files[0], [1, 2]), (files[1], [5])]))
        made.append(str(table.metadata_path))
    return made


@pytest.mark.timeout(3600)
def test_damage_that_keeps_its_form_is_seen_or_harmless(small_tables):
    counts = campaign.Counts()
    todo = campaign.jobs(small_tables, small_tables[0], range(WANTED_STRUCTURED), True)
    campaign.run(todo, WORKERS, counts.add)
    problems = [
        f"{verdict}: {outcome['damage']}: {outcome['results']}"
        for verdict, _, outcome in counts.problems
    ]
    assert problems == [], "\n".join(problems)
    assert counts.damages == WANTED_STRUCTURED
    found = Counter()
    for (_, verdict), count in counts.by_kind.items():
        found[verdict] += count
    assert found["named"] > WANTED_STRUCTURED // 2
    assert found["unnamed"] < WANTED_STRUCTURED // 30


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
