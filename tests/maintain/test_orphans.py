"""Orphans: what nothing names is found, and never anything else."""

from __future__ import annotations

import os
import shutil
from ast import literal_eval
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import icesql
from icesql import errors
from icesql.context import QueryContext
from icesql.maintain.referenced import Prefixes, Referenced
from icesql.storage.listing import ListedFile, list_files
from icesql.storage.open import Storage
from icesql.storage.removal import remove_files, remove_listed
from tests.tables import read_table


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[tuple[icesql.Connection, Path]]:
    """A connection, and the folder of its table s.t with two snapshots."""
    (tmp_path / "lake").mkdir()
    with icesql.connect(warehouse=str(tmp_path / "lake")) as con:
        con.execute("CREATE SCHEMA s")
        con.execute(
            "CREATE TABLE s.t (i INT, _p VARCHAR) PARTITIONED BY (_p) "
            "TBLPROPERTIES ('format-version' = '3', 'write.delete.mode' = 'merge-on-read')"
        )
        con.execute("INSERT INTO s.t VALUES (1, 'a'), (2, 'b'), (3, 'b')")
        con.execute("DELETE FROM s.t WHERE i = 3")
        yield con, tmp_path / "lake" / "s" / "t"


def planted(folder: Path, *names: str, days: float = 9) -> set[str]:
    found = set()
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x" * 10)
        found.add(str(path))
    age(folder, days)
    return found


def age(folder: Path, days: float = 9) -> None:
    import time

    then = time.time() - days * 86_400
    for path in folder.rglob("*"):
        os.utime(path, (then, then), follow_symlinks=False)


def files(folder: Path) -> set[str]:
    return {str(each) for each in folder.rglob("*") if not each.is_dir()}


def orphans(con: icesql.Connection, arguments: str = "'s.t'") -> set[str]:
    return {
        row[0] for row in con.execute(f"CALL system.remove_orphan_files({arguments})").fetchall()
    }


NAMES = (
    "data/x.parquet", "data/_p=a/x.parquet", "data/_p=zz/y/z", "metadata/snap-1-1-x.avro",
    "metadata/x-m0.avro", "loose", "data/é ü%2F#?&.parquet", "data/a\nb'c\".parquet", "data/-rf *",
    "data/.00000-x.parquet.0123456789ab.part", "metadata/.0123456789abcdef0123456789abcdef.new",
    "metadata/.0123456789abcdef-version-hint.temp", "metadata/v9.metadata.json.not",
)  # fmt: skip
KEPT = (
    "data/_SUCCESS", "data/.hidden", "_temporary/x.parquet", ".sparkStaging/y", "data/__x=1/y",
    "metadata/version-hint.text",
)  # fmt: skip


def test_what_nothing_names_goes_and_all_else_stays(lake: Any) -> None:
    con, folder = lake
    before = files(folder)
    wanted = planted(folder, *NAMES)
    planted(folder, *KEPT)
    told = con.execute("EXPLAIN CALL system.remove_orphan_files('s.t')").fetchall()
    assert {row[2] for row in told} == wanted
    assert {row[:2] for row in told} == {("remove", "file")}
    assert orphans(con, "'s.t', dry_run => true") == wanted
    assert wanted < files(folder)
    assert orphans(con) == wanted
    assert files(folder) == before | {str(folder / name) for name in KEPT}
    assert orphans(con) == set()
    assert con.execute("SELECT i FROM s.t ORDER BY i").fetchall() == [(1,), (2,)]
    for (snapshot,) in con.execute("SELECT snapshot_id FROM s.t.snapshots").fetchall():
        con.execute(f"SELECT * FROM s.t VERSION AS OF {snapshot}").fetchall()


