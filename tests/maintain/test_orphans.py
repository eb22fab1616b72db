"""Orphans: unreferenced files are found, and never others."""

from __future__ import annotations

import json
import os
import shutil
import time
from ast import literal_eval
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import icesql
from icesql import errors
from icesql.context import QueryContext
from icesql.maintain.referenced import Prefixes, Referenced
from icesql.storage.many_files import ListedFile, list_files, remove_files, remove_listed
from icesql.storage.open import Storage
from tests.tables import read_table


@pytest.fixture
def lake(tmp_path) -> Iterator[tuple[icesql.Connection, Path]]:
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
    then = time.time() - days * 86_400
    for path in folder.rglob("*"):
        os.utime(path, (then, then), follow_symlinks=False)


def files(folder: Path) -> set[str]:
    return {str(each) for each in folder.rglob("*") if not each.is_dir()}


def orphans(con: icesql.Connection, arguments: str = "'s.t'") -> set[str]:
    return {
        row[0] for row in con.execute(f"CALL system.remove_orphan_files({arguments})").fetchall()
    }


def kept(con: icesql.Connection, folder: Path, told: str) -> None:
    """Check that orphan removal is refused, and that no file is removed."""
    age(folder)
    before = files(folder)
    for more in ("", ", dry_run => true"):
        with pytest.raises(errors.Error, match=told):
            orphans(con, f"'s.t'{more}")
    assert files(folder) == before


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


def test_statistics_stay(lake: Any) -> None:
    """Including statistics of kinds that icesql does not read."""
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


def test_a_file_that_a_link_stands_for_stays(lake: Any) -> None:
    """A data file was moved within the table and replaced by a link."""
    con, folder = lake
    (data,) = (folder / "data" / "_p=a").glob("*.parquet")
    moved = folder / "data" / "moved.bin"
    data.rename(moved)
    data.symlink_to(moved)
    age(folder)
    assert orphans(con) == set()
    assert moved.is_file()


def test_another_table_in_the_folder_stops_it(lake: Any, tmp_path) -> None:
    con, folder = lake
    con.execute("CREATE TABLE s.u AS SELECT 1 AS i")
    planted(folder, "data/x")
    shutil.copytree(folder.parent / "u", folder / "inner" / "u")
    kept(con, folder, "another table lies")
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
        kept(con, folder, "another view lies")


def test_metadata_that_cannot_be_read_stops_it(lake: Any, monkeypatch) -> None:
    """It may belong to another table, whose files would all be removed."""
    con, folder = lake
    planted(folder, "inner/v1.metadata.json", "inner/data/x.parquet")
    read = Storage.read

    def denied(storage: Storage, path: str, *more: Any, **given: Any) -> bytes:
        if path.endswith("inner/v1.metadata.json"):
            raise errors.StorageError(path, "Permission denied")
        return read(storage, path, *more, **given)

    monkeypatch.setattr(Storage, "read", denied)
    kept(con, folder, "Permission denied")


def test_metadata_of_a_commit_that_failed_goes_after_the_next_one(tmp_path) -> None:
    folder, given = tmp_path / "w", {"properties": {"init_catalog_tables": "true"}}
    with icesql.connect(uri=f"sqlite:///{tmp_path}/c.db", warehouse=str(folder), **given) as con:
        con.execute("CREATE SCHEMA s")
        con.execute("CREATE TABLE s.t AS SELECT 1 AS x")
        location = Path(con.catalog.load(("s", "t")).metadata_location)
        text = location.read_text()
        con.execute("ALTER TABLE s.t SET TBLPROPERTIES ('a' = 'b')")
        left, half = (
            location.with_name(f"0000{n}-01234567-89ab-cdef-0123-456789abcdef.metadata.json")
            for n in (9, 8)
        )
        left.write_text(text.replace('"last-updated-ms":', '"last-updated-ms":9'))
        half.write_text(Path(con.catalog.load(("s", "t")).metadata_location).read_text()[:-20])
        kept(con, folder, "If a commit failed and left it")
        left.write_text(text)
        age(folder)
        assert orphans(con, "'s.t'") == {str(left), str(half)}


def test_what_is_committed_while_the_folder_is_listed_stays(lake: Any, monkeypatch) -> None:
    """Files of a commit that ended between the listing and the load of the table."""
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
    """As in Java's ``TestRemoveOrphanFilesAction``."""
    referenced = Referenced(Storage(), Prefixes(**literal_eval(given)), [needed])
    if held == "unknown":
        with pytest.raises(errors.NotSupportedError, match="equal_schemes"):
            referenced.holds(listed(found))
    else:
        assert referenced.holds(listed(found)) is (held == "yes")


# ------------------------------------------------------------------ listing and removing


def test_a_listing_ends_with_its_statement(tmp_path) -> None:
    planted(tmp_path, "a", "b/c")
    query = QueryContext()
    query.cancel.set()
    with pytest.raises(errors.QueryCancelledError):
        list(list_files(Storage(), str(tmp_path), query))


def test_a_folder_that_became_a_link_is_not_followed(tmp_path) -> None:
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


def test_what_cannot_be_removed_is_told(tmp_path) -> None:
    (there,) = planted(tmp_path, "a")
    left = remove_files(Storage(), [there, str(tmp_path / "none")], QueryContext())
    assert left == {str(tmp_path / "none")}
    assert not Path(there).exists()


def test_a_path_that_no_file_system_can_hold_is_needed_and_nowhere() -> None:
    # A partition value with a NUL, in a URI.
    path = "file:///nowhere/s=%00/x.parquet"
    found = Referenced(Storage(), Prefixes(), [path])
    assert found.holds(listed(path))
