from __future__ import annotations

import pytest
from msgspec.structs import replace

import icesql
from icesql.context import QueryContext
from icesql.iceberg.expressions.predicate import ALWAYS_TRUE
from icesql.maintain.rewrite import run
from icesql.maintain.rewrite.run import dangling_deletes
from tests.maintain.rewrite.tables import catalog_of, new_table, planned, read, rewrite, rows


@pytest.mark.parametrize("removed", [False, True])
def test_deletes_that_apply_to_nothing_go_with_the_option(tmp_path, removed):
    table = new_table(tmp_path, partitioned=True)
    files = [table.data_file(rows(0, 10, p), partition=(p,)) for p in "ab"]
    table.commit(files)
    table.commit(
        [
            table.position_deletes([(files[0], 1)], partition=("a",)),
            table.equality_deletes([{"id": 2}], [1], partition=("a",)),
            table.position_deletes([(files[1], 1)], partition=("b",)),
            table.equality_deletes([{"id": 2}], [1], partition=("b",)),
        ]
    )
    table.append(rows(2, 1, "a"), partition=("a",))
    catalog = catalog_of(table)
    before = read(catalog)
    plan = planned(
        catalog, rewrite_all=True, remove_dangling_deletes=removed, max_files_to_rewrite=2,
        row_filter=ALWAYS_TRUE,
    )  # fmt: skip
    done = rewrite(catalog, plan)
    assert read(catalog) == before
    # In partition a both are older than all data; b still needs its own.
    assert done.removed_delete_files_count == (2 if removed else 0)
    assert len(done.snapshot_ids) == (2 if removed else 1)
    left = dangling_deletes(done.table, done.table.metadata.current_snapshot, QueryContext())
    assert len(left) == (0 if removed else 2)


def test_a_vector_without_its_file_and_an_unpartitioned_key(tmp_path):
    table = new_table(tmp_path, 3)
    files = table.append(rows(0, 10), rows(10, 10))
    vectors = table.deletion_vectors([(each, [1]) for each in files])
    keys = table.equality_deletes([{"id": 3}], [1])
    table.commit([*vectors, keys])
    table.commit(removed=[files[0]])
    catalog = catalog_of(table)
    loaded = catalog.load(("ns", "t"))
    found = dangling_deletes(loaded, loaded.metadata.current_snapshot, QueryContext())
    assert [each.referenced_data_file for each in found] == [files[0].record["file_path"]]
    table.commit(removed=[files[1]])
    table.append(rows(0, 5))
    loaded = catalog.load(("ns", "t"))
    found = dangling_deletes(loaded, loaded.metadata.current_snapshot, QueryContext())
    assert len(found) == 3


@pytest.mark.parametrize("version", [2, 3])
def test_each_of_many_files_keeps_its_own_delete(tmp_path, version):
    table = new_table(tmp_path, version)
    files = [table.data_file(rows(10 * n, 10)) for n in range(12)]
    table.commit(files)
    if version > 2:
        table.commit(table.deletion_vectors([(each, [1]) for each in files]))
    else:
        table.commit([table.position_deletes([(each, 1)]) for each in files])
    catalog = catalog_of(table)
    before = read(catalog)
    loaded = catalog.load(("ns", "t"))
    assert dangling_deletes(loaded, loaded.metadata.current_snapshot, QueryContext()) == []
    plan = planned(catalog, rewrite_all=True, remove_dangling_deletes=True, max_files_to_rewrite=2)
    rewrite(catalog, plan)
    assert len(before) == 108
    assert read(catalog) == before


def test_a_vector_that_spells_the_path_of_its_file_otherwise_is_needed(tmp_path):
    table = new_table(tmp_path, 3)
    (file,) = table.append(rows(0, 10))
    (vector,) = table.deletion_vectors([(file, [1])])
    path = vector.record["referenced_data_file"]
    assert path.startswith("/")
    vector.record["referenced_data_file"] = f"file://{path}"
    table.commit([vector])
    catalog = catalog_of(table)
    assert len(read(catalog)) == 9
    loaded = catalog.load(("ns", "t"))
    assert dangling_deletes(loaded, loaded.metadata.current_snapshot, QueryContext()) == []
    with icesql.connect(warehouse=catalog.folder) as con:
        con.execute("ALTER TABLE ns.t SET TBLPROPERTIES ('write.delete.mode' = 'merge-on-read')")
        con.execute("DELETE FROM ns.t WHERE id = 4")
        ((count,),) = con.execute("SELECT count(*) FROM ns.t.delete_files").fetchall()
    assert count == 1, "the new vector takes the place of the old one"
    assert len(read(catalog)) == 8


def test_a_branch_that_is_gone_after_the_commit_has_no_dangling_deletes(tmp_path, monkeypatch):
    table = new_table(tmp_path)
    table.append(rows(0, 10), rows(10, 10))
    catalog = catalog_of(table)
    plan = planned(catalog, rewrite_all=True, remove_dangling_deletes=True)
    commit = run.commit_rewrite

    def replaced_meanwhile(*args, **options):
        done = commit(*args, **options)
        # REPLACE TABLE by another writer, before the commit's result is read.
        metadata = replace(done.table.metadata, refs={})
        return replace(done, table=replace(done.table, metadata=metadata))

    monkeypatch.setattr(run, "commit_rewrite", replaced_meanwhile)
    done = rewrite(catalog, plan)
    assert len(done.snapshot_ids) == 1
    assert done.removed_delete_files_count == 0
