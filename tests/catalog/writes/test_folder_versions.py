"""Versions of a table in a folder: a name that is linked is the table's only if others let it be.

Where old versions are deleted after a commit, the next version of a slow writer may be free again
although others committed it, and many after it.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import icesql
from icesql.catalog.directory import DirectoryCatalog
from icesql.catalog.writes import directory as writes
from icesql.catalog.writes.change import Conflict, Done, TableChange, Unknown
from icesql.commit.append import commit_append
from icesql.commit.change import change_table
from icesql.commit.create import create_table, stage_table
from icesql.iceberg.metadata.changes import updates as u
from tests.commit.tables import SCHEMA, create, directory, fake, files_on_disk, live, written

# Two versions are kept, the current one and the one before it.
SHORT = {
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "1",
}


@pytest.fixture
def catalog(tmp_path: Path) -> DirectoryCatalog:
    return directory(tmp_path)


def before_link(monkeypatch: pytest.MonkeyPatch, action: Callable[[], None]) -> None:
    """What others do once a writer has written its version and before it is linked."""
    link = writes._link_new

    def late(data: bytes, final: str) -> bool | None:
        monkeypatch.setattr(writes, "_link_new", link)
        action()
        return link(data, final)

    monkeypatch.setattr(writes, "_link_new", late)


def after_link(monkeypatch: pytest.MonkeyPatch, action: Callable[[], None]) -> None:
    """What others do once a version is linked, and before its writer looks again."""
    link = writes._link_new

    def early(data: bytes, final: str) -> bool | None:
        monkeypatch.setattr(writes, "_link_new", link)
        made = link(data, final)
        action()
        return made

    monkeypatch.setattr(writes, "_link_new", early)


def hint(table: Any) -> str:
    return (Path(table.metadata.location) / "metadata/version-hint.text").read_text()


def appended(catalog: DirectoryCatalog, *names: str) -> None:
    for name in names:
        commit_append(catalog, catalog.load(("ns", "t")), [fake(name)])


def setting(table: Any, value: str) -> TableChange:
    change = u.SetProperties({"k": value})
    return TableChange((change,), (), table.storage, table.metadata.last_updated_ms + 60_000)


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("codec", ["none", "gzip"])
def test_others_before_the_link_are_a_conflict(
    catalog: DirectoryCatalog, monkeypatch: pytest.MonkeyPatch, version: int, codec: str
) -> None:
    table = create(catalog, version=version, **SHORT, **{"write.metadata.compression-codec": codec})
    appended(catalog, "a")
    table = catalog.load(("ns", "t"))
    before_link(monkeypatch, lambda: appended(catalog, "b", "c", "d", "e"))
    done = commit_append(catalog, table, [fake("mine")])
    assert live(done.table) == {"a", "b", "c", "d", "e", "mine"}
    assert hint(table) == "7"
    assert len(files_on_disk(table, "v*.metadata.json")) == 2, "the one that was linked is gone"


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("others", [1, 4])
def test_others_after_the_link_go_on_from_it(
    catalog: DirectoryCatalog, monkeypatch: pytest.MonkeyPatch, version: int, others: int
) -> None:
    table = create(catalog, version=version, **SHORT)
    names = "bcde"[:others]
    after_link(monkeypatch, lambda: appended(catalog, *names))
    done = commit_append(catalog, table, [fake("mine")])
    assert live(done.table) == {"mine", *names}
    assert len(done.table.metadata.snapshots) == 1 + others, "it was committed once"
    assert hint(table) == str(2 + others), "the hint does not go back"


def test_rows_of_all_are_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By SQL: a slow INSERT whose version was committed, and deleted again, by others."""
    (tmp_path / "wh").mkdir()
    own, other = (icesql.connect(warehouse=str(tmp_path / "wh"), read_only=False) for _ in range(2))
    with own, other:
        own.execute("CREATE SCHEMA s")
        named = ", ".join(f"'{key}' = '{text}'" for key, text in SHORT.items())
        own.execute(f"CREATE TABLE s.t (x INT) TBLPROPERTIES ({named})")

        def commits() -> None:
            for number in range(4):
                other.execute(f"INSERT INTO s.t VALUES ({100 + number})")

        before_link(monkeypatch, commits)
        own.execute("INSERT INTO s.t VALUES (1)")
        expected = [(1,), (100,), (101,), (102,), (103,)]
        assert other.execute("SELECT x FROM s.t ORDER BY x").fetchall() == expected
    with icesql.connect(warehouse=str(tmp_path / "wh")) as third:
        assert third.execute("SELECT x FROM s.t ORDER BY x").fetchall() == expected


