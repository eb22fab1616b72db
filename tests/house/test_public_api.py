"""The public surface is short, listed in public_api.txt, and changed only on purpose."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import icesql
from icesql import errors

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


def test_every_error_that_the_manual_names_is_exported() -> None:
    manual = Path(__file__).parents[2] / "icesql" / "manual"
    chapter = (manual / "errors.md").read_text(encoding="utf-8")
    explained = set(re.findall(r"^## (\w+Error)$", chapter, re.MULTILINE))
    assert len(explained) > 15
    # Those of PEP 249 that are raised as they are need no section.
    assert {name for name in vars(errors) if name.endswith("Error")} - explained <= {
        "Error", "InterfaceError", "DatabaseError", "ProgrammingError", "NotSupportedError",
        "DataError", "OperationalError", "IntegrityError", "InternalError",
    }  # fmt: skip
    text = "".join(each.read_text(encoding="utf-8") for each in manual.rglob("*.md"))
    # Those of Python and of other packages are not ours to export.
    named = explained | {
        name for name in re.findall(r"\b\w+Error\b", text) if hasattr(errors, name)
    }
    assert named <= set(icesql.__all__), named - set(icesql.__all__)
    for name in named:
        assert getattr(icesql, name) is getattr(errors, name)


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
