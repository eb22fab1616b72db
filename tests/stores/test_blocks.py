"""Blocks on disk: whole or absent, private to the user, within the size, safe between processes."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import signal
import stat
import threading
from pathlib import Path
from typing import Any

import pytest

from icesql.storage.stores import blocks
from icesql.storage.stores.blocks import BlockStore, Shelf, UnusableCache
from icesql.storage.stores.principal import identity
from tests import warm
from tests.waits import wait_until

KEYS = {"s3.access-key-id": "AKIA1", "s3.secret-access-key": "one", "s3.endpoint": "http://a"}


def shelf_of(folder: Path, *, size: int | None = None, **changed: str) -> Shelf:
    return BlockStore(str(folder), size).shelf(*identity("s3", "bucket", {**KEYS, **changed}))


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    return shelf_of(tmp_path / "c")


def kept(shelf: Shelf, name: str, data: bytes) -> str:
    """The place of a cached file."""
    place: str = shelf.put_whole(shelf.name(name, len(data)), data)
    return place


def files(folder: Path) -> list[Path]:
    shelves = [each for each in (folder / "v1").iterdir() if len(each.name) == 32]
    return sorted(each for shelf in shelves for each in shelf.rglob("*") if each.is_file())


def test_whole_objects_and_parts_are_found_again(tmp_path: Path, shelf: Shelf) -> None:
    name = shelf.name("s3://bucket/f", 5)
    assert shelf.whole(name, 5) is None
    place = shelf.put_whole(name, b"abcde")
    assert shelf_of(tmp_path / "c").whole(name, 5) == place
    assert Path(place).read_bytes() == b"abcde"
    assert shelf.whole(name, 6) is None
    shelf.put_part(name, 10, b"0123456789")
    shelf.put_part(name, 0, b"xyz")
    assert shelf.parts(name) == [(0, 3), (10, 20)]
    assert shelf.read_part(name, (10, 20), 12, 15) == b"234"
    assert shelf.read_part(name, (30, 40), 30, 31) is None


def test_the_folder_is_closed_to_others(tmp_path: Path) -> None:
    shelf = shelf_of(tmp_path / "a" / "c")
    place = kept(shelf, "f", b"x")
    for each in (tmp_path / "a" / "c" / "v1").rglob("*"):
        wanted = 0o700 if each.is_dir() else 0o600
        assert stat.S_IMODE(each.stat().st_mode) == wanted, each
    assert stat.S_IMODE(Path(place).stat().st_mode) == 0o600


@pytest.mark.parametrize(
    "changed",
    [
        {"s3.access-key-id": "AKIA2"},
        {"s3.secret-access-key": "guessed"},
        {"s3.endpoint": "http://b"},
        {"s3.session-token": "t"},
        {"s3.role-arn": "arn:x"},
    ],
)
def test_another_principal_or_endpoint_finds_nothing(
    tmp_path: Path, changed: dict[str, str], shelf: Shelf
) -> None:
    kept(shelf, "f", b"abc")
    other = shelf_of(tmp_path / "c", **changed)
    assert other.folder != shelf.folder
    assert other.whole(other.name("f", 3), 3) is None


def test_lent_keys_change_while_what_the_catalog_was_shown_does_not() -> None:
    asked = {"uri": "http://catalog", "credential": "me:secret", "s3.endpoint": "http://a"}
    names = ("s3.access-key-id", "s3.secret-access-key", "s3.session-token")
    first = asked | dict(zip(names, ("ASIA1", "x", "1"), strict=True))
    later = asked | dict(zip(names, ("ASIA2", "y", "2"), strict=True))
    assert identity("s3", "b", first) == identity("s3", "b", later)
    assert identity("s3", "b", {**first, "credential": "me:other"}) != identity("s3", "b", first)
    assert identity("s3", "other", first) != identity("s3", "b", first)
    alone = {name: value for name, value in first.items() if name != "uri"}
    assert identity("s3", "b", {**alone, "s3.session-token": "2"}) != identity("s3", "b", alone)


def test_names_tell_nothing_and_lead_nowhere(tmp_path: Path, shelf: Shelf) -> None:
    hostile = ["../../../etc/passwd", "/etc/passwd", "a\0b", "x" * 5000, "\udcff", "~", "a\nb"]
    for path in hostile:
        shelf.put_whole(shelf.name(path, 1), b"x")
    found = files(tmp_path / "c")
    assert len(found) == len(hostile)
    assert all(len(each.name) == 64 and each.name.isalnum() for each in found)
    # The salt differs, and with it every name.
    assert shelf_of(tmp_path / "d").name("f", 1) != shelf.name("f", 1)
    # Length and path cannot be confused in the name.
    assert shelf.name("f1", 2) != shelf.name("f", 12)


def test_links_in_the_folder_are_not_followed(tmp_path: Path, shelf: Shelf) -> None:
    name = shelf.name("f", 6)
    place = Path(shelf.put_whole(name, b"secret"))
    outside = tmp_path / "outside"
    outside.write_bytes(b"secret")
    place.unlink()
    place.symlink_to(outside)
    assert shelf.whole(name, 6) is None
    assert shelf.read_whole(name) is None
    # A newly fetched file replaces the link, not its target.
    shelf.put_whole(name, b"SECRET")
    assert outside.read_bytes() == b"secret"
    assert shelf.read_whole(name) == b"SECRET"
    shelf.put_part(name, 0, b"abc")
    part = place.with_name(place.name + ".d") / "0-3"
    part.unlink()
    part.symlink_to(outside)
    assert shelf.read_part(name, (0, 3), 0, 3) is None


@pytest.mark.parametrize("where", ["c", "c/v1"])
def test_a_folder_that_others_may_write_to_is_not_used(tmp_path: Path, where: str) -> None:
    shelf_of(tmp_path / "c")
    (tmp_path / where).chmod(0o777)
    with pytest.raises(UnusableCache, match="other users may"):
        BlockStore(str(tmp_path / "c"))


def test_a_link_in_the_place_of_the_folder_is_not_used(tmp_path: Path) -> None:
    (tmp_path / "c").mkdir(mode=0o700)
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    (tmp_path / "c" / "v1").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UnusableCache, match="not a folder"):
        BlockStore(str(tmp_path / "c"))
    assert list((tmp_path / "elsewhere").iterdir()) == []


@pytest.mark.parametrize("used_before", [False, True])
@pytest.mark.parametrize("dated_back", [False, True])
def test_what_was_damaged_is_not_read(
    tmp_path: Path, used_before: bool, dated_back: bool, shelf: Shelf
) -> None:
    """After a loss of power, say, a file may have its length and hold zeros."""
    good, bad = shelf.name("good", 4), shelf.name("bad", 4)
    shelf.put_whole(good, b"good")
    damaged = Path(shelf.put_whole(bad, b"fine"))
    assert not used_before or shelf.read_whole(bad) == b"fine"
    changed = damaged.stat().st_mtime_ns
    damaged.write_bytes(bytes(4))
    if dated_back:
        os.utime(damaged, ns=(changed, changed))
    assert shelf.read_whole(good) == b"good"
    assert shelf.read_whole(bad) is None
    assert not damaged.exists()


def test_a_file_is_not_read_in_the_place_of_another(tmp_path: Path, shelf: Shelf) -> None:
    one, two = shelf.name("one", 4), shelf.name("two", 4)
    first, second = shelf.put_whole(one, b"aaaa"), shelf.put_whole(two, b"bbbb")
    shutil.copy2(first, second)
    assert shelf.read_whole(two) is None
    assert shelf.read_whole(one) == b"aaaa"
    shelf.put_part(one, 0, b"cccc")
    shelf.put_part(one, 4, b"dddd")
    folder = Path(f"{first}.d")
    shutil.copy2(folder / "0-4", folder / "4-8")
    assert shelf.read_part(one, (4, 8), 4, 8) is None


def test_a_file_is_compared_once_in_a_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shelf: Shelf
) -> None:
    name = shelf.name("f", 4)
    shelf.put_whole(name, b"fine")
    compared = []
    whole = blocks._is_intact
    monkeypatch.setattr(
        blocks, "_is_intact", lambda path, found: compared.append(path) or whole(path, found)
    )
    for _ in range(5):
        assert shelf.read_whole(name) == b"fine"
    assert compared == []  # this process wrote it
    blocks._compared.clear()  # as in another process
    for _ in range(5):
        assert shelf.read_whole(name) == b"fine"
    assert len(compared) == 1


def test_the_size_is_kept_and_what_was_used_last_stays(tmp_path: Path) -> None:
    shelf = shelf_of(tmp_path / "c", size=100_000)
    names = [shelf.name(f"f{number}", 10_000) for number in range(20)]
    for name in names[:9]:
        shelf.put_whole(name, bytes(10_000))
    assert shelf.whole(names[0], 10_000)
    for name in names[9:]:
        shelf.put_whole(name, bytes(10_000))
        wait_until(lambda: shelf.eviction.count()[1] <= 100_000)
        assert shelf.whole(names[0], 10_000)
    assert shelf.eviction.count()[1] <= 100_000
    assert shelf.whole(names[1], 10_000) is None
    with pytest.raises(OSError, match="larger than the cache"):
        shelf.put_whole(names[1], bytes(100_001))


def test_what_is_added_during_a_sweep_is_counted_and_swept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shelf = shelf_of(tmp_path / "c", size=100_000)
    eviction, late = shelf.eviction, [shelf.name(f"late{number}", 10_000) for number in range(2)]
    files = type(eviction)._files

    def listed(self: Any) -> Any:
        found = list(files(self))
        while late and threading.current_thread().name == "icesql-evict":
            shelf.put_whole(late.pop(), bytes(10_000))
        return iter(found)

    monkeypatch.setattr(type(eviction), "_files", listed)
    for number in range(11):
        kept(shelf, f"f{number}", bytes(10_000))
    wait_until(lambda: not late and eviction.count()[1] <= 100_000)
    wait_until(lambda: not eviction._sweeping)
    assert eviction.count()[1] <= eviction.usage() <= 120_000


def test_what_a_running_query_uses_is_not_evicted(tmp_path: Path) -> None:
    shelf = shelf_of(tmp_path / "c", size=1_000_000)
    held, other = shelf.name("held", 3), shelf.name("other", 3)
    shelf.put_whole(other, b"abc")
    place = shelf.put_whole(held, b"abc")
    os.utime(place, ns=(1, os.stat(place).st_mtime_ns))
    lease = shelf.eviction.lease()
    with shelf.eviction.finding():
        assert shelf.whole(held, 3) == place
    assert BlockStore(str(tmp_path / "c")).eviction.sweep(0) == 3
    assert Path(place).exists()
    lease.close()
    assert BlockStore(str(tmp_path / "c")).eviction.sweep(0) == 0
    assert not Path(place).exists()


def test_a_lease_ends_with_its_process(tmp_path: Path, shelf: Shelf) -> None:
    kept(shelf, "f", b"abc")
    code = (
        "import os, signal, sys\n"
        "from icesql.storage.stores.blocks import BlockStore\n"
        f"lease = BlockStore({str(tmp_path / 'c')!r}).eviction.lease()\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    assert warm.python(code).returncode == -signal.SIGKILL
    assert len(list((tmp_path / "c" / "v1" / "leases").iterdir())) == 1
    assert shelf.eviction.sweep(0) == 0
    assert list((tmp_path / "c" / "v1" / "leases").iterdir()) == []


def _write_for_ever(folder: str, data: bytes) -> None:
    shelf = shelf_of(Path(folder))
    while True:
        for number in range(4):
            kept(shelf, f"f{number}", data)
            shelf.put_part(shelf.name("large", None), number * len(data), data)


def test_two_writers_and_a_kill_leave_whole_files(tmp_path: Path) -> None:
    data = bytes(range(256)) * 4096
    context = multiprocessing.get_context("spawn")
    folder = tmp_path / "c"
    shelf = shelf_of(folder)
    name = shelf.name("f0", len(data))
    for _ in range(3):
        writers = [
            context.Process(target=_write_for_ever, args=(str(folder), data)) for _ in range(2)
        ]
        for each in writers:
            each.start()
        wait_until(lambda: shelf.read_whole(name))
        for _ in range(20):
            assert shelf.read_whole(name) == data
        for each in writers:
            assert each.pid is not None
            os.kill(each.pid, signal.SIGKILL)
            each.join()
    for number in range(4):
        found = shelf.read_whole(shelf.name(f"f{number}", len(data)))
        assert found in (None, data)
    for first, last in shelf.parts(shelf.name("large", None)):
        part = shelf.read_part(shelf.name("large", None), (first, last), first, last)
        assert part == data
    # Unfinished files are removed by a later sweep, also those of the file that counts the bytes.
    Path(shelf.eviction.folder, "usage.1.00.tmp").touch()
    for each in folder.rglob("*.tmp"):
        os.utime(each, (1, 1))
    shelf.eviction.sweep(1 << 40)
    assert list(folder.rglob("*.tmp")) == []


def test_a_disk_that_is_full_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shelf: Shelf
) -> None:
    name = shelf.name("f", 100)

    def full(handle: int, data: bytes) -> int:
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(OSError, match="No space left"):
        shelf.put_whole(name, bytes(100))
    monkeypatch.undo()
    assert files(tmp_path / "c") == []
    assert shelf.whole(name, 100) is None


def test_an_emptied_folder_is_made_anew(tmp_path: Path, shelf: Shelf) -> None:
    shelf.put_part(shelf.name("f", 10), 0, b"abc")
    shelf.eviction.sweep(0)
    assert files(tmp_path / "c") == []
    shelf.put_part(shelf.name("f", 10), 0, b"abc")
    assert shelf.parts(shelf.name("f", 10)) == [(0, 3)]


def test_a_temporary_store_of_a_killed_process_goes_with_the_next(tmp_path: Path) -> None:
    from icesql.config import Settings
    from icesql.storage.cache import Blocks

    settings = Settings(cache=False, temp_directory=str(tmp_path / "t"))
    code = (
        "import os, signal\n"
        "from icesql.config import Settings\n"
        "from icesql.storage.cache import Blocks\n"
        f"blocks = Blocks(Settings(cache=False, temp_directory={str(tmp_path / 't')!r}))\n"
        "held = blocks.store()\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    assert warm.python(code).returncode == -signal.SIGKILL
    mine = Blocks(settings)
    held = mine.store()
    assert held is not None
    assert len(list((tmp_path / "t").iterdir())) == 2
    for each in (tmp_path / "t").iterdir():
        os.utime(each, (1, 1))
    another = Blocks(settings)
    assert another.store() is not None
    left = {Path(each).parent for each in (held.folder, another.store().folder)}  # type: ignore[union-attr]
    assert set((tmp_path / "t").iterdir()) == left
    del mine, another, held
    assert list((tmp_path / "t").iterdir()) == []
