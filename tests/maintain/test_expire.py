"""What expires, by Java's vectors, and which files go with it: never one that is still read."""

from __future__ import annotations

from ast import literal_eval
from pathlib import Path

import pytest
from msgspec.structs import replace

import icesql
from icesql.commit.append import commit_append
from icesql.commit.change import change_table
from icesql.commit.refs import create_ref, rollback_to_snapshot
from icesql.commit.rows import commit_rewrite
from icesql.errors import NotSupportedError, ProgrammingError, SnapshotNotFoundError
from icesql.iceberg.metadata.changes.updates import (
    AddPartitionSpec,
    SetDefaultSpec,
    SetStatistics,
)
from icesql.iceberg.metadata.json_writer import metadata_bytes
from icesql.iceberg.metadata.snapshot import SnapshotRef
from icesql.iceberg.metadata.table_metadata import parse_metadata
from icesql.iceberg.partitioning import PartitionSpec
from icesql.maintain.expire import expire_snapshots
from icesql.maintain.expiry_plan import plan_expiry
from tests.commit.tables import CATALOGS, create, directory, entries, fake, head, live, written
from tests.commit.test_rows import in_table, overwritten
from tests.iceberg.metadata.changes.test_apply import appended as next_version
from tests.iceberg.metadata.changes.test_apply import created
from tests.tables import read_table


def history(count: int, **refs: SnapshotRef):
    """Metadata with snapshots 1, 2, … of the times 1001, 1002, …"""
    document = created()
    for number in range(1, count + 1):
        document = next_version(document, number, number - 1 or None)
    for name, ref in refs.items():
        from icesql.iceberg.metadata.changes.apply import apply_updates
        from icesql.iceberg.metadata.changes.updates import SetSnapshotRef

        document = apply_updates(document, [SetSnapshotRef(name, ref)], now_ms=2000)
    return parse_metadata(metadata_bytes(document), "x")


@pytest.mark.parametrize(
    ("count", "refs", "options", "snapshots", "gone"), read_table(__file__, "expiry.tsv")
)
def test_what_expires(count: str, refs: str, options: str, snapshots: str, gone: str) -> None:
    known = {name: SnapshotRef(**each) for name, each in literal_eval(refs).items()}
    given = {"now_ms": 10_000, **literal_eval(options)}
    found = plan_expiry(history(int(count), **known), **given)
    assert (found.snapshot_ids, found.refs) == (literal_eval(snapshots), tuple(gone.split()))


@pytest.mark.parametrize(
    ("options", "error", "told"),
    [
        ({"retain_last": 0}, ProgrammingError, "retain_last"),
        ({"snapshot_ids": [4]}, ProgrammingError, "head of 'main'"),
        ({"snapshot_ids": [77]}, SnapshotNotFoundError, "77"),
    ],
)
def test_what_cannot_expire(options, error, told) -> None:
    with pytest.raises(error, match=told):
        plan_expiry(history(4), now_ms=10_000, **options)


# ------------------------------------------------------------------ files


@pytest.fixture(params=CATALOGS)
def catalog(request, tmp_path: Path):
    return CATALOGS[request.param](tmp_path)


def append(catalog, table, *names, branch="main"):
    files = [written(table, name, [(1, "x")]) for name in names]
    return commit_append(catalog, table, files, branch=branch).table


def on_disk(table) -> set[str]:
    folder = Path(table.metadata.location)
    return {each.stem for each in (folder / "data").glob("*.parquet")}


def all_read(table) -> None:
    """Every manifest of every snapshot is there, and every file that it lists."""
    for snapshot in table.metadata.snapshots.values():
        for found in entries(table, snapshot):
            for path, status in zip(found.path, found.status, strict=True):
                assert status == 2 or Path(path).is_file()


