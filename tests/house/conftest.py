"""What ``pip install .`` gives, with no package more: what tests bring along hides what is missing."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from importlib import metadata
from pathlib import Path

import pytest

from tests.manual.packages import closure

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def wheel_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    builder = pytest.importorskip("hatchling.builders.wheel", reason="hatchling is not installed")
    folder = str(tmp_path_factory.mktemp("wheel"))
    (built,) = builder.WheelBuilder(str(ROOT)).build(directory=folder, versions=["standard"])
    return Path(built)


@pytest.fixture(scope="session")
def plain(wheel_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment that has the wheel and the packages that it asks for.

    They are linked from here, which takes a second and no network; their extras are not there.
    """
    venv = tmp_path_factory.mktemp("plain") / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(venv)], check=True)
    packages = next(venv.glob("lib/python*/site-packages"))
    with zipfile.ZipFile(wheel_file) as wheel:
        wheel.extractall(packages)
        (wanted,) = (name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
        needed = metadata.PathDistribution(packages / Path(wanted).parent).requires or []
    for each in closure(needed):
        for top in {file.parts[0] for file in each.files or [] if file.parts[0] != ".."}:
            link, target = packages / top, Path(str(each.locate_file(top)))
            if top != "__pycache__" and target.exists() and not link.exists():
                link.symlink_to(target)
    return venv / "bin" / "python"
