"""A file is complete under its name, or it is not there."""

from __future__ import annotations

import errno
import os
import threading
from pathlib import Path

import pytest

from icesql.errors import AccessDeniedError, OperationalError
from icesql.storage.new_files import OutputFile
from icesql.storage.roots import Roots
from tests import warm


def names(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.iterdir())


def test_nothing_has_the_name_before_the_end(tmp_path: Path) -> None:
    with OutputFile(str(tmp_path / "x.csv")) as file:
        file.write(b"a\n")
        assert "x.csv" not in names(tmp_path)
    assert names(tmp_path) == ["x.csv"]
    assert (tmp_path / "x.csv").read_bytes() == b"a\n"
    assert (tmp_path / "x.csv").stat().st_mode & 0o777 == 0o666 & ~_umask()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


@pytest.mark.parametrize("error", [ValueError("no"), KeyboardInterrupt(), SystemExit(1)])
def test_an_error_leaves_nothing_behind(error: BaseException, tmp_path: Path) -> None:
    file = OutputFile(str(tmp_path / "x"))

    def fails() -> None:
        with file:
            file.write(b"a")
            raise error

    with pytest.raises(type(error)):
        fails()
    assert names(tmp_path) == []
    with pytest.raises(OperationalError, match="the file is closed"):
        file.write(b"late")  # a thread of the engine that does not know yet


def test_a_file_that_is_there_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_text("old")
    with pytest.raises(OperationalError, match=r"x: the file exists; --overwrite"):
        OutputFile(str(path))
    with OutputFile(str(path), overwrite=True) as file:
        file.write(b"new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    file = OutputFile(str(path), overwrite=True)
    file.write(b"bad")
    file.abandon()
    file.abandon()
    file.finish()
    assert (path.read_text(), names(tmp_path)) == ("new", ["x"])


def test_of_two_that_write_at_once_the_first_to_finish_keeps_its_file(tmp_path: Path) -> None:
    one, other = OutputFile(str(tmp_path / "x")), OutputFile(str(tmp_path / "x"))
    one.write(b"one")
    other.write(b"other")
    one.finish()
    with pytest.raises(OperationalError, match="exists"):
        other.finish()
    assert ((tmp_path / "x").read_text(), names(tmp_path)) == ("one", ["x"])


@pytest.mark.parametrize("linking", [True, False])
def test_a_file_system_without_links(
    linking: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.EPERM, "no links here")

    if not linking:
        monkeypatch.setattr(os, "link", refuse)
    with OutputFile(str(tmp_path / "x")) as file:
        file.write(b"a")
    assert names(tmp_path) == ["x"]
    late = OutputFile(str(tmp_path / "y"))
    (tmp_path / "y").write_text("theirs")
    with pytest.raises(OperationalError, match="exists"):
        late.finish()
    assert ((tmp_path / "y").read_text(), names(tmp_path)) == ("theirs", ["x", "y"])


def test_a_full_disk_is_named_and_leaves_nothing(tmp_path: Path) -> None:
    program = (
        "import resource, signal, sys\n"
        "from icesql.errors import OperationalError\n"
        "from icesql.storage.new_files import OutputFile\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        # The limit holds for the child's own output too, which is far shorter than this.
        "resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))\n"
        "try:\n"
        "    with OutputFile(sys.argv[1]) as file:\n"
        "        [file.write(b'x' * 500) for _ in range(int(sys.argv[2]))]\n"
        "except OperationalError as error:\n"
        "    print(error)\n"
    )
    for count in ("41", "300"):  # met at the end, and on the way
        done = warm.python(program, tmp_path / "x", count)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.startswith("cannot write")
        assert "file too large" in done.stdout
        assert names(tmp_path) == []


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("", "not the path of a file"),
        ("a\0b", "not the path of a file"),
        ("nowhere/x.csv", "no such file or directory"),
        (".", "it is a folder"),
        ("s3://bucket/x.csv", "not to object stores"),
        ("https://host/x.csv", "not to object stores"),
    ],
)
def test_paths_that_cannot_be_written(
    path: str, problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(OperationalError, match=problem):
        OutputFile(path)
    assert names(tmp_path) == []


def test_other_spellings_of_a_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for path in ("~/a", f"file://{tmp_path}/b%20c", f"{tmp_path}/{'n' * 255}"):
        with OutputFile(path) as file:
            file.write(b"")
    assert names(tmp_path) == ["a", "b c", "n" * 255]


def test_a_pipe_is_written_as_it_is(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    seen: list[bytes] = []
    reader = threading.Thread(target=lambda: seen.append((tmp_path / "pipe").read_bytes()))
    reader.start()
    with OutputFile(str(tmp_path / "pipe")) as file:
        file.write(b"a")
        assert not file.restart()
    reader.join(600)
    assert (seen, names(tmp_path)) == ([b"a"], ["pipe"])


def test_a_link_keeps_its_place_and_its_target_gets_the_rows(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to("real")
    with OutputFile(str(tmp_path / "link"), overwrite=True) as file:
        file.write(b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "new"


def test_a_restart_forgets_what_was_written(tmp_path: Path) -> None:
    with OutputFile(str(tmp_path / "x")) as file:
        file.write(b"long long ago")
        assert file.restart()
        file.write(b"now")
    assert (tmp_path / "x").read_bytes() == b"now"


def test_roots(tmp_path: Path) -> None:
    inside, outside = tmp_path / "in", tmp_path / "out"
    inside.mkdir()
    outside.mkdir()
    (outside / "there").write_text("secret")
    (inside / "door").symlink_to(outside)
    (inside / "key").symlink_to(outside / "there")
    roots = Roots.of([inside])
    with OutputFile(str(inside / "x"), allowed=roots) as file:
        file.write(b"a")
    said = set()
    for path in (
        outside / "x", outside / "there", outside / "none" / "x", inside / "door" / "x",
        inside / "key", inside / ".." / "out" / "x", f"file://{inside}/%2e%2e/out/x",
    ):  # fmt: skip
        for overwrite in (False, True):
            with pytest.raises(AccessDeniedError) as caught:
                OutputFile(str(path), overwrite=overwrite, allowed=roots)
            said.add(str(caught.value))
    assert len(said) == 1
    assert (names(inside), names(outside)) == (["door", "key", "x"], ["there"])
    assert (outside / "there").read_text() == "secret"
