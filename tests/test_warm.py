"""A warm process is as one that was started: streams, environment, folder, memory and end."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests import warm


def test_it_has_streams_arguments_a_folder_and_an_environment(tmp_path: Path) -> None:
    program = (
        "import os, sys\n"
        "print(sys.argv, os.getcwd(), sys.stdin.read(), sorted(os.environ), __name__)\n"
        "print('said', file=sys.stderr)\n"
        "sys.exit(3)\n"
    )
    done = warm.python(program, "ü", stdin="ö", cwd=tmp_path, env={"A": "1", "LC_ALL": "C"})
    told = f"['-c', 'ü'] {tmp_path} ö ['A', 'LC_ALL'] __main__\n"
    assert (done.returncode, done.stdout, done.stderr) == (3, told, "said\n")


def test_it_ends_as_any_other() -> None:
    done = warm.python("import atexit; atexit.register(print, 'end'); raise ValueError('no')")
    assert (done.returncode, done.stdout) == (1, "end\n")
    assert done.stderr.endswith("ValueError: no\n")
    assert warm.python("import os; os.abort()").returncode == -signal.SIGABRT
    with pytest.raises(subprocess.TimeoutExpired):
        warm.python("import time; time.sleep(60)", timeout=0.2)
    done = warm.python("import threading; print(threading.active_count(), 'x' in globals())")
    assert (done.returncode, done.stdout) == (0, "1 False\n")


def test_the_command_is_the_command(tmp_path: Path) -> None:
    done = warm.icesql("--format", "csv", stdin="SELECT 1 AS a; SELECT nope")
    assert (done.returncode, done.stdout) == (1, "a\n1\n")
    assert "nope" in done.stderr
    done = warm.icesql("-c", "SELECT 1", env={**os.environ, "ICESQL_CONFIG": "/nowhere.toml"})
    assert "nowhere.toml" in done.stderr
