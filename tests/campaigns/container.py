"""The container of tests/container/Containerfile is built and asked.

    python tests/campaigns/container.py [--base IMAGE] [--build-option OPTION …]

Builds the wheel and the image with podman or docker, whichever works here, then runs it as an
ordinary user without a network and with a read-only file system: the version, a query, a chapter of
the manual, and the demo in a folder of this machine, written by one container and read by the next.
Needs hatchling and a package index. Ends with code 1 when anything fails, and with 0 and a line that
says so where no tool works.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FILE = ROOT / "tests" / "container" / "Containerfile"
TAG = "icesql-smoke-test"
COUNT = "SELECT count(*) AS trips FROM demo.trips VERSION AS OF 'two-weeks'"
ASKED = (
    (["--version"], r"icesql \d"),
    (["-c", "SELECT 1 AS one"], r"one\n-+\n +1"),
    (["help", "stability"], "Compatibility and deprecation"),
    (["-c", "SELECT count(*) AS n FROM (SELECT * FROM range(3000000) ORDER BY 1 DESC)"], "3000000"),
    (["demo", "/work/lake"], ""),
    (["--warehouse", "/work/lake", "--format", "csv", "-c", COUNT], "trips\n2800"),
)


def tool() -> str | None:
    """The container tool that works here: docker's command is there where its server is not."""
    for name in ("podman", "docker"):
        if shutil.which(name):
            done = subprocess.run([name, "info"], capture_output=True, check=False)
            if done.returncode == 0:
                return name
    return None


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--base")
    parser.add_argument("--build-option", action="append", default=[])
    options = parser.parse_args()
    name = tool()
    if name is None:
        print("neither podman nor docker works here: not tried")
        return 0
    with tempfile.TemporaryDirectory() as place:
        command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", place]
        subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
        base = ["--build-arg", f"BASE={options.base}"] if options.base else []
        built = [name, "build", *options.build_option, *base, "-f", FILE, "-t", TAG, place]
        if subprocess.run(built, check=False).returncode:
            return 1
    # Docker's has no folder of its own that can be written to, either.
    nothing_writable = ["--read-only-tmpfs=false"] if name == "podman" else []
    failed = 0
    with tempfile.TemporaryDirectory() as work:
        os.chmod(work, 0o777)
        for arguments, expected in ASKED:
            run = [name, "run", "--rm", "--read-only", *nothing_writable, "--network", "none"]
            done = subprocess.run(
                [*run, "-v", f"{work}:/work", TAG, *arguments],
                capture_output=True,
                text=True,
                check=False,
            )
            right = done.returncode == 0 and re.search(expected, done.stdout) is not None
            failed += not right
            print("right" if right else "WRONG", *arguments)
            if not right:
                print(done.stdout + done.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
