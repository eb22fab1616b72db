"""Planning keeps files that may match, reads only the needed metadata, and reports its steps."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from icesql.catalog.table import Table
from icesql.config import Settings
from icesql.context import QueryContext
from icesql.errors import CorruptFileError, QueryCancelledError, UnsupportedTableError
from icesql.iceberg.expressions.predicate import ALWAYS_FALSE, ALWAYS_TRUE, Leaf, Operation, Term
from icesql.iceberg.schema import Schema
from icesql.iceberg.types import INTEGER, NestedField
from icesql.scan.plan import SkipRecord
from icesql.scan.planner import plan
from icesql.storage.cache import BoundedCache
from icesql.storage.open import Storage
from icesql.storage.stores import pool
from tests.scan.metadata_only import (
    DELETED,
    EXISTING,
    MetadataOnly,
    column,
    data_file,
    equality_deletes,
    id_bounds,
    id_is,
    paths,
    planned,
    position_deletes,
    region_is,
    scan_of,
)

BY_REGION = [{"source-id": 2, "field-id": 1000, "transform": "identity", "name": "region"}]
NO_PRUNE = QueryContext(settings=Settings(prune=False))


def summary(low: str, high: str) -> list[dict[str, Any]]:
    return [
        {
            "contains_null": False,
            "contains_nan": None,
            "lower_bound": low.encode(),
            "upper_bound": high.encode(),
        }
    ]


def region(name: str | None) -> dict[str, Any]:
    return {"region": name}


class ReadPaths(Storage):
    """A storage that records the paths it reads."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.paths: list[str] = []

    def read(self, path: str, **how: Any) -> bytes:
        self.paths.append(path)
        return super().read(path, **how)


def remembering(table: Table) -> tuple[Table, list[str]]:
    storage = ReadPaths({}, table.storage.reroot)
    return replace(table, storage=storage), storage.paths


@pytest.fixture
def built(tmp_path) -> MetadataOnly:
    return MetadataOnly(tmp_path)


@pytest.fixture
def regions(tmp_path) -> tuple[MetadataOnly, dict[str, str]]:
    """Two manifests by region: eu and us, and only us."""
    built = MetadataOnly(tmp_path, specs={0: BY_REGION})
    mixed = built.manifest(
        data_file("eu1", region("eu"), **id_bounds(1, 10)),
        data_file("us1", region("us"), **id_bounds(11, 20)),
        data_file("eu2", region("eu"), **id_bounds(21, 30)),
        partitions=summary("eu", "us"),
    )
    us = built.manifest(
        data_file("us2", region("us"), **id_bounds(31, 40)), partitions=summary("us", "us")
    )
    return built, {"mixed": mixed, "us": us}


# ------------------------------------------------------------------ pruning


def test_without_a_filter_every_live_file_is_planned_in_manifest_order(built: MetadataOnly) -> None:
    built.manifest(
        data_file("b"), data_file("gone", status=DELETED, sequence_number=1), data_file("a")
    )
    built.manifest(data_file("c", status=EXISTING, sequence_number=1, snapshot_id=3))
    found = planned(built.table())
    assert paths(found) == ["b", "a", "c"]
    assert [(task.start, task.length) for task in found.files] == [(0, 1000)] * 3
    assert paths(planned(built.table(), query=NO_PRUNE)) == ["b", "a", "c"]


def test_a_manifest_is_skipped_by_its_summary_unopened(
    regions: tuple[MetadataOnly, dict[str, str]],
) -> None:
    built, manifests = regions
    table, read = remembering(built.table())
    found = planned(table, region_is("eu"))
    assert paths(found) == ["eu1", "eu2"]
    assert manifests["mixed"] in read
    assert manifests["us"] not in read
    report = found.report
    assert (report.total_data_manifests, report.scanned_data_manifests) == (2, 1)
    assert (report.skipped_data_manifests, report.skipped_data_files) == (1, 1)
    assert (report.result_data_files, report.total_file_size_in_bytes) == (2, 2000)


