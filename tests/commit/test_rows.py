"""Commits that change rows, in cases that .steps files cannot express."""

from __future__ import annotations

from pathlib import Path

import pytest

import icesql.commit.snapshot_operation as operation
from icesql.commit.rows import commit_append, commit_overwrite, matched_files
from icesql.context import QueryContext
from icesql.errors import CommitConflictError
from icesql.storage.open import local_spellings
from tests.commit.steps import files_of, p_is
from tests.commit.tables import create, directory, fake, head


def test_a_file_that_matches_partly_is_told_from_others(tmp_path) -> None:
    counts = {"value_counts": {2: 4}, "null_value_counts": {2: 0}}
    whole = {"lower_bounds": {2: b"x"}, "upper_bounds": {2: b"x"}, **counts}
    part = {"lower_bounds": {2: b"a"}, "upper_bounds": {2: b"z"}, **counts}
    nulls = {**whole, "null_value_counts": {2: 1}}
    files = fake("w", rows=4, **whole), fake("p", rows=4, **part), fake("n", rows=4, **nulls)
    catalog = directory(tmp_path)
    table = commit_append(catalog, create(catalog), files).table
    found = matched_files(table, head(table), p_is("x"), QueryContext())
    assert [each.path.rpartition("/")[2] for each in found.whole] == ["w.parquet"]
    assert sorted(each.rpartition("/")[2] for each in found.partly) == ["n.parquet", "p.parquet"]


def test_snapshots_of_unsigned_ids_are_looked_at(tmp_path, monkeypatch) -> None:
    """Some writers write ids signed in manifests, and unsigned in metadata."""
    catalog = directory(tmp_path)
    table = create(catalog, partitioned=True)
    table = commit_append(catalog, table, [fake("a", partition=("x",))]).table
    start = table.metadata.current_snapshot_id
    with monkeypatch.context() as patched:
        patched.setattr(operation, "new_snapshot_id", lambda known: -77)
        commit_append(catalog, table, [fake("late", partition=("x",))])
    place = Path(local_spellings(catalog.load(("ns", "t")).metadata_location)[0])
    text = place.read_text()
    assert text.count(": -77") + text.count(":-77") >= 3
    place.write_text(text.replace(": -77", f": {2**64 - 77}").replace(":-77", f":{2**64 - 77}"))
    assert catalog.load(("ns", "t")).metadata.current_snapshot_id == 2**64 - 77
    with pytest.raises(CommitConflictError, match=r"/late\.parquet was added"):
        commit_overwrite(
            catalog, table, removed=files_of(table, "a"), start_id=start, row_filter=p_is("x")
        )
