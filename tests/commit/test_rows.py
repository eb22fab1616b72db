"""Commits that change rows: what they leave, and with whom they conflict."""

from __future__ import annotations

from pathlib import Path

import pytest

from icesql.commit.append import commit_append
from icesql.commit.delete_where import commit_delete_where, matched_files
from icesql.commit.rows import (
    commit_overwrite,
    commit_replace_partitions,
    commit_rewrite,
    commit_row_delta,
)  # fmt: skip
from icesql.context import QueryContext
from icesql.errors import CommitConflictError, ProgrammingError, UnsupportedTableError
from icesql.iceberg.expressions.predicate import Leaf, Operation, Term
from icesql.iceberg.manifest.data_file import DataFile, FileContent
from icesql.iceberg.manifest.manifest import ManifestContent
from tests.commit.tables import (
    SCHEMA,
    create,
    directory,
    entries,
    fake,
    fake_deletes,
    files_on_disk,
    head,
    live,
    manifests,
    told,
    written,
)  # fmt: skip


@pytest.fixture
def catalog(tmp_path: Path):
    return directory(tmp_path)


def appended(catalog, table, *files: DataFile):
    return commit_append(catalog, table, files).table


def in_table(table, *names: str) -> list[DataFile]:
    """Files of the table's head with what they inherit, as a scan gives them."""
    found = {}
    for each in entries(table):
        for index in range(each.count):
            if each.status[index] != 2:
                file = each.data_file(index)
                found[file.path.rpartition("/")[2].removesuffix(".parquet")] = file
    return [found[name] for name in names]


def filled(catalog, *names: str, **options):
    """A table of a data file for each name."""
    return appended(catalog, create(catalog, **options), *map(fake, names))


def overwritten(catalog, table, removed, added, **options):
    """With files, or with the name of one that the table has and of a new one."""
    options = {"start_id": table.metadata.current_snapshot_id, **options}
    if isinstance(removed, str):
        removed, added = in_table(table, removed), [fake(added)] if added else []
    return commit_overwrite(catalog, table, removed=removed, added=added, **options)


def conflict(message: str):
    return pytest.raises(CommitConflictError, match=message)


def p_is(value: str):
    return Leaf(Operation.EQ, Term(2, "p"), value)


# ------------------------------------------------------------------ what is left


def test_a_file_is_replaced_by_another(catalog) -> None:
    table = filled(catalog, "a", "b")
    done = overwritten(catalog, table, "a", "c")
    assert told(done.table) == [[("c", 1, 2)], [("a", 2, 1), ("b", 0, 1)]]
    (_, filtered) = entries(done.table)
    assert filtered.snapshot_id == [done.snapshot_id, table.metadata.current_snapshot_id], (
        "a removed entry is told by who removed it"
    )
    summary = done.summary
    assert summary["operation"] == "overwrite"
    assert (summary["deleted-data-files"], summary["added-data-files"]) == ("1", "1")
    assert (summary["added-files-size"], summary["removed-files-size"]) == ("10", "10")
    assert (summary["total-records"], summary["total-files-size"]) == ("2", "20")
    counts = [summary[f"manifests-{each}"] for each in ("created", "kept", "replaced")]
    assert counts == ["2", "0", "1"]


def test_removed_entries_are_told_once(catalog) -> None:
    table = filled(catalog, "a", "b", "c")
    table = overwritten(catalog, table, "a", None).table
    assert told(table) == [[("a", 2, 1), ("b", 0, 1), ("c", 0, 1)]]
    table = overwritten(catalog, table, "b", None).table
    assert told(table) == [[("b", 2, 1), ("c", 0, 1)]], "what an older snapshot removed is gone"
    done = overwritten(catalog, table, "c", None)
    assert done.summary["operation"] == "delete"
    assert done.summary["total-data-files"] == "0"
    table = appended(catalog, done.table, fake("d"))
    assert told(table) == [[("d", 1, 5)]], "a manifest without live files is listed no longer"