def test_files_are_skipped_by_partition_and_by_metrics(
    regions: tuple[MetadataOnly, dict[str, str]],
) -> None:
    table = regions[0].table()
    assert paths(planned(table, region_is("us") & id_is(35))) == ["us2"]
    assert paths(planned(table, region_is("us") & id_is(5))) == []
    assert paths(planned(table, id_is(25))) == ["eu2"]
    assert paths(planned(table, id_is(25) | region_is("us"))) == ["us1", "eu2", "us2"]


def test_what_the_partition_answers_is_not_in_the_residual(
    regions: tuple[MetadataOnly, dict[str, str]],
) -> None:
    found = planned(regions[0].table(), region_is("eu") & id_is(5))
    assert [task.residual for task in found.files] == [id_is(5)]
    assert planned(regions[0].table(), region_is("us")).files[0].residual is ALWAYS_TRUE


def test_a_filter_that_is_never_true_opens_nothing(
    regions: tuple[MetadataOnly, dict[str, str]],
) -> None:
    table, read = remembering(regions[0].table())
    assert planned(table, ALWAYS_FALSE).files == ()
    assert planned(table, limit=0).files == ()
    assert read == []


def test_pruning_can_be_switched_off(regions: tuple[MetadataOnly, dict[str, str]]) -> None:
    built, _ = regions
    for row_filter in (region_is("eu") & id_is(5), ALWAYS_FALSE):
        found = planned(built.table(), row_filter, NO_PRUNE)
        assert paths(found) == ["eu1", "us1", "eu2", "us2"]
        assert {task.residual for task in found.files} == {ALWAYS_TRUE}


def test_a_table_without_a_snapshot_has_no_files(tmp_path) -> None:
    table = MetadataOnly(tmp_path).table(**{"current-snapshot-id": -1, "snapshots": []})
    found = planned(table)
    assert (found.files, found.tasks, found.report.snapshot_id) == ((), (), None)


def test_manifests_without_live_files_are_not_opened(built: MetadataOnly) -> None:
    dead = built.manifest(data_file("gone", status=DELETED))
    built.manifest(data_file("a"))
    table, read = remembering(built.table())
    assert paths(planned(table)) == ["a"]
    assert dead not in read


# ------------------------------------------------------------------ specs and schemas


def test_each_manifest_is_pruned_by_its_own_spec(tmp_path) -> None:
    bucket = [{"source-id": 1, "field-id": 1001, "transform": "bucket[4]", "name": "id_bucket"}]
    built = MetadataOnly(tmp_path, specs={0: [], 1: BY_REGION, 2: bucket})
    built.manifest(data_file("plain"))
    built.manifest(data_file("eu", region("eu")), data_file("us", region("us")), spec_id=1)
    # Iceberg's hash of 34 is 2017239379, which is 3 modulo 4.
    built.manifest(*(data_file(f"b{n}", {"id_bucket": n}) for n in range(4)), spec_id=2)
    table = built.table()
    assert paths(planned(table, region_is("eu"))) == ["plain", "eu", "b0", "b1", "b2", "b3"]
    assert paths(planned(table, id_is(34))) == ["plain", "eu", "us", "b3"]


def test_a_spec_whose_column_was_dropped_still_opens(tmp_path) -> None:
    built = MetadataOnly(tmp_path, specs={0: BY_REGION})
    built.manifest(data_file("eu", region("eu"), **id_bounds(1, 9)), data_file("n", region(None)))
    built.fields = [column(1, "id")]
    older = {
        "type": "struct",
        "schema-id": 1,
        "fields": [column(1, "id"), column(2, "region", "string")],
    }
    for schemas in ([built._schema()], [built._schema(), older]):
        table = built.table(schemas=schemas)
        found = planned(table, id_is(5))
        assert paths(found) == ["eu", "n"]
        assert found.files[0].data_file.partition == ("eu",)
        assert found.files[0].residual == id_is(5)