def test_files_go_with_the_last_snapshot_that_needs_them(catalog) -> None:
    table = append(catalog, create(catalog), "A", "B")
    table = overwritten(
        catalog, table, in_table(table, "A"), [written(table, "C", [(1, "x")])]
    ).table
    table = append(catalog, table, "D")
    dry = expire_snapshots(catalog, table, older_than_ms=1 << 50, dry_run=True)
    assert on_disk(table) == {"A", "B", "C", "D"}
    done = expire_snapshots(catalog, table, older_than_ms=1 << 50)
    assert done.files == dry.files
    assert [Path(each).stem for each in done.files.data_files] == ["A"]
    assert len(done.files.manifest_lists) == 2
    assert done.deleted == len(done.files.paths)
    assert on_disk(table) == {"B", "C", "D"} == live(done.table)
    assert len(done.table.metadata.snapshots) == 1
    all_read(done.table)
    again = expire_snapshots(catalog, done.table, older_than_ms=1 << 50)
    assert (again.deleted, again.table.metadata_location) == (0, done.table.metadata_location)


def test_refs_and_rollbacks_keep_what_they_read(catalog) -> None:
    table = append(catalog, create(catalog), "A")
    first = head(table).snapshot_id
    table = change_table(catalog, table, create_ref("v1", "tag")).table
    table = append(catalog, table, "B", branch="audit")
    table = append(catalog, table, "C")
    table = overwritten(catalog, table, in_table(table, "A"), []).table
    table = append(catalog, table, "E")
    table = change_table(catalog, table, rollback_to_snapshot(head(table).parent_snapshot_id)).table
    done = expire_snapshots(catalog, table, older_than_ms=1 << 50)
    assert first in done.table.metadata.snapshots
    assert on_disk(table) == {"A", "B", "C"}, "E was rolled back, and is of no ref"
    all_read(done.table)


def test_files_that_came_back_stay(tmp_path) -> None:
    catalog = directory(tmp_path)
    table = append(catalog, create(catalog), "A")
    (a,) = in_table(table, "A")
    table = overwritten(catalog, table, [a], []).table
    table = commit_append(catalog, table, [a]).table
    done = expire_snapshots(catalog, table, older_than_ms=1 << 50)
    assert done.files.data_files == ()
    all_read(done.table)


def test_a_middle_snapshot_takes_nothing_that_others_read(tmp_path) -> None:
    catalog = directory(tmp_path)
    table = append(catalog, create(catalog), "A")
    table = append(catalog, table, "B")
    middle = head(table).snapshot_id
    table = append(catalog, table, "C")
    done = expire_snapshots(catalog, table, snapshot_ids=[middle])
    assert on_disk(table) == {"A", "B", "C"}
    assert len(done.files.manifest_lists) == 1
    assert done.files.manifests == ()
    all_read(done.table)


def test_statistics_go_when_no_snapshot_has_them(tmp_path) -> None:
    catalog = directory(tmp_path)
    table = append(catalog, create(catalog), "A")
    first = head(table).snapshot_id
    table = append(catalog, table, "B")
    second = head(table).snapshot_id
    shared, own = (f"{table.metadata.location}/metadata/{n}.stats" for n in ("shared", "own"))
    for path in (shared, own):
        Path(path).write_text("")
    files = {first: shared, second: shared}

    def statistics(base):
        return [
            SetStatistics({"snapshot-id": number, "statistics-path": path, "file-size-in-bytes": 1,
                           "file-footer-size-in-bytes": 1, "blob-metadata": []})
            for number, path in files.items()
        ]  # fmt: skip

    table = change_table(catalog, table, statistics).table
    done = expire_snapshots(catalog, table, older_than_ms=1 << 50)
    assert done.files.statistics == ()
    assert [each.snapshot_id for each in done.table.metadata.statistics] == [second]
    assert Path(own).is_file(), "a file that no metadata names is not expiry's to delete"


def test_a_file_that_another_kind_or_spelling_of_file_needs_stays(tmp_path) -> None:
    """Statistics that name a data file; a file that was added again by the URI of its path."""
    catalog = directory(tmp_path)
    table = append(catalog, create(catalog), "A")
    first = head(table).snapshot_id
    (file,) = in_table(table, "A")
    table = append(catalog, table, "B")
    (other,) = in_table(table, "B")
    respelled = replace(fake("x"), path=f"file:{file.path}", record_count=1)
    table = overwritten(catalog, table, [file], [respelled]).table

    def statistics(base):
        return [
            SetStatistics({"snapshot-id": first, "statistics-path": other.path, "blob-metadata": [],
                           "file-size-in-bytes": 1, "file-footer-size-in-bytes": 1})
        ]  # fmt: skip

    table = change_table(catalog, table, statistics).table
    done = expire_snapshots(catalog, table, older_than_ms=1 << 50)
    assert (done.files.data_files, done.files.statistics) == ((), ())
    assert on_disk(done.table) == {"A", "B"}


