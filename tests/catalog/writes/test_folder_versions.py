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
from icesql.catalog.current_metadata import find_current_metadata, hinted_last
from icesql.catalog.directory import DirectoryCatalog
from icesql.catalog.writes import directory as writes
from icesql.catalog.writes.change import Conflict, Done, Unknown
from icesql.commit.append import commit_append
from icesql.commit.change import change_table
from icesql.commit.create import create_table, stage_table
from icesql.errors import StorageError
from icesql.iceberg.metadata.changes import updates as u
from icesql.storage.open import Storage
from tests.catalog.writes.swaps import TABLE, swapped, value_of
from tests.commit.tables import SCHEMA, create, directory, fake, files_on_disk, live, written
from tests.rows import rows_of
from tests.sessions import fetched

# Two versions are kept, the current one and the one before it.
SHORT = {
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "1",
}


@pytest.fixture
def catalog(tmp_path: Path) -> DirectoryCatalog:
    return directory(tmp_path)


def once(
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    before: Callable[[], object] = object,
    after: Callable[[], object] = object,
) -> None:
    """What others do before and after the first call of a function of the writer."""
    real = getattr(writes, name)

    def late(*given: Any) -> Any:
        monkeypatch.setattr(writes, name, real)
        before()
        made = real(*given)
        after()
        return made

    monkeypatch.setattr(writes, name, late)


def before_link(monkeypatch: pytest.MonkeyPatch, action: Callable[[], object]) -> None:
    """What others do once a writer has written its version and before it is linked."""
    once(monkeypatch, "_link_new", before=action)


def after_link(monkeypatch: pytest.MonkeyPatch, action: Callable[[], object]) -> None:
    """What others do once a version is linked, and before its writer looks again."""
    once(monkeypatch, "_link_new", after=action)


def hint(table: Any) -> str:
    return (Path(table.metadata.location) / "metadata/version-hint.text").read_text()


def appended(catalog: DirectoryCatalog, *names: str) -> None:
    for name in names:
        commit_append(catalog, catalog.load(TABLE), [fake(name)])


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("codec", ["none", "gzip"])
def test_others_before_the_link_are_a_conflict(
    catalog: DirectoryCatalog, monkeypatch: pytest.MonkeyPatch, version: int, codec: str
) -> None:
    table = create(catalog, version=version, **SHORT, **{"write.metadata.compression-codec": codec})
    appended(catalog, "a")
    table = catalog.load(TABLE)
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
    own, other = (icesql.connect(warehouse=tmp_path / "wh", read_only=False) for _ in range(2))
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
        assert fetched(other, "SELECT x FROM s.t ORDER BY x") == expected
    with icesql.connect(warehouse=tmp_path / "wh") as third:
        assert fetched(third, "SELECT x FROM s.t ORDER BY x") == expected


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
    found = swapped(catalog, table, "1")
    assert isinstance(found, Conflict)
    assert not (metadata / "v2.metadata.json").exists()