def test_manifests_of_other_partitions_are_not_opened(catalog) -> None:
    table = create(catalog, partitioned=True)
    table = appended(catalog, table, fake("a", partition=("x",)))
    table = appended(catalog, table, fake("b", partition=("y",)))
    before = {each.manifest_path for each in manifests(table)}
    done = overwritten(catalog, table, in_table(table, "a"), [fake("c", partition=("z",))])
    assert done.summary["changed-partition-count"] == "2"
    counts = [done.summary[f"manifests-{each}"] for each in ("created", "kept", "replaced")]
    assert counts == ["2", "1", "1"]
    assert len(before & {each.manifest_path for each in manifests(done.table)}) == 1


def test_row_ids_stay_with_their_rows(catalog) -> None:
    table = create(catalog, version=3)
    table = appended(catalog, table, fake("a", rows=125), fake("b", rows=100))
    done = overwritten(catalog, table, in_table(table, "a"), [fake("c", rows=90)])
    assert [each.first_row_id for each in manifests(done.table)] == [225, 315]
    assert in_table(done.table, "b")[0].first_row_id == 125
    assert done.table.metadata.next_row_id == 415


def test_a_manifest_of_removed_files_alone_uses_no_row_ids(catalog) -> None:
    table = appended(catalog, create(catalog, version=3), fake("a", rows=125))
    done = overwritten(catalog, table, in_table(table, "a"), [fake("b", rows=100)])
    assert [each.first_row_id for each in manifests(done.table)] == [125, 225]
    assert done.table.metadata.next_row_id == 225


def test_deletes_of_a_removed_file_go_with_it(catalog) -> None:
    table = filled(catalog, "a", "b", version=3)
    paths = [each.path for each in in_table(table, "a", "b")]
    table = delta(
        catalog,
        table,
        [fake_deletes("x", vector_of=paths[0]), fake_deletes("y", vector_of=paths[1])],
    ).table
    assert live(table) == {"a", "b", "x", "y"}
    done = overwritten(catalog, table, "a", None)
    assert live(done.table) == {"b", "y"}
    assert done.summary["removed-dvs"] == "1"


def test_deletes_that_apply_to_nothing_are_dropped(catalog) -> None:
    table = filled(catalog, "a")
    table = delta(catalog, table, [fake_deletes("x")]).table
    table = appended(catalog, table, fake("b"))
    done = overwritten(catalog, table, "a", None)
    assert live(done.table) == {"b"}, "x is older than all data that is left"
    assert done.summary["removed-delete-files"] == "1"


# ------------------------------------------------------------------ row deltas


def delta(catalog, table, deletes, added=(), **options):
    options = {
        "start_id": table.metadata.current_snapshot_id, "command": "delete",
        "referenced": [d.referenced_data_file for d in deletes if d.referenced_data_file], **options,
    }  # fmt: skip
    return commit_row_delta(catalog, table, added=added, deletes=deletes, **options)


def test_deletes_are_counted(catalog) -> None:
    table = filled(catalog, "z")
    done = delta(catalog, table, [fake_deletes("x")], [fake("a")], command="update")
    summary = done.summary
    assert summary["operation"] == "overwrite"
    assert (summary["added-delete-files"], summary["added-position-delete-files"]) == ("1", "1")
    assert (summary["added-position-deletes"], summary["total-position-deletes"]) == ("1", "1")
    assert (summary["added-files-size"], summary["changed-partition-count"]) == ("20", "1")
    assert summary["manifests-created"] == "2"
    assert [each.content for each in manifests(done.table)] == [
        ManifestContent.DATA, ManifestContent.DATA, ManifestContent.DELETES,
    ]  # fmt: skip
    assert delta(catalog, done.table, [fake_deletes("y")]).summary["operation"] == "delete"


def test_a_vector_is_counted_as_one_and_gets_no_row_ids(catalog) -> None:
    table = appended(catalog, create(catalog, version=3), fake("a", rows=125))
    path = in_table(table, "a")[0].path
    done = delta(
        catalog,
        table,
        [fake_deletes("x", vector_of=path, rows=3)],
        [fake("b", rows=100)],
        command="update",
    )
    assert [each.first_row_id for each in manifests(done.table)] == [125, 0, None]
    assert (done.summary["added-dvs"], done.summary["added-position-deletes"]) == ("1", "3")
    assert "added-position-delete-files" not in done.summary
    assert done.summary["added-files-size"] == "56", "of a Puffin, the vector counts"
    again = delta(
        catalog,
        done.table,
        [fake_deletes("y", vector_of=path, rows=4)],
        removed=in_table(done.table, "x"),
    )
    assert live(again.table) == {"a", "b", "y"}
    assert again.summary["total-position-deletes"] == "4"


