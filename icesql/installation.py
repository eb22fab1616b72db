"""``icesql doctor`` without a table: the installed packages, and those missing for each extra."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, metadata, version
from shutil import which
from typing import Final

COLUMNS: Final = ("name", "value", "advice")
_JAVA: Final = 17
_SECONDS: Final = 10


def installation() -> Iterator[tuple[str, str | None, str]]:
    """Rows of ``COLUMNS``: each extra of icesql by its packages, and Java for Spark."""
    for extra, packages in sorted(_extras().items()):
        missing = [name for name in packages if not _version(name)]
        there = ", ".join(f"{name} {_version(name)}" for name in packages if _version(name))
        advice = f"pip install '.[{extra}]'" if missing else ""
        yield f"extra {extra}", there or None, advice
    yield "java", *_java()


def _extras() -> dict[str, list[str]]:
    """The packages of each extra, without those of PyIceberg's own extras."""
    found: dict[str, list[str]] = {}
    try:
        required = metadata("icesql").get_all("Requires-Dist") or []
    except PackageNotFoundError:  # run from a checkout
        return found
    for each in required:
        parts = re.fullmatch(
            r"([\w.-]++)(?:\[([\w,-]+)\])?[^;]*+;\s*extra\s*==\s*['\"]([\w-]+)['\"]", each
        )
        if parts is None or parts[3] == "test":
            continue
        name, inner, extra = parts[1], parts[2], parts[3]
        packages = _extra_of(name, inner) if inner and name == "pyiceberg" else [name]
        found.setdefault(extra, []).extend(packages)
    return found


def _extra_of(package: str, extra: str) -> list[str]:
    try:
        required = metadata(package).get_all("Requires-Dist") or []
    except PackageNotFoundError:
        return [package]
    wanted = re.compile(rf"extra\s*==\s*['\"]{re.escape(extra)}['\"]")
    names = [re.split(r"[\s\[<>=!~;(]", each)[0] for each in required if wanted.search(each)]
    return names or [package]


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _java() -> tuple[str | None, str]:
    """The version of Java that Spark would use, and advice about it."""
    home = os.environ.get("JAVA_HOME")
    command = os.path.join(home, "bin", "java") if home else which("java")
    wanted = f"Spark needs Java {_JAVA} or later; set JAVA_HOME"
    if not command:
        return None, wanted
    try:
        done = subprocess.run(
            [command, "-version"], capture_output=True, text=True, timeout=_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return None, f"{command} does not run: {error}"
    found = re.search(r'version "(\d+)(?:\.(\d+))?[^"]*"', done.stderr + done.stdout)
    if found is None:
        return None, f"{command} does not tell its version"
    # Java 8 calls itself 1.8.
    number = int(found[2] or 0) if found[1] == "1" else int(found[1])
    return f"{number} ({command})", "" if number >= _JAVA else wanted