def test_only_what_is_old_enough_goes(lake: Any) -> None:
    con, folder = lake
    old = planted(folder, "data/old")
    (folder / "data" / "young").write_bytes(b"")
    cursor = con.execute("CALL system.remove_orphan_files('s.t')")
    assert {row[0] for row in cursor.fetchall()} == old
    assert "1 more are too young" in cursor.notes[0]
    for older_than in ("now()", "now() - INTERVAL 23 HOURS", "TIMESTAMP '2999-01-01'"):
        with pytest.raises(errors.ProgrammingError, match="less than 24 hours ago"):
            orphans(con, f"'s.t', older_than => {older_than}")
        young = set() if "23" in older_than else {str(folder / "data/young")}
        assert orphans(con, f"'s.t', {older_than}, dry_run => true") == young
    assert orphans(con, "'s.t', older_than => now() - INTERVAL 25 HOURS") == set()
    age(folder, 2)
    assert orphans(con, "'s.t', older_than => now() - INTERVAL 25 HOURS") == {
        str(folder / "data/young")
    }


def test_a_folder_of_the_table_alone(lake: Any) -> None:
    con, folder = lake
    wanted = planted(folder, "data/x", "data/_p=a/y")
    planted(folder, "metadata/z")
    assert orphans(con, f"'s.t', location => '{folder}/data', dry_run => true") == wanted
    assert orphans(con, f"'s.t', location => '{folder}/none'") == set()
    for place in (
        folder.parent,
        folder.parent.parent,
        "/",
        "/tmp",
        f"{folder}/..",
        f"{folder}x",
        "s3://b/x",
    ):
        for call in ("CALL", "EXPLAIN CALL"):
            with pytest.raises(errors.NotSupportedError, match="other tables may have files"):
                con.execute(f"{call} system.remove_orphan_files('s.t', location => '{place}')")
    assert wanted < files(folder)


def test_statistics_stay(lake: Any) -> None:
    """Also those of kinds that icesql does not read."""
    import json

    con, folder = lake
    wanted = planted(folder, "metadata/x.stats", "metadata/p.parquet", "metadata/future.bin")
    path = max((folder / "metadata").glob("v*.metadata.json"))
    document = json.loads(path.read_bytes())
    shot = document["current-snapshot-id"]
    document["statistics"] = [
        {"snapshot-id": shot, "statistics-path": f"{folder}/metadata/x.stats"}
    ]
    document["partition-statistics"] = [
        {"snapshot-id": shot, "statistics-path": f"file:{folder}/metadata/p.parquet"}
    ]
    document["unheard-of"] = {"where": [f"file://{folder}/metadata/future.bin"]}
    path.write_text(json.dumps(document))
    age(folder)
    assert orphans(con) == set()
    assert wanted < files(folder)


def test_links_are_neither_followed_nor_removed(lake: Any, tmp_path: Path) -> None:
    con, folder = lake
    outside = tmp_path / "precious"
    kept = planted(outside, "a.parquet", "deep/b.parquet")
    (folder / "data" / "link").symlink_to(outside)
    (folder / "data" / "file.parquet").symlink_to(outside / "a.parquet")
    (folder / "data" / "dangling").symlink_to(tmp_path / "nowhere")
    age(folder)
    assert orphans(con) == set()
    assert files(outside) == kept


def test_a_file_that_a_link_stands_for_stays(lake: Any) -> None:
    """A data file of the table was moved within it and linked to."""
    con, folder = lake
    (data,) = (folder / "data" / "_p=a").glob("*.parquet")
    moved = folder / "data" / "moved.bin"
    data.rename(moved)
    data.symlink_to(moved)
    age(folder)
    assert orphans(con) == set()
    assert moved.is_file()


def test_a_table_behind_a_link(lake: Any, tmp_path: Path) -> None:
    con, folder = lake
    (tmp_path / "linked").symlink_to(tmp_path / "lake")
    wanted = planted(folder, "data/x")
    with icesql.connect(warehouse=str(tmp_path / "linked")) as other:
        assert len(orphans(other)) == 1
    assert files(folder).isdisjoint(wanted)
    assert con.execute("SELECT count(*) FROM s.t").fetchall() == [(2,)]