def test_deletes_are_of_the_tables_format(catalog) -> None:
    for version, deletes in ((2, fake_deletes("x", vector_of="p")), (3, fake_deletes("x"))):
        table = appended(catalog, create(catalog, version=version, name=f"t{version}"), fake("a"))
        with pytest.raises(CommitConflictError, match=f"format version {version} now"):
            delta(catalog, table, [deletes], referenced=[])
    table = create(catalog, version=1, name="t1")
    with pytest.raises(UnsupportedTableError, match="format version 1"):
        delta(catalog, table, [fake_deletes("x")])


# ------------------------------------------------------------------ conflicts


def test_a_removed_file_that_is_gone_is_a_conflict(catalog) -> None:
    table = filled(catalog, "a", "b")
    overwritten(catalog, table, "a", "c")
    new = written(table, "mine", [(1, "x")])
    with conflict("is no longer part of the table"):
        overwritten(catalog, table, in_table(table, "a"), [new], isolation="snapshot")
    now = catalog.load(("ns", "t"))
    assert live(now) == {"b", "c"}
    assert not Path(new.path).exists()
    assert len(files_on_disk(now, "snap-*.avro")) == 2


def test_other_files_do_not_conflict_under_snapshot_isolation(catalog) -> None:
    table = filled(catalog, "a", "b")
    overwritten(catalog, table, "a", "c")
    done = overwritten(catalog, table, "b", "d", isolation="snapshot")
    assert live(done.table) == {"c", "d"}
    with conflict(r"/[cd]\.parquet was added"):
        overwritten(catalog, table, "b", "e")


def test_rows_that_cannot_match_do_not_conflict(catalog) -> None:
    table = create(catalog, partitioned=True)
    table = appended(catalog, table, fake("a", partition=("x",)))
    appended(catalog, table, fake("b", partition=("y",)))
    done = overwritten(
        catalog, table, in_table(table, "a"), [fake("c", partition=("x",))], row_filter=p_is("x")
    )
    assert live(done.table) == {"b", "c"}
    stale = done.table
    appended(catalog, stale, fake("d", partition=("x",)))
    with conflict(r"/d\.parquet was added"):
        overwritten(catalog, stale, "c", None, row_filter=p_is("x"))


def test_bounds_say_what_cannot_match(catalog) -> None:
    table = filled(catalog, "a")
    bounds = {"lower_bounds": {2: b"m"}, "upper_bounds": {2: b"q"}, "value_counts": {2: 1}}
    appended(catalog, table, fake("b", **bounds))
    done = overwritten(catalog, table, "a", None, row_filter=p_is("x"))
    assert live(done.table) == {"b"}


def test_a_row_deleted_of_a_rewritten_file_is_a_conflict(catalog) -> None:
    table = filled(catalog, "a", "b", version=3)
    a, b = in_table(table, "a", "b")
    delta(catalog, table, [fake_deletes("x", vector_of=a.path)])
    with conflict(r"rows of .*/a\.parquet, which it rewrites"):
        overwritten(catalog, table, [a], [fake("c")])
    done = overwritten(catalog, table, [b], [fake("c")])
    assert live(done.table) == {"a", "c", "x"}


def test_two_vectors_for_one_file_are_a_conflict(catalog) -> None:
    table = filled(catalog, "a", "b", version=3)
    a, b = in_table(table, "a", "b")
    delta(catalog, table, [fake_deletes("x", vector_of=a.path)])
    for isolation in ("serializable", "snapshot"):
        with conflict(r"rows of .*/a\.parquet were deleted"):
            delta(catalog, table, [fake_deletes("y", vector_of=a.path)], isolation=isolation)
    done = delta(catalog, table, [fake_deletes("z", vector_of=b.path)])
    assert live(done.table) == {"a", "b", "x", "z"}


