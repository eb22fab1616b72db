"""The public surface is short, listed in public_api.txt, and changed only on purpose."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path

import icesql

LISTING = Path(__file__).with_name("public_api.txt")


def test_public_api_is_the_listed_one(update_golden: bool) -> None:
    found = "\n".join(_surface()) + "\n"
    if update_golden:
        LISTING.write_text(found, encoding="utf-8")
    assert found == LISTING.read_text(encoding="utf-8")


def test_every_public_name_exists_and_has_a_docstring() -> None:
    for name in icesql.__all__:
        value = getattr(icesql, name)
        if callable(value):
            assert inspect.getdoc(value), f"icesql.{name} has no docstring"


def _surface() -> Iterator[str]:
    for name in sorted(icesql.__all__):
        value = getattr(icesql, name)
        if inspect.isclass(value):
            public = (base.__name__ for base in value.__bases__ if base.__name__[0] != "_")
            bases = ", ".join(public)
            yield f"class {name}({bases})"
            if value.__module__.startswith("icesql.") and not issubclass(value, Exception):
                yield from _members(name, value)
        elif inspect.isroutine(value):
            yield f"{name}{_signature(value)}"
        elif inspect.ismodule(value):
            # One that is called.
            yield f"{name}{_signature(value.__call__)}"
        else:
            yield f"{name} = {value!r}"


def _members(owner: str, value: type) -> Iterator[str]:
    inherited = {
        name: member
        for base in reversed(value.__mro__)
        if base.__module__.startswith("icesql.")
        for name, member in vars(base).items()
    }
    for name, member in sorted(inherited.items()):
        if name.startswith("_"):
            continue
        if isinstance(member, property):
            yield f"{owner}.{name}"
        elif inspect.isfunction(member):
            yield f"{owner}.{name}{_signature(member)}"
    fields = [name for name in getattr(value, "__annotations__", {}) if not name.startswith("_")]
    for name in sorted(set(fields) - set(vars(value))):
        yield f"{owner}.{name}"


def _signature(value: object) -> str:
    return str(inspect.signature(value))  # type: ignore[arg-type]
