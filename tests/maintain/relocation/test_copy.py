"""copy_table: same answers at every snapshot, without the source; repeated; killed; refused."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import fastavro
import pyarrow.parquet as pq
import pytest

import icesql
from icesql import errors
from icesql.catalog.open import open_table
from icesql.context import QueryContext
from icesql.maintain.relocation import copy as module
from icesql.maintain.relocation.copy import Copied, CopyRequest, copy_table
from tests.maintain.rewrite.tables import new_table, rows
from tests.maintain.rewrite.test_run import with_deletes
from tests.processes import ran
from tests.tables import read_table

Rows = dict[int, list[str]]


def copied(source: Path | str, target: Path | str, **request: Any) -> Copied:
    return copy_table(open_table(source), CopyRequest(str(target), **request), QueryContext())


def history(path: Path | str, **settings: Any) -> Rows:
    """The rows of every snapshot, read without caches and pruning, with lineage from v3 on."""
    given = {"caches": False, "prune": False, "local_reader": "arrow", **settings}
    version = open_table(path).metadata.format_version
    lineage = ", _row_id, _last_updated_sequence_number" if version > 2 else ""
    with icesql.connect(settings=given) as con:
        con.register_table("t", str(path))
        ids = [row[0] for row in con.execute("SELECT snapshot_id FROM t.snapshots").fetchall()]
        return {
            each: sorted(
                map(
                    repr,
                    con.execute(f"SELECT *{lineage} FROM t VERSION AS OF {each}").fetchall(),
                )
            )
            for each in ids
        }


def metadata_rows(path: Path | str, location: str) -> dict[str, list[str]]:
    """The rows of metadata tables, with paths relative to the table's location."""
    with icesql.connect() as con:
        con.register_table("t", str(path))
        found = {}
        for name, columns in {
            "entries": "* EXCLUDE data_file, data_file.record_count, data_file.content",
            "files": "* EXCLUDE (file_size_in_bytes, column_sizes, lower_bounds, upper_bounds,"
            " split_offsets, readable_metrics)",
            "refs": "*",
            "history": "*",
            "all_manifests": "* EXCLUDE length",
        }.items():
            told = con.execute(f"SELECT {columns} FROM t.{name}").fetchall()
            found[name] = sorted(repr(row).replace(location, "…") for row in told)
        return found


@pytest.fixture(params=[(1, False), (2, False), (2, True), (3, False), (3, True)])
def table(request, tmp_path) -> Any:
    version, partitioned = request.param
    made = with_deletes(tmp_path, version, partitioned=partitioned)
    made.tag("first", made.snapshots[0]["snapshot-id"])
    made.tag("side", made.snapshots[1]["snapshot-id"], kind="branch")
    return made


@pytest.fixture
def pair(tmp_path) -> tuple[Any, Path]:
    """A table, and the location of its copy."""
    return with_deletes(tmp_path, 2), tmp_path / "copy"


def same(pair: tuple[Any, Path]) -> None:
    table, copy = pair
    assert history(copy) == history(table.folder)


def test_every_snapshot_reads_the_same_when_the_source_is_gone(table: Any, tmp_path) -> None:
    target = tmp_path / "copy"
    before, told = history(table.folder), metadata_rows(table.folder, table.folder)
    done = copied(table.folder, target)
    shutil.rmtree(table.folder)
    assert history(target) == before
    assert history(target, local_reader="auto", prune=True) == before
    assert metadata_rows(target, str(target)) == told
    for each in target.rglob("*"):
        if each.is_file():
            data = each.read_bytes()
            is_marker = each.name == "copy-of.json"
            assert is_marker or table.folder.encode() not in unpacked(each, data), each
    assert done.copied == len([*(target / "data").rglob("*.parquet")]) - len(deletes(target))


def unpacked(path: Path, data: bytes) -> bytes:
    if path.suffix == ".avro":
        with path.open("rb") as file:
            return repr([*fastavro.reader(file)]).encode()
    if path.suffix == ".parquet":
        return repr(pq.read_table(path).to_pylist()).encode()
    return data


def deletes(folder: Path) -> list[Path]:
    return [
        each
        for each in (folder / "data").rglob("*.parquet")
        if "file_path" in pq.read_schema(each).names
    ]