def test_deletes_of_two_delete_statements_stand_side_by_side(catalog) -> None:
    table = filled(catalog, "a")
    path = in_table(table, "a")[0].path
    delta(catalog, table, [fake_deletes("x")], referenced=[path])
    done = delta(catalog, table, [fake_deletes("y")], referenced=[path])
    assert live(done.table) == {"a", "x", "y"}
    with conflict("which deletes rows that it may concern"):
        delta(catalog, table, [fake_deletes("z")], [fake("n")], referenced=[path], command="update")


def test_a_referenced_file_that_was_compacted_is_a_conflict(catalog) -> None:
    table = filled(catalog, "a")
    start = table.metadata.current_snapshot_id
    (a,) = in_table(table, "a")
    commit_rewrite(catalog, table, added=[fake("b")], removed=[a], start_id=start)
    with conflict(r"/a\.parquet, of which it deletes rows, was removed"):
        delta(catalog, table, [fake_deletes("x")], referenced=[a.path])


def test_a_file_that_was_deleted_as_a_whole_needs_no_deletes_any_more(catalog) -> None:
    table = filled(catalog, "a", "b")
    (a,) = in_table(table, "a")
    overwritten(catalog, table, [a], [])
    done = delta(catalog, table, [fake_deletes("x")], referenced=[a.path])
    assert "x" in live(done.table)
    with conflict("was removed"):
        delta(
            catalog, table, [fake_deletes("y")], [fake("n")], referenced=[a.path], command="merge"
        )


def test_a_history_that_is_not_known_is_a_conflict(catalog) -> None:
    from icesql.commit.change import change_table
    from icesql.iceberg.metadata.changes.updates import RemoveSnapshots

    table = filled(catalog, "a")
    start = table.metadata.current_snapshot_id
    middle = appended(catalog, table, fake("b"))
    last = appended(catalog, middle, fake("c"))
    gone = (start, middle.metadata.current_snapshot_id)
    change_table(catalog, last, lambda base: [RemoveSnapshots(gone)])
    with conflict("is not known any more"):
        overwritten(catalog, table, in_table(last, "a"), [], row_filter=p_is("nobody"))


def test_an_expired_start_is_enough_where_all_after_it_is_there(catalog) -> None:
    from icesql.commit.change import change_table
    from icesql.iceberg.metadata.changes.updates import RemoveSnapshots

    table = filled(catalog, "a")
    start = table.metadata.current_snapshot_id
    last = appended(catalog, table, fake("b"))
    change_table(catalog, last, lambda base: [RemoveSnapshots((start,))])
    done = overwritten(catalog, table, in_table(last, "a"), [], isolation="snapshot")
    assert live(done.table) == {"b"}


def test_a_branch_is_checked_by_its_own_history(catalog) -> None:
    table = filled(catalog, "a")
    start = table.metadata.current_snapshot_id
    forked = commit_append(catalog, table, [fake("b")], branch="audit").table
    appended(catalog, forked, fake("c"))
    forked_head = forked.metadata.refs["audit"].snapshot_id
    done = commit_overwrite(
        catalog, forked, removed=in_table(table, "a"), start_id=forked_head, branch="audit"
    )
    assert live(done.table, head(done.table, "audit")) == {"b"}
    assert live(done.table) == {"a", "c"}
    with conflict(r"/b\.parquet was added"):
        commit_overwrite(
            catalog, forked, removed=in_table(table, "a"), start_id=start, branch="audit"
        )


# ------------------------------------------------------------------ compaction


def test_compacted_rows_keep_their_age(catalog) -> None:
    table = filled(catalog, "a")
    table = appended(catalog, table, fake("b"))
    start = table.metadata.current_snapshot_id
    removed = in_table(table, "a", "b")
    done = commit_rewrite(
        catalog, table, added=[fake("c", rows=2)], removed=removed, start_id=start
    )
    assert done.summary["operation"] == "replace"
    (c,) = in_table(done.table, "c")
    assert (c.sequence_number, c.file_sequence_number) == (2, 3)
    assert manifests(done.table)[0].min_sequence_number == 2


