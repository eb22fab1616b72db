"""The fields of a snapshot's summary that name its writer."""

from __future__ import annotations

from functools import cache
from typing import Final

_ENGINE: Final = "icesql"


def engine_summary() -> dict[str, str]:
    """The name and version of what makes a snapshot."""
    return {"engine-name": _ENGINE, "engine-version": _version()}


@cache
def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(_ENGINE)
    except PackageNotFoundError:  # run from a folder of sources
        return "0"