def test_time_travel_prunes_by_the_schema_of_the_scan(built: MetadataOnly) -> None:
    four = {"lower_bounds": {1: b"\x05\0\0\0"}, "upper_bounds": {1: b"\x09\0\0\0"}}
    built.manifest(data_file("a", **four))
    table = built.table()
    old = Schema((NestedField(1, "number", INTEGER),), schema_id=5)
    row_filter = Leaf(Operation.EQ, Term(1, "number"), 10)
    assert paths(planned(table, row_filter, schema=old)) == []
    assert paths(planned(table, Leaf(Operation.EQ, Term(1, "number"), 9), schema=old)) == ["a"]
    assert paths(planned(table, id_is(10))) == []
    assert planned(table, schema=old).report.projected_field_names == ("number",)


def test_an_unknown_spec_is_corrupt(built: MetadataOnly) -> None:
    built.manifest(data_file("a"), partition_spec_id=8)
    with pytest.raises(CorruptFileError, match="partition spec 8"):
        planned(built.table())


# ------------------------------------------------------------------ deletes


def test_delete_manifests_are_read_only_when_a_data_file_is_left(built: MetadataOnly) -> None:
    built.manifest(data_file("a", **id_bounds(1, 9)))
    deletes = built.manifest(equality_deletes("e", [1]), sequence_number=2)
    table, read = remembering(built.table())
    assert planned(table, id_is(50)).files == ()
    assert deletes not in read
    (task,) = planned(table, id_is(5)).files
    assert [delete.path for delete in task.deletes] == ["e"]
    assert deletes in read


def test_deletes_are_counted_as_java_counts_them(tmp_path) -> None:
    built = MetadataOnly(tmp_path, version=3)
    built.manifest(data_file("a"), data_file("b"))
    built.manifest(
        equality_deletes("e", [1]),
        position_deletes("p"),
        position_deletes(
            "v", file_format="PUFFIN", referenced_data_file="b", content_offset=4,
            content_size_in_bytes=44,
        ),
        sequence_number=2,
    )  # fmt: skip
    found = planned(built.table())
    assert [[d.path for d in task.deletes] for task in found.files] == [["e", "p"], ["e", "v"]]
    report = found.report
    assert (report.result_delete_files, report.distinct_delete_files) == (4, 3)
    assert report.total_delete_file_size_in_bytes == 1000 + 1000 + 1000 + 44
    kinds = (report.equality_delete_files, report.positional_delete_files, report.dvs)
    assert kinds == (1, 1, 1)
    assert (report.indexed_delete_files, report.scanned_delete_manifests) == (3, 1)
    assert found.record_count is None


def test_deletes_of_pruned_partitions_are_skipped(tmp_path) -> None:
    built = MetadataOnly(tmp_path, specs={0: BY_REGION})
    built.manifest(data_file("eu", region("eu")), data_file("us", region("us")))
    built.manifest(
        position_deletes("p-eu", partition=region("eu")),
        position_deletes("p-us", partition=region("us")),
        sequence_number=2,
    )
    us_only = built.manifest(
        position_deletes("more", partition=region("us")),
        sequence_number=2,
        partitions=summary("us", "us"),
    )
    table, read = remembering(built.table())
    found = planned(table, region_is("eu"))
    assert [[d.path for d in task.deletes] for task in found.files] == [["p-eu"]]
    assert us_only not in read
    assert (found.report.skipped_delete_manifests, found.report.skipped_delete_files) == (1, 1)
    with_all = planned(table, region_is("eu"), NO_PRUNE)
    assert [[d.path for d in task.deletes] for task in with_all.files] == [
        ["p-eu"], ["p-us", "more"],
    ]  # fmt: skip


def test_an_equality_delete_is_skipped_by_its_keys_but_not_by_other_columns(
    built: MetadataOnly,
) -> None:
    region_bounds = {"lower_bounds": {2: b"us"}, "upper_bounds": {2: b"us"}}
    keyed = id_bounds(100, 200)
    both = {**keyed, **{name: {**keyed[name], **region_bounds[name]} for name in region_bounds}}
    built.manifest(data_file("a"))
    # The region stored beside the key is that of another version of the row.
    built.manifest(equality_deletes("e", [1], **both), sequence_number=2)
    table = built.table()

    def deletes(row_filter: Any) -> list[str]:
        (task,) = planned(table, row_filter).files
        return [delete.path for delete in task.deletes]

    assert deletes(region_is("eu")) == ["e"]
    assert deletes(id_is(150) & region_is("eu")) == ["e"]
    assert deletes(id_is(5)) == []
    assert deletes(id_is(5) | region_is("eu")) == ["e"]


