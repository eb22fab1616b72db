"""Changes that others commit while files are rewritten also hold in the new files."""

from __future__ import annotations

import random
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from msgspec.structs import replace

import icesql
from icesql.catalog.writes.change import Done, Unknown
from icesql.errors import (
    CommitConflictError,
    InternalError,
)
from icesql.maintain.others import Origins
from icesql.maintain.rewrite.task import tasks_of
from icesql.storage.new_files import NewFile
from icesql.work import run as machine
from icesql.work.run import Results, Work, run_here, run_in_spark
from icesql.write.written import OriginsInOrder, RowOrigins, Written, decode_origins, encode_origins
from tests.maintain.rewrite.tables import (
    catalog_of,
    everything,
    new_table,
    planned,
    read,
    rewrite,
    rows,
)
from tests.maintain.rewrite.test_on_spark import Workers
from tests.maintain.rewrite.test_run import ORDERS, with_deletes

MERGE_ON_READ = {"write.delete.mode": "merge-on-read", "write.update.mode": "merge-on-read"}


def execute(catalog: Any, *statements: str) -> None:
    with icesql.connect(warehouse=catalog.folder) as con:
        for each in statements:
            con.execute(each)


def after_reading(*actions: Any, runner: Any = run_here) -> Any:
    """A runner whose last result is returned after others have acted."""

    def run_all(work: Any) -> Any:
        results = [*runner(work)]
        for each in actions:
            each()
        yield from results

    return run_all


def set_merge_on_read(catalog: Any) -> None:
    pairs = ", ".join(f"'{name}' = '{value}'" for name, value in MERGE_ON_READ.items())
    execute(catalog, f"ALTER TABLE ns.t SET TBLPROPERTIES ({pairs})")


@pytest.mark.parametrize("strategy", ORDERS)
@pytest.mark.parametrize("partitioned", [False, True])
@pytest.mark.parametrize("version", [2, 3])
def test_rows_that_others_delete_meanwhile_stay_deleted(
    tmp_path, version: int, partitioned: bool, strategy: str
) -> None:
    table = with_deletes(tmp_path, version, partitioned=partitioned)
    catalog = catalog_of(table)
    set_merge_on_read(catalog)
    plan = planned(catalog, strategy, ORDERS[strategy], rewrite_all=True)

    def others() -> None:
        execute(
            catalog,
            "DELETE FROM ns.t WHERE id % 7 = 1",
            "INSERT INTO ns.t VALUES (1000, 'a', 1)",
            "UPDATE ns.t SET x = -1 WHERE id IN (12, 102)",
            "DELETE FROM ns.t WHERE id = 1000 OR id % 11 = 2",
        )

    expected: list[Any] = []
    done = rewrite(
        catalog,
        plan,
        run=after_reading(others, lambda: expected.extend(everything(catalog, version))),
    )
    assert everything(catalog, version) == expected
    assert done.failures == ()
    assert done.rewritten_data_files_count == sum(len(each.files) for each in plan.groups)
    assert done.carried_rows > 5
    # The result does not depend on caches or pruning.
    assert everything_without_caches(catalog, version) == expected
    execute(
        catalog, "CALL system.rewrite_data_files('ns.t', options => map('rewrite-all', 'true'))"
    )
    assert everything(catalog, version) == expected


def everything_without_caches(catalog: Any, version: int) -> list[Any]:
    lineage = ", _row_id, _last_updated_sequence_number" if version > 2 else ""
    return read(catalog, f"*{lineage}", caches=False, prune=False, local_reader="arrow")


@pytest.mark.parametrize("version", [2, 3])
def test_each_attempt_follows_what_came_before_it(tmp_path, version: int, monkeypatch) -> None:
    table = new_table(tmp_path, version, **MERGE_ON_READ)
    table.commit([table.data_file(rows(10 * n, 10)) for n in range(3)])
    catalog = catalog_of(table)
    plan = planned(catalog, rewrite_all=True)
    left = [5, 15, 25]
    swap = catalog.swap

    def racing(*given: Any, **named: Any) -> Any:
        if left:
            execute(catalog, f"DELETE FROM ns.t WHERE id = {left.pop()}")
        return swap(*given, **named)

    monkeypatch.setattr(catalog, "swap", racing)
    before = files(table)
    done = rewrite(catalog, plan)
    assert left == []
    assert done.carried_rows == 3
    assert {each[0] for each in read(catalog, "id")} == {*range(30)} - {5, 15, 25}
    assert read(catalog, "count(*)") == [(27,)]
    # One data file, and its deletes as written by the attempt that was committed.
    new = files(table) - before
    by_others = {each for each in new if "deletes" in each}
    assert len(new - by_others) == 1
    with icesql.connect(warehouse=catalog.folder) as con:
        live = {row[0] for row in con.execute("SELECT file_path FROM ns.t.files").fetchall()}
        ever = {row[0] for row in con.execute("SELECT file_path FROM ns.t.all_files").fetchall()}
    assert {Path(each).name for each in live} <= {Path(each).name for each in ever}
    assert {Path(each).name for each in new} <= {Path(each).name for each in ever}