def test_the_copy_is_read_by_others_and_written_to(table: Any, tmp_path) -> None:
    from pyiceberg.table import StaticTable

    target = tmp_path / "warehouse" / "ns" / "t"
    before = history(table.folder)
    done = copied(table.folder, target)
    shutil.rmtree(table.folder)
    # Read from the files table, as PyIceberg's scan refuses equality deletes.
    static = StaticTable.from_metadata(done.metadata_location)
    paths = {row["file_path"] for row in static.inspect.all_files().to_pylist()}
    assert paths
    assert all(path.startswith(f"{target}/") and Path(path).exists() for path in paths)
    first = before.keys().__iter__().__next__()
    assert static.scan(snapshot_id=first).to_arrow().num_rows == len(before[first])
    with icesql.connect(warehouse=str(tmp_path / "warehouse")) as con:
        count = con.execute("SELECT count(*) FROM ns.t").fetchone()
        con.execute("INSERT INTO ns.t VALUES (1, 'a', 2)")
        con.execute("DELETE FROM ns.t WHERE id < 12")
        con.execute("CALL system.rewrite_data_files('ns.t', options => map('rewrite-all', 'true'))")
        assert con.execute("SELECT count(*) FROM ns.t WHERE id < 12").fetchone() == (0,)
        assert count[0] > 0


def test_again_only_what_is_new_is_copied(table: Any, tmp_path) -> None:
    target = tmp_path / "copy"
    first = copied(table.folder, target)
    again = copied(table.folder, target)
    assert (again.copied, again.rewritten, again.copied_bytes) == (0, 0, 0)
    assert again.present == first.copied + first.rewritten - 1
    place = [("a",)] if table.spec else [()]
    table.append(rows(500, 3, "a"), partition=place[0])
    for since in ("latest", None):
        done = copied(table.folder, target, since=since)
        # The table's writer lists its live deletes again in each commit.
        assert (done.copied, done.rewritten) == (
            (1, 3 if table.version == 1 else 4) if since else (0, 0)
        )
    before = history(table.folder)
    shutil.rmtree(table.folder)
    assert history(target) == before


def _sums(folder: Path | str) -> dict[int, tuple[dict[str, str], int, int, int]]:
    """The sizes in the summary of each snapshot, and those of its files: all, added, removed."""
    found = {}
    with icesql.connect() as con:
        con.register_table("t", str(folder))
        for id_, summary in con.execute("SELECT snapshot_id, summary FROM t.snapshots").fetchall():
            entries = con.execute(
                "SELECT status, snapshot_id, coalesce(data_file.content_size_in_bytes, "
                f"data_file.file_size_in_bytes) FROM t.entries FOR VERSION AS OF {id_}"
            ).fetchall()
            found[id_] = (
                dict(summary),
                sum(size for status, _, size in entries if status < 2),
                sum(size for status, by, size in entries if status == 1 and by == id_),
                sum(size for status, by, size in entries if status == 2 and by == id_),
            )
    return found


@pytest.mark.parametrize("version", [2, 3])
def test_summaries_have_the_sizes_of_the_copys_files(tmp_path, version: int) -> None:
    source, target = tmp_path / "wh", tmp_path / "a much longer place than that of the table" / "t"
    source.mkdir()
    with icesql.connect(warehouse=str(source)) as con:
        con.execute("CREATE SCHEMA s")
        con.execute(
            "CREATE TABLE s.t (id INT, p INT) PARTITIONED BY (p) TBLPROPERTIES ("
            f"'format-version' = '{version}', 'write.delete.mode' = 'merge-on-read')"
        )
        table = source / "s" / "t"
        con.execute("INSERT INTO s.t SELECT range, range % 2 FROM range(100)")
        steps = [
            "DELETE FROM s.t WHERE id % 7 = 1", "DELETE FROM s.t WHERE id % 5 = 1",
            "INSERT INTO s.t VALUES (500, 1)",
            "CALL system.rewrite_position_delete_files('s.t', options => map('rewrite-all', 'true'))",
            "DELETE FROM s.t WHERE id = 4", "CALL system.rewrite_manifests('s.t')",
            "CALL system.rewrite_data_files('s.t', options => map('rewrite-all', 'true'))",
        ]  # fmt: skip
        for number, step in enumerate(steps):
            con.execute(step)
            copied(table, target, **({"since": "latest"} if number % 2 else {}))
        before, rows_before = _sums(table), history(table)
        for each in (target, tmp_path / "at once"):
            copied(table, each)
            assert history(each) == rows_before
            assert {*_sums(each)} == {*before}
            for id_, (summary, total, added, removed) in _sums(each).items():
                assert int(summary["total-files-size"]) == total
                assert int(summary.get("added-files-size", 0)) == added
                assert int(summary.get("removed-files-size", 0)) == removed
                of_source = before[id_][0]
                assert {k: v for k, v in summary.items() if not k.endswith("-files-size")} == {
                    k: v for k, v in of_source.items() if not k.endswith("-files-size")
                }