def test_deletes_of_void_specs_reach_every_partition(tmp_path) -> None:
    void = [{"source-id": 2, "field-id": 1000, "transform": "void", "name": "region"}]
    built = MetadataOnly(tmp_path, specs={0: BY_REGION, 1: void})
    built.manifest(data_file("eu", region("eu")))
    built.manifest(equality_deletes("e", [1], partition=region(None)), spec_id=1, sequence_number=2)
    (task,) = planned(built.table(), region_is("eu")).files
    assert [delete.path for delete in task.deletes] == ["e"]


# ------------------------------------------------------------------ limit


def test_a_limit_stops_the_walk_once_the_files_hold_enough_rows(built: MetadataOnly) -> None:
    built.manifest(data_file("a"), data_file("unknown", record_count=-1), data_file("b"))
    second = built.manifest(data_file("c"), data_file("d"))
    third = built.manifest(data_file("e"))
    table, read = remembering(built.table())
    found = planned(table, limit=25)
    assert paths(found) == ["a", "unknown", "b", "c"]
    assert found.report.limit_reached
    assert second in read
    assert third not in read
    assert paths(planned(table, limit=1000)) == ["a", "unknown", "b", "c", "d", "e"]
    assert not planned(table, limit=1000).report.limit_reached


def test_a_limit_does_not_stop_a_walk_with_deletes_or_a_filter(built: MetadataOnly) -> None:
    built.manifest(*(data_file(name, **id_bounds(1, 9)) for name in "abc"))
    assert paths(planned(built.table(), id_is(5), limit=1)) == ["a", "b", "c"]
    built.manifest(position_deletes("p"), sequence_number=2)
    assert paths(planned(built.table(), limit=1)) == ["a", "b", "c"]


# ------------------------------------------------------------------ refusals and cancellation


def test_encrypted_files_that_would_be_read_are_refused(built: MetadataOnly) -> None:
    built.manifest(
        data_file("secret", key_metadata=b"k", **id_bounds(1, 9)),
        data_file("open", **id_bounds(11, 19)),
    )
    with pytest.raises(UnsupportedTableError, match=r"encryption.*secret"):
        planned(built.table())
    assert paths(planned(built.table(), id_is(15))) == ["open"]


def test_encrypted_delete_files_are_refused(built: MetadataOnly) -> None:
    built.manifest(data_file("a"))
    built.manifest(position_deletes("p", key_metadata=b"k"), sequence_number=2)
    with pytest.raises(UnsupportedTableError, match=r"encryption.*p"):
        planned(built.table())


def test_an_encrypted_manifest_list_is_refused(built: MetadataOnly) -> None:
    built.manifest(data_file("a"))
    table = built.table()
    snapshot = table.metadata.current_snapshot
    assert snapshot is not None
    scan = replace(scan_of(table), snapshot=replace(snapshot, key_id="k1"))
    with pytest.raises(UnsupportedTableError, match="encryption"):
        plan(scan, QueryContext())


def test_a_missing_manifest_is_named(built: MetadataOnly) -> None:
    from icesql.errors import StorageError

    path = built.manifest(data_file("a"))
    table = built.table()
    Path(path).unlink()
    with pytest.raises(StorageError, match=Path(path).name):
        planned(table)


def test_planning_is_cancelled_between_manifests(built: MetadataOnly) -> None:
    for name in "abc":
        built.manifest(data_file(name))
    seen: list[int] = []
    query = QueryContext()

    def progress(of: Any) -> None:
        seen.append(of.done)
        query.cancel.set()

    query.progress = progress
    with pytest.raises(QueryCancelledError):
        planned(built.table(), query=query)
    assert seen == [1]


# ------------------------------------------------------------------ remote


class Remote(ReadPaths):
    """A store that counts as remote; reading waits for ``gate`` if there is one."""

    gate: threading.Event | None = None

    def local_path(self, path: str) -> str | None:
        return None

    def read(self, path: str, **how: Any) -> bytes:
        if self.gate is not None and "-m" in path:
            self.gate.wait(60)
        return super().read(path, **how)