def files(table: Any) -> set[str]:
    return {str(each) for each in Path(table.folder, "data").rglob("*") if each.is_file()}


def test_deletes_that_are_taken_back_conflict(tmp_path) -> None:
    table = new_table(tmp_path, 3, **MERGE_ON_READ)
    (file,) = table.append(rows(0, 10))
    vectors = table.deletion_vectors([(file, [1, 2, 3])])
    table.commit(vectors)
    catalog = catalog_of(table)
    plan = planned(catalog, rewrite_all=True)
    before = files(table)

    def take_back() -> None:
        table.commit(table.deletion_vectors([(file, [1, 3])]), removed=vectors)

    with pytest.raises(CommitConflictError, match="were taken back"):
        rewrite(catalog, plan, run=after_reading(take_back))
    assert len(read(catalog)) == 8
    assert len(files(table) - before) == 1  # the other vector


@pytest.mark.parametrize("known", [True, False])
def test_equality_deletes_that_became_positions_are_followed(tmp_path, known: bool) -> None:
    table = new_table(tmp_path, 2)
    (file,) = table.append(rows(0, 10))
    deletes = [table.equality_deletes([{"id": 4}, {"id": 6}], [1])]
    table.commit(deletes)
    catalog = catalog_of(table)
    plan = planned(catalog, rewrite_all=True)

    def become_positions() -> None:
        places = [(file, 4), (file, 6)] if known else [(file, 4)]
        table.commit([table.position_deletes(places)], removed=deletes)

    others = after_reading(become_positions)
    if known:
        rewrite(catalog, plan, run=others)
    else:
        with pytest.raises(CommitConflictError, match="were taken back"):
            rewrite(catalog, plan, run=others)
    assert len(read(catalog)) == (8 if known else 9)


def test_an_equality_delete_that_new_files_are_too_young_for_conflicts(tmp_path) -> None:
    table = new_table(tmp_path, 2)
    table.append(rows(0, 10))
    catalog = catalog_of(table)
    for keeps, count in ((False, 9), (True, 8)):
        plan = planned(catalog, rewrite_all=True, use_starting_sequence_number=keeps)
        others = after_reading(lambda n=count: table.delete_keys(n))
        if keeps:
            rewrite(catalog, plan, run=others)
        else:
            with pytest.raises(CommitConflictError, match="were deleted"):
                rewrite(catalog, plan, run=others)
        assert len(read(catalog)) == count


def test_rows_that_are_nowhere_in_the_new_files_are_noticed(tmp_path) -> None:
    table = new_table(tmp_path, 2, **MERGE_ON_READ)
    table.append(rows(0, 10))
    catalog = catalog_of(table)
    plan = planned(catalog, rewrite_all=True)

    def wrongly(work: Work[Any]) -> Results[Any]:
        for task, made in run_here(work):
            assert isinstance(made, Written)
            origins = RowOrigins(*(np.array([value]) for value in (0, 0, 5)))
            yield task, replace(made, origins=((encode_origins(origins),),))
        execute(catalog, "DELETE FROM ns.t WHERE id IN (2, 7)")

    with pytest.raises(InternalError, match=r"2 rows of .* were deleted meanwhile, and 1 of them"):
        rewrite(catalog, plan, run=wrongly)
    assert len(read(catalog)) == 8