def test_a_file_that_went_away_in_the_copy_comes_back(pair: Any) -> None:
    table, target = pair
    copied(table.folder, target)
    gone = list((target / "data").iterdir())
    for each in gone[::2]:
        each.unlink()
    gone[1].write_bytes(gone[1].read_bytes()[:-1])
    done = copied(table.folder, target)
    assert done.copied + done.rewritten == len(gone[::2]) + 1
    same(pair)


def test_since_a_snapshot_that_the_copy_has_not_is_refused(pair: Any) -> None:
    table, target = pair
    for since in ("latest", 5):
        with pytest.raises(errors.SnapshotNotFoundError, match="leave SINCE out"):
            copied(table.folder, target, since=since)
    copied(table.folder, target)
    with pytest.raises(errors.SnapshotNotFoundError, match="snapshot 5"):
        copied(table.folder, target, since=5)
    done = copied(table.folder, target, since=table.current)
    assert (done.copied, done.rewritten, done.present) == (0, 0, 0)


def test_the_target_is_empty_or_a_copy_of_this_table(tmp_path) -> None:
    one, target = with_deletes(tmp_path / "one", 2), tmp_path / "copy"
    other = with_deletes(tmp_path / "other", 2)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "notes.txt").write_text("mine")
    with pytest.raises(errors.CatalogError, match="there are files"):
        copied(one.folder, tmp_path / "full")
    copied(one.folder, target)
    before = history(target)
    with pytest.raises(errors.CatalogError, match="copy of another table"):
        copied(other.folder, target)
    with pytest.raises(errors.CatalogError, match="there are files"):
        copied(one.folder, other.folder)
    for place in (one.folder, f"{one.folder}/inner", Path(one.folder).parent):
        with pytest.raises(errors.CatalogError, match="lies in the other"):
            copied(one.folder, place)
    assert history(target) == before


def test_a_copy_that_was_written_to_stays(tmp_path) -> None:
    table, target = with_deletes(tmp_path, 2), tmp_path / "wh2" / "ns" / "t"
    copied(table.folder, target)
    with icesql.connect(warehouse=str(tmp_path / "wh2")) as con:
        con.execute("INSERT INTO ns.t VALUES (1, 'mine', 2)")
        with pytest.raises(errors.CatalogError, match="somebody committed"):
            copied(table.folder, target)
        table.append(rows(500, 3, "a"))
        with pytest.raises(errors.CatalogError, match="and not what"):
            copied(table.folder, target)
        assert con.execute("SELECT count(*) FROM ns.t WHERE p = 'mine'").fetchone() == (1,)


def test_a_table_that_was_set_back_needs_a_place_of_its_own(pair: Any) -> None:
    table, target = pair
    copied(table.folder, target)
    before = history(target)
    with pytest.raises(errors.CatalogError, match="was set back"):
        copied(Path(table.folder) / "metadata" / "v3.metadata.json", target)
    assert history(target) == before


def test_later_versions_in_a_log_are_left_out(pair: Any) -> None:
    table, target = pair
    later = Path(table.folder) / "metadata" / "v99.metadata.json"
    shutil.copy(Path(table.folder) / "metadata" / "v2.metadata.json", later)
    log = [{"timestamp-ms": 1, "metadata-file": str(later)}]
    change_metadata(table, lambda document: document.update({"metadata-log": log}))
    current = Path(table.metadata_path)
    copied(current, target)
    assert not [*target.rglob("v99*")]
    assert history(target) == history(current)


# ------------------------------------------------------------------ files outside of the location


def change_metadata(table: Any, change: Any) -> None:
    path = Path(table.metadata_path)
    document = json.loads(path.read_bytes())
    change(document)
    path.write_text(json.dumps(document))


def test_files_of_other_folders_meet_in_no_name(tmp_path) -> None:
    table = new_table(tmp_path, 3)
    made = [table.data_file(rows(10 * n, 10)) for n in range(4)]
    names = ("x/1.parquet", "y/1.parquet", "x/y/1.parquet")
    for file, name in zip(made, names, strict=False):
        place = tmp_path / "imported" / name
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(file.record["file_path"], place)
        file.record["file_path"] = str(place)
    # Another spelling of its path is the same file.
    made[3].record["file_path"] = f"file:{made[3].record['file_path']}"
    table.commit(made)
    table.commit(table.deletion_vectors([(file, [1, 2]) for file in made]))
    before, target = history(table.folder), tmp_path / "copy"
    copied(table.folder, target)
    shutil.rmtree(tmp_path / "imported")
    shutil.rmtree(table.folder)
    assert history(target) == before
    assert len({*(target / "outside").rglob("1.parquet")}) == 3