def test_a_change_without_a_snapshot_before_the_link(
    catalog: DirectoryCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log of the others tells what followed its base."""
    table = create(catalog, **{**SHORT, "write.metadata.previous-versions-max": "3"})
    metadata = Path(table.metadata_location).parent

    def commits() -> None:
        appended(catalog, "a", "b")
        # Deleted by hand, or by a writer that keeps fewer than the log.
        (metadata / "v2.metadata.json").unlink()

    before_link(monkeypatch, commits)
    found = catalog.swap(("ns", "t"), table.metadata_location, setting(table, "1"))
    assert isinstance(found, Conflict)
    assert not (metadata / "v2.metadata.json").exists()


def test_a_change_without_a_snapshot_whose_fate_the_log_does_not_tell(
    catalog: DirectoryCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = create(catalog, **SHORT)
    metadata = Path(table.metadata_location).parent
    before_link(monkeypatch, lambda: appended(catalog, "a", "b", "c"))
    found = catalog.swap(("ns", "t"), table.metadata_location, setting(table, "1"))
    assert isinstance(found, Unknown)
    assert found.location == str(metadata / "v2.metadata.json")
    assert (metadata / "v2.metadata.json").exists(), "nothing is unlinked"
    assert hint(table) == "4"
    assert live(catalog.load(("ns", "t"))) == {"a", "b", "c"}


@pytest.mark.parametrize("base_is_left", [True, False])
def test_a_change_without_a_snapshot_after_the_link(
    catalog: DirectoryCatalog, monkeypatch: pytest.MonkeyPatch, base_is_left: bool
) -> None:
    most = "10" if base_is_left else "2"
    table = create(catalog, **{**SHORT, "write.metadata.previous-versions-max": most})
    after_link(monkeypatch, lambda: appended(catalog, "a", "b"))
    found = catalog.swap(("ns", "t"), table.metadata_location, setting(table, "1"))
    assert isinstance(found, Done)
    assert catalog.load(("ns", "t")).metadata.properties["k"] == "1"


def test_later_versions_that_cannot_be_read_leave_all_as_it_is(
    catalog: DirectoryCatalog, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("icesql.commit.attempts._STATUS_WAIT_SECONDS", 0.0)
    table = create(catalog, **SHORT)
    file = written(table, "mine", [(1, "x")])
    metadata = Path(table.metadata_location).parent

    def damage() -> None:
        appended(catalog, "a", "b", "c")
        (metadata / "v4.metadata.json").write_text("{")

    before_link(monkeypatch, damage)
    with pytest.raises(
        icesql.CommitStateUnknownError, match=r"v2\.metadata\.json was made"
    ) as caught:
        commit_append(catalog, table, [file])
    assert Path(file.path).exists()
    assert (metadata / "v2.metadata.json").exists()
    assert str(metadata / "v2.metadata.json") in caught.value.files
    assert file.path in caught.value.files
    assert all(Path(path).exists() for path in caught.value.files)


def test_snapshots_that_others_expired_leave_it_open(
    catalog: DirectoryCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A snapshot is missing from the count, and may have been this one."""
    monkeypatch.setattr("icesql.commit.attempts._STATUS_WAIT_SECONDS", 0.0)
    table = create(catalog, **SHORT)

    def expire() -> None:
        appended(catalog, "a", "b", "c")
        now = catalog.load(("ns", "t"))
        gone = tuple(
            each for each in now.metadata.snapshots if each != now.metadata.current_snapshot_id
        )
        change_table(catalog, now, lambda _: [u.RemoveSnapshots(gone[1:])])

    before_link(monkeypatch, expire)
    file = written(table, "mine", [(1, "x")])
    with pytest.raises(icesql.CommitStateUnknownError):
        commit_append(catalog, table, [file])
    assert Path(file.path).exists()
    assert live(catalog.load(("ns", "t"))) == {"a", "b", "c"}


def test_a_new_table_whose_first_version_others_had(
    catalog: DirectoryCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    staged = stage_table(catalog, ("ns", "t"), SCHEMA)

    def other() -> None:
        create(catalog, **SHORT)
        appended(catalog, "a", "b", "c")

    before_link(monkeypatch, other)
    with pytest.raises(icesql.CommitConflictError, match="committed meanwhile"):
        create_table(catalog, staged)
    assert live(catalog.load(("ns", "t"))) == {"a", "b", "c"}


def test_a_new_table_that_others_wrote_to_at_once(
    catalog: DirectoryCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    staged = stage_table(catalog, ("ns", "t"), SCHEMA, properties=SHORT)
    after_link(monkeypatch, lambda: appended(catalog, "a", "b", "c"))
    assert live(create_table(catalog, staged).table) == {"a", "b", "c"}


# ------------------------------------------------------------------ the folder of another table


@pytest.mark.parametrize("again", [True, False])
def test_a_table_that_is_dropped_does_not_come_back(
    catalog: DirectoryCatalog, monkeypatch: pytest.MonkeyPatch, again: bool
) -> None:
    """Nor does its next version become one of the table that has its name then."""
    table = create(catalog)
    appended(catalog, "a")
    table = catalog.load(("ns", "t"))

    def replaced() -> None:
        catalog.drop(("ns", "t"), purge=True)
        if again:
            create(catalog)

    before_link(monkeypatch, replaced)
    with pytest.raises(icesql.Error) as caught:
        commit_append(catalog, table, [fake("mine")])
    assert not isinstance(caught.value, icesql.CommitStateUnknownError)
    if again:
        found = catalog.load(("ns", "t"))
        assert found.metadata.table_uuid != table.metadata.table_uuid
        assert found.metadata.current_snapshot_id is None
        assert hint(found) == "1"
    else:
        assert catalog.tables() == []


# ------------------------------------------------------------------ spellings and hints


@pytest.mark.parametrize("other", ["v2.gz.metadata.json", "v2.metadata.json.gz"])
def test_two_spellings_of_one_version_at_once(
    catalog: DirectoryCatalog, monkeypatch: pytest.MonkeyPatch, other: str
) -> None:
    """Another writer has chosen the other one: neither can be the only one."""
    table = create(catalog)
    metadata = Path(table.metadata_location).parent
    after_link(monkeypatch, lambda: shutil.copy(table.metadata_location, metadata / other) and None)
    found = catalog.swap(("ns", "t"), table.metadata_location, setting(table, "1"))
    assert isinstance(found, Conflict)
    assert not (metadata / "v2.metadata.json").exists()
    assert (metadata / other).exists()


def test_of_two_spellings_readers_take_the_plain_one(catalog: DirectoryCatalog) -> None:
    table = create(catalog)
    metadata = Path(table.metadata_location).parent
    for name in ("v2.metadata.json.gz", "v2.gz.metadata.json", "v2.metadata.json"):
        shutil.copy(table.metadata_location, metadata / name)
        assert catalog.load(("ns", "t")).metadata_location == str(metadata / name)


@pytest.mark.parametrize("text", ["9", "v9", "v9.metadata.json", "9\n"])
def test_a_hint_never_goes_back(catalog: DirectoryCatalog, text: str) -> None:
    table = create(catalog)
    place = Path(table.metadata_location).parent / "version-hint.text"
    place.write_text(text)
    writes.write_hint(str(place.parent), 2)
    assert place.read_text() == text
    writes.write_hint(str(place.parent), 10)
    assert place.read_text() == "10"


def test_a_hint_that_another_writer_overtakes(
    catalog: DirectoryCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is written after it was read, and others commit in between."""
    table = create(catalog)
    folder = Path(table.metadata_location).parent
    replace_file = os.replace

    def late(source: str, target: str) -> None:
        monkeypatch.setattr(os, "replace", replace_file)
        appended(catalog, "a", "b", "c")
        replace_file(source, target)

    monkeypatch.setattr(os, "replace", late)
    writes.write_hint(str(folder), 2)
    assert (folder / "version-hint.text").read_text() == "4"


def test_a_writer_that_dies_between_link_and_hint_has_committed(
    catalog: DirectoryCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = create(catalog)

    def die(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(writes, "write_hint", die)
        with pytest.raises(icesql.CommitStateUnknownError):
            commit_append(catalog, table, [fake("a")])
    assert hint(table) == "1"
    assert live(catalog.load(("ns", "t"))) == {"a"}
    appended(catalog, "b")
    assert live(catalog.load(("ns", "t"))) == {"a", "b"}
    assert hint(table) == "3"


def test_a_writer_that_dies_before_it_looks_again_takes_no_rows(
    catalog: DirectoryCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its version stays where nobody looks: readers follow the hint, which names a later one."""
    table = create(catalog, **SHORT)

    def die(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:

        def commits_and_death() -> None:
            appended(catalog, "a", "b", "c")
            patched.setattr(writes._Linked, "outcome", die)

        before_link(patched, commits_and_death)
        with pytest.raises(icesql.CommitStateUnknownError):
            commit_append(catalog, table, [fake("mine")])
    assert live(catalog.load(("ns", "t"))) == {"a", "b", "c"}
    appended(catalog, "d")
    assert live(catalog.load(("ns", "t"))) == {"a", "b", "c", "d"}


# ------------------------------------------------------------------ file systems over a network


def test_a_link_that_was_asked_for_twice_is_ours(
    catalog: DirectoryCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = create(catalog)
    link = os.link

    def twice(source: str, target: str) -> None:
        link(source, target)
        if target.endswith(".metadata.json"):
            link(source, target)

    monkeypatch.setattr(os, "link", twice)
    done = commit_append(catalog, table, [fake("a")])
    assert live(done.table) == {"a"}
    assert len(done.table.metadata.snapshots) == 1


def test_a_link_that_nobody_knows_of_keeps_its_files(
    catalog: DirectoryCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("icesql.commit.attempts._STATUS_WAIT_SECONDS", 0.0)
    table = create(catalog)
    file = written(table, "mine", [(1, "x")])

    def fails(source: str, target: str) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "link", fails)
    with pytest.raises(icesql.CommitStateUnknownError, match="does not tell"):
        commit_append(catalog, table, [file])
    assert Path(file.path).exists()