def test_a_change_without_a_snapshot_whose_fate_the_log_does_not_tell(
    catalog: DirectoryCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = create(catalog, **SHORT)
    metadata = Path(table.metadata_location).parent
    before_link(monkeypatch, lambda: appended(catalog, "a", "b", "c"))
    found = swapped(catalog, table, "1")
    assert isinstance(found, Unknown)
    assert found.location == str(metadata / "v2.metadata.json")
    assert (metadata / "v2.metadata.json").exists(), "nothing is unlinked"
    assert hint(table) == "4"
    assert live(catalog.load(TABLE)) == {"a", "b", "c"}


@pytest.mark.parametrize("base_is_left", [True, False])
def test_a_change_without_a_snapshot_after_the_link(
    catalog: DirectoryCatalog, monkeypatch: pytest.MonkeyPatch, base_is_left: bool
) -> None:
    most = "10" if base_is_left else "2"
    table = create(catalog, **{**SHORT, "write.metadata.previous-versions-max": most})
    after_link(monkeypatch, lambda: appended(catalog, "a", "b"))
    found = swapped(catalog, table, "1")
    assert isinstance(found, Done)
    assert value_of(catalog) == "1"


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
        now = catalog.load(TABLE)
        gone = tuple(
            each for each in now.metadata.snapshots if each != now.metadata.current_snapshot_id
        )
        change_table(catalog, now, lambda _: [u.RemoveSnapshots(gone[1:])])

    before_link(monkeypatch, expire)
    file = written(table, "mine", [(1, "x")])
    with pytest.raises(icesql.CommitStateUnknownError):
        commit_append(catalog, table, [file])
    assert Path(file.path).exists()
    assert live(catalog.load(TABLE)) == {"a", "b", "c"}


def test_a_new_table_whose_first_version_others_had(
    catalog: DirectoryCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    staged = stage_table(catalog, TABLE, SCHEMA)

    def other() -> None:
        create(catalog, **SHORT)
        appended(catalog, "a", "b", "c")

    before_link(monkeypatch, other)
    with pytest.raises(icesql.CommitConflictError, match="committed meanwhile"):
        create_table(catalog, staged)
    assert live(catalog.load(TABLE)) == {"a", "b", "c"}


def test_a_new_table_that_others_wrote_to_at_once(
    catalog: DirectoryCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    staged = stage_table(catalog, TABLE, SCHEMA, properties=SHORT)
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
    table = catalog.load(TABLE)

    def replaced() -> None:
        catalog.drop(TABLE, purge=True)
        if again:
            create(catalog)

    before_link(monkeypatch, replaced)
    with pytest.raises(icesql.Error) as caught:
        commit_append(catalog, table, [fake("mine")])
    assert not isinstance(caught.value, icesql.CommitStateUnknownError)
    if again:
        found = catalog.load(TABLE)
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
    after_link(monkeypatch, lambda: shutil.copy(table.metadata_location, metadata / other))
    found = swapped(catalog, table, "1")
    assert isinstance(found, Conflict)
    assert not (metadata / "v2.metadata.json").exists()
    assert (metadata / other).exists()


def test_of_two_spellings_readers_take_the_plain_one(catalog: DirectoryCatalog) -> None:
    table = create(catalog)
    metadata = Path(table.metadata_location).parent
    for name in ("v2.metadata.json.gz", "v2.gz.metadata.json", "v2.metadata.json"):
        shutil.copy(table.metadata_location, metadata / name)
        assert catalog.load(TABLE).metadata_location == str(metadata / name)


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
        patched.setattr(writes, "put_hint", die)
        with pytest.raises(icesql.CommitStateUnknownError):
            commit_append(catalog, table, [fake("a")])
    assert hint(table) == "1"
    assert live(catalog.load(TABLE)) == {"a"}
    appended(catalog, "b")
    assert live(catalog.load(TABLE)) == {"a", "b"}
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
    assert live(catalog.load(TABLE)) == {"a", "b", "c"}
    appended(catalog, "d")
    assert live(catalog.load(TABLE)) == {"a", "b", "c", "d"}


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


# ------------------------------------------------------------------ without a listing


@rows_of(__file__, "hinted_folders.tsv", "hinted", "names")
def test_the_hint_alone_never_says_other_than_a_listing(
    hinted: str, names: str, tmp_path: Path
) -> None:
    for name in names.split():
        (tmp_path / name).touch()
    if hinted != "-":
        (tmp_path / "version-hint.text").write_text(hinted)
    listed = find_current_metadata(str(tmp_path), Storage())
    assert hinted_last(str(tmp_path)) in (None, listed)


@pytest.fixture
def listings(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The folders of metadata that are listed."""
    found: list[str] = []
    for name in ("listdir", "scandir"):
        real = getattr(os, name)

        def noted(path: Any = ".", real: Any = real) -> Any:
            if str(path).endswith("/metadata"):
                found.append(str(path))
            return real(path)

        monkeypatch.setattr(os, name, noted)
    return found


def test_a_commit_lists_the_folder_once(catalog: DirectoryCatalog, listings: list[str]) -> None:
    table = create(catalog)
    appended(catalog, "a")
    listings.clear()
    for number in range(3):
        appended(catalog, f"b{number}")
    assert len(listings) == 3
    # A table that was loaded long ago: others may have put files into its folder since.
    table = catalog.load(TABLE)
    catalog._listed[os.path.dirname(os.path.dirname(table.metadata_location))] -= 60
    listings.clear()
    commit_append(catalog, table, [fake("c")])
    assert len(listings) == 1
    assert live(catalog.load(TABLE)) == {"a", "b0", "b1", "b2", "c"}


def by_a_catalog(table: Any, later_by_ms: int) -> str:
    """A version that another catalog commits to the same folder."""
    folder = Path(table.metadata_location).parent
    text = Path(table.metadata_location).read_text()
    known = f'"last-updated-ms":{table.metadata.last_updated_ms}'
    assert known in text
    new = f'"last-updated-ms":{table.metadata.last_updated_ms + later_by_ms}'
    place = folder / "00007-0a0a0a0a-0000-4000-8000-000000000001.metadata.json"
    place.write_text(text.replace(known, new))
    return str(place)


@pytest.mark.parametrize("seconds", [0, 60])
def test_a_table_that_a_catalog_has_taken_over_is_refused(
    catalog: DirectoryCatalog, seconds: int
) -> None:
    create(catalog)
    appended(catalog, "a")
    table = catalog.load(TABLE)
    catalog._listed[os.path.dirname(os.path.dirname(table.metadata_location))] -= seconds
    theirs = by_a_catalog(table, 3_600_000)
    if seconds:
        with pytest.raises(icesql.NotSupportedError, match="managed by another catalog"):
            commit_append(catalog, table, [fake("b")])
        assert catalog.load(TABLE).metadata_location == theirs
    with pytest.raises(icesql.NotSupportedError, match="managed by another catalog"):
        commit_append(catalog, catalog.load(TABLE), [fake("c")])


def test_an_older_file_of_a_catalog_is_none(catalog: DirectoryCatalog) -> None:
    table = create(catalog)
    by_a_catalog(table, -1)
    for seconds in (0, 60):
        table = catalog.load(TABLE)
        catalog._listed[os.path.dirname(os.path.dirname(table.metadata_location))] -= seconds
        commit_append(catalog, table, [fake(f"a{seconds}")])
    assert live(catalog.load(TABLE)) == {"a0", "a60"}


@pytest.mark.parametrize("name", ["v3.metadata.json", "v3.gz.metadata.json", "v2.gz.metadata.json"])
def test_who_commits_while_the_hint_is_written_is_seen(
    name: str, catalog: DirectoryCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A version that was not made of ours: ours is none."""
    table = create(catalog)
    place = Path(table.metadata_location).with_name
    once(
        monkeypatch,
        "put_hint",
        after=lambda: shutil.copy(place("v2.metadata.json"), place(name)),
    )
    assert isinstance(swapped(catalog, table, "1"), Conflict)
    assert catalog.load(TABLE).metadata_location.endswith(name)


def test_who_goes_on_while_the_hint_is_written_is_seen(
    catalog: DirectoryCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = create(catalog)
    other = directory(Path(catalog.folder).parent)
    once(monkeypatch, "put_hint", before=lambda: appended(other, "b"))
    commit_append(catalog, table, [fake("a")])
    assert live(catalog.load(TABLE)) == {"a", "b"}
    assert hint(table) == "3"


def test_a_hint_that_goes_back_is_mended(
    catalog: DirectoryCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others commit many versions, and delete the old ones, while the hint is written."""
    create(catalog, **SHORT)
    mine = catalog.load(TABLE)
    put = writes.put_hint

    def slow(folder: str, version: int) -> bool:
        monkeypatch.setattr(writes, "put_hint", put)
        for number in range(5):
            appended(directory(Path(catalog.folder).parent), f"b{number}")
        hint_of = Path(folder) / "version-hint.text"
        hint_of.write_text(str(version))  # by a writer who had read the one before
        return True

    monkeypatch.setattr(writes, "put_hint", slow)
    commit_append(catalog, mine, [fake("a")])
    found = catalog.load(TABLE)
    assert live(found) == {"a", "b0", "b1", "b2", "b3", "b4"}
    assert hint(found) == os.path.basename(found.metadata_location)[1:].partition(".")[0]


@pytest.mark.parametrize("open_before", [False, True])
@pytest.mark.parametrize("left", [1, 2, 3])
def test_a_hint_above_every_version_stops_readers_and_writers(
    tmp_path: Path, left: int, open_before: bool
) -> None:
    """Files of commits are gone: older rows are not the table's, and are not written upon."""
    with icesql.connect(warehouse=tmp_path) as con:
        con.execute("CREATE SCHEMA s")
        con.execute("CREATE TABLE s.t (a INT)")
        for number in range(3):
            con.execute("INSERT INTO s.t VALUES (?)", [number])
        folder = tmp_path / "s" / "t" / "metadata"
        for number in range(left + 1, 5):
            (folder / f"v{number}.metadata.json").unlink()
        before = {*folder.glob("v*")} - {folder / "version-hint.text"}
        for text in (
            "SELECT count(*) FROM s.t",
            "INSERT INTO s.t VALUES (9)",
            "DELETE FROM s.t WHERE a = 0",
            "ALTER TABLE s.t ADD COLUMN b INT",
            "CALL system.expire_snapshots('s.t')",
            f"SELECT * FROM iceberg_scan('{folder.parent}')",
        ):
            with (
                icesql.connect(warehouse=tmp_path) as other,
                pytest.raises(StorageError, match=rf"v4.metadata.json: .*write {left} into"),
            ):
                (con if open_before else other).execute(text)
        assert {*folder.glob("v*.metadata.json")} == before
        (folder / "version-hint.text").write_text(str(left))
        assert con.execute("SELECT count(*) FROM s.t").fetchone() == (left - 1,)
        con.execute("INSERT INTO s.t VALUES (9)")
        assert con.execute("SELECT count(*) FROM s.t").fetchone() == (left,)


def test_a_version_that_is_taken_back_leaves_no_hint_of_it(
    catalog: DirectoryCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = create(catalog)
    folder = os.path.dirname(table.metadata_location)

    def taken_over() -> None:
        writes.put_hint(folder, 2)
        name = "00005-0a0a0a0a-0000-4000-8000-000000000001.metadata.json"
        data = Path(table.metadata_location).read_text()
        newer = data.replace('"last-updated-ms":', '"last-updated-ms": 9', 1)
        Path(folder, name).write_text(newer)

    after_link(monkeypatch, taken_over)
    unlink = os.unlink

    def seen(path: str, **options: Any) -> None:
        unlink(path, **options)
        assert find_current_metadata(folder, Storage())

    monkeypatch.setattr("os.unlink", seen)
    with pytest.raises(icesql.Error):
        commit_append(catalog, table, [fake("a")])
    assert writes.read_hint(folder) in (None, 1)
