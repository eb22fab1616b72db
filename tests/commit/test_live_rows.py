"""A commit is refused if its files do not match the number of rows that its statement counted."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

import icesql.commit.manifests.store as store
import icesql.commit.snapshot_operation as operation
from icesql.catalog.table import Table
from icesql.commit.rows import commit_append, commit_overwrite
from icesql.errors import InternalError
from tests.commit.steps import files_of
from tests.commit.tables import CATALOGS, create, fake, files_on_disk, told

AT_ONCE = {"commit.manifest.min-count-to-merge": "2"}


@pytest.fixture(params=CATALOGS)
def catalog(request, tmp_path) -> Any:
    return CATALOGS[request.param](tmp_path)


def unchanged(catalog: Any, table: Table) -> None:
    """The table is as it was, and nothing of the commit is left."""
    now = catalog.load(table.identifier)
    assert now.metadata_location == table.metadata_location
    listed = {each.manifest_list.rpartition("/")[2] for each in now.metadata.snapshots.values()}
    assert files_on_disk(table, "snap-*.avro") == listed


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize(
    ("merges", "wrong"),
    [
        (True, lambda made: replace(made, sequence_number=made.sequence_number + 1)),
        (True, lambda made: replace(made, file=replace(made.file, record_count=5))),
        (True, lambda made: replace(made, file=replace(made.file, first_row_id=77))),
        (True, lambda made: replace(made, file=replace(made.file, path="/other.parquet"))),
        (False, lambda made: replace(made, sequence_number=None)),
        (False, lambda made: replace(made, file=replace(made.file, first_row_id=77))),
    ],
)
def test_what_is_carried_over_is_what_was_there(
    catalog: Any, monkeypatch, version: int, merges: bool, wrong: Any
) -> None:
    table = create(catalog, version=version, **(AT_ONCE if merges else {}))
    table = commit_append(catalog, table, [fake("a"), fake("b")]).table
    real = store.existing_entry
    monkeypatch.setattr(store, "existing_entry", lambda *given: wrong(real(*given)))
    given: dict[str, Any] = {"added": [fake("c")]}
    if not merges:
        given["removed"] = files_of(table, "a")
    start = table.metadata.current_snapshot_id
    with pytest.raises(InternalError, match=r"by this commit the file .* would"):
        commit_overwrite(catalog, table, **given, start_id=start)
    monkeypatch.undo()
    unchanged(catalog, table)


def test_no_file_is_lost_or_comes_twice(catalog: Any, monkeypatch) -> None:
    table = create(catalog, **AT_ONCE)
    table = commit_append(catalog, table, [fake("a"), fake("b")]).table
    real = store.ManifestStore.existing
    for change in (lambda found: found[1:], lambda found: [*found, found[-1]]):

        def changed(*given: Any, change: Any = change) -> Any:
            return ((manifest, change(found)) for manifest, found in real(*given))

        with monkeypatch.context() as patched:
            patched.setattr(store.ManifestStore, "existing", changed)
            with pytest.raises(InternalError, match="would"):
                commit_append(catalog, table, [fake("c")])
        unchanged(catalog, table)
    table = commit_append(catalog, table, [fake("c")]).table
    assert sorted(name for each in told(table) for name, _, _ in each) == ["a", "b", "c"]


def test_a_manifest_that_nobody_wrote_for_it_is_not_listed(catalog: Any, monkeypatch) -> None:
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
