"""A commit is refused where its files are not those of before, changed as its statement counted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

import icesql.commit.manifests.filtering as filtering
import icesql.commit.manifests.merging as merging
import icesql.commit.snapshot_operation as operation
from icesql.catalog.table import Table
from icesql.commit.append import commit_append
from icesql.commit.rows import commit_overwrite, commit_rewrite, commit_row_delta
from icesql.errors import CommitConflictError, InternalError
from icesql.iceberg.manifest.data_file import FileContent
from tests.commit.tables import CATALOGS, create, entries, fake, fake_deletes, files_on_disk, told

AT_ONCE = {"commit.manifest.min-count-to-merge": "2"}


@pytest.fixture(params=CATALOGS)
def catalog(request: Any, tmp_path: Path) -> Any:
    return CATALOGS[request.param](tmp_path)


def unchanged(catalog: Any, table: Table) -> None:
    """The table is as it was, and nothing of the commit is left."""
    now = catalog.load(table.identifier)
    assert now.metadata_location == table.metadata_location
    listed = {each.manifest_list.rpartition("/")[2] for each in now.metadata.snapshots.values()}
    assert files_on_disk(table, "snap-*.avro") == listed


def live(table: Table) -> dict[str, Any]:
    return {
        file.path.rpartition("/")[2]: file
        for each in entries(table)
        for index, alive in enumerate(each.live)
        if alive
        for file in [each.data_file(index)]
    }


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize(
    ("module", "wrong"),
    [
        (merging, lambda made: replace(made, sequence_number=made.sequence_number + 1)),
        (merging, lambda made: replace(made, file=replace(made.file, record_count=5))),
        (merging, lambda made: replace(made, file=replace(made.file, first_row_id=77))),
        (merging, lambda made: replace(made, file=replace(made.file, path="/other.parquet"))),
        (filtering, lambda made: replace(made, sequence_number=None)),
        (filtering, lambda made: replace(made, file=replace(made.file, first_row_id=77))),
    ],
)
def test_what_is_carried_over_is_what_was_there(
    catalog: Any, monkeypatch: pytest.MonkeyPatch, version: int, module: Any, wrong: Any
) -> None:
    table = create(catalog, version=version, **(AT_ONCE if module is merging else {}))
    table = commit_append(catalog, table, [fake("a"), fake("b")]).table
    real = module.existing_entry
    monkeypatch.setattr(module, "existing_entry", lambda *given: wrong(real(*given)))
    given: dict[str, Any] = {"added": [fake("c")]}
    if module is filtering:
        given["removed"] = [live(table)["a.parquet"]]
    start = table.metadata.current_snapshot_id
    with pytest.raises(InternalError, match=r"by this commit the file .* would"):
        commit_overwrite(catalog, table, **given, start_id=start)
    monkeypatch.undo()
    unchanged(catalog, table)


def test_no_file_is_lost_or_comes_twice(catalog: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    table = create(catalog, **AT_ONCE)
    table = commit_append(catalog, table, [fake("a"), fake("b")]).table
    real = merging.ManifestMerge._entries
    for change in (lambda found: found[1:], lambda found: [*found, found[-1]]):

        def changed(*given: Any, change: Any = change) -> Any:
            return change(real(*given))

        with monkeypatch.context() as patched:
            patched.setattr(merging.ManifestMerge, "_entries", changed)
            with pytest.raises(InternalError, match="would"):
                commit_append(catalog, table, [fake("c")])
        unchanged(catalog, table)
    table = commit_append(catalog, table, [fake("c")]).table
    assert sorted(name for each in told(table) for name, _, _ in each) == ["a", "b", "c"]


def test_a_manifest_that_nobody_wrote_for_it_is_not_listed(
    catalog: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = create(catalog)
    table = commit_append(catalog, table, [fake("a")]).table
    real = operation.ManifestMerge.apply

    def twice(*given: Any) -> Any:
        found = real(*given)
        return [*found, *found[-1:]]

    with monkeypatch.context() as patched:
        patched.setattr(operation.ManifestMerge, "apply", twice)
        with pytest.raises(InternalError, match="be listed twice"):
            commit_append(catalog, table, [fake("b")])
    unchanged(catalog, table)


@pytest.mark.parametrize("version", [2, 3])
def test_rows_are_counted(catalog: Any, version: int) -> None:
    table = create(catalog, version=version)
    with pytest.raises(InternalError, match=r"live rows by \+7, its rows by \+8"):
        commit_append(catalog, table, [fake("a", rows=7)], rows=8)
    table = commit_append(catalog, table, [fake("a", rows=7), fake("b", rows=9)], rows=16).table
    start, a = table.metadata.current_snapshot_id, live(table)["a.parquet"]
    for rows in (-6, -8, 0):
        with pytest.raises(InternalError, match=r"live rows by -7"):
            commit_overwrite(catalog, table, removed=[a], start_id=start, rows=rows)
    with pytest.raises(InternalError, match=r"live rows by -1, its rows by \+0"):
        commit_rewrite(catalog, table, added=[fake("c", rows=6)], removed=[a], start_id=start)
    with pytest.raises(InternalError, match=r"live rows by \+1, its rows by \+0"):
        commit_overwrite(
            catalog, table, added=[fake("c", rows=8)], removed=[a], start_id=start, rows=0
        )
    unchanged(catalog, table)
    done = commit_overwrite(
        catalog, table, added=[fake("c", rows=6)], removed=[a], start_id=start, rows=-1
    )
    assert set(live(done.table)) == {"b.parquet", "c.parquet"}


def test_vectors_are_counted(catalog: Any) -> None:
    table = create(catalog, version=3)
    table = commit_append(catalog, table, [fake("a", rows=9), fake("b", rows=9)]).table
    data = live(table)
    a, b = data["a.parquet"], data["b.parquet"]

    def delta(rows: int, count: int, old: Any = (), **more: Any) -> Table:
        new = fake_deletes(f"v{count}", vector_of=a.path, rows=count)
        start = table.metadata.current_snapshot_id
        return commit_row_delta(
            catalog, table, deletes=[new], removed=[*old], referenced=[a.path], start_id=start,
            command="delete", rows=rows, **more,
        ).table  # fmt: skip

    with pytest.raises(InternalError, match="live rows by -3, its rows by -2"):
        delta(-2, 3)
    table = delta(-3, 3)
    first = live(table)["v3"]
    with pytest.raises(InternalError, match="live rows by -2, its rows by -5"):
        delta(-5, 5, [first])
    with pytest.raises(InternalError, match="the deletes of /nowhere/v3 would be lost"):
        delta(1, 2, [first])
    table = delta(-2, 5, [first])
    start, second = table.metadata.current_snapshot_id, live(table)["v5"]
    # What lives of a file is what its vector leaves.
    with pytest.raises(InternalError, match="by -4, its rows by -9"):
        commit_overwrite(catalog, table, removed=[a, second], start_id=start, rows=-9)
    with pytest.raises(InternalError, match=r"by \+5, its rows by \+0"):
        commit_rewrite(
            catalog, table, added=[fake("c", rows=9)], removed=[a, second], start_id=start
        )
    # Also where the vector goes because its file does.
    with pytest.raises(InternalError, match="by -4, its rows by -9"):
        commit_overwrite(catalog, table, removed=[a], start_id=start, rows=-9)
    # A vector whose file stays does not go.
    with pytest.raises(InternalError, match="the deletes of /nowhere/v5 would be lost"):
        commit_rewrite(catalog, table, added=(), removed=[second], start_id=start)
    with pytest.raises(InternalError, match="the deletes of /nowhere/v5 would be lost"):
        commit_rewrite(
            catalog, table, added=[fake("c", rows=9)], removed=[b, second], start_id=start
        )
    unchanged(catalog, table)
    table = commit_rewrite(
        catalog, table, added=[fake("c", rows=4)], removed=[a, second], start_id=start
    ).table
    assert set(live(table)) == {"b.parquet", "c.parquet"}


def test_delete_files_and_keys_make_a_range(catalog: Any) -> None:
    table = create(catalog)
    table = commit_append(catalog, table, [fake("a", rows=9), fake("b", rows=9)]).table
    a = live(table)["a.parquet"]

    def deleted(name: str, **more: Any) -> Table:
        start = table.metadata.current_snapshot_id
        new = fake_deletes(name, rows=3, **more)
        return commit_row_delta(
            catalog, table, deletes=[new], start_id=start, command="delete"
        ).table

    def rewritten(rows: int) -> Table:
        start = table.metadata.current_snapshot_id
        new = [fake("c", rows=rows)]
        return commit_rewrite(catalog, table, added=new, removed=[a], start_id=start).table

    table = deleted("p", referenced_data_file=a.path)
    with pytest.raises(InternalError, match=r"by -4 to -1, its rows by \+0"):
        rewritten(5)
    table = deleted("e", content=FileContent.EQUALITY_DELETES, equality_ids=(1,))
    table = rewritten(2)
    assert "c.parquet" in live(table)


def test_deletes_of_a_live_file_go_for_no_reason_but_theirs(catalog: Any) -> None:
    table = create(catalog, partitioned=True)
    files = [fake(name, partition=(name,), rows=9) for name in "ab"]
    table = commit_append(catalog, table, files).table
    a = live(table)["a.parquet"]
    start = table.metadata.current_snapshot_id
    new = [
        fake_deletes("pa", partition=("a",), rows=3),
        fake_deletes("pb", partition=("b",), rows=3),
        fake_deletes("ea", partition=("a",), content=FileContent.EQUALITY_DELETES, equality_ids=(1,)),
    ]  # fmt: skip
    table = commit_row_delta(catalog, table, deletes=new, start_id=start, command="delete").table
    start, found = table.metadata.current_snapshot_id, live(table)
    for name in ("pa", "pb", "ea"):
        with pytest.raises(InternalError, match=f"the deletes of /nowhere/{name} would be lost"):
            commit_rewrite(catalog, table, added=(), removed=[found[name]], start_id=start)
    unchanged(catalog, table)
    table = commit_overwrite(catalog, table, removed=[a], start_id=start).table
    start = table.metadata.current_snapshot_id
    left = [each for name, each in live(table).items() if name in ("pa", "ea")]
    table = commit_rewrite(catalog, table, added=(), removed=left, start_id=start).table
    assert set(live(table)) == {"b.parquet", "pb"}


def test_what_others_changed_is_a_conflict(catalog: Any) -> None:
    table = create(catalog, version=3)
    table = commit_append(catalog, table, [fake("a", rows=9)]).table
    a, start = live(table)["a.parquet"], table.metadata.current_snapshot_id
    commit_row_delta(
        catalog, table, deletes=[fake_deletes("v", vector_of=a.path, rows=3)], start_id=start,
        referenced=[a.path], command="delete", rows=-3,
    )  # fmt: skip
    with pytest.raises(CommitConflictError, match="by -6, its rows by -9"):
        commit_overwrite(catalog, table, removed=[a], start_id=start, rows=-9)