def test_another_table_in_the_folder_stops_it(lake: Any, tmp_path: Path) -> None:
    con, folder = lake
    con.execute("CREATE TABLE s.u AS SELECT 1 AS i")
    planted(folder, "data/x")
    shutil.copytree(folder.parent / "u", folder / "inner" / "u")
    age(folder)
    before = files(folder)
    for arguments in ("'s.t'", "'s.t', dry_run => true"):
        with pytest.raises(errors.NotSupportedError, match="another table lies"):
            orphans(con, arguments)
    assert files(folder) == before
    assert orphans(con, f"'s.t', location => '{folder}/data'") == {str(folder / "data" / "x")}


def test_a_view_in_the_folder_stops_it(lake: Any) -> None:
    con, folder = lake
    con.execute("CREATE TABLE s.u (i INT)")
    text = next((folder.parent / "u" / "metadata").glob("*.metadata.json")).read_text()
    planted(folder, "data/x")
    place = folder / "inner" / "v1.metadata.json"
    place.parent.mkdir()
    for start in ("", " " * 5000):  # the uuid may come late
        place.write_text(start + text.replace("table-uuid", "view-uuid"))
        age(folder)
        with pytest.raises(errors.NotSupportedError, match="another view lies"):
            orphans(con)
    assert place.exists()