def test_places_of_new_files_are_the_copys_own(tmp_path) -> None:
    table = new_table(tmp_path, 2)
    table.append(rows(0, 3))
    inside, elsewhere = f"{table.folder}/somewhere", str(tmp_path / "elsewhere")
    change_metadata(
        table,
        lambda document: document["properties"].update(
            {"write.data.path": elsewhere, "write.object-storage.path": inside, "x": inside}
        ),
    )
    target = tmp_path / "copy"
    found = open_table(copied(table.folder, target).metadata_location).metadata.properties
    assert found["write.object-storage.path"] == f"{target}/somewhere"
    assert found["x"] == inside
    assert "write.data.path" not in found


@pytest.mark.parametrize("named", [place for (place,) in read_table(__file__, "hostile.tsv")])
def test_nothing_is_written_outside_of_the_target(named: str, tmp_path) -> None:
    table = new_table(tmp_path, 2)
    file = table.data_file(rows(0, 3))
    first = table.append(rows(10, 3))
    path = named.format(folder=table.folder, elsewhere=tmp_path / "elsewhere")
    (tmp_path / "elsewhere").mkdir()
    if "/link/" in named:
        Path(f"{table.folder}/link").symlink_to(tmp_path / "elsewhere")
    place = Path(path.removeprefix("file:"))
    place.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(file.record["file_path"], place)
    file.record["file_path"] = path
    table.commit([file])
    before = history(table.folder)
    seen = {each: each.stat().st_mtime_ns for each in tmp_path.rglob("*") if each.is_file()}
    target = tmp_path / "deep" / "er" / "copy"
    copied(table.folder, target)
    new = [each for each in tmp_path.rglob("*") if each.is_file() and each not in seen]
    assert all(each.is_relative_to(target) for each in new)
    assert all(each.stat().st_mtime_ns == time for each, time in seen.items())
    shutil.rmtree(table.folder)
    place.unlink(missing_ok=True)
    assert history(target) == before
    assert first


def test_a_link_in_the_target_is_not_followed(tmp_path) -> None:
    table, target, victim = with_deletes(tmp_path, 2), tmp_path / "copy", tmp_path / "victim"
    victim.mkdir()
    target.mkdir()
    (target / "data").symlink_to(victim)
    with pytest.raises(errors.AccessDeniedError):
        copied(table.folder, target)
    assert not [*victim.iterdir()]


def test_a_path_to_something_else_is_not_copied(tmp_path) -> None:
    table, secret = new_table(tmp_path, 2), tmp_path / "secret.txt"
    secret.write_text("a secret of this machine")
    file = table.data_file(rows(0, 3))
    file.record["file_path"] = str(secret)
    table.commit([file])
    with pytest.raises(errors.CorruptFileError, match="does not begin as PARQUET"):
        copied(table.folder, tmp_path / "copy")
    assert not any(b"secret of" in each.read_bytes() for each in (tmp_path / "copy").rglob("*.txt"))


# ------------------------------------------------------------------ errors


def test_a_vanished_file_is_named_and_the_next_copy_goes_on(pair: Any) -> None:
    table, target = pair
    files = sorted(Path(table.folder, "data").iterdir(), key=lambda each: each.stat().st_mtime_ns)
    kept = files[-1].read_bytes()
    files[-1].unlink()
    with pytest.raises(errors.StorageError, match="the next copy goes on") as failed:
        copied(table.folder, target)
    assert files[-1].name in str(failed.value)
    assert table.metadata_path in str(failed.value)
    assert not [*target.rglob("*.metadata.json")]
    files[-1].write_bytes(kept)
    assert copied(table.folder, target).present > 0
    same(pair)


def test_encryption_and_orc_deletes_are_refused_by_name(tmp_path) -> None:
    table = new_table(tmp_path, 3)
    table.append(rows(0, 3))
    change_metadata(
        table, lambda document: document["properties"].update({"encryption.key-id": "k"})
    )
    with pytest.raises(errors.UnsupportedTableError, match="encrypted"):
        copied(table.folder, tmp_path / "copy")
    other = new_table(tmp_path / "other", 2)
    (data,) = other.append(rows(0, 3))
    positions = other.position_deletes([(data, 1)])
    positions.record["file_format"] = "ORC"
    other.commit([positions])
    with pytest.raises(errors.UnsupportedTableError, match="position deletes of format ORC"):
        copied(other.folder, tmp_path / "copy2")


