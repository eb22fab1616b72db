"""The snapshots that expire, by Java's cases, and the files deleted with them: no needed one."""

from __future__ import annotations

from ast import literal_eval
from pathlib import Path

import pytest
from msgspec.structs import replace

from icesql.commit.file_changes import change_table
from icesql.commit.rows import commit_append, commit_overwrite, commit_rewrite
from icesql.errors import ProgrammingError, SnapshotNotFoundError, StorageError
from icesql.iceberg.metadata.changes.updates import (
    AddPartitionSpec,
    SetDefaultSpec,
    SetStatistics,
)
from icesql.iceberg.metadata.snapshot import SnapshotRef
from icesql.iceberg.metadata.table_metadata import parse_metadata
from icesql.iceberg.metadata.writing import metadata_bytes
from icesql.iceberg.partitioning import PartitionSpec
from icesql.maintain.expire import expire_snapshots, plan_expiry
from tests.commit.steps import files_of
from tests.commit.tables import (
    CATALOGS,
    create,
    directory,
    fake,
    head,
    live,
    manifests,
    written,
)
from tests.iceberg.metadata.changes.documents import appended as next_version
from tests.iceberg.metadata.changes.documents import created
from tests.tables import read_table


def history(count: int, **refs: SnapshotRef):
    """Metadata with snapshots 1, 2, … at the times 1001, 1002, …"""
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
def catalog(request, tmp_path):
    return CATALOGS[request.param](tmp_path)


def append(catalog, table, name):
    return commit_append(catalog, table, [written(table, name, [(1, "x")])]).table


def replaced(catalog, table, old, new):
    start = table.metadata.current_snapshot_id
    return commit_overwrite(catalog, table, removed=[old], added=[new], start_id=start).table


def with_statistics(catalog, table, paths):
    """Add statistics files for snapshots, by snapshot id."""
    sizes = {"file-size-in-bytes": 1, "file-footer-size-in-bytes": 1, "blob-metadata": []}
    updates = [
        SetStatistics({"snapshot-id": number, "statistics-path": path, **sizes})
        for number, path in paths.items()
    ]
    return change_table(catalog, table, lambda base: updates).table


def on_disk(table) -> set[str]:
    folder = Path(table.metadata.location)
    return {each.stem for each in (folder / "data").glob("*.parquet")}


def test_statistics_go_when_no_snapshot_has_them(tmp_path) -> None:
    catalog = directory(tmp_path)
    table = append(catalog, create(catalog), "A")
    first = head(table).snapshot_id
    table = append(catalog, table, "B")
    second = head(table).snapshot_id
    shared, own = (f"{table.metadata.location}/metadata/{n}.stats" for n in ("shared", "own"))
    for path in (shared, own):
        Path(path).write_text("")
    table = with_statistics(catalog, table, {first: shared, second: shared})
    done = expire_snapshots(catalog, table, older_than_ms=1 << 50)
    assert done.files.files["statistics file"] == ()
    assert [each.snapshot_id for each in done.table.metadata.statistics] == [second]
    assert Path(own).is_file(), "a file that no metadata names is not expiry's to delete"


def test_a_file_that_another_kind_or_spelling_of_file_needs_stays(tmp_path) -> None:
    """Statistics whose path is that of a data file; a file added again by its URI."""
    catalog = directory(tmp_path)
    table = append(catalog, create(catalog), "A")
    first = head(table).snapshot_id
    (file,) = files_of(table, "A")
    table = append(catalog, table, "B")
    (other,) = files_of(table, "B")
    respelled = replace(fake("x"), path=f"file:{file.path}", record_count=1)
    table = replaced(catalog, table, file, respelled)
    table = with_statistics(catalog, table, {first: other.path})
    done = expire_snapshots(catalog, table, older_than_ms=1 << 50)
    assert [done.files.files[each] for each in ("data file", "statistics file")] == [(), ()]
    assert on_disk(done.table) == {"A", "B"}


def test_a_manifest_that_cannot_be_read_stops_the_deletion(tmp_path) -> None:
    catalog = directory(tmp_path)
    table = append(catalog, create(catalog), "A")
    table = replaced(catalog, table, *files_of(table, "A"), written(table, "B", [(1, "x")]))
    Path(manifests(table)[0].manifest_path).unlink()
    with pytest.raises(StorageError):
        expire_snapshots(catalog, table, older_than_ms=1 << 50)
    assert on_disk(table) == {"A", "B"}


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
    table = replaced(catalog, table, *files_of(table, "a"), written(table, "b", [(2, "x")]))
    look, added = expire.unneeded, [written(table, "c", [(3, "x")]), file]

    def late(*args: object) -> object:
        found = look(*args)
        if added:
            commit_append(catalog, catalog.load(table.identifier), [added.pop(0)])
        return found

    monkeypatch.setattr(expire, "unneeded", late)
    done = expire_snapshots(catalog, table, older_than_ms=1 << 50, retain_last=1)
    assert Path(file.path).exists()
    assert live(done.table) == {"a", "b", "c"}