def test_metadata_that_cannot_be_read_stops_it(lake: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may be that of another table, all of whose files would go."""
    con, folder = lake
    planted(folder, "inner/v1.metadata.json", "inner/data/x.parquet")
    read = Storage.read

    def denied(storage: Storage, path: str, *more: Any, **given: Any) -> bytes:
        if path.endswith("inner/v1.metadata.json"):
            raise errors.StorageError(path, "Permission denied")
        return read(storage, path, *more, **given)

    monkeypatch.setattr(Storage, "read", denied)
    before = files(folder)
    with pytest.raises(errors.StorageError, match="Permission denied"):
        orphans(con)
    assert files(folder) == before


# ------------------------------------------------------------------ other tables of the catalog


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[tuple[icesql.Connection, Path]]:
    """A SQLite catalog with a table s.t, and the folder of its warehouse."""
    uri = f"sqlite:///{tmp_path}/c.db"
    properties = {"init_catalog_tables": "true"}
    with icesql.connect(
        uri=uri, warehouse=str(tmp_path / "w"), properties=properties, files=True
    ) as con:
        con.execute("CREATE SCHEMA s")
        con.execute("CREATE TABLE s.t (x INT)")
        con.execute("INSERT INTO s.t VALUES (1)")
        yield con, tmp_path / "w"


def current(con: icesql.Connection, name: str) -> str:
    return str(con.catalog.load(("s", name)).metadata_location)


def kept(con: icesql.Connection, folder: Path, arguments: str, told: str) -> None:
    """An orphan removal is refused, and nothing is gone."""
    age(folder)
    before = files(folder)
    for more in ("", ", dry_run => true"):
        with pytest.raises(errors.NotSupportedError, match=told):
            orphans(con, arguments + more)
    assert files(folder) == before


def test_a_table_of_two_names_is_left_alone(shop: Any) -> None:
    con, folder = shop
    con.execute(f"CALL system.register_table('s.u', '{current(con, 't')}')")
    con.execute("INSERT INTO s.u VALUES (2)")
    planted(folder, "s/t/data/x")
    for name in "tu":
        kept(con, folder, f"'s.{name}'", r"s\.t or s\.u, which have one uuid")
    con.execute("INSERT INTO s.t VALUES (3)")
    for name in "tu":
        kept(con, folder, f"'s.{name}'", r"s\.t or s\.u, which have one uuid")
    assert con.execute("SELECT * FROM s.u ORDER BY x").fetchall() == [(1,), (2,)]
    assert con.execute("SELECT * FROM s.t ORDER BY x").fetchall() == [(1,), (3,)]


@pytest.mark.parametrize("later", [False, True])
def test_a_table_of_two_catalogs_is_left_alone(shop: Any, tmp_path: Path, later: bool) -> None:
    con, folder = shop
    start = current(con, "t")
    with icesql.connect(
        uri=f"sqlite:///{tmp_path}/d.db",
        warehouse=str(folder),
        properties={"init_catalog_tables": "true"},
    ) as other:
        other.execute("CREATE SCHEMA s")
        other.execute(f"CALL system.register_table('s.t', '{start}')")
        other.execute("INSERT INTO s.t VALUES (2)")
        other.execute("INSERT INTO s.t VALUES (3)")
        if later:
            con.execute("INSERT INTO s.t VALUES (4)")
        kept(con, folder, "'s.t'", "metadata of this very table")
        assert other.execute("SELECT count(*) FROM s.t").fetchall() == [(3,)]


def test_metadata_of_a_commit_that_failed_goes_after_the_next_one(shop: Any) -> None:
    con, folder = shop
    location = Path(current(con, "t"))
    text = location.read_text()
    con.execute("ALTER TABLE s.t SET TBLPROPERTIES ('a' = 'b')")
    left = location.with_name("00009-01234567-89ab-cdef-0123-456789abcdef.metadata.json")
    left.write_text(text.replace('"last-updated-ms":', '"last-updated-ms":9'))
    half = location.with_name("00008-01234567-89ab-cdef-0123-456789abcdef.metadata.json")
    half.write_text(Path(current(con, "t")).read_text()[:-20])
    kept(con, folder, "'s.t'", "If a commit failed and left it")
    left.write_text(text)
    age(folder)
    assert orphans(con, "'s.t'") == {str(left), str(half)}


def test_a_data_path_of_two_tables_is_left_alone(shop: Any) -> None:
    con, folder = shop
    shared = folder / "shared"
    for name in "pq":
        con.execute(f"CREATE TABLE s.{name} (x INT) TBLPROPERTIES ('write.data.path'='{shared}')")
        con.execute(f"INSERT INTO s.{name} VALUES (1)")
    wanted = planted(shared, "orphan.parquet")
    kept(con, folder, f"'s.p', location => '{shared}'", "other tables may have files")
    named = f"'s.p', location => '{shared}', delete_below => array('{shared}')"
    kept(con, folder, named, r"s\.q has files, too")
    # What only the manifests tell of: the property is gone, the files are not.
    con.execute("ALTER TABLE s.q UNSET TBLPROPERTIES ('write.data.path')")
    kept(con, folder, named, r"s\.q has files, too")
    con.execute("DROP TABLE s.q")
    assert wanted < orphans(con, named)
    assert con.execute("SELECT * FROM s.p").fetchall() == [(1,)]


def test_files_that_another_table_has_taken_in_are_left_alone(shop: Any) -> None:
    con, folder = shop
    con.execute("CREATE TABLE s.u (x INT)")
    copy = next((folder / "s" / "t" / "data").glob("*.parquet"))
    (loose,) = planted(folder / "s" / "t", "loose/a.parquet")
    shutil.copy(copy, loose)
    con.execute(f"CALL system.add_files('s.u', '`parquet`.`{folder}/s/t/loose`')")
    kept(con, folder, "'s.t'", r"s\.u has files, too: .*a\.parquet")
    con.execute("DROP TABLE s.u")
    assert orphans(con, "'s.t'") == {loose}


def test_a_table_that_cannot_be_read_may_have_files_anywhere(shop: Any) -> None:
    con, folder = shop
    con.execute("CREATE TABLE s.u (x INT)")
    Path(current(con, "u")).write_text("{")
    assert orphans(con, "'s.t'") == set(), "nothing would go, so nobody is asked"
    planted(folder / "s" / "t", "data/x")
    kept(con, folder, "'s.t'", r"whether s\.u has files there")


def test_a_folder_that_is_a_link_is_not_the_tables(shop: Any, tmp_path: Path) -> None:
    con, folder = shop
    precious = planted(tmp_path / "precious", "a", "b/c")
    (folder / "s" / "t" / "link").symlink_to(tmp_path / "precious")
    for named in ("", f", delete_below => array('{folder}/s/t/link/..')"):
        place = f"'s.t', location => '{folder}/s/t/link'{named}"
        with pytest.raises(errors.NotSupportedError, match="other tables may have files"):
            orphans(con, place)
    assert files(tmp_path / "precious") == precious


def test_a_folder_of_the_caller_is_cleaned(shop: Any, tmp_path: Path) -> None:
    con, _ = shop
    data = tmp_path / "elsewhere"
    con.execute(f"ALTER TABLE s.t SET TBLPROPERTIES ('write.data.path' = '{data}')")
    con.execute("INSERT INTO s.t VALUES (2)")
    wanted = planted(data, "x.parquet")
    with pytest.raises(errors.NotSupportedError, match="delete_below => array"):
        orphans(con, f"'s.t', location => '{data}'")
    con.execute(f"SET delete_below = '{data}'")
    assert orphans(con, f"'s.t', location => 'file:{data}/'") == {f"file:{each}" for each in wanted}
    assert con.execute("SELECT * FROM s.t ORDER BY x").fetchall() == [(1,), (2,)]


def test_old_metadata_of_the_table_itself_goes(lake: Any) -> None:
    con, folder = lake
    con.execute("ALTER TABLE s.t SET TBLPROPERTIES ('write.metadata.previous-versions-max' = '1')")
    con.execute("INSERT INTO s.t VALUES (7, 'c')")
    age(folder)
    gone = {Path(each).name for each in orphans(con)}
    assert gone == {"v1.metadata.json", "v2.metadata.json", "v3.metadata.json"}
    assert con.execute("SELECT count(*) FROM s.t").fetchall() == [(3,)]
    con.execute("INSERT INTO s.t VALUES (8, 'c')")


def test_a_table_that_shares_its_files_is_left_alone(lake: Any) -> None:
    con, folder = lake
    con.execute("ALTER TABLE s.t SET TBLPROPERTIES ('gc.enabled' = 'false')")
    planted(folder, "data/x")
    with pytest.raises(errors.NotSupportedError, match=r"gc\.enabled"):
        orphans(con)


def test_a_manifest_that_cannot_be_read_stops_it(lake: Any) -> None:
    con, folder = lake
    wanted = planted(folder, "data/x")
    next((folder / "metadata").glob("*-m0.avro")).unlink()
    with pytest.raises(errors.StorageError):
        orphans(con)
    assert wanted < files(folder)


def test_what_is_committed_while_the_folder_is_listed_stays(
    lake: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files of a commit that ended between the listing and the look at the table."""
    from icesql.maintain import orphans as room

    con, folder = lake
    plain = room.list_files

    def then_commits(*args: Any, **given: Any) -> Any:
        con.execute("INSERT INTO s.t VALUES (9, 'z')")
        age(folder)
        yield from plain(*args, **given)

    monkeypatch.setattr(room, "list_files", then_commits)
    assert orphans(con) == set()


# ------------------------------------------------------------------ prefixes


def listed(path: str) -> ListedFile:
    return ListedFile(path, tuple(path.rpartition("//")[2].split("/")[1:]), 1, 0)


@pytest.mark.parametrize(("needed", "found", "given", "held"), read_table(__file__, "stores.tsv"))
def test_stores_by_several_names(needed: str, found: str, given: str, held: str) -> None:
    """As Java's ``TestRemoveOrphanFilesAction`` has it."""
    referenced = Referenced(Storage(), Prefixes(**literal_eval(given)), [needed])
    if held == "unknown":
        with pytest.raises(errors.NotSupportedError, match="equal_schemes"):
            referenced.holds(listed(found))
    else:
        assert referenced.holds(listed(found)) is (held == "yes")


def test_options_that_are_not_there(lake: Any) -> None:
    con, _ = lake
    for arguments, told in (
        ("'s.t', prefix_mismatch_mode => 'MAYBE'", "it can be ERROR, IGNORE, DELETE"),
        ("'s.t', max_concurrent_deletes => 0", "less than 1"),
        ("'s.t', file_list_view => 'v'", "file_list_view"),
        ("'s.t', equal_schemes => array('a')", "map<string, string>"),
    ):
        with pytest.raises(errors.Error, match=told):
            orphans(con, arguments)


# ------------------------------------------------------------------ listing and removing


def test_a_listing_ends_with_its_statement(tmp_path: Path) -> None:
    planted(tmp_path, "a", "b/c")
    query = QueryContext()
    query.cancel.set()
    with pytest.raises(errors.QueryCancelledError):
        list(list_files(Storage(), str(tmp_path), query))


def test_a_folder_that_became_a_link_is_not_followed(tmp_path: Path) -> None:
    kept = planted(tmp_path / "precious", "x")
    planted(tmp_path / "t", "data/x")
    found = list(list_files(Storage(), str(tmp_path / "t"), QueryContext()))
    shutil.rmtree(tmp_path / "t" / "data")
    (tmp_path / "t" / "data").symlink_to(tmp_path / "precious")
    assert remove_listed(Storage(), found, QueryContext()) == found
    assert files(tmp_path / "precious") == kept


def test_names_that_are_no_text_are_removed_and_shown(lake: Any) -> None:
    con, folder = lake
    try:
        with open(os.fsencode(folder / "data") + b"/\xff\xfe.parquet", "wb"):
            pass
    except OSError:
        pytest.skip("this file system takes UTF-8 only")
    age(folder)
    told = con.execute("CALL system.remove_orphan_files('s.t')").arrow().to_pydict()
    assert told == {"orphan_file_location": [f"{folder}/data/\\xff\\xfe.parquet"]}
    assert orphans(con) == set()


def test_what_cannot_be_removed_is_told(tmp_path: Path) -> None:
    (there,) = planted(tmp_path, "a")
    left = remove_files(Storage(), [there, str(tmp_path / "none")], QueryContext())
    assert left == {str(tmp_path / "none")}
    assert not Path(there).exists()


def test_a_path_that_no_file_system_can_hold_is_needed_and_nowhere() -> None:
    from icesql.maintain.referenced import Prefixes, Referenced
    from icesql.storage.open import Storage

    # A partition value with a NUL in it, in a path that is a URI.
    found = Referenced(Storage(), Prefixes(), ["file:///nowhere/s=%00/x.parquet"])
    assert found.count == 1


@pytest.mark.parametrize("more", ["", ", staging_location => '{folder}/metadata/mine'"])
def test_staged_metadata_of_a_copy_stops_no_later_look(tmp_path: Path, more: str) -> None:
    import icesql

    folder = tmp_path / "s" / "t"
    orphans = "CALL system.remove_orphan_files('s.t', dry_run => {}, older_than => now() - INTERVAL 4 DAY)"
    with icesql.connect(warehouse=str(tmp_path)) as con:
        con.execute("CREATE SCHEMA s")
        con.execute("CREATE TABLE s.t (a INT)")
        con.execute("INSERT INTO s.t VALUES (1)")
        con.execute(
            f"CALL system.rewrite_table_path('s.t', source_prefix => '{folder}', "
            f"target_prefix => 's3://b/t'{more.format(folder=folder)})"
        )
        con.execute("INSERT INTO s.t VALUES (2)")
        assert con.execute(orphans.format("true")).fetchall() == []  # they are young
        staged = [
            each for each in folder.rglob("*") if "staging" in str(each) or "mine" in str(each)
        ]
        for each in staged:
            os.utime(each, (0, 0))
        gone = {row[0] for row in con.execute(orphans.format("false")).fetchall()}
        assert {str(each) for each in staged if each.suffix == ".json"} <= {
            each.removeprefix("file://") for each in gone
        }
        assert con.execute("SELECT count(*) FROM s.t").fetchone() == (2,)
