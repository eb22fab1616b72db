"""Every class of dbt-tests-adapter, as in dbt's own adapters, with our adaptations."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import dbt.tests.adapter
import pytest
from changes import CHANGED, LEFT_OUT


def _classes() -> dict[str, type]:
    """Base classes by ``folder.Name``; the suite's own tests of them are for Postgres."""
    found: dict[str, type] = {}
    (root,) = map(Path, dbt.tests.adapter.__path__)
    for file in sorted(root.rglob("*.py")):
        parts = file.relative_to(root).with_suffix("").parts
        module = importlib.import_module(".".join((dbt.tests.adapter.__name__, *parts)))
        for name, value in vars(module).items():
            if not isinstance(value, type) or value.__module__ != module.__name__:
                continue
            if "Base" not in name or name.startswith(("Test", "_")):
                continue
            if any(each.startswith("test") for each in dir(value)):
                found[f"{parts[0]}.{name}"] = value
    return found


def _made(key: str, base: type) -> type:
    members: dict[str, Any] = dict(vars(CHANGED[key])) if key in CHANGED else {}
    for above in CHANGED[key].__mro__[1:-1] if key in CHANGED else ():
        members = {**vars(above), **members}
    members = {name: each for name, each in members.items() if name not in _OF_A_CLASS}
    for name in dir(base):
        if f"{key}.{name}" in LEFT_OUT:
            members[name] = _skipped(LEFT_OUT[f"{key}.{name}"])
    made = type(f"Test_{key.replace('.', '_')}", (base,), members)
    made.__module__ = __name__
    return pytest.mark.skip(reason=LEFT_OUT[key])(made) if key in LEFT_OUT else made


def _skipped(reason: str) -> Any:
    @pytest.mark.skip(reason=reason)
    def test(self: Any) -> None:
        pass

    return test


_OF_A_CLASS = ("__dict__", "__weakref__", "__module__", "__doc__", "__firstlineno__")

_FOUND = _classes()
_NAMED = {".".join(key.split(".")[:2]) for key in (*CHANGED, *LEFT_OUT)}
_UNKNOWN = sorted(_NAMED - set(_FOUND))
assert not _UNKNOWN, f"this release of dbt-tests-adapter has no {', '.join(_UNKNOWN)}"
from zones import TestMicrobatchInAZone  # noqa: E402, F401

globals().update((made.__name__, made) for made in (_made(*each) for each in _FOUND.items()))