def test_a_manifest_that_cannot_be_read_stops_the_deletion(tmp_path) -> None:
    from icesql.errors import StorageError
    from tests.commit.tables import manifests

    catalog = directory(tmp_path)
    table = append(catalog, create(catalog), "A")
    table = overwritten(
        catalog, table, in_table(table, "A"), [written(table, "B", [(1, "x")])]
    ).table
    Path(manifests(table)[0].manifest_path).unlink()
    with pytest.raises(StorageError):
        expire_snapshots(catalog, table, older_than_ms=1 << 50)
    assert on_disk(table) == {"A", "B"}


def test_a_table_that_shares_its_files_is_left_alone(tmp_path) -> None:
    catalog = directory(tmp_path)
    table = create(catalog, **{"gc.enabled": "false"})
    with pytest.raises(NotSupportedError, match=r"gc\.enabled"):
        expire_snapshots(catalog, table)


def test_specs_go_with_the_manifests_that_are_of_them(catalog) -> None:
    table = create(catalog, partitioned=True)
    file = written(table, "a", [(1, "x")], ("x",))
    table = commit_append(catalog, table, [file]).table
    start = table.metadata.current_snapshot_id

    def unpartitioned(base):
        return AddPartitionSpec(PartitionSpec(9, ())), SetDefaultSpec()

    table = change_table(catalog, table, unpartitioned).table
    new = written(table, "b", [(1, "x")])
    table = commit_rewrite(catalog, table, added=[new], removed=[file], start_id=start).table
    table = commit_append(catalog, table, [written(table, "c", [(2, "x")])]).table
    done = expire_snapshots(
        catalog, table, older_than_ms=1 << 50, retain_last=1, clean_metadata=True
    )
    assert [*done.table.metadata.specs] == [1]
    assert not Path(file.path).exists()
    assert live(done.table) == {"b", "c"}


def test_a_file_that_is_added_again_while_its_snapshots_expire_stays(catalog, monkeypatch) -> None:
    import icesql.maintain.expire as expire

    table = create(catalog)
    file = written(table, "a", [(1, "x")])
    table = commit_append(catalog, table, [file]).table
    table = overwritten(
        catalog, table, in_table(table, "a"), [written(table, "b", [(2, "x")])]
    ).table
    look, left = expire.unneeded, [2]

    def late(*args: object) -> object:
        found = look(*args)
        if left[0]:
            left[0] -= 1
            if not left[0]:
                commit_append(catalog, catalog.load(table.identifier), [file])
            else:
                commit_append(
                    catalog, catalog.load(table.identifier), [written(table, "c", [(3, "x")])]
                )
        return found

    monkeypatch.setattr(expire, "unneeded", late)
    done = expire_snapshots(catalog, table, older_than_ms=1 << 50, retain_last=1)
    assert Path(file.path).exists()
    assert live(done.table) == {"a", "b", "c"}


def test_a_property_that_keeps_none_keeps_the_heads(tmp_path: Path) -> None:
    with icesql.connect(warehouse=str(tmp_path)) as con:
        con.execute("CREATE SCHEMA s")
        con.execute(
            "CREATE TABLE s.t (a INT) TBLPROPERTIES ('history.expire.min-snapshots-to-keep' = '0', "
            "'history.expire.max-snapshot-age-ms' = '0')"
        )
        for number in range(3):
            con.execute(f"INSERT INTO s.t VALUES ({number})")
            if number == 0:
                con.execute("ALTER TABLE s.t CREATE BRANCH dev")
        con.execute("ALTER TABLE s.t CREATE TAG v2")
        con.execute("CALL system.expire_snapshots('s.t', older_than => now())").fetchall()
        assert con.execute("SELECT count(*) FROM s.t.snapshots").fetchone() == (2,)
        assert con.execute("SELECT count(*) FROM s.t VERSION AS OF 'dev'").fetchone() == (1,)
        assert con.execute("SELECT count(*) FROM s.t").fetchone() == (3,)
        with pytest.raises(icesql.ProgrammingError, match="retain_last is 0"):
            con.execute("CALL system.expire_snapshots('s.t', retain_last => 0)")