def test_equality_deletes_do_not_conflict_with_a_compaction_that_keeps_age(catalog) -> None:
    table = filled(catalog, "a")
    start, removed = table.metadata.current_snapshot_id, in_table(table, "a")
    keys = fake_deletes("x", content=FileContent.EQUALITY_DELETES, equality_ids=(1,))
    delta(catalog, table, [keys])
    with conflict("rows of"):
        commit_rewrite(
            catalog, table, added=[fake("b")], removed=removed, start_id=start, keeps_age=False
        )
    done = commit_rewrite(catalog, table, added=[fake("c")], removed=removed, start_id=start)
    assert live(done.table) == {"c", "x"}
    assert in_table(done.table, "c")[0].sequence_number == 1, "older than the delete, which applies"


def test_deletes_that_apply_to_rewritten_rows_stay(catalog) -> None:
    """Beyond Java, which takes the oldest data for that of the files that were not rewritten."""
    table = filled(catalog, "a")
    start, removed = table.metadata.current_snapshot_id, in_table(table, "a")
    for name in "xyz":
        keys = fake_deletes(name, content=FileContent.EQUALITY_DELETES, equality_ids=(1,))
        table = delta(catalog, table, [keys]).table
    done = commit_rewrite(catalog, table, added=[fake("b")], removed=removed, start_id=start)
    assert live(done.table) == {"b", "x", "y", "z"}


def test_position_deletes_conflict_with_a_compaction(catalog) -> None:
    table = filled(catalog, "a")
    start, removed = table.metadata.current_snapshot_id, in_table(table, "a")
    delta(catalog, table, [fake_deletes("x", referenced_data_file=removed[0].path)])
    with conflict("rows of"):
        commit_rewrite(catalog, table, added=[fake("b")], removed=removed, start_id=start)


def test_a_rewrite_adds_no_rows(catalog) -> None:
    table = filled(catalog, "a")
    with pytest.raises(ProgrammingError, match="more rows than it removes"):
        commit_rewrite(
            catalog, table, added=[fake("b", rows=2)], removed=in_table(table, "a"),
            start_id=table.metadata.current_snapshot_id,
        )  # fmt: skip


# ------------------------------------------------------------------ whole files


def partitions(catalog):
    table = create(catalog, partitioned=True)
    return appended(
        catalog,
        table,
        fake("a", partition=("x",)),
        fake("b", partition=("y",)),
        fake("n", partition=(None,)),
    )


def test_files_that_match_as_a_whole_are_deleted_unread(catalog) -> None:
    table = partitions(catalog)
    start = table.metadata.current_snapshot_id
    done = commit_delete_where(catalog, table, p_is("x"), start_id=start)
    assert done.summary["operation"] == "delete"
    assert live(done.table) == {"b", "n"}, "NULL is not x, and is not not-x"
    nothing = commit_delete_where(catalog, done.table, p_is("x"), start_id=done.snapshot_id)
    assert nothing.snapshot_id is None
    assert catalog.load(("ns", "t")).metadata_location == done.metadata_location


def test_a_filter_is_overwritten_by_new_files(catalog) -> None:
    table = partitions(catalog)
    start = table.metadata.current_snapshot_id
    new = [fake("c", partition=("x",))]
    done = commit_delete_where(catalog, table, p_is("x"), added=new, start_id=start)
    assert done.summary["operation"] == "overwrite"
    assert live(done.table) == {"b", "n", "c"}


def test_what_a_compaction_wrote_meanwhile_is_deleted_too(catalog) -> None:
    table = partitions(catalog)
    start = table.metadata.current_snapshot_id
    (a,) = in_table(table, "a")
    commit_rewrite(
        catalog, table, added=[fake("a2", partition=("x",))], removed=[a], start_id=start
    )
    done = commit_delete_where(catalog, table, p_is("x"), start_id=start)
    assert live(done.table) == {"b", "n"}


def test_rows_that_came_meanwhile_are_a_conflict_of_a_serializable_delete(catalog) -> None:
    table = partitions(catalog)
    start = table.metadata.current_snapshot_id
    appended(catalog, table, fake("late", partition=("x",)))
    with conflict(r"/late\.parquet was added"):
        commit_delete_where(catalog, table, p_is("x"), start_id=start)
    done = commit_delete_where(catalog, table, p_is("x"), start_id=start, isolation="snapshot")
    assert live(done.table) == {"b", "n"}


