"""Columns of manifests in the cache folder give the same plans as the manifests."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from icesql.config import Settings
from icesql.iceberg.manifest import filtered_manifest
from icesql.iceberg.manifest.filtered_manifest import packed, unpacked
from icesql.scan import columns_on_disk, planner
from icesql.storage.cache import Blocks, BoundedCache
from icesql.storage.open import Storage
from tests.scan.metadata_only import id_is, position_deletes, scan_of
from tests.scan.test_filtered_plans import built, filters


@pytest.fixture(autouse=True)
def small(monkeypatch) -> None:
    """Small tables are read as large ones are."""
    monkeypatch.setattr(planner, "_MANY_ENTRIES", 0)
    monkeypatch.setattr(columns_on_disk, "_LEAST", 1)
    # Shapes of entries from other tests do not matter.
    filtered_manifest._shapes.cache_clear()


@pytest.fixture
def stored(monkeypatch) -> list[Any]:
    """The values read from disk."""
    found: list[Any] = []
    plain = filtered_manifest.from_stored

    def noted(*args: Any, **more: Any) -> Any:
        found.append(plain(*args, **more))
        return found[-1]

    monkeypatch.setattr(filtered_manifest, "from_stored", noted)
    return found


def settings(folder: Path, **more: str) -> Settings:
    chosen = Settings()
    for name, value in {"cache_directory": str(folder / "cache"), **more}.items():
        chosen = chosen.with_text(name, value)
    return chosen


def fresh(table: Any, folder: Path, **more: str) -> Any:
    """The table as opened by a new process, with only the cache folder."""
    cache = BoundedCache(blocks=Blocks(settings(folder, **more)))
    return replace(table, storage=Storage({}, table.storage.reroot, cache=cache))


def plan(table: Any, row_filter: Any) -> planner.ScanPlan:
    return planner.plan(scan_of(table, row_filter), planner.QueryContext())


def packs(folder: Path) -> list[Path]:
    return [
        each
        for each in (folder / "cache").rglob("*")
        if each.is_file() and len(each.name) > 30 and each.parent.name != "v1"
    ]


@pytest.mark.parametrize("seed", range(3))
def test_random_filters_leave_the_same_files(
    tmp_path, monkeypatch, stored: list[Any], seed: int
) -> None:
    rng = random.Random(seed)
    metadata = built(tmp_path / "t", rng)
    metadata.manifest(position_deletes("d", partition={"region": "eu"}))
    table = metadata.table()
    for _ in range(25):
        row_filter = filters(rng)
        monkeypatch.setattr(planner, "_MANY_ENTRIES", 1 << 40)
        whole = plan(table, row_filter)
        monkeypatch.setattr(planner, "_MANY_ENTRIES", 0)
        for _ in range(2):
            found = plan(fresh(table, tmp_path), row_filter)
            for name in ("data_file", "deletes", "residual"):
                assert [getattr(each, name) for each in found.files] == [
                    getattr(each, name) for each in whole.files
                ]
            assert found.counts == whole.counts
            assert found.projected_bytes == whole.projected_bytes
    assert len(stored) > 20


def test_manifests_without_a_file_left_are_not_opened(
    tmp_path, stored: list[Any], monkeypatch
) -> None:
    table = built(tmp_path / "t", random.Random(1)).table()
    plan(fresh(table, tmp_path), id_is(5000))
    assert stored == []
    opened: list[str] = []
    plain = Storage.read

    def read(self: Storage, path: str, **more: Any) -> bytes:
        opened.append(path)
        return plain(self, path, **more)

    monkeypatch.setattr(Storage, "read", read)
    left = plan(fresh(table, tmp_path), id_is(5000)).files
    assert len(stored) >= 3
    # The list, and a manifest for each file without bounds.
    assert len(opened) <= 1 + len(left) < 5


def test_a_new_manifest_is_unpacked_and_kept_beside_the_others(tmp_path, stored: list[Any]) -> None:
    table = built(tmp_path / "t", random.Random(1)).table()
    plan(fresh(table, tmp_path), id_is(5000))
    (pack,) = packs(tmp_path)
    assert oct(pack.stat().st_mode & 0o777) == "0o600"
    assert oct(pack.parent.stat().st_mode & 0o777) == "0o700"
    for _ in range(3):
        plan(fresh(table, tmp_path), id_is(5001))
    assert len(packs(tmp_path)) == 1


def test_another_manifest_in_the_place_of_one_is_unpacked_anew(tmp_path, stored: list[Any]) -> None:
    metadata = built(tmp_path / "t", random.Random(1), manifests=2)
    table = metadata.table()
    before = plan(fresh(table, tmp_path), id_is(5000))
    first = sorted((tmp_path / "t").rglob("*.avro"))
    for each in first:
        found = each.stat()
        os.utime(each, ns=(found.st_atime_ns, found.st_mtime_ns + 1000))
    assert [each.data_file for each in plan(fresh(table, tmp_path), id_is(5000)).files] == [
        each.data_file for each in before.files
    ]
    assert stored == []
    plan(fresh(table, tmp_path), id_is(5000))
    assert len(stored) > 0


@pytest.mark.parametrize("damage", [b"", b"\x80", b"\x93\x01\x02", b"x" * 500])
def test_what_is_damaged_is_unpacked_anew(
    tmp_path, monkeypatch, stored: list[Any], damage: bytes
) -> None:
    table = built(tmp_path / "t", random.Random(1)).table()
    before = plan(fresh(table, tmp_path), id_is(5000))
    from icesql.storage.stores.blocks import Shelf

    monkeypatch.setattr(Shelf, "read_whole", lambda self, name: damage)
    after = plan(fresh(table, tmp_path), id_is(5000))
    assert [each.data_file for each in after.files] == [each.data_file for each in before.files]
    assert stored == []


def test_without_a_cache_nothing_is_written(tmp_path) -> None:
    table = built(tmp_path / "t", random.Random(1)).table()
    plan(fresh(table, tmp_path, cache="off"), id_is(5000))
    plan(fresh(table, tmp_path, cache_size="0"), id_is(5000))
    plan(replace(table, storage=Storage({}, table.storage.reroot)), id_is(5000))
    assert packs(tmp_path) == []


def test_few_entries_are_not_written(tmp_path, monkeypatch) -> None:
    table = built(tmp_path / "t", random.Random(1)).table()
    monkeypatch.setattr(columns_on_disk, "_LEAST", 81)
    plan(fresh(table, tmp_path), id_is(5000))
    assert packs(tmp_path) == []


def test_columns_come_back_as_they_were() -> None:
    columns: Any = {
        "status": [b"\x00", b"\x02", b"\x04"],
        "first_row_id": [],
        ("lower_bounds", -3): [b"", b"abc", b"\x00" * 300],
        ("upper_bounds", 7): [b"\xff", b"", b"x"],
    }
    assert unpacked(packed([3, 4, 5], columns)) == ([3, 4, 5], columns)


@pytest.mark.parametrize("cut", [0, 1, 5, 15, -1])
def test_columns_that_were_cut_do_not_come_back(cut: int) -> None:
    data = packed([3, 4], {"status": [b"\x00", b"\x02"]})
    assert unpacked(data[:cut]) is None
    assert unpacked(packed([3, 4], {"status": [b"\x00"]})) is None