def test_two_copies_at_once_leave_one_whole_table(pair: Any) -> None:
    from concurrent.futures import ThreadPoolExecutor

    table, target = pair
    with ThreadPoolExecutor(4) as pool:
        done = [pool.submit(copied, table.folder, target) for _ in range(4)]
        assert len({each.result().metadata_location for each in done}) == 1
    same(pair)


@pytest.mark.parametrize("is_gone", [False, True])
def test_a_file_that_a_listing_leaves_out_is_looked_for(
    pair: Any, monkeypatch, is_gone: bool
) -> None:
    table, target = pair
    real = module.CopyFolder.list

    def listed(self: Any) -> dict[str, int]:
        found = real(self)
        for path in [each for each in found if each.endswith(".avro")]:
            del found[path]
            if is_gone:
                Path(path).unlink()
        return found

    monkeypatch.setattr(module.CopyFolder, "list", listed)
    if is_gone:
        with pytest.raises(errors.StorageError, match="no longer what was copied"):
            copied(table.folder, target)
    else:
        copied(table.folder, target)
        same(pair)


def test_a_manifest_in_the_copy_has_its_files_there(pair: Any, monkeypatch) -> None:
    table, target = pair
    copied(table.folder, target)
    table.commit([table.data_file(rows(500 + n, 1)) for n in range(9)])
    real = module._Copy._copy_bytes

    def fail(self: Any, path: str, *arguments: Any) -> None:
        if path == table.live[-1].record["file_path"]:
            raise KeyboardInterrupt
        real(self, path, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(module._Copy, "_copy_bytes", fail)
        with pytest.raises(KeyboardInterrupt):
            copied(table.folder, target)
    table.append(rows(600, 1))
    copied(table.folder, target, since="latest")
    same(pair)


CHILD = """
import os, sys
os.fsync = lambda file: None
from icesql.catalog.open import open_table
from icesql.context import QueryContext
from icesql.maintain.relocation.copy import CopyRequest, copy_table
from icesql.storage import new_files
left = int(sys.argv[3])
real = new_files.NewFile.finish
def finish(self):
    global left
    left -= 1
    if left == 0:
        os.kill(os.getpid(), 9)
    return real(self)
new_files.NewFile.finish = finish
copy_table(open_table(sys.argv[1]), CopyRequest(sys.argv[2]), QueryContext())
"""


def test_a_first_copy_that_was_killed_goes_on(pair: Any) -> None:
    table, target = pair
    for after in (1, 2, 5, 9):
        arguments = [sys.executable, "-c", CHILD, table.folder, str(target), str(after)]
        assert subprocess.run(arguments, check=False).returncode == -9
        assert not [*target.rglob("*.metadata.json")]
    copied(table.folder, target)
    same(pair)


@pytest.mark.parametrize("after", [1, 2, 5, 9, 15, 18, 20, 21])
def test_a_copy_that_was_killed_goes_on(after: int, pair: Any) -> None:
    table, target = pair
    copied(table.folder, target)
    old = history(target)
    table.commit([table.data_file(rows(500 + n, 1)) for n in range(12)])
    table.commit([table.position_deletes([(table.live[-1], 0)])])
    arguments = [sys.executable, "-c", CHILD, table.folder, str(target), str(after)]
    done = ran(arguments, timeout=600)
    assert done.returncode in (-9, 0), done.stderr
    seen = history(target)
    assert seen == (old if done.returncode else history(table.folder))
    copied(table.folder, target)
    same(pair)


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("since", [None, "latest"])
def test_deletes_that_spell_their_files_otherwise_stay(
    version: int, since: str | None, tmp_path
) -> None:
    table, target = new_table(tmp_path, version), tmp_path / "copy"
    table.location = "/lake/ns/t"
    data = [table.data_file(rows(10 * n, 10)) for n in range(2)]
    table.commit(data)
    if since:
        copied(table.folder, target)
    plain = [each.record["file_path"] for each in data]
    for each in data:
        each.record["file_path"] = f"hdfs://host:20500{each.record['file_path']}"
    deletes = (
        [table.position_deletes([(each, 1) for each in data])]
        if version == 2
        else table.deletion_vectors([(each, [1]) for each in data])
    )
    for each, path in zip(data, plain, strict=True):
        each.record["file_path"] = path
    table.commit(deletes)
    before = history(table.folder)
    assert len(before[table.current]) == 18
    copied(table.folder, target, since=since)
    shutil.rmtree(table.folder)
    assert history(target) == before