def test_columns_with_the_names_of_metadata_columns(tmp_path) -> None:
    from tests.writer.table import TableWriter

    target = tmp_path / "wh" / "ns" / "t"
    target.mkdir(parents=True)
    names = ["_pos", "_snapshot_id", "position", "origin position", "origin source"]
    fields = [
        {"id": n, "name": name, "required": False, "type": "long"}
        for n, name in enumerate(names, 1)
    ]
    table = TableWriter(str(target), fields, [], version=2, properties=MERGE_ON_READ)
    made = [{name: n * 10 + place for place, name in enumerate(names)} for n in range(6)]
    files = table.append(made[:3], made[3:])
    catalog = catalog_of(table)
    plan = planned(catalog, rewrite_all=True)
    rewrite(
        catalog,
        plan,
        run=after_reading(lambda: table.commit([table.position_deletes([(files[1], 1)])])),
    )
    found = read(catalog, 'position, "origin source"')
    assert sorted(found) == [(n * 10 + 2, n * 10 + 4) for n in range(6) if n != 4]


# ------------------------------------------------------------------ origins


def test_origins_come_back_as_they_were(tmp_path) -> None:
    chance = random.Random(5)
    for _ in range(200):
        count = chance.randrange(60)
        source = [chance.randrange(3) for _ in range(count)]
        taken = chance.sample(range(200), count)
        if chance.random() < 0.5:
            source.sort()
            taken.sort()
        pairs = [*zip(source, taken, strict=True)]
        arrays = [np.array([each[n] for each in pairs], np.int64) for n in (0, 1)]
        stream, cuts = OriginsInOrder(), sorted(chance.choices(range(count + 1), k=4))
        for start, end in zip([0, *cuts], [*cuts, count], strict=True):
            stream.add(*(pa.array(each[start:end]) for each in arrays))
        middle = chance.randrange(count + 1)
        of_files = stream.of_files([middle, 0, count - middle])
        assert [decode_origins(each).rows for each in of_files] == [middle, 0, count - middle]
        parts = sum(of_files, ())
        found = decode_origins(parts)
        assert found.rows == count
        for number in range(3):
            wanted = np.array(sorted(chance.sample(range(220), 40)))
            rows_here = found.rows_of(number, wanted).tolist()
            assert rows_here == [
                n for n, (s, p) in enumerate(pairs) if s == number and p in set(wanted.tolist())
            ]


@pytest.mark.parametrize("most", [1 << 20, 1])
@pytest.mark.parametrize("strategy", ["binpack", "sort"])
def test_tasks_of_spark_say_where_rows_went(
    tmp_path, strategy: str, most: int, monkeypatch
) -> None:
    pytest.importorskip("pyspark", reason="a worker asks PySpark for the number of its task")
    monkeypatch.setattr("icesql.engine.spark.writing.job.task_numbers", lambda: (0, 0))
    monkeypatch.setattr(machine, "_MOST_BYTES", most)
    table = with_deletes(tmp_path, 3)
    catalog = catalog_of(table)
    set_merge_on_read(catalog)
    plan = planned(catalog, strategy, ORDERS[strategy], rewrite_all=True)
    workers: Any = Workers()
    deleted = after_reading(
        lambda: execute(catalog, "DELETE FROM ns.t WHERE id % 7 = 1"),
        runner=run_in_spark(workers),
    )
    written: list[str] = []
    real = NewFile.finish

    def finish(file: NewFile) -> int:
        written.append(file.path)
        return real(file)

    monkeypatch.setattr(NewFile, "finish", finish)
    done = rewrite(catalog, plan, run=deleted)
    assert done.carried_rows > 2
    # Many origins are spilled to a file meanwhile.
    assert len([each for each in written if each.endswith(".bin")]) == (most == 1)
    assert [*Path(table.folder).rglob("*.bin")] == []
    assert [each for each in read(catalog, "id") if each[0] % 7 == 1] == []


def test_other_bytes_are_no_origins() -> None:
    other = pa.BufferOutputStream()
    with pa.ipc.new_stream(other, pa.schema([("x", pa.int64())])) as writer:
        writer.write_batch(pa.record_batch({"x": pa.array([1], pa.int64())}))
    for each in (b"", b"x" * 40, bytes(other.getvalue())):
        with pytest.raises(InternalError, match="in an unknown way"):
            decode_origins((each,))


def test_origins_that_are_many_wait_on_disk(tmp_path) -> None:
    made = [RowOrigins(*(np.array(values) for values in ([n], [n * 5], [7]))) for n in range(4)]
    with_file = Origins(str(tmp_path / "temp"), most_in_memory=1)
    for n, each in enumerate(made):
        files: Any = tuple(SimpleNamespace(path=f"{n} {place}") for place in range(2))
        kept = with_file.take(Written(files, origins=((encode_origins(each),), ())))
        assert kept == Written(files)
        assert with_file.has(files)
        first, second = map(with_file.of, files)
        assert first.of_source(int(each.sources[0]))[0].tolist() == each.positions.tolist()
        assert second.rows == 0
    assert [*(tmp_path / "temp").iterdir()] == []
    with_file.close()
    with_file.close()