def test_a_file_that_matches_partly_is_not_deleted(catalog) -> None:
    counts = {"value_counts": {2: 4}, "null_value_counts": {2: 0}}
    whole = {"lower_bounds": {2: b"x"}, "upper_bounds": {2: b"x"}, **counts}
    part = {"lower_bounds": {2: b"a"}, "upper_bounds": {2: b"z"}, **counts}
    nulls = {**whole, "null_value_counts": {2: 1}}
    files = fake("w", rows=4, **whole), fake("p", rows=4, **part), fake("n", rows=4, **nulls)
    table = appended(catalog, create(catalog), *files)
    found = matched_files(table, head(table), p_is("x"), QueryContext())
    assert [each.path.rpartition("/")[2] for each in found.whole] == ["w.parquet"]
    assert sorted(each.rpartition("/")[2] for each in found.partly) == ["n.parquet", "p.parquet"]
    with conflict("only some rows of"):
        commit_delete_where(catalog, table, p_is("x"), start_id=table.metadata.current_snapshot_id)


def test_partitions_are_replaced_as_a_whole(catalog) -> None:
    table = partitions(catalog)
    start = table.metadata.current_snapshot_id
    new = [fake("c", partition=("x",))]
    done = commit_replace_partitions(catalog, table, added=new, start_id=start)
    assert live(done.table) == {"b", "n", "c"}
    assert done.summary["operation"] == "overwrite"
    assert done.summary["replace-partitions"] == "true"
    stale, start = done.table, done.snapshot_id
    appended(catalog, stale, fake("other", partition=("y",)))
    options = {"start_id": start, "isolation": "serializable"}
    added = [fake("d", partition=("x",))]
    done = commit_replace_partitions(catalog, stale, added=added, **options)
    assert live(done.table) == {"b", "n", "other", "d"}
    appended(catalog, done.table, fake("late", partition=("x",)))
    options = {"start_id": done.snapshot_id, "isolation": "serializable"}
    with conflict(r"/late\.parquet was added"):
        commit_replace_partitions(
            catalog, done.table, added=[fake("e", partition=("x",))], **options
        )


def test_nothing_to_do_is_no_commit(catalog) -> None:
    table = create(catalog)
    assert overwritten(catalog, table, [], []).snapshot_id is None
    assert delta(catalog, table, []).snapshot_id is None
    assert SCHEMA.fields


def test_a_delete_that_finds_nothing_the_second_time_leaves_nothing(catalog) -> None:
    table = partitions(catalog)
    start = table.metadata.current_snapshot_id
    commit_delete_where(catalog, table, p_is("x"), start_id=start)
    done = commit_delete_where(catalog, table, p_is("x"), start_id=start)
    assert done.snapshot_id is None
    assert live(catalog.load(("ns", "t"))) == {"b", "n"}
    assert len(files_on_disk(table, "snap-*.avro")) == 2
    assert len(files_on_disk(table, "*-m*.avro")) == 2


def test_snapshots_of_unsigned_ids_are_looked_at(catalog, monkeypatch) -> None:
    """Manifests have the ids of some writers with a sign, metadata without."""
    import icesql.commit.snapshot_operation as operation
    from icesql.storage.open import local_spellings

    table = partitions(catalog)
    start = table.metadata.current_snapshot_id
    new_id = operation.new_snapshot_id
    monkeypatch.setattr(operation, "new_snapshot_id", lambda known: -77)
    appended(catalog, table, fake("late", partition=("x",)))
    monkeypatch.setattr(operation, "new_snapshot_id", new_id)
    found = catalog.load(("ns", "t"))
    place = Path(local_spellings(found.metadata_location)[0])
    text = place.read_text()
    assert text.count(": -77") + text.count(":-77") >= 3
    place.write_text(text.replace(": -77", f": {2**64 - 77}").replace(":-77", f":{2**64 - 77}"))
    assert catalog.load(("ns", "t")).metadata.current_snapshot_id == 2**64 - 77
    with conflict(r"/late\.parquet was added"):
        commit_overwrite(
            catalog, table, removed=in_table(table, "a"), start_id=start, row_filter=p_is("x")
        )