def test_remote_manifests_are_read_ahead_in_order(built: MetadataOnly) -> None:
    for number in range(40):
        built.manifest(data_file(f"f{number}"))
    table = built.table()
    storage = Remote({}, table.storage.reroot)
    found = planned(replace(table, storage=storage))
    assert paths(found) == [f"f{number}" for number in range(40)]
    assert len(storage.paths) == 41


class OnDisk(Remote):
    """A store whose files were all fetched before; those in ``evicted`` went since."""

    evicted: tuple[str, ...] = ()

    def is_kept(self, path: str) -> bool:
        return True

    def kept(self, path: str, *, most: int) -> bytes | None:
        return None if path.endswith(self.evicted) else Storage.read(self, path, most=most)


@pytest.mark.parametrize("evicted", [(), ("-m1.avro", "-m4.avro")])
def test_manifests_on_disk_are_read_without_a_request_or_a_thread(
    built: MetadataOnly, monkeypatch, evicted: tuple[str, ...]
) -> None:
    for number in range(6):
        built.manifest(data_file(f"f{number}"))
    table = built.table()
    storage = OnDisk({}, table.storage.reroot)
    storage.evicted = evicted
    if not evicted:
        monkeypatch.setattr(QueryContext, "wait_for", None)
        monkeypatch.setattr(pool.RequestPool, "submit", None)
    found = planned(replace(table, storage=storage))
    assert paths(found) == [f"f{number}" for number in range(6)]
    assert [path[-8:] for path in storage.paths] == list(evicted)


def test_a_limit_reads_ahead_only_so_far(built: MetadataOnly) -> None:
    for number in range(60):
        built.manifest(data_file(f"f{number}"))
    table = built.table()
    storage = Remote({}, table.storage.reroot)
    assert paths(planned(replace(table, storage=storage), limit=5)) == ["f0"]
    assert len(storage.paths) <= 1 + 17


def test_a_cancelled_walk_does_not_wait_for_the_store(built: MetadataOnly) -> None:
    built.manifest(data_file("a"))
    built.manifest(data_file("b"))
    table = built.table()
    storage = Remote({}, table.storage.reroot)
    storage.gate = threading.Event()
    query = QueryContext()
    threading.Timer(0.1, query.cancel.set).start()
    started = time.monotonic()
    try:
        with pytest.raises(QueryCancelledError):
            planned(replace(table, storage=storage), query=query)
        assert time.monotonic() - started < 30
    finally:
        storage.gate.set()


# ------------------------------------------------------------------ cache


def test_kept_manifests_are_not_read_again_and_changed_ones_are(built: MetadataOnly) -> None:
    path = built.manifest(data_file("a"))
    table = built.table()
    storage = ReadPaths({}, table.storage.reroot, cache=BoundedCache())
    table = replace(table, storage=storage)
    assert paths(planned(table)) == paths(planned(table)) == ["a"]
    assert len(storage.paths) == 2
    Path(path).write_bytes(b"damaged")
    with pytest.raises(CorruptFileError):
        planned(table)


# ------------------------------------------------------------------ what comes out


def test_explain_says_why_each_file_is_skipped(
    regions: tuple[MetadataOnly, dict[str, str]],
) -> None:
    built, manifests = regions
    found = planned(built.table(), region_is("eu") & id_is(5), explain=True)
    stages = {(skip.path, skip.kind, skip.stage) for skip in found.skipped}
    assert stages == {
        (manifests["us"], "manifest", "partition summary"),
        ("us1", "file", "partition"),
        ("eu2", "file", "metrics"),
    }
    by_path = {skip.path: skip for skip in found.skipped}
    assert "id = 5" in by_path["eu2"].predicate
    assert "21" in by_path["eu2"].reason
    assert "region" in by_path["us1"].predicate
    assert "us" in by_path["us1"].reason
    assert planned(built.table(), id_is(5)).skipped == ()