@pytest.mark.parametrize("version", [2, 3])
def test_parts_of_large_files_are_followed(tmp_path, version: int) -> None:
    table = new_table(tmp_path, version, **MERGE_ON_READ)
    made = [table.data_file(rows(5000 * n, 5000), row_group_size=400) for n in range(2)]
    table.commit(made)
    catalog = catalog_of(table)
    plan = planned(
        catalog, rewrite_all=True, target_file_size_bytes=20_000, min_file_size_bytes=1,
        max_file_size_bytes=40_000,
    )  # fmt: skip
    (group,) = plan.groups
    tasks = tasks_of(plan, group, 0, "x")
    assert len(tasks) > 2
    assert any(each.start > 4 for task in tasks for each in task.scan.tasks)
    expected: list[Any] = []
    done = rewrite(
        catalog,
        plan,
        run=after_reading(
            lambda: execute(catalog, "DELETE FROM ns.t WHERE id % 89 = 3"),
            lambda: expected.extend(everything(catalog, version)),
        ),
    )
    assert done.added_data_files_count > 2
    assert done.carried_rows == len([n for n in range(10_000) if n % 89 == 3])
    assert everything(catalog, version) == expected


@pytest.mark.parametrize("format", ["orc", "avro"])
def test_files_of_other_formats_are_followed(tmp_path, format: str) -> None:
    table = new_table(tmp_path, 2, **MERGE_ON_READ)
    table.commit([table.data_file(rows(10 * n, 10), format=format) for n in range(3)])
    catalog = catalog_of(table)
    plan = planned(catalog, rewrite_all=True)
    done = rewrite(
        catalog,
        plan,
        run=after_reading(lambda: execute(catalog, "DELETE FROM ns.t WHERE id IN (4, 15, 29)")),
    )
    assert done.carried_rows == 3
    assert {each[0] for each in read(catalog, "id")} == {*range(30)} - {4, 15, 29}


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("conflicts", [0, 2])
def test_a_lost_reply_deletes_nothing_that_the_table_has(
    tmp_path, version: int, conflicts: int, monkeypatch
) -> None:
    table = new_table(tmp_path, version, partitioned=True, **MERGE_ON_READ)
    table.commit([table.data_file(rows(0, 9, p), partition=(p,)) for p in "abc" for _ in "12"])
    catalog = catalog_of(table)
    plan = planned(catalog, rewrite_all=True)
    left = [
        "DELETE FROM ns.t WHERE p = 'a' AND id = 3",
        "DELETE FROM ns.t WHERE p = 'c' AND id = 4",
    ][:conflicts]
    swap = catalog.swap
    lost: list[Any] = []

    def unreliable(*given: Any, **named: Any) -> Any:
        if left:
            execute(catalog, left.pop())
        done = swap(*given, **named)
        if isinstance(done, Done) and not lost:
            lost.append(done)
            return Unknown("the reply was lost")
        return done

    monkeypatch.setattr(catalog, "swap", unreliable)
    # Also a group that is left out: another rewrite replaces its old file.
    others = after_reading(
        lambda: execute(
            catalog,
            "ALTER TABLE ns.t SET TBLPROPERTIES ('write.delete.mode' = 'copy-on-write')",
            "DELETE FROM ns.t WHERE p = 'b' AND id = 2",
            "ALTER TABLE ns.t SET TBLPROPERTIES ('write.delete.mode' = 'merge-on-read')",
        )
    )
    before = files(table)
    done = rewrite(catalog, plan, run=others)
    assert done.carried_rows == 2 * conflicts
    assert done.failed_data_files_count == 2
    assert len(lost) == 1
    with icesql.connect(warehouse=catalog.folder, settings={"caches": False}) as con:
        found = con.execute("SELECT p, count(*) FROM ns.t GROUP BY p ORDER BY p").fetchall()
        named = {r[0] for r in con.execute("SELECT file_path FROM ns.t.all_files").fetchall()}
    carried = 2 if conflicts else 0
    assert found == [("a", 18 - carried), ("b", 16), ("c", 18 - carried)]
    new = {Path(each).name for each in files(table) - before}
    assert new <= {Path(each).name for each in named}