def test_explain_says_why_deletes_are_skipped(built: MetadataOnly) -> None:
    built.manifest(data_file("a"))
    built.manifest(equality_deletes("e", [1], **id_bounds(100, 200)), sequence_number=2)
    (skip,) = planned(built.table(), id_is(5), explain=True).skipped
    assert (skip.kind, skip.path, skip.stage) == ("delete", "e", "metrics")
    assert isinstance(skip, SkipRecord)


def test_a_plans_tasks_can_travel(regions: tuple[MetadataOnly, dict[str, str]]) -> None:
    found = planned(regions[0].table(), id_is(5))
    (task,) = found.tasks
    copy = pickle.loads(pickle.dumps(task))
    assert [each.data_file.path for each in copy.tasks] == ["eu1"]
    assert copy.tasks[0].residual == id_is(5)
    assert copy.tasks[0].data_file.lower_bounds is None
    assert found.files[0].data_file.lower_bounds is not None
    assert copy.context.specs == found.context.specs


def test_the_deletes_of_a_plan_are_without_metrics(built: MetadataOnly) -> None:
    built.manifest(data_file("a"))
    built.manifest(equality_deletes("e", [1], **id_bounds(1, 9)), sequence_number=2)
    (delete,) = planned(built.table()).files[0].deletes
    assert (delete.lower_bounds, delete.value_counts) == (None, None)
    assert (delete.equality_ids, delete.record_count) == ((1,), 10)


def test_small_plans_import_nothing_slow(tmp_path) -> None:
    built = MetadataOnly(tmp_path, specs={0: BY_REGION})
    built.manifest(data_file("eu", region("eu"), **id_bounds(1, 9)))
    built.manifest(position_deletes("p", partition=region("eu")), sequence_number=2)
    built.table()
    program = """
import json, sys
from icesql.catalog.open import open_table
from icesql.context import QueryContext
from icesql.iceberg.expressions.predicate import Leaf, Operation, Term
from icesql.scan.planner import plan
from icesql.scan.plan import TableScan
table = open_table(sys.argv[1])
schema = table.metadata.schema
row_filter = Leaf(Operation.EQ, Term(1, "id"), 5)
scan = TableScan(table, table.metadata.current_snapshot, schema, schema, row_filter, explain=True)
found = plan(scan, QueryContext())
assert len(found.tasks) == 1 and found.report.to_dict()
print(json.dumps(sorted(sys.modules)))
"""
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=True,
        timeout=600,
    )
    modules = set(json.loads(done.stdout))
    assert modules & {"numpy", "pyarrow", "fastavro", "pandas", "duckdb", "sqlglot"} == set()


# ------------------------------------------------------------------ listed twice


def test_a_file_that_is_listed_twice_is_read_twice_and_told(built: MetadataOnly) -> None:
    """In two manifests, and in one; Java reads it as often."""
    built.manifest(data_file("a"), data_file("b"), data_file("b"))
    built.manifest(data_file("c"), data_file("a", status=EXISTING, sequence_number=1))
    found = planned(built.table())
    assert [task.data_file.path for task in found.files] == ["a", "b", "b", "c", "a"]
    assert found.repeated == ("b", "a")


def test_an_entry_that_the_list_does_not_count_is_no_second_listing(built: MetadataOnly) -> None:
    path = built.manifest(data_file("a"), data_file("b"), data_file("a"), added_files_count=2)
    with pytest.raises(CorruptFileError, match="lists the live file a again") as caught:
        planned(built.table())
    assert caught.value.path == path


def test_a_removed_file_may_be_added_again(built: MetadataOnly) -> None:
    built.manifest(data_file("a", status=DELETED, sequence_number=1), data_file("b"))
    built.manifest(data_file("a"))
    assert [task.data_file.path for task in planned(built.table()).files] == ["b", "a"]


@pytest.mark.parametrize("times", [2, 300, 20_000])
def test_a_manifest_listed_again_is_refused_before_it_is_read(
    built: MetadataOnly, times: int
) -> None:
    path = built.manifest(data_file("a"))
    Path(path).unlink()
    built.manifests *= times
    with pytest.raises(CorruptFileError, match=r"m0\.avro is listed twice, as entries 1 and 2"):
        planned(built.table())
